"""What a release says of itself agrees, and the lowest versions are read off pyproject.toml."""

import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
import readme_examples

import nngp

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_version_and_date_agree():
    citation = (ROOT / "CITATION.cff").read_text()
    changes = (ROOT / "CHANGELOG.md").read_text()
    version, date = re.findall(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", changes, re.M)[0]
    developing = nngp.__version__.endswith(".dev0")
    assert developing == ("\n## Unreleased\n" in changes)
    assert developing or nngp.__version__ == version
    assert f"\nversion: {version}\n" in citation
    assert f"\ndate-released: {date}\n" in citation


def test_classifiers_name_the_pythons_that_are_tested():
    pytest.importorskip("packaging")
    from bounds import PYTHONS

    named = [line for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert [line.rpartition(" ")[2] for line in named] == list(PYTHONS)
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"


def test_the_package_is_typed():
    assert (Path(find_spec("nngp").origin).parent / "py.typed").exists()


def test_lowest_versions():
    pytest.importorskip("packaging")
    from bounds import lower_bounds

    project = {
        "name": "this",
        "dependencies": ["a>=2.0", "a>=2.1; python_version >= '3.13'", "B_c>=1,<3,!=1.5"],
        "optional-dependencies": {
            "x": ["d[fast]>=0.5.1", "a>=1.0"],
            "y": ["this[x]", "e==7"],
            "z": ["f"],
        },
    }
    assert lower_bounds(project, [], "3.11") == {"a": "2.0", "b-c": "1"}
    assert lower_bounds(project, ["y"], "3.13") == {"a": "2.1", "b-c": "1", "d": "0.5.1", "e": "7"}
    with pytest.raises(SystemExit, match="f has no lower bound"):
        lower_bounds(project, ["z"], "3.11")


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("no code", "there is no Python block"),
        ("```python\nprint(1)  # 2\n```", r"promises \['2'\] and prints \['1'\]"),
        ("```python\nprint(1)\n```", r"promises \[\] and prints \['1'\]"),
    ],
)
def test_an_example_that_breaks_its_promise(page, message):
    with pytest.raises(ValueError, match=message):
        readme_examples.run(page)


def test_examples_are_one_program():
    page = "```python\nx = 1\n```\n\nthen\n\n```python\nprint(x + 1)  # 2\n```\n"
    assert readme_examples.run(page)["x"] == 1
