"""Laws of the package: imports are light and change nothing, the map in ARCHITECTURE.md is true."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import nngp

ROOT = Path(__file__).parents[2]
STAGES = sorted(p.name for p in (ROOT / "src" / "nngp").iterdir() if (p / "__init__.py").exists())


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_import_loads_nothing_heavy():
    loaded = run("import sys, nngp; print(' '.join(sys.modules))").split()
    for name in ("jax", "matplotlib", "pandas", "dask", "torch", "optax", "sklearn"):
        assert name not in loaded
    assert not {"distributed", "zarr"} & set(loaded)


def test_work_for_a_cluster_loads_no_dask_before_there_is_one():
    pytest.importorskip("typer")
    pytest.importorskip("polars")
    code = (
        "import sys, nngp.terminal.app, nngp.terminal.fit, nngp.terminal.reproduce\n"
        "import nngp.paper.on_dask\n"
        "nngp.DaskEngine, nngp.ClusterError\n"
        "print({'dask', 'distributed', 'zarr'} & set(sys.modules))"
    )
    assert run(code) == "set()"


def test_using_the_kernel_needs_no_jax_and_changes_no_setting():
    code = (
        "import sys, numpy, nngp\n"
        "before = numpy.geterr()\n"
        "nngp.kernel(nngp.Architecture(3, 'tanh'), numpy.eye(4))\n"
        "assert numpy.geterr() == before\n"
        "print('jax' in sys.modules)"
    )
    assert run(code) == "False"


def test_jax_kernel_leaves_the_64_bit_switch_alone():
    pytest.importorskip("jax")
    code = (
        "import jax, nngp, numpy\n"
        "k = nngp.jax_kernel(nngp.Architecture(2, 'tanh'))\n"
        "k(numpy.ones(3), numpy.ones(3))\n"
        "nngp.kernel(nngp.Architecture(2, jax.nn.silu), numpy.eye(3))\n"
        "print(jax.config.jax_enable_x64)"
    )
    assert run(code) == "False"


def test_the_stage_table_of_the_architecture_page_is_the_folder_listing():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    table = re.findall(r"^\| `(\w+)/` \|", text, flags=re.MULTILINE)
    built = [name for name in table if (ROOT / "src" / "nngp" / name).is_dir()]
    assert built == STAGES
    assert table == sorted(table)


def test_every_public_name_is_documented():
    public = [name for name in vars(nngp) if not name.startswith("_")]
    for name in public:
        assert getattr(nngp, name).__doc__, name


def test_missing_jax_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax.numpy", None)
    with pytest.raises(ImportError, match=r"pip install 'nngp\[jax\]'"):
        nngp.jax_kernel(nngp.Architecture(1))


def test_a_bar_on_a_terminal(monkeypatch):
    pytest.importorskip("rich")
    from nngp._progress import Progress, progress_for

    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert progress_for(None, expected=1.0) is None
    assert progress_for(False, expected=100.0) is None
    with Progress("factor", 10.0, progress_for(None, expected=100.0), 100.0) as progress:
        progress.begin("noise 1e-10")
        progress.advance(5.0)
        progress.advance(5.0)


def test_missing_matplotlib_is_said(monkeypatch):
    from nngp import plots

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'nngp\[plots\]'"):
        plots.angular_structure(nngp.Architecture(1))
