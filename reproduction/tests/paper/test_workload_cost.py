"""What is left to do, about how long it takes, and how a budget is shared."""

import math

import pytest

from nngp_paper.cost import WorkloadCost, cost_of, memory, shares
from nngp_paper.experiment import Experiment
from nngp_paper.runs.study import Outcome, Study
from nngp_paper.scope import Scope
from nngp_paper.shared.words import duration
from nngp_paper.workloads import ENTRY, NETWORK, TABLE, StudyWorkload

SCOPE = Scope("digits", (100,), engine="cpu")


def workload(study):
    return StudyWorkload(Experiment(study.experiment, lambda scope: study), SCOPE)


def strips(*sizes, count=4):
    """A study of strips of three networks each."""
    configs = [
        {"train": size, "bias_vars": [0.0, 1.0, 2.0], "i": i}
        for size in sizes
        for i in range(count)
    ]
    return workload(Study("grid", configs, lambda config: Outcome({})))


def finish(store, task, seconds, count=1, train=None, device="cpu"):
    keys = task.declare(store)
    runs = [run for run in store.runs(keys=keys) if train in (None, run.config["train"])]
    for run in runs[:count]:
        store.finish(run.key, {}, seconds=seconds, device=device)


def test_without_finished_runs_it_is_a_guess(store):
    seen = cost_of(store, strips(100))
    assert (seen.experiment, seen.runs, seen.left, seen.measured) == ("grid", 4, 4, False)
    assert seen.seconds == pytest.approx(4 * 3 * NETWORK, rel=0.01)


def test_a_factorisation_makes_large_sets_slow(store):
    task = strips(100, 20_000)
    small, large = (task.seconds({"train": n, "bias_vars": [0.0]}) for n in (10_000, 20_000))
    assert large / small == pytest.approx(8, rel=0.1)  # nearly the cube
    assert task.seconds({"train": 100}) == pytest.approx(NETWORK, rel=0.01)


def test_kernels_with_many_test_points_are_slow_and_more_so_with_a_table():
    task = strips(100)
    few = task.seconds({"train": 1000, "validation": 0, "test": 0})
    many = task.seconds({"train": 1000, "validation": 10_000, "test": 10_000})
    assert many - few == pytest.approx(1000 * 20_000 * ENTRY["cpu"])
    config = {"train": 1000, "validation": 10_000, "test": 10_000, "depth": 20, "kernel": "table"}
    assert task.seconds(config) == pytest.approx(TABLE + 40 * many, rel=0.2)
    assert task.seconds({**config, "kernel": "exact"}) == many


def test_finished_runs_of_a_size_speak_for_it(store):
    task = strips(100, 200)
    finish(store, task, 7.0, count=2, train=100)
    finish(store, task, 1.0, count=1, train=200)
    seen = cost_of(store, task)
    assert (seen.left, seen.measured) == (5, True)
    assert seen.seconds == pytest.approx(2 * 7.0 + 3 * 1.0, rel=1e-6)


def test_other_sizes_speak_where_there_are_none(store):
    task = strips(100, 10_000)
    finish(store, task, 6.0, count=4, train=100)
    configs = task.kind.study(SCOPE).configs
    ratio = task.seconds(configs[-1]) / task.seconds(configs[0])
    assert ratio > 100
    assert cost_of(store, task).seconds == pytest.approx(4 * 6.0 * ratio, rel=1e-6)


def test_another_device_says_nothing(store):
    task = strips(100)
    finish(store, task, 1000.0, device="gpu")
    seen = cost_of(store, task)
    assert (seen.left, seen.measured) == (3, False)
    assert seen.seconds < 10


def test_the_largest_kernel_is_that_of_what_is_left(store):
    task = strips(100, 300, count=1)
    assert cost_of(store, task).points == 300
    finish(store, task, 1.0, train=300)
    assert cost_of(store, task).points == 100
    finite = [{"train": 500, "width": 8}, {"activation": "relu"}]
    assert cost_of(store, workload(Study("a", finite, lambda config: Outcome({})))).points == 0


def test_failed_runs_are_not_left(store):
    task = strips(100)
    store.fail(task.declare(store)[0], "no kernel")
    assert cost_of(store, task).left == 3


def test_all_done_is_measured(store):
    task = strips(100)
    finish(store, task, 1.0, count=4)
    assert cost_of(store, task) == WorkloadCost("grid", 4, 0, 0.0, True)


def times(*seconds):
    return [WorkloadCost(str(i), 1, 1, s, False) for i, s in enumerate(seconds)]


def test_a_budget_that_suffices_is_all_for_everyone():
    assert shares(times(1.0, 2.0), 3.0) == [3.0, 3.0]
    assert shares(times(1.0, 2.0), math.inf) == [math.inf, math.inf]
    assert shares([], 3.0) == []


def test_a_budget_that_does_not_is_shared():
    assert shares(times(100.0, 0.0, 1.0, 30.0), 41.0) == [20.0, 0.0, 1.0, 20.0]
    assert shares(times(100.0, 10.0), 41.0) == [31.0, 10.0]
    assert shares(times(100.0, 30.0), 40.0) == [20.0, 20.0]


def test_memory_is_that_of_the_points():
    small, large = (
        memory(Scope("mnist", (100, 20_000), engine="cpu"), points) for points in (100, 20_000)
    )
    assert large.n == 20_000
    assert large.bytes > 20_000**2 * 4  # half a factor
    assert small.largest == 100
    assert small.bytes < large.bytes / 10


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.04, "0.04 s"), (48.0, "48 s"), (89.0, "89 s"), (90.0, "2 min"), (5400.0, "1.5 h")],
)
def test_times_are_said_in_two_digits(seconds, words):
    assert duration(seconds) == words


def test_all_sizes_are_held_side_by_side():
    alone, beside = (
        memory(Scope("mnist", sizes, engine="cpu"), 3000).bytes for sizes in ((3000,), (2000, 3000))
    )
    assert beside - alone == 8 * 2000 * (2 * 2000 + 20_000)
