"""The paper's parts: all of them, in order, each with a reader and a drawing that exist."""

from inspect import signature
from pathlib import Path
from types import SimpleNamespace

import pytest

from nngp_paper.errors import NothingMeasuredError
from nngp_paper.experiment import Experiment
from nngp_paper.grids.study import GRID_RUNS
from nngp_paper.part import Claim, Part, read_parts
from nngp_paper.parts import PARTS, parts_named
from nngp_paper.scope import Scope
from nngp_paper.verdict import ClaimVerdict

SCOPE = Scope("digits", (50,))


def test_all_parts_are_there_in_the_papers_order():
    tables, figures = ["table1", "table2"], [f"fig{i}" for i in range(1, 11)]
    assert [part.name for part in PARTS] == [*tables, *figures, "width", "invariance"]
    assert [part.draw is None for part in PARTS] == [True] * 2 + [False] * 12
    assert [part.name for part in PARTS if not part.about_data] == ["fig5", "fig6", "fig7"]


def test_parts_are_chosen_in_order_and_once():
    assert [part.name for part in parts_named(["fig10", "table1", "fig10"])] == ["table1", "fig10"]
    assert parts_named(["all"]) == parts_named(["fig2", "all"]) == list(PARTS)
    with pytest.raises(ValueError, match="no part 'fig11' of the paper; use all, table1, table2"):
        parts_named(["fig11"])


def test_headings_and_names():
    by_name = {part.name: part for part in PARTS}
    assert by_name["fig10"].heading.startswith("Figure 10: ")
    assert by_name["table2"].heading.startswith("Table 2: ")
    for ours in ("width", "invariance"):
        assert by_name[ours].heading.startswith("Beyond the paper: ")
    assert by_name["fig10"].named(SCOPE) == "fig10-digits"
    assert by_name["fig6"].named(SCOPE) == "fig6"


def test_readers_sentences_and_drawings_have_the_same_arguments():
    for part in PARTS:
        assert len(signature(part.read).parameters) == len(signature(part.finding).parameters) == 1
        if part.draw is not None:
            assert list(signature(part.draw).parameters) == ["data", "path", "narrow"]


def part_with(read, *experiments):
    return Part("fig6", Claim("t", "c", "l"), experiments, read, str, lambda data: None)


def raising(error):
    def read(results):
        raise error

    return read


@pytest.mark.parametrize("error", [NothingMeasuredError, ImportError, ValueError])
def test_what_is_not_there_is_said(error):
    part = part_with(raising(error("nothing in a/runs.db.")))
    (one,) = read_parts([part], SimpleNamespace(path=Path("a/runs.db")), SCOPE)
    assert (one.data, one.part, one.scope) == (None, part, SCOPE)
    assert one.problem == "nothing in the store"
    assert one.verdict == ClaimVerdict("not measured", "nothing in the store.")


def test_an_error_of_ours_is_not_hidden():
    part = part_with(raising(KeyError("x")))
    with pytest.raises(KeyError):
        read_parts([part], None, SCOPE)


def test_grids_are_read_once_for_those_that_need_them(monkeypatch):
    calls = []
    monkeypatch.setattr("nngp_paper.part.read_grids", lambda *a: calls.append(a) or "grids")
    with_grid = part_with(lambda results: (results.store, results.scope, results.grids), GRID_RUNS)
    without = part_with(lambda results: (results.store, results.scope), Experiment("doubt"))
    shown = read_parts([with_grid, without, with_grid], "store", SCOPE)
    assert [one.data for one in shown] == [
        ("store", SCOPE, "grids"),
        ("store", SCOPE),
        ("store", SCOPE, "grids"),
    ]
    assert calls == [("store", SCOPE)]
    read_parts([without], "store", SCOPE)
    assert len(calls) == 1
