"""Laws of the package: imports are light and change nothing, the map in ARCHITECTURE.md is true."""

import pydoc
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import nngp

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "nngp"
ROOMS = sorted(p.name for p in PACKAGE.iterdir() if (p / "__init__.py").exists())
PAGE = (ROOT / "ARCHITECTURE.md").read_text()


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


STEPS = """
import sys
import nngp

def loaded():
    print(*{name.partition(".")[0] for name in sys.modules})

loaded()
import numpy
before = numpy.geterr()
nngp.kernel(nngp.Architecture(3, "tanh"), numpy.eye(4))
assert numpy.geterr() == before
loaded()
import nngp.terminal.app, nngp.terminal.fit
nngp.DaskEngine, nngp.errors.ClusterError
loaded()
"""


def test_imports_load_nothing_heavy():
    """Of the package, of a kernel, and of the command that may be given a cluster."""
    pytest.importorskip("typer")
    pytest.importorskip("polars")
    package, kernel, command = (set(line.split()) for line in run(STEPS).splitlines())
    cluster = {"dask", "distributed", "zarr"}
    assert not package & {"jax", "matplotlib", "pandas", "torch", "optax", "sklearn", *cluster}
    assert "jax" not in kernel
    assert not command & cluster


def test_jax_kernel_leaves_the_64_bit_switch_alone():
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    nngp.jax_kernel(nngp.Architecture(1, "relu"))(np.ones(3), np.ones(3))
    nngp.kernel(nngp.Architecture(2, jax.nn.silu), np.eye(3))
    assert jax.config.jax_enable_x64 == before


def rooms_of_the_page():
    tables = PAGE[: PAGE.index("## Seams")]
    return re.findall(r"^\| `(\w+)/` \|", tables, flags=re.MULTILINE)


def test_the_tables_of_the_architecture_page_list_every_folder():
    assert sorted(rooms_of_the_page()) == ROOMS


def test_the_import_contract_has_the_order_of_the_page():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = contracts["contracts"][0]["layers"]
    order = {name: i for i, layer in enumerate(reversed(layers)) for name in layer.split(" : ")}
    rooms = rooms_of_the_page()
    assert [order[name] for name in rooms] == sorted(order[name] for name in rooms)
    helpers = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    assert helpers <= order.keys()
    for name in helpers:
        assert f"`{name}.py`" in PAGE, name


def test_every_file_and_function_that_the_architecture_page_names_is_there():
    for name in re.findall(r"`([\w/]+\.py)`", PAGE):
        assert list(PACKAGE.rglob(name)) or (ROOT / name).exists(), name
    for file, name in re.findall(r"`([\w/]+\.py)` `([\w.]+)`", PAGE):
        (path,) = PACKAGE.rglob(file)
        for part in name.split("."):
            assert re.search(rf"(def|class) {part}\b|^{part} =", path.read_text(), re.M), (
                file,
                name,
            )


def test_every_public_name_is_documented():
    for name in set(dir(nngp)) - {"__version__", "__doc__", "__name__"}:
        assert getattr(nngp, name).__doc__, name


def test_the_front_door_shows_public_names_and_no_others():
    assert {"kernel", "errors", "__version__"} < set(dir(nngp))
    assert not {"train_ensemble", "NoiseWarning", "TYPE_CHECKING", "gram"} & set(dir(nngp))
    shown = pydoc.plain(pydoc.render_doc(nngp))
    assert len(shown.splitlines()) < 1500
    for name in ("NNGPRegressor", "Architecture", "condition", "DaskEngine", "FiniteNetwork"):
        assert name in shown
    assert callable(nngp.plots.intervals)
    assert "intervals" in dir(nngp.plots)


def test_all_errors_are_in_one_module():
    ours = [e for e in vars(nngp.errors).values() if isinstance(e, type)]
    assert all(issubclass(e, Exception) and not hasattr(nngp, e.__name__) for e in ours)
    elsewhere = [
        f"{path.name}: {name}"
        for path in PACKAGE.rglob("*.py")
        for name in re.findall(r"^class ([A-Z]\w*(?:Error|Warning))\(", path.read_text(), re.M)
        if path.name != "errors.py" and "terminal" not in path.parts
    ]
    assert elsewhere == []


def test_missing_jax_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax.numpy", None)
    with pytest.raises(ImportError, match=r"pip install 'nngp\[jax\]'"):
        nngp.jax_kernel(nngp.Architecture(1))


def test_a_bar_on_a_terminal(monkeypatch):
    pytest.importorskip("rich")
    from nngp._progress import Progress, progress_for

    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert progress_for(False) is None
    with Progress("factor", 10.0, progress_for(True)) as progress:
        progress.begin("noise 1e-10")
        progress.advance(5.0)
        progress.advance(5.0)


def test_missing_matplotlib_is_said(monkeypatch):
    from nngp import plots

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'nngp\[plots\]'"):
        plots.angular_structure(nngp.Architecture(1))
