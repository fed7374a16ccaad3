"""The paper's parts: all of them, in order, each with a reader and a drawing that exist."""

from inspect import signature
from pathlib import Path
from types import SimpleNamespace

import pytest

from nngp.errors import NothingMeasuredError
from nngp.paper.parts import PARTS, Part, chosen, look_up
from nngp.paper.scope import Scope

SCOPE = Scope("digits", (50,))


def test_all_parts_are_there_in_the_papers_order():
    tables, figures = ["table1", "table2"], [f"fig{i}" for i in range(1, 11)]
    assert [part.name for part in PARTS] == tables + figures
    assert [part.draw is None for part in PARTS] == [True] * 2 + [False] * 10
    assert [part.name for part in PARTS if not part.about_data] == ["fig5", "fig6", "fig7"]


def test_parts_are_chosen_in_order_and_once():
    assert [part.name for part in chosen(["fig10", "table1", "fig10"])] == ["table1", "fig10"]
    assert chosen(["all"]) == chosen(["fig2", "all"]) == list(PARTS)
    with pytest.raises(ValueError, match="no part 'fig11' of the paper; use all, table1, table2"):
        chosen(["fig11"])


def test_headings_and_names():
    by_name = {part.name: part for part in PARTS}
    assert by_name["fig10"].heading.startswith("Figure 10: ")
    assert by_name["table2"].heading.startswith("Table 2: ")
    assert by_name["fig10"].named(SCOPE) == "fig10-digits"
    assert by_name["fig6"].named(SCOPE) == "fig6"


def test_readers_and_drawings_exist():
    """They are imported when they are called, so nothing else would notice a wrong name."""
    pytest.importorskip("matplotlib")
    for part in PARTS:
        assert len(signature(part.read.found()).parameters) == 2 + ("grid" in part.needs)
        if part.draw is not None:
            assert list(signature(part.draw.found()).parameters)[1] == "path"


def reader(outcome):
    def read(*arguments):
        if isinstance(outcome, Exception):
            raise outcome
        return outcome if outcome else arguments

    return read


@pytest.mark.parametrize("error", [NothingMeasuredError, ImportError, ValueError])
def test_what_is_not_there_is_said(error):
    part = Part("fig6", "t", "c", "l", ("angular",), reader(error("nothing in a/runs.db.")))
    (one,) = look_up([part], SimpleNamespace(path=Path("a/runs.db")), SCOPE)
    assert (one.data, one.part, one.scope) == (None, part, SCOPE)
    assert one.problem == "nothing in the store"


def test_an_error_of_ours_is_not_hidden():
    part = Part("fig6", "t", "c", "l", ("angular",), reader(KeyError("x")))
    with pytest.raises(KeyError):
        look_up([part], None, SCOPE)


def test_grids_are_read_once_for_those_that_need_them(monkeypatch):
    from nngp.paper.readings import grids

    calls = []
    monkeypatch.setattr(grids, "read_grids", lambda *a: calls.append(a) or "grids")
    with_grid = Part("fig4", "t", "c", "l", ("grid",), reader(None))
    without = Part("fig3", "t", "c", "l", ("doubt",), reader(None))
    shown = look_up([with_grid, without, with_grid], "store", SCOPE)
    assert [one.data for one in shown] == [
        ("store", SCOPE, "grids"),
        ("store", SCOPE),
        ("store", SCOPE, "grids"),
    ]
    assert calls == [("store", SCOPE)]
    look_up([without], "store", SCOPE)
    assert len(calls) == 1
