"""The engines, each in small tiles: threads with BLAS, and JAX on whatever device there is; and
the command, run in an empty folder."""

import pytest

from nngp.linsolve import CpuEngine


class SmallTiles(CpuEngine):
    def tile_size(self, n):
        return 7

    def rows_at_a_time(self, n):
        return 5


def jax_engine():
    jax = pytest.importorskip("jax")
    from nngp.linsolve.gpu import GpuEngine

    class SmallJaxTiles(GpuEngine):
        def rows_at_a_time(self, n):
            return 5

    return SmallJaxTiles(jax.devices()[0], tile=7)


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

    def call(words):
        with pytest.raises(SystemExit) as left:
            app(words.split())
        captured = capsys.readouterr()
        return left.value.code, captured.out, " ".join(captured.err.split())

    return call
