"""`nngp-paper reproduce`: small parts for real, budgets, resuming, and what cannot be."""

import json
import math
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from paper_runs import UNCERTAINTY, fill

import nngp

pytest.importorskip("matplotlib")

SMALL = "--sizes 20,40 --depths 1,2 --grid 2 --activations relu --engine cpu --json"


def test_a_part_is_done_drawn_and_resumed(run):
    code, out, err = run(f"reproduce fig3 {SMALL}")
    assert code == 0
    told = json.loads(out)
    judged = told["parts"]["fig3"].pop("verdict")
    assert judged["word"] in ("supported", "partly", "not supported")
    assert f"fig3: {judged['word']}. {judged['reason']}" in " ".join(err.split())
    assert told["parts"] == {
        "fig3": {
            "files": ["reproduced/fig3-digits.png", "reproduced/fig3-digits.svg"],
            "problem": "",
        }
    }
    assert (told["left"], told["report"], told["store"]) == ({}, None, "runs.db")
    assert Path("reproduced/fig3-digits.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in Path("reproduced/fig3-digits.svg").read_text("utf-8")
    assert "4 runs in runs.db, 0 of them done" in err
    assert "to do: 2 of doubt, 2 of loo_scale" in err
    assert "GB of memory, for 40 training points" in err
    before = json.loads(run("runs --json")[1])["runs"]
    assert {row["experiment"] for row in before} == {"doubt", "loo_scale"}  # no other part's work
    code, _, err = run(f"reproduce fig3 {SMALL}")
    assert code == 0
    assert "4 runs in runs.db, 4 of them done" in err
    assert "left" not in err
    assert json.loads(run("runs --json")[1])["runs"] == before


def test_tables_are_printed_and_written(run):
    code, out, err = run(f"reproduce table2 {SMALL.replace('--json', '--out tables')}")
    assert code == 0
    assert "Table 2: all training sizes (digits)" in out
    assert "relu" in out
    assert "paper_nngp" not in out  # the paper has no digits
    rows = Path("tables/table2-digits.csv").read_text("utf-8").splitlines()
    assert len(rows) == 3
    assert rows[0].startswith("dataset,train,activation")
    assert "1 file in tables" in err


def test_a_budget_stops_the_work_and_says_what_is_left(run):
    code, out, err = run(f"reproduce table2 fig3 {SMALL} --budget 0.001s")
    assert code == 0
    told = json.loads(out)
    assert told["left"] == {"doubt": 2, "loo_scale": 2, "grid": 8}
    listed = "2 of doubt, 2 of loo_scale, 8 of grid"
    assert f"the budget is spent; runs left: {listed}; the same command goes on" in err
    assert "8 of grid; 0.001 s for them" in err
    assert "no finished" in told["parts"]["fig3"]["problem"]
    assert told["parts"]["fig3"]["files"] == []
    assert "fig3: the store has no finished run" in err


def test_memory_is_asked_for_only_where_a_kernel_is_factored(run, monkeypatch):
    """Draws from the prior fit on any machine, whatever the data set's size."""
    from nngp.linsolve import CpuEngine
    from nngp_paper.parts import fig05_prior as prior

    monkeypatch.setattr(CpuEngine, "free_memory", lambda self: 1)
    monkeypatch.setattr(prior, "CONFIG", {**prior.CONFIG, "points": 5, "draws": 1})
    code, _, err = run("reproduce fig5 --dataset mnist --engine cpu --json")
    assert (code, "GB" in err) == (0, False), err
    code, _, err = run(f"reproduce fig3 {SMALL}")
    assert code == 4
    assert "40 training points need" in err


def test_an_interruption_keeps_what_is_done(run, monkeypatch):
    from nngp_paper.shared import uncertainty

    real, calls = uncertainty.condition, []

    def once(*arguments, **more):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments, **more)

    monkeypatch.setattr(uncertainty, "condition", once)
    code, _, err = run(f"reproduce fig3 {SMALL}")
    assert code == 130
    assert "finished runs are in the store, and the next call goes on" in err
    counts = json.loads(run("runs --json")[1])["counts"]
    assert (counts["done"], counts["pending"], counts["running"]) == (1, 3, 0)


def test_what_needs_no_data_needs_no_memory_for_them(run, monkeypatch):
    monkeypatch.setattr("nngp_paper.terminal.reproduce.forecast", lambda *rest, **more: 1 / 0)
    code, _, err = run("reproduce fig5 --dataset mnist")
    assert code == 0
    assert "1 run in runs.db, 0 of them done" in err
    assert "memory" not in err


def test_too_little_memory_is_said_with_what_would_fit(run, monkeypatch):
    def scarce(*rest, engine):
        return replace(nngp.forecast(40, 64), bytes=8 * 10**9, available=2 * 10**9, largest=20)

    monkeypatch.setattr("nngp_paper.terminal.reproduce.forecast", scarce)
    code, _, err = run(f"reproduce fig3 {SMALL}")
    assert code == 4
    assert "40 training points need 8.0 GB of memory, and 2.0 GB are free" in err
    assert "at most 20 with --sizes" in err


def test_large_sets_alone_have_no_grid_and_it_is_said(run, monkeypatch):
    monkeypatch.setattr("nngp_paper.terminal.reproduce.work", lambda *rest: None)
    large = "reproduce fig4 --dataset mnist --sizes 20000 --activations relu --engine cpu"
    code, _, err = run(f"{large} --json")
    assert code == 0
    assert (
        "no network of a grid is left to try: with more than 10000 training points only those"
        in err
    )
    assert "grid:" not in err
    assert "to do: 1 of critical" in err


def test_all_ends_in_a_report(run, monkeypatch):
    """Nothing is done here; parts without data say so, and the report knows of one run."""
    from nngp_paper.parts import fig05_prior
    from nngp_paper.runs import RunStore
    from nngp_paper.scope import Scope
    from nngp_paper.shared.uncertainty import uncertainty_study

    bins = {"predicted": [0.1, 0.2], "realised": [0.1, 0.2], **UNCERTAINTY}
    draw = {"x": [0.0, 1.0], "values": [[0.0, 1.0]]}
    with RunStore("runs.db") as store:
        fill(
            store,
            "doubt",
            uncertainty_study(Scope("digits", (20, 40))).configs,
            lambda config: bins,
        )
        fill(store, "prior", fig05_prior.study(None).configs, lambda config: draw)
    monkeypatch.setattr(
        "nngp_paper.terminal.reproduce.workloads_for", lambda *a: ([], ["left out: a"])
    )
    code, out, err = run(f"reproduce all {SMALL}")
    assert code == 0
    told = json.loads(out)
    assert told["report"] == "reproduced/report.html"
    shown = [name for name, part in told["parts"].items() if part["files"]]
    assert shown == ["fig3", "fig5", "fig8"]
    assert "left out: a" in err
    assert "<h1>" in Path("reproduced/report.html").read_text("utf-8")


def test_all_without_time_has_nothing_to_report(run, monkeypatch):
    monkeypatch.setattr("nngp_paper.terminal.reproduce.workloads_for", lambda *a: ([], []))
    code, out, err = run(f"reproduce all {SMALL}")
    assert (code, json.loads(out)["report"]) == (0, None)
    assert "the store has no finished runs on any data set" in err
    assert list(Path("reproduced").iterdir()) == []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("20m", 1200), ("1h30m", 5400), ("1.5h", 5400), ("1h 10s", 3610)],
)
def test_budgets_are_times(text, seconds):
    pytest.importorskip("typer")
    from nngp_paper.terminal import parsing

    assert parsing.seconds(text) == seconds
    assert parsing.seconds(None) == math.inf


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("fig11", "there is no part 'fig11' of the paper; use all, table1"),
        ("fig1 --dataset mnits", "--dataset must be one of cifar10, digits"),
        ("fig1 --dataset mnits", "did you mean 'mnist'"),
        ("fig1 --sizes 5", "--sizes must be from 10 (one of each class) to 1000"),
        ("fig1 --sizes 2000", "--sizes must be from 10 (one of each class) to 1000"),
        ("fig1 --sizes few", "--sizes must be whole numbers"),
        ("fig1 --depths 0", "--depths must be at least 1"),
        ("fig1 --activations relu,relux", "unknown activation 'relux'"),
        ("fig1 --engine fast", "engine must be 'auto', 'cpu' or 'gpu'"),
        ("fig1 --budget soon", "--budget must be a time such as 90s, 20m or 1h30m, got 'soon'"),
        ("fig1 --budget 20", "--budget must be a time"),
        ("fig1 --budget 0s", "--budget must be a time"),
        ("fig1 --widths a", "--widths must be whole numbers"),
        ("fig1 --grid 1", "--grid"),
        ("fig1 --trials 0", "--trials"),
        ("fig1 --out file.txt", "file.txt is a file; name a folder"),
        ("fig1 --store runs.db.gz", "runs.db.gz would be taken for a packed store"),
        ("fig1 --out file.txt/below", "the folder file.txt/below cannot be created"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_left_behind(run, words, said):
    Path("file.txt").touch()
    code, _, err = run(f"reproduce {words}")
    assert (code, said in err) == (2, True), err
    assert list(Path().iterdir()) == [Path("file.txt")]


def test_digits_are_a_quick_look_and_others_the_papers_grid():
    pytest.importorskip("typer")
    from nngp_paper.shared.searches import SearchSize
    from nngp_paper.terminal.options import ReproduceOptions
    from nngp_paper.terminal.request import request_of

    def request(dataset, **more):
        given = {"parts": ["fig1"], "dataset": dataset, "activations": "relu", **more}
        return request_of(ReproduceOptions(**given, engine="cpu"))

    def scope(dataset, grid=None):
        return request(dataset, grid=grid).scope

    assert (scope("digits").grid, scope("digits").depths) == (10, (1, 3, 10, 50))
    assert (scope("mnist").grid, len(scope("mnist").depths)) == (30, 9)
    assert scope("mnist").sizes[-1] == 50_000
    assert [scope("digits", grid).relative.grid for grid in (None, 4)] == [5, 4]
    assert scope("mnist").relative == scope("mnist")
    assert scope("digits", 4).grid == 4
    assert request("digits").finite == SearchSize((16, 32, 64), 6, sizes=(100, 1000))
    assert request("digits", sizes="50,100,200").finite.sizes == (50, 100, 200)
    assert request("mnist").finite.sizes == scope("mnist").sizes


class Clock:
    """A task whose runs take three seconds, on a clock that only such tasks move."""

    now = 0.0

    def __init__(self, name, runs):
        self.name, self.runs = name, runs

    def do(self, store, until, progress):
        store.append((self.name, until))
        while self.runs and Clock.now < until:
            Clock.now += 3.0
            self.runs -= 1


@pytest.mark.parametrize(
    ("runs", "moments", "left"),
    [
        ((1, 100, 2), [11.0, 18.0, 33.0], [0, 92, 0]),  # what the first does not need goes on
        ((100, 100, 100), [11.0, 22.5, 33.0], [96, 96, 97]),
        ((1, 2, 1), [11.0, 18.0, 33.0], [0, 0, 0]),  # all fit
    ],
)
def test_a_budget_is_shared_as_it_goes(monkeypatch, runs, moments, left):
    pytest.importorskip("typer")
    from nngp_paper.terminal.reproduce import work

    monkeypatch.setattr(Clock, "now", 0.0)
    monkeypatch.setattr(time, "monotonic", lambda: Clock.now)
    log = []
    tasks = [Clock(i, count) for i, count in enumerate(runs)]
    work(log, tasks, 0.0, 33.0)
    assert log[:3] == list(enumerate(moments))
    assert [task.runs for task in tasks] == left


def test_a_cluster_that_is_not_there(run, monkeypatch):
    monkeypatch.setattr("nngp_paper.on_dask.CONNECT", 0.5)
    code, _, err = run("reproduce fig3 --cluster tcp://127.0.0.1:9")
    assert (code, "start one with 'dask scheduler'" in err) == (4, True)
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, _, err = run("reproduce fig3 --cluster tcp://127.0.0.1:9")
    assert (code, "pip install 'nngp[distributed]'" in err) == (4, True)
