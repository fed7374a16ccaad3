"""What is left to do, and the largest kernel in it."""

import pytest

from nngp_paper.experiment import Experiment
from nngp_paper.runs.study import Outcome, Study
from nngp_paper.scope import Scope
from nngp_paper.shared.words import duration
from nngp_paper.workloads import Remaining, StudyWorkload, remaining

SCOPE = Scope("digits", (100,), engine="cpu")


def workload(study):
    return StudyWorkload(Experiment(study.experiment, lambda scope: study), SCOPE)


def strips(*sizes, count=4):
    configs = [{"train": size, "i": i} for size in sizes for i in range(count)]
    return workload(Study("grid", configs, lambda config: Outcome({})))


def test_finished_and_failed_runs_are_not_left(store):
    task = strips(100)
    assert remaining(store, task) == Remaining("grid", 4, 4, 100)
    first, second, *others = task.declare(store)
    store.fail(first, "no kernel")
    store.finish(second, {}, seconds=1.0)
    assert remaining(store, task) == Remaining("grid", 4, 2, 100)
    for key in others:
        store.finish(key, {}, seconds=1.0)
    assert remaining(store, task) == Remaining("grid", 4, 0, 0)


def test_the_largest_kernel_is_that_of_what_is_left(store):
    task = strips(100, 300, count=1)
    assert remaining(store, task).points == 300
    store.finish(task.declare(store)[1], {}, seconds=1.0)
    assert remaining(store, task).points == 100
    finite = [{"train": 500, "width": 8}, {"activation": "relu"}]
    assert remaining(store, workload(Study("a", finite, lambda config: Outcome({})))).points == 0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.04, "0.04 s"), (48.0, "48 s"), (89.0, "89 s"), (90.0, "2 min"), (5400.0, "1.5 h")],
)
def test_times_are_said_in_two_digits(seconds, words):
    assert duration(seconds) == words
