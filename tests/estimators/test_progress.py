"""Progress of a fit: one bar from 0 to 100% on a terminal, lines where they are asked for, nothing
elsewhere; a callback is told of each phase, as before."""

import pickle
import re
import time

import numpy as np
import pytest

import nngp
from nngp import _progress

pytestmark = pytest.mark.filterwarnings("ignore::nngp.errors.TreesWarning")  # of tiny budgets
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=60)
REGRESSOR = nngp.NNGPRegressor(depth=1, activation="erf", effort="fast")
MODELS = {
    "evidence": (REGRESSOR, Y),
    "given": (nngp.NNGPRegressor(selection=None), Y),
    "cg": (nngp.NNGPRegressor(selection=None, solver="cg"), Y),
    "classes": (
        nngp.NNGPClassifier(depth=1, activation="erf", effort="fast", likelihood="regression"),
        (Y > 0).astype(int),
    ),
    "budget": (nngp.NNGPRegressor(budget=3), Y),
}


@pytest.fixture
def bars(monkeypatch):
    """The bars that are begun on what looks like a terminal, as lists of fractions done."""
    begun = []

    class Bar(_progress._Bar):
        def _show(self, step):
            if self._bar is None:
                self._bar = []
                begun.append(self._bar)
            self._bar.append(step.done)
            assert step.seconds >= 0
            assert step.seconds_left is None or step.seconds_left >= 0

        def close(self):
            self._bar = None

    monkeypatch.setattr(_progress, "_Bar", Bar)
    monkeypatch.setattr(_progress, "on_terminal", lambda: True)
    return begun


@pytest.mark.parametrize("name", MODELS)
def test_one_bar_for_the_whole_fit(bars, name):
    model, answers = MODELS[name]
    model.set_params(progress=True).fit(X, answers)
    (done,) = bars
    assert done == sorted(done)
    assert done[0] == 0.0
    assert done[-1] == 1.0
    assert done.count(1.0) == 1
    assert len(set(done)) > 2 or name in ("given", "cg")
    model.predict(X)  # a job of its own
    assert len(bars) > 1
    pickle.loads(pickle.dumps(model))


def test_a_short_fit_shows_no_bar_of_itself(bars):
    nngp.NNGPRegressor(budget=3).fit(X, Y)
    assert not bars


def test_a_failure_leaves_no_job_behind(bars):
    with pytest.raises(nngp.errors.VarianceError):
        nngp.NNGPRegressor(bias_var=0.0, input_scaling="none", progress=True).fit(0 * X, Y)
    assert _progress._job.get() is None


def test_a_callback_is_told_of_each_phase(bars):
    steps = []
    REGRESSOR.set_params(progress=steps.append).fit(X, Y)
    REGRESSOR.set_params(progress=None)
    assert not bars
    by_phase = {}
    for step in steps:
        by_phase.setdefault(step.phase.split(" (")[0], []).append(step.done)
    assert list(by_phase) == ["choose the network", "factor"]  # rows left out of few are quick
    for done in by_phase.values():
        assert done == sorted(done)
        assert done[-1] == 1.0


def test_lines_where_there_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr(_progress, "EVERY", 0.0)
    model = nngp.NNGPRegressor(depth=1, activation="erf", effort="fast", budget=10)
    model.fit(X, Y)
    assert capsys.readouterr().err == ""
    model.set_params(progress=True).fit(X, Y)
    lines = capsys.readouterr().err.splitlines()
    form = r"[a-z ]+: (\d+)%, (done|[0-9.e-]+ s so far(, about .* left)?)"
    shown = [int(re.fullmatch(form, line)[1]) for line in lines]
    assert shown == sorted(shown)
    assert shown[-1] == 100
    assert shown.count(100) == 1
    monkeypatch.setattr(_progress, "EVERY", 1e9)
    model.fit(X, Y)
    assert len(capsys.readouterr().err.splitlines()) == 2  # the first and the last


def test_the_bar_fits_a_narrow_terminal(monkeypatch, capsys):
    pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")
    bar = _progress._Bar()
    step = _progress.Step("factor (123.4 GB)", 0.4, 5000.0, "noise 1e-10")
    bar(step)
    bar.close()
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "\n", capsys.readouterr().err)
    assert "40%" in plain
    assert max(map(len, re.split(r"[\r\n]", plain))) <= 80


def test_a_bar_appears_where_a_job_takes_some_seconds(bars, monkeypatch):
    monkeypatch.setattr(_progress, "SHOW_FROM", 0.05)
    with _progress.Progress("factor", 4.0, _progress.progress_for(None)) as progress:
        progress.begin()
        progress.advance(1.0)
        time.sleep(0.06)
        progress.advance(1.0)
        progress.advance(2.0)
    assert bars == [[0.5, 1.0]]


def test_time_is_told_as_measured():
    begun, going = (_progress.Step("factor", done, 30.0) for done in (0.0, 0.25))
    assert begun.seconds_left is None
    assert begun.time == "30 s so far"
    assert going.seconds_left == 90.0
    assert going.time == "30 s so far, about 2 min left"


def test_the_counted_work_of_a_search():
    """It grows with points, and a budget limits it."""
    work = [REGRESSOR._forecast((n, 3), 1, classes=False).choice for n in (100, 1000, 10_000)]
    assert work == sorted(work)
    assert work[0] > 0
    few = nngp.NNGPRegressor(budget=2)._forecast((10_000, 3), 1, classes=False)
    assert few.choice < work[1]
