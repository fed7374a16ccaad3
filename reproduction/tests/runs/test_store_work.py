"""One process: declare, claim, finish, fail, retry, look."""

import math
import threading
import time

import numpy as np
import pytest

import nngp
from nngp_paper.runs import Run, RunStore, key_of

GRID = [{"width": width, "seed": seed} for width in (64, 128) for seed in range(3)]


@pytest.fixture
def store(tmp_path):
    with RunStore(tmp_path / "runs.db", clock=lambda: 1.8e9) as opened:
        yield opened


def claimed(store, count, **which):
    """The keys of so many claims, or of all that there are."""
    runs = [store.claim(**which) for _ in range(count)]
    return [run.key for run in runs if run is not None]


def test_a_run_from_declaration_to_result(store):
    keys = store.declare("width", GRID)
    assert keys == [key_of("width", config) for config in GRID]
    assert store.get(keys[0]).status == "pending"
    run = store.claim()
    assert (run.key, run.config, run.experiment) == (keys[0], GRID[0], "width")
    assert (run.status, run.attempts, run.result) == ("running", 1, None)
    assert run.started == "2027-01-15T08:00:00.000+00:00"
    result = {"accuracy": np.float32(0.5), "curve": np.arange(3), "test": {"loss": 1.5}}
    assert store.finish(run.key, result, seconds=2, device="cpu", jitter=1e-10)
    run = store.get(run.key)
    assert run.result == {"accuracy": 0.5, "curve": [0, 1, 2], "test": {"loss": 1.5}}
    assert (run.status, run.seconds, run.device, run.jitter) == ("done", 2.0, "cpu", 1e-10)
    assert run.finished == "2027-01-15T08:00:00.000+00:00"
    assert run.versions["nngp"] == nngp.__version__
    assert run.versions["numpy"] == np.__version__
    assert {"python", "scipy"} <= set(run.versions)
    assert store.counts() == {"pending": 5, "running": 0, "done": 1, "failed": 0}


def test_declaring_again_changes_nothing(store):
    keys = store.declare("width", GRID[:2])
    store.finish(keys[0], {"a": 1}, seconds=0)
    store.claim()
    before = store.runs()
    again = store.declare("width", [GRID[1], GRID[2], GRID[0], GRID[2]])
    assert again == [key_of("width", GRID[i]) for i in (1, 2, 0, 2)]
    assert store.runs()[:2] == before
    assert [run.config for run in store.runs()] == GRID[:3]


def test_claims_come_in_the_order_declared_each_once(store):
    keys = store.declare("a", GRID)
    others = store.declare("b", GRID)
    assert claimed(store, 2) == keys[:2]
    assert claimed(store, 2, experiment="b") == others[:2]
    assert store.claim([others[5], others[3]]).key == others[3]
    assert store.claim(keys=others[3:4]) is None
    assert claimed(store, 99) == keys[2:] + [others[i] for i in (2, 4, 5)]
    assert store.claim() is None
    assert store.pending() == 12
    store.finish(keys[0], {}, seconds=0)
    store.fail(keys[1], "it diverged")
    assert store.pending(keys) == 4
    assert store.counts(keys=keys) == {"pending": 0, "running": 4, "done": 1, "failed": 1}
    assert store.counts("b", where={"width": 64})["running"] == 3


def test_the_first_result_stays(store):
    (key,) = store.declare("e", [{}])
    assert store.finish(key, {"a": 1}, seconds=1)
    assert not store.finish(key, {"a": 2}, seconds=2)
    assert not store.fail(key, "too late")
    run = store.get(key)
    assert (run.status, run.result, run.seconds, run.error) == ("done", {"a": 1}, 1.0, None)


def test_failures_stay_until_they_are_tried_again(store):
    a, b, c = store.declare("e", GRID[:2]) + store.declare("f", GRID[:1])
    for key in (a, b, c):
        store.claim()
        assert store.fail(key, "the loss is NaN: lower the rate", seconds=3)
    assert store.claim() is None
    run = store.get(a)
    assert (run.status, run.error, run.seconds) == (
        "failed",
        "the loss is NaN: lower the rate",
        3.0,
    )
    assert store.retry(experiment="f") == 1
    assert store.retry([a]) == 1
    assert store.retry([a]) == 0
    assert store.get(a).error is None
    assert claimed(store, 9) == [a, c]
    assert store.get(a).attempts == 2
    assert store.get(b).status == "failed"


def test_a_result_replaces_a_failure(store):
    (key,) = store.declare("e", [{}])
    store.fail(key, "out of memory")
    assert store.finish(key, {"a": 1}, seconds=1)
    assert (store.get(key).status, store.get(key).error) == ("done", None)


def test_release_gives_back_what_is_ours_and_running(store, tmp_path):
    keys = store.declare("e", GRID)
    with RunStore(tmp_path / "runs.db", clock=lambda: 1.8e9) as other:
        theirs = other.claim()
        ours = claimed(store, 2)
        store.finish(ours[0], {}, seconds=0)
        assert store.release(keys) == 1
        assert store.release([]) == 0
        assert store.get(theirs.key).status == "running"
    assert store.claim().key == theirs.key  # closing gave it back
    assert store.claim().key == ours[1]


def test_choosing_runs(store):
    configs = [
        {"width": 64, "depth": math.inf, "net": {"act": "relu"}, "layers": [1, 2]},
        {"width": 64.0, "depth": 3, "net": {"act": "tanh"}},
        {"width": True, "depth": 3, "net": {}},
    ]
    keys = store.declare("e", configs)
    store.declare("f", configs)
    store.finish(keys[1], {}, seconds=0)

    def chosen(**given):
        return [keys.index(run.key) for run in store.runs("e", **given)]

    assert chosen() == [0, 1, 2]
    assert chosen(where={"width": 64}) == [0, 1]
    assert chosen(where={"width": 1}) == []
    assert chosen(where={"depth": math.inf}) == chosen(where={"depth": "inf"}) == [0]
    assert chosen(where={"net.act": "tanh"}) == chosen(where={"net": {"act": "tanh"}}) == [1]
    assert chosen(where={"layers": (1, 2)}) == [0]
    assert chosen(where={"nothing": None}) == []
    assert chosen(where={"width": 64, "depth": 3}) == [1]
    assert chosen(status="done") == [1]
    assert chosen(keys=[keys[2], keys[0]]) == [0, 2]
    assert len(store.runs()) == 6
    assert store.runs("e")[0].config["depth"] == math.inf  # as it was given


def test_results_come_back_as_they_were(store):
    (key,) = store.declare("e", GRID[:1])
    result = {"loss": math.nan, "best": -math.inf, "curves": {"a": [1.5, 2], "end": 2}, "l": [[]]}
    store.finish(key, result, seconds=0)
    found = store.get(key).result
    assert math.isnan(found.pop("loss"))
    assert found == {"best": -math.inf, "curves": {"a": [1.5, 2], "end": 2}, "l": [[]]}


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda s, k: s.declare("e", {"a": 1}), TypeError, "configs must be a list of mappings"),
        (lambda s, k: s.declare("e", [{}, 3]), TypeError, "a configuration is a int"),
        (lambda s, k: s.declare("e", [{}, {"a": math.nan}]), ValueError, r"config\.a is NaN"),
        (lambda s, k: s.claim(k), TypeError, "keys must be a list of keys"),
        (lambda s, k: s.finish(k, 0.9, seconds=1), TypeError, "the result is a float"),
        (lambda s, k: s.finish(k, {}, seconds=math.nan), ValueError, "seconds must be finite"),
        (lambda s, k: s.finish(k, {}, seconds=-1), ValueError, "seconds must be .* not negative"),
        (lambda s, k: s.finish(k, {}, seconds=1, jitter=math.inf), ValueError, "jitter must be"),
        (
            lambda s, k: s.finish(k, {"m": object()}, seconds=1),
            TypeError,
            "result cannot be stored .there is a object in it.; give numbers",
        ),
        (
            lambda s, k: s.finish("f00", {}, seconds=1),
            KeyError,
            "there is no run 'f00' in .*runs.db",
        ),
        (lambda s, k: s.fail("f00", "why"), KeyError, "there is no run 'f00'"),
        (lambda s, k: s.get("f00"), KeyError, "there is no run 'f00'"),
        (lambda s, k: s.runs(status="finished"), ValueError, "status must be one of pending, runn"),
        (lambda s, k: s.runs(where={"a": math.nan}), ValueError, r"where\.a is NaN"),
    ],
)
def test_what_is_refused_changes_nothing(store, call, error, sentence):
    (key,) = store.declare("e", GRID[:1])
    before = store.runs()
    with pytest.raises(error, match=sentence):
        call(store, key)
    assert store.runs() == before


def test_texts_of_errors_may_hold_anything(store):
    (key,) = store.declare("e", [{}])
    store.fail(key, "no file \udcff.npy 'quoted'; DROP TABLE runs")
    assert store.get(key).error == "no file ?.npy 'quoted'; DROP TABLE runs"


def test_a_closed_store_says_so(tmp_path):
    store = RunStore(tmp_path / "runs.db")
    store.close()
    store.close()
    with pytest.raises(ValueError, match=r"runs\.db is closed; open it again"):
        store.counts()


def test_closing_gives_back_what_was_claimed_even_after_an_error(tmp_path):
    def interrupted():
        with RunStore(tmp_path / "runs.db") as store:
            store.declare("e", GRID)
            claimed(store, 3)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with RunStore(tmp_path / "runs.db") as store:
        assert store.counts()["pending"] == 6
        assert [run.owner for run in store.runs()] == [None] * 6


def test_threads_share_one_store(store):
    keys = store.declare("e", [{"i": i} for i in range(40)])
    seen = []

    def work():
        while run := store.claim(keys):
            seen.append(run.key)
            store.finish(run.key, run.config, seconds=0)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == sorted(keys)
    assert all(run.result == run.config and run.attempts == 1 for run in store.runs())


def test_ten_thousand_configurations_are_one_transaction(store, monkeypatch):
    begun, writing = [], store._writing
    monkeypatch.setattr(store, "_writing", lambda: begun.append(1) or writing())
    keys = store.declare("e", ({"i": i, "rate": i / 7} for i in range(10_000)))
    assert (len(begun), len(set(keys)), store.counts()["pending"]) == (1, 10_000, 10_000)


def test_a_run_is_what_the_interface_says():
    names = "key experiment config status result error versions device seconds jitter started"
    assert list(Run.__dataclass_fields__) == [*names.split(), "finished", "owner", "attempts"]


def test_time_is_told_in_utc(tmp_path):
    with RunStore(tmp_path / "runs.db") as store:
        store.declare("e", [{}])
        began = time.time()
        started = store.claim().started
    assert started.endswith("+00:00")
    from datetime import datetime

    assert abs(datetime.fromisoformat(started).timestamp() - began) < 60
