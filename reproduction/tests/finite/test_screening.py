"""Screening: which trials go on, which run of a trial counts, and searches over several sizes."""

import pytest
from clouds import three_clouds

pytest.importorskip("jax")
pytest.importorskip("optax")

from nngp_paper.finite import random_search as module
from nngp_paper.finite.cells import Cell, cell_of
from nngp_paper.finite.random_search import search
from nngp_paper.finite.recipe import Plan
from nngp_paper.finite.screening import finalists, longest
from nngp_paper.finite.training import Trainer
from nngp_paper.runs import RunStore

DATA = three_clouds()
SHORT, LONG = Plan(steps=20, interval=10), Plan(steps=40, interval=20)


@pytest.fixture
def store(tmp_path):
    with RunStore(tmp_path / "runs.db") as store:
        yield store


def put(store, depth, width, trial, accuracy, error, learned=0.5, plan=SHORT, **more):
    config = {**{"dataset": "clouds", "train": 60, "activation": "tanh", "depth": depth}, **more}
    (key,) = store.declare(
        "finite", [{**config, "width": width, "trial": trial, **plan.as_dict(), **more}]
    )
    result = {"val_accuracy": accuracy, "val_mse": error, "train_accuracy": learned}
    lowest = {"least_loss_val_accuracy": 0.1, "least_loss_val_mse": error / 2}
    tested = {"test_accuracy": 0.1, "test_mse": 0.1}
    others = {f"least_loss_{name}": value for name, value in tested.items()}
    store.finish(key, {**result, **lowest, **tested, **others}, seconds=1.0)


def test_the_best_of_each_width_go_on_whatever_their_depth(store):
    put(store, 1, 8, 0, 0.9, 0.5)
    put(store, 1, 8, 1, 0.8, 0.1)
    put(store, 2, 8, 0, 0.7, 0.2, learned=0.9)
    put(store, 2, 8, 1, 0.85, 0.3)
    put(store, 1, 64, 5, 0.2, 0.9)
    put(store, 1, 8, 7, 0.1, 0.9, train=30)
    one, two = Cell("clouds", 60, "tanh", 1, 8), Cell("clouds", 60, "tanh", 2, 8)
    wide, fewer = Cell("clouds", 60, "tanh", 1, 64), Cell("clouds", 30, "tanh", 1, 8)
    runs = store.runs("finite")
    assert finalists(runs, 1) == {one: [0, 1], wide: [5], fewer: [7]}
    assert finalists(runs, 2, ["accuracy"]) == {one: [0], two: [1], wide: [5], fewer: [7]}
    assert finalists(runs, 2, ["error"]) == {one: [1], two: [0], wide: [5], fewer: [7]}
    assert finalists(runs, 1, ["training"]) == {two: [0], wide: [5], fewer: [7]}


def test_the_longest_run_of_a_trial_counts(store):
    put(store, 1, 8, 0, 0.9, 0.5)
    put(store, 1, 8, 0, 0.6, 0.5, plan=LONG)
    put(store, 1, 8, 1, 0.7, 0.5)
    put(store, 1, 8, 0, 0.5, 0.5, plan=Plan(steps=20, interval=10, optimiser="sgd"))
    found = {run.result["val_accuracy"] for run in longest(store.runs("finite"))}
    assert found == {0.6, 0.7, 0.5}


@pytest.mark.parametrize("ahead", [0, 2])
def test_sizes_share_a_trainer_and_the_next_one_is_compiled_ahead(store, monkeypatch, ahead):
    made, compiled = [], []
    monkeypatch.setattr(module, "compiled_ahead", lambda: ahead)
    of = module._trainer

    def noted(*arguments):
        made.append(arguments[0])
        return of(*arguments)

    monkeypatch.setattr(module, "_trainer", noted)
    compile_programs = Trainer.compile
    monkeypatch.setattr(
        Trainer, "compile", lambda self: (compiled.append(self), compile_programs(self))
    )
    cells = [Cell("clouds", n, "tanh", 1, width) for width in (5, 7) for n in (15, 60)]
    trials = {cell: [0, 2] if cell.train == 15 else [1] for cell in cells}
    found = search(store, cells, DATA, SHORT, trials, lanes=3, progress=False)
    assert [cell.width for cell in made] == [5, 7]
    assert len(compiled) == (2 if ahead else 0)
    assert {one.cell: one.trials for one in found} == {cell: len(trials[cell]) for cell in cells}
    done = {(cell_of(run), run.config["trial"]) for run in store.runs("finite", "done")}
    assert done == {(cell, trial) for cell in cells for trial in trials[cell]}
