"""Ascents of a search at the same time: what one after the other finds, and a clean end."""

import threading

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1

import nngp
from nngp.selection.search import Search


@pytest.mark.parametrize("kind", [nngp.NNGPRegressor, nngp.NNGPClassifier])
def test_threads_find_what_one_thread_finds(kind, monkeypatch):
    classes = kind is nngp.NNGPClassifier
    X, y = (
        make_classification(40, 4, random_state=0)
        if classes
        else make_friedman1(40, 5, noise=1.0, random_state=0)
    )

    def found():
        model = kind(effort="fast").fit(X, y)
        rows = [model.selection_[column].tolist() for column in ("stage", "score", "evaluations")]
        return rows, (model.predict_proba(X) if classes else model.predict(X))

    together = found()
    monkeypatch.setattr(Search, "_in_any_order", False)
    alone = found()
    assert together[0] == alone[0]
    np.testing.assert_array_equal(together[1], alone[1])


def test_an_interruption_ends_all_ascents():
    X, y = make_friedman1(400, 10, noise=1.0, random_state=0)
    steps = []

    def interrupt(step):
        assert threading.current_thread() is threading.main_thread()
        steps.append(step)
        if step.done > 0.2:
            raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        nngp.NNGPRegressor(progress=interrupt).fit(X, y)
    assert len(steps) > 1
    assert threading.active_count() == before
