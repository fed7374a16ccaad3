"""Laws of the package: imports are light, errors are in one module, names are told apart."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import nngp_paper

PACKAGE = Path(nngp_paper.__file__).parent


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_work_for_a_cluster_loads_no_dask_before_there_is_one():
    code = (
        "import sys, nngp_paper.terminal.app, nngp_paper.terminal.reproduce\n"
        "import nngp_paper.on_dask\n"
        "print({'dask', 'distributed', 'zarr'} & set(sys.modules))"
    )
    assert run(code) == "set()"


def test_help_loads_nothing_heavy():
    code = "import sys, nngp_paper.terminal.app; print(' '.join(sys.modules))"
    assert not {"jax", "matplotlib", "optax", "polars", "sklearn"} & set(run(code).split())


def test_all_errors_are_in_one_module():
    elsewhere = [
        f"{path.name}: {name}"
        for path in PACKAGE.rglob("*.py")
        for name in re.findall(r"^class ([A-Z]\w*(?:Error|Warning))\(", path.read_text(), re.M)
        if path.name != "errors.py" and "terminal" not in path.parts
    ]
    assert elsewhere == []


def test_no_two_classes_have_one_name():
    names = [
        name
        for path in PACKAGE.rglob("*.py")
        for name in re.findall(r"^class (\w+)", path.read_text(), re.M)
    ]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_every_file_and_function_that_the_architecture_page_names_is_there():
    page = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text()
    for name in re.findall(r"`([\w/]+\.py)`", page):
        assert list(PACKAGE.rglob(name)), name
    for file, name in re.findall(r"`([\w/]+\.py)` `([\w.]+)`", page):
        (path,) = PACKAGE.rglob(file)
        assert re.search(rf"(def|class) {name}\b|^{name} =", path.read_text(), re.M), (file, name)


def test_a_name_of_finite_networks_that_is_not_there():
    from nngp_paper import finite

    assert set(dir(finite)) >= {"Recipe", "search", "train"}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = finite.nothing
