"""Which work parts need: each piece once, cheap ones first, searches of the right shape."""

import math

import pytest

from nngp_paper.experiment import Experiment
from nngp_paper.finite.recipe import Plan
from nngp_paper.parts import PARTS, parts_named
from nngp_paper.runs import RunStore
from nngp_paper.runs.study import Outcome, Study
from nngp_paper.scope import Scope
from nngp_paper.shared.searches import SearchSize
from nngp_paper.workloads import EXPERIMENTS, StudyWorkload, remaining, workloads_for

SCOPE = Scope("digits", (50, 100), (1, 2), ("relu", "gelu"), 3, engine="cpu")
WORK = SearchSize((4, 8), 2)


def names(*parts):
    found, problems = workloads_for(parts_named(parts), SCOPE, WORK)
    assert problems == []
    return [task.experiment for task in found]


def test_a_part_asks_for_its_own_work_only():
    assert names("fig6") == ["angular"]
    assert names("fig3") == ["doubt", "loo_scale"]
    assert names("fig3", "fig8") == ["doubt", "loo_scale"]


def test_parts_share_work():
    pytest.importorskip("optax")
    maps = ["grid", "relative_grid", "authors_grid"]
    assert names("fig4", "fig9", "fig10") == ["critical", *maps]
    assert names("table1", "table2") == ["setting", "grid"]
    assert names("all") == [
        *("angular", "prior", "critical", "spread", "doubt", "loo_scale", "setting", "width"),
        "invariance",
        *("grid", "relative_grid", "authors_grid", "finite", "gap"),
    ]


@pytest.mark.parametrize(("parts", "runs"), [(["fig4"], 3), (["fig4", "fig9"], 6), (["all"], 24)])
def test_a_part_asks_for_no_more_runs_than_it_reads(tmp_path, parts, runs):
    """Figure 4 has one depth and training set, figure 9 two depths, and only the whole paper both
    sets and gelu."""
    found, _ = workloads_for(parts_named(parts), SCOPE, WORK)
    (grid,) = [task for task in found if task.experiment == "grid"]
    with RunStore(tmp_path / "runs.db") as store:
        assert len(grid.declare(store)) == runs


def test_everything_that_a_part_needs_can_be_done():
    assert {one for part in PARTS for one in part.experiments} == set(EXPERIMENTS)


def test_without_the_extra_its_work_is_left_out_with_a_sentence(monkeypatch):
    monkeypatch.setattr(
        "nngp_paper.finite.requirements.find_spec", lambda name: None if name == "optax" else True
    )
    found, problems = workloads_for(parts_named(["fig1", "fig2", "fig7"]), SCOPE, WORK)
    assert [task.experiment for task in found] == ["grid"]
    assert [sentence.split(" is left out: ")[0] for sentence in problems] == [
        *("spread", "finite", "gap")
    ]
    assert all("pip install 'nngp[finite]'" in sentence for sentence in problems)


def test_searches_have_the_shapes_that_were_asked_for(tmp_path):
    pytest.importorskip("optax")
    found, _ = workloads_for(parts_named(["fig1", "fig2"]), SCOPE, WORK)
    by_name = {task.experiment: task for task in found}
    with RunStore(tmp_path / "runs.db") as store:
        runs = store.runs(keys=by_name["finite"].declare(store))
        shapes = {(r.config["train"], r.config["width"], r.config["activation"]) for r in runs}
        assert shapes == {(train, width, "relu") for train in (50, 100) for width in (4, 8)}
        assert len(runs) == 8
        assert {(r.config["depth"], r.config["loss"]) for r in runs} == {(2, "mse")}
        gap = store.runs(keys=by_name["gap"].declare(store))
        assert {(r.config["train"], r.config["depth"]) for r in gap} == {(100, 5)}
        assert {r.config["monitor"] for r in gap} == {"train"}


def test_a_search_works_on_every_size_until_its_time(monkeypatch):
    pytest.importorskip("optax")
    from nngp_paper.finite import random_search as search

    calls = []
    monkeypatch.setattr(search, "search", lambda *a, **more: calls.append((a, more)))
    (task,) = workloads_for(parts_named(["fig1"]), SCOPE, WORK)[0][1:]
    task.do("store", 7.0, False)
    (((store, cells, data, plan, trials), more),) = calls  # one program serves all sizes
    assert (store, len(data.X), plan, trials) == ("store", max(SCOPE.sizes), Plan(), 2)
    assert {cell.train for cell in cells} == set(SCOPE.sizes)
    assert {cell.width for cell in cells} == {4, 8}
    assert more == {"experiment": "finite", "until": 7.0, "progress": False}


def test_a_search_may_have_fewer_sizes_than_the_grids(tmp_path):
    pytest.importorskip("optax")
    found, _ = workloads_for(parts_named(["fig1"]), SCOPE, SearchSize((4,), 2, sizes=(50,)))
    with RunStore(tmp_path / "runs.db") as store:
        trains = [
            {run.config["train"] for run in store.runs(keys=task.declare(store))} for task in found
        ]
    assert trains == [{50, 100}, {50}]


def test_the_gap_is_measured_where_labels_can_be_learned():
    pytest.importorskip("optax")
    for sizes, train in (((100, 1000, 5000), 1000), ((5000, 20_000), 5000)):
        scope = Scope("mnist", sizes)
        (task,) = workloads_for(parts_named(["fig2"]), scope, WORK)[0]
        assert task.sizes == (train,)


def test_other_activations_serve_where_the_papers_are_not_asked_for():
    scope = Scope("digits", (50,), activations=("gelu", "erf"))
    assert scope.paper_activations == ("gelu", "erf")


def test_grids_of_large_sets_follow_those_that_suggest_them(tmp_path):
    """The second study is made when the first is done, from what the store then has."""
    done = []

    def studies(store, scope):
        def work(config):
            done.append(config["train"])
            return Outcome({})

        yield Study("grid", [{"train": 100, "i": i} for i in range(3)], work)
        yield Study("grid", [{"train": 20_000, "seen": min(3, store.counts()["done"])}], work)

    task = StudyWorkload(Experiment("grid", stages=studies), SCOPE)
    with RunStore(tmp_path / "runs.db") as store:
        assert len(task.declare(store)) == 3
        task.do(store, -math.inf, None)
        assert done == []
        assert store.counts()["pending"] == 3
        task.do(store, math.inf, None)
        assert done == [100, 100, 100, 20_000]
        last = store.get(task.declare(store)[3])
        assert last.config == {"train": 20_000, "seen": 3}


def test_the_largest_kernel_may_come_later(tmp_path):
    scope = Scope("mnist", (100, 20_000, 50_000), (1,), ("relu", "tanh"), 2, engine="cpu")
    (task,) = (
        t for t in workloads_for(parts_named(["fig10"]), scope, WORK)[0] if t.experiment == "grid"
    )
    later = [(one["train"], one["activation"], len(one["bias_vars"])) for one in task.later()]
    assert later == [
        *((20_000, "relu", 400), (20_000, "tanh", 400)),
        *((50_000, "relu", 120), (50_000, "tanh", 120)),
    ]
    with RunStore(tmp_path / "runs.db") as store:
        seen = remaining(store, task)
        assert (seen.runs, seen.left, seen.points) == (4, 4, 50_000)
