"""What is left to do, about how long it takes, and how a budget is shared."""

import math

import pytest

from nngp.paper.cost import Outlook, memory, outlook, shares
from nngp.paper.durations import spoken
from nngp.paper.scope import Scope
from nngp.paper.tasks import ENTRY, NETWORK, TABLE, StudyTask
from nngp.runs import RunStore
from nngp.runs.study import Outcome, Study


@pytest.fixture
def store(tmp_path):
    with RunStore(tmp_path / "runs.db") as opened:
        yield opened


def strips(*sizes, count=4):
    """A study of strips of three networks each."""
    configs = [
        {"train": size, "bias_vars": [0.0, 1.0, 2.0], "i": i}
        for size in sizes
        for i in range(count)
    ]
    return StudyTask(Study("grid", configs, lambda config: Outcome({})), "cpu")


def finish(store, task, seconds, count=1, train=None, device="cpu"):
    keys = task.declare(store)
    runs = [run for run in store.runs(keys=keys) if train in (None, run.config["train"])]
    for run in runs[:count]:
        store.finish(run.key, {}, seconds=seconds, device=device)


def test_without_finished_runs_it_is_a_guess(store):
    seen = outlook(store, strips(100))
    assert (seen.experiment, seen.runs, seen.left, seen.measured) == ("grid", 4, 4, False)
    assert seen.seconds == pytest.approx(4 * 3 * NETWORK, rel=0.01)


def test_a_factorisation_makes_large_sets_slow(store):
    task = strips(100, 20_000)
    small, large = (task.guess({"train": n, "bias_vars": [0.0]}) for n in (10_000, 20_000))
    assert large / small == pytest.approx(8, rel=0.1)  # nearly the cube
    assert task.guess({"train": 100}) == pytest.approx(NETWORK, rel=0.01)


def test_kernels_with_many_test_points_are_slow_and_more_so_with_a_table():
    task = strips(100)
    few = task.guess({"train": 1000, "validation": 0, "test": 0})
    many = task.guess({"train": 1000, "validation": 10_000, "test": 10_000})
    assert many - few == pytest.approx(1000 * 20_000 * ENTRY["cpu"])
    config = {"train": 1000, "validation": 10_000, "test": 10_000, "depth": 20, "kernel": "table"}
    assert task.guess(config) == pytest.approx(TABLE + 40 * many, rel=0.2)
    assert task.guess({**config, "kernel": "exact"}) == many


def test_finished_runs_of_a_size_speak_for_it(store):
    task = strips(100, 200)
    finish(store, task, 7.0, count=2, train=100)
    finish(store, task, 1.0, count=1, train=200)
    seen = outlook(store, task)
    assert (seen.left, seen.measured) == (5, True)
    assert seen.seconds == pytest.approx(2 * 7.0 + 3 * 1.0, rel=1e-6)


def test_other_sizes_speak_where_there_are_none(store):
    task = strips(100, 10_000)
    finish(store, task, 6.0, count=4, train=100)
    ratio = task.guess(task.study.configs[-1]) / task.guess(task.study.configs[0])
    assert ratio > 100
    assert outlook(store, task).seconds == pytest.approx(4 * 6.0 * ratio, rel=1e-6)


def test_another_device_says_nothing(store):
    task = strips(100)
    finish(store, task, 1000.0, device="gpu")
    seen = outlook(store, task)
    assert (seen.left, seen.measured) == (3, False)
    assert seen.seconds < 10


def test_the_largest_kernel_is_that_of_what_is_left(store):
    task = strips(100, 300, count=1)
    assert outlook(store, task).points == 300
    finish(store, task, 1.0, train=300)
    assert outlook(store, task).points == 100
    finite = [{"train": 500, "width": 8}, {"activation": "relu"}]
    assert outlook(store, StudyTask(Study("a", finite, lambda config: Outcome({})))).points == 0


def test_failed_runs_are_not_left(store):
    task = strips(100)
    store.fail(task.declare(store)[0], "no kernel")
    assert outlook(store, task).left == 3


def test_all_done_is_measured(store):
    task = strips(100)
    finish(store, task, 1.0, count=4)
    assert outlook(store, task) == Outlook("grid", 4, 0, 0.0, True)


def times(*seconds):
    return [Outlook(str(i), 1, 1, s, False) for i, s in enumerate(seconds)]


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
    assert large.bytes > 20_000**2 * 8  # half the factor, half the inner products
    assert small.bytes < large.bytes / 10


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.04, "0.04 s"), (48.0, "48 s"), (89.0, "89 s"), (90.0, "2 min"), (5400.0, "1.5 h")],
)
def test_times_are_said_in_two_digits(seconds, words):
    assert spoken(seconds) == words


def test_all_sizes_are_held_side_by_side():
    alone, beside = (
        memory(Scope("mnist", sizes, engine="cpu"), 3000).bytes for sizes in ((3000,), (2000, 3000))
    )
    assert beside - alone == 8 * 2000 * (5 * 2000 + 3 * 20_000)
