"""Compiled programs are found again by the next process, and nothing that happens to their folder
changes an answer or a setting of JAX."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from nngp.gram.device.program_store import ProgramStore, store_folder

jax = pytest.importorskip("jax")

from nngp.gram.device import programs  # noqa: E402

SCRIPT = """
import jax, numpy as np
from nngp.gram.device import programs

@programs.program
def product(a, b):
    return {"product": a @ b, "sum": a.sum() + b.sum()}

with jax.enable_x64(True):
    found = product(np.arange(6.0).reshape(2, 3), np.full((3, 2), 0.1))
print([one.loaded for one in programs.made], np.asarray(found["product"]).tobytes().hex())
"""


def fresh():
    """A program that this process has not compiled yet."""

    @programs.program
    def scaled(a, factor, *, power):
        return (a * factor) ** power

    return scaled


def call(program):
    """Its result for some arguments, and whether it came from a file."""
    with jax.enable_x64(True):
        found = np.asarray(program(np.arange(5.0), np.float64(0.1), power=3))
    return found, programs.made[-1].loaded


EXPECTED = (np.arange(5.0) * np.float64(0.1)) ** 3


@pytest.fixture
def folder(tmp_path, monkeypatch, without_cache):
    monkeypatch.setenv("NNGP_PROGRAMS", str(tmp_path / "programs"))
    return tmp_path / "programs"


@pytest.fixture
def without_cache():
    """JAX does not keep programs itself, as it does for the other tests."""
    from jax.experimental.compilation_cache import compilation_cache

    before = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()
    yield
    jax.config.update("jax_enable_compilation_cache", before)
    compilation_cache.reset_cache()


def test_where_jax_keeps_programs_they_are_left_to_it(folder, tmp_path):
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_enable_compilation_cache", True)
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "of jax"))
    try:
        for _ in range(3):
            found, loaded = call(fresh())
            assert not loaded
            np.testing.assert_allclose(found, EXPECTED, rtol=1e-15)
        assert not folder.exists()
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


def start(folder):
    environment = {**os.environ, "NNGP_PROGRAMS": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT], env=environment, stdout=subprocess.PIPE, text=True
    )


def test_processes_at_once_and_afterwards(tmp_path):
    both = [start(tmp_path / "programs") for _ in range(2)]
    said = [one.communicate(timeout=300)[0] for one in both]
    assert [one.returncode for one in both] == [0, 0]
    later = start(tmp_path / "programs").communicate(timeout=300)[0]
    assert later.startswith("[True]")
    assert said[0].split("] ")[1] == said[1].split("] ")[1] == later.split("] ")[1]
    assert len(list((tmp_path / "programs").iterdir())) == 1  # and nothing half-written


def test_a_program_is_read_and_not_compiled_again(folder):
    results = [call(fresh()) for _ in range(2)]
    assert [loaded for _, loaded in results] == [False, True]
    for found, _ in results:
        np.testing.assert_allclose(found, EXPECTED, rtol=1e-15)
    assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("body", [b"", b"not a program", None])
def test_a_damaged_or_foreign_file_is_replaced(folder, body):
    call(fresh())
    (file,) = folder.iterdir()
    if body is None:  # complete, and of something else
        ProgramStore(folder).write(file.stem, b"bytes that JAX cannot read")
    else:
        file.write_bytes(body)
    for expected in (False, True):
        found, loaded = call(fresh())
        assert loaded is expected
        np.testing.assert_allclose(found, EXPECTED, rtol=1e-15)


def test_turned_off(tmp_path, monkeypatch):
    monkeypatch.setenv("NNGP_CACHE", str(tmp_path))
    monkeypatch.setenv("NNGP_PROGRAMS", "off")
    assert store_folder() is None
    assert [call(fresh())[1] for _ in range(2)] == [False, False]
    assert not list(tmp_path.iterdir())
    monkeypatch.delenv("NNGP_PROGRAMS")
    assert store_folder() == tmp_path / "programs"


def test_a_folder_that_cannot_be_used(folder):
    folder.write_text("a file where the folder should be")
    for _ in range(2):
        found, loaded = call(fresh())
        assert not loaded
        np.testing.assert_allclose(found, EXPECTED, rtol=1e-15)


def test_a_folder_that_others_can_write_to_is_not_read(folder):
    call(fresh())
    folder.chmod(0o777)
    assert not call(fresh())[1]
    folder.chmod(0o700)
    assert call(fresh())[1]


def test_what_was_used_longest_ago_is_removed(tmp_path):
    store = ProgramStore(tmp_path / "programs", most=350)
    for age, name in ((300, "old"), (200, "used"), (100, "new")):
        store.write(name, b"x" * 80)  # and 32 bytes of a digest
        os.utime(tmp_path / "programs" / f"{name}.program", (time.time() - age,) * 2)
    assert store.read("old") == b"x" * 80
    store.write("more", b"y" * 80)
    assert [store.read(name) is None for name in ("old", "used", "new", "more")] == [
        False,
        True,
        False,
        False,
    ]
    store.write("huge", b"z" * 400)
    assert store.read("huge") is None


def test_each_kind_of_arguments_is_a_program(folder):
    program = fresh()
    known = len(programs.made)
    with jax.enable_x64(True):
        for size, power in ((3, 1), (3, 1), (4, 1), (3, 2)):
            found = program(np.full(size, 2.0), np.float64(3.0), power=power)
            np.testing.assert_array_equal(found, np.full(size, 6.0**power))
    assert len(programs.made) - known == 3


def test_an_error_is_raised_by_every_call():
    @programs.program
    def wrong(a):
        raise ZeroDivisionError("in a program")

    wrong.prepare(programs.shaped(3))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="in a program"):
            wrong(np.zeros(3))


def test_settings_of_jax_stay_as_they_are(folder):
    names = ("enable_x64", "default_device", "compilation_cache_dir", "enable_compilation_cache")
    before = [getattr(jax.config, f"jax_{name}") for name in names]
    call(fresh())
    assert [getattr(jax.config, f"jax_{name}") for name in names] == before
    assert jax.numpy.ones(3).dtype == np.float32
    kept = set(folder.iterdir())
    jax.jit(lambda x: x * 17.5)(np.arange(3)).block_until_ready()  # a user's own
    assert set(folder.iterdir()) == kept
