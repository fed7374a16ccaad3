"""The engines, each in small tiles: threads with BLAS, and JAX on whatever device there is; the
command, run in an empty folder; and real data, where there are any."""

import os
import sys
from pathlib import Path

import pytest
from engines import SmallTiles, jax_engine
from limits import Limits

DATA = Path(os.environ.get("NNGP_DATA") or Path(__file__).parents[2] / "shared" / "data")


def pytest_configure(config):
    config.pluginmanager.register(Limits())


def pytest_collection_modifyitems(items):
    """What takes long to compile, and tests on JAX what others test there as well, is slow or deep;
    a marker may name the parameters for which it is, or their ids."""
    for item in items:
        for marker in list(item.iter_markers()):
            if marker.name not in ("slow_on_jax", "deep_on_jax"):
                continue
            wanted = {"engine": "jax", **marker.kwargs}
            given, ids = item.callspec.params, item.callspec.id.split("-")
            if all(given[name] == wanted[name] for name in wanted) and set(marker.args) <= set(ids):
                item.add_marker(marker.name.removesuffix("_on_jax"))


def pytest_collection_finish(session):
    """Programs that JAX compiles here are kept in pytest's cache, for the next run. Processes that
    tests start have no part in it: one that is killed would leave half a program behind."""
    jax, cache = sys.modules.get("jax"), getattr(session.config, "cache", None)
    if jax and cache:
        jax.config.update("jax_compilation_cache_dir", str(cache.mkdir("jax")))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@pytest.fixture(params=["cpu", "jax"])
def engine(request):
    return SmallTiles() if request.param == "cpu" else jax_engine()


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in an empty folder; gives exit code, stdout, stderr."""
    pytest.importorskip("polars")
    pytest.importorskip("typer")
    from nngp.terminal.app import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)  # as in a pipe, wherever the tests run

    def call(words):
        with pytest.raises(SystemExit) as left:
            app(words.split())
        captured = capsys.readouterr()
        return left.value.code, captured.out, " ".join(captured.err.split())

    return call


@pytest.fixture
def data_folder():
    """A function: the folder with real data, if it holds these files; else the test is skipped."""

    def found(*files):
        missing = [name for name in files if not (DATA / name).exists()]
        if missing:
            pytest.skip(f"{DATA} has no {missing[0]}; name a folder with NNGP_DATA")
        return DATA

    return found
