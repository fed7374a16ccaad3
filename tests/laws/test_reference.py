"""Laws of the reference (docs/reference): every public name is on one page, with an example."""

import inspect
import re
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import nngp

pytest.importorskip("jax")  # for nngp.finite
pytest.importorskip("matplotlib")
pytest.importorskip("optuna")
pytest.importorskip("distributed")
pytest.importorskip("nngp_paper")  # the site documents both packages

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
PAGES = {path.name: path.read_text() for path in sorted(FOLDER.glob("*.*"))}
MODULES = (
    "nngp",
    "nngp.activations",
    "nngp.curves",
    "nngp.errors",
    "nngp.images",
    "nngp.training",
    "nngp.symmetries",
    "nngp.regimes",
    "nngp.finite",
    "nngp.optuna",
    "nngp.plots",
    "nngp_paper.datasets",
    "nngp_paper.finite",
    "nngp_paper.plots",
    "nngp_paper.runs",
)
ENTRY = re.compile(
    r"^\.\. (?:auto(?:class|function|exception)|py:data):: (?P<name>[\w.]+)(?:\(\))?\n"
    r"(?P<options>(?:   :.*\n)*)",
    re.M,
)
# Methods that have no underscore since other parts of the package call them.
INTERNAL = {
    "AngularCurve": {"sensitivities"},
    "Architecture": {"if_deep", "nodes", "outline", "products", "values"},
    "FiniteNetwork": {"prior", "layout", "check_differentiable"},
    "NNGPClassifier": {"save"},  # stands with NNGPRegressor
}
METHODS = [
    "Activation",
    "curves.AngularCurve",
    "Architecture",
    "FiniteNetwork",
    "curves.LookupTable",
    "NNGPClassifier",
    "NNGPKernel",
    "NNGPRegressor",
    "Posterior",
    "training.TrainedEnsemble",
]
KINDS = [*(f"nngp.{name}" for name in METHODS), "nngp_paper.runs.RunStore"]


def named(path):
    """The object that a dotted name stands for."""
    parts = path.split(".")
    for count in range(len(parts) - 1, 0, -1):
        try:
            found = import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            found = getattr(found, part)
        return found
    raise LookupError(path)


def public_names():
    """Public objects by a name, each once; modules, the version and its like are none."""
    found = {}
    for module in MODULES:
        room = import_module(module)
        names = getattr(room, "__all__", [name for name in dir(room) if name[0] != "_"])
        for name in names:
            value = getattr(room, name)
            if not isinstance(value, ModuleType) and name != "__version__":
                found.setdefault(id(value), (f"{module}.{name}", value))
    return dict(found.values())


def entries():
    """What stands on the pages: name, object and the methods that it is shown with."""
    return [
        (found["name"], named(found["name"]), set(re.findall(r"\w+", members(found["options"]))))
        for page in PAGES.values()
        for found in ENTRY.finditer(page)
        if ":no-index-entry:" not in found["options"]
    ]


def members(options):
    return next(iter(re.findall(r":members: (.*)", options)), "")


def is_error(value):
    return isinstance(value, type) and issubclass(value, Exception)


def own_methods(kind):
    return {
        name
        for name, value in inspect.getmembers(kind)
        if name[0] != "_"
        and callable(value)
        and value.__module__.startswith(("nngp.", "nngp_paper."))
    }


def test_every_public_name_stands_on_exactly_one_page():
    on_pages = Counter(id(value) for _, value, _ in entries())
    counts = {name: on_pages[id(value)] for name, value in public_names().items()}
    assert {name: count for name, count in counts.items() if count != 1} == {}
    assert set(on_pages.values()) == {1}


def test_every_function_and_class_has_an_example():
    shown = {name: value for name, value, _ in entries()} | public_names()
    without = [
        name
        for name, value in shown.items()
        if callable(value) and not is_error(value) and ">>>" not in (value.__doc__ or "")
    ]
    assert without == []


def test_every_method_is_shown_with_an_example():
    members_of = {value.__name__: shown for _, value, shown in entries() if callable(value)}
    for name in KINDS:
        kind, own = named(name), name.rpartition(".")[2]
        shown = members_of[own]
        assert own_methods(kind) - shown - INTERNAL.get(own, set()) == set(), name
        without = [m for m in shown & own_methods(kind) if ">>>" not in getattr(kind, m).__doc__]
        assert without == [], name


def test_every_error_is_in_the_table():
    table = PAGES["errors.md"].split(":nosignatures:")[1].split("```")[0]
    ours = [name for name, value in vars(nngp.errors).items() if is_error(value)]
    assert re.findall(r"nngp\.errors\.(\w+)", table) == ours
    assert all(getattr(nngp.errors, name).__doc__ for name in ours)


def test_the_summary_of_a_page_has_its_entries_and_no_others():
    for page, text in PAGES.items():
        listed = re.search(r"\.\. autosummary::\n.*\n\n((?:   [\w.]+\n)+)", text)
        if listed:
            shown = [
                m["name"] for m in ENTRY.finditer(text) if ":no-index-entry:" not in m["options"]
            ]
            data = {name for name in shown if f"py:data:: {name}" in text}
            assert sorted(listed[1].split()) == sorted(set(shown) - data), page


def test_every_page_is_in_the_index():
    listed = PAGES["index.md"].split("```{toctree}")[1].split("\n\n")[1].split("\n```")[0]
    assert sorted(listed.split()) == sorted({name.split(".")[0] for name in PAGES} - {"index"})


@pytest.mark.parametrize("package", ["nngp", "nngp_paper"])
def test_the_page_of_commands_has_every_option_that_help_shows(monkeypatch, package):
    pytest.importorskip("sphinx")
    testing = pytest.importorskip("typer.testing")
    monkeypatch.syspath_prepend(str(FOLDER.parent / "_ext"))
    monkeypatch.setenv("COLUMNS", "200")
    program = import_module(f"{package}.terminal.app")

    text = "\n".join(import_module("commands").text(package))
    title, end = rf"^{package.replace('_', '-')} ", r"\n-+\n"
    found = re.findall(rf"{title}(\w+){end}(.*?)(?={title}\w+{end}|\Z)", text, re.M | re.S)
    sections = dict(found)
    sys.modules.pop("commands")
    assert list(sections) == list(program.COMMANDS)
    for name, section in sections.items():
        shown = testing.CliRunner().invoke(program.app, [name, "--help"]).stdout
        options = set(re.findall(r"--[a-z][a-z-]*[a-z]", shown)) - {"--help"}
        assert set(re.findall(r"--[a-z][a-z-]*[a-z]", section)) == options, name
