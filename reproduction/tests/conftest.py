"""The command `nngp-paper`, run in an empty folder; and real data, where there are any."""

import os
import sys
from pathlib import Path

import pytest
from limits import Limits

DATA = Path(os.environ.get("NNGP_DATA") or Path(__file__).parents[3] / "shared" / "data")


def pytest_configure(config):
    config.pluginmanager.register(Limits())


def pytest_collection_finish(session):
    """Programs that JAX compiles here are kept in pytest's cache, for the next run. Processes that
    tests start have no part in it: one that is killed would leave half a program behind."""
    jax, cache = sys.modules.get("jax"), getattr(session.config, "cache", None)
    if jax and cache:
        jax.config.update("jax_compilation_cache_dir", str(cache.mkdir("jax")))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in an empty folder; gives exit code, stdout, stderr."""
    from nngp_paper.terminal.app import app

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
