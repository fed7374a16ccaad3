"""Every public function that takes data refuses what is no data, in one sentence: masked values,
complex numbers, dates, text, records, objects, sparse matrices. What only looks unusual is used."""

import datetime
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import nngp
from nngp import finite, plots, regimes
from nngp.plots.depth import depth_study
from nngp.predictive.calibration import reliability

RNG = np.random.default_rng(0)
NET = nngp.Architecture(1, "relu", 1.6, 0.1)
X, Y = RNG.normal(size=(12, 2)), RNG.normal(size=12)
LABELS = np.arange(12) % 2
POSTERIOR = nngp.condition(NET, X, Y, noise_var=0.1)
TABLE = nngp.curves.LookupTable("relu", n_v=5, n_c=5, fill="exact")
REGRESSOR = nngp.NNGPRegressor(selection=None).fit(X, Y)
CLASSIFIER = nngp.NNGPClassifier(selection=None).fit(X, LABELS)

INPUTS = {  # functions of X
    "condition": lambda bad: nngp.condition(NET, bad, Y),
    "update": lambda bad: POSTERIOR.update(bad, Y),
    "mean": POSTERIOR.mean,
    "variance": POSTERIOR.variance,
    "predict": POSTERIOR.predict,
    "covariance": POSTERIOR.covariance,
    "sample": POSTERIOR.sample,
    "kernel": lambda bad: nngp.kernel(NET, bad),
    "second of kernel": lambda bad: nngp.kernel(NET, X, bad),
    "plan_kernel": lambda bad: nngp.plan_kernel(NET, bad),
    "kernel_diag": lambda bad: nngp.kernel_diag(NET, bad),
    "NNGPKernel": lambda bad: nngp.NNGPKernel()(bad),
    "normalize": nngp.normalize,
    "sample_prior": lambda bad: nngp.sample_prior(NET, bad),
    "kernel by table": lambda bad: TABLE.kernel(bad, depth=1),
    "second of kernel by table": lambda bad: TABLE.kernel(X, bad, depth=1),
    "diagnose": lambda bad: regimes.diagnose(NET, bad),
    "fit a regressor": lambda bad: nngp.NNGPRegressor().fit(bad, Y),
    "fit a classifier": lambda bad: nngp.NNGPClassifier().fit(bad, LABELS),
    "predict by a regressor": REGRESSOR.predict,
    "predict_interval": REGRESSOR.predict_interval,
    "sample_y": REGRESSOR.sample_y,
    "score of a regressor": lambda bad: REGRESSOR.score(bad, Y),
    "predict by a classifier": CLASSIFIER.predict,
    "predict_proba": CLASSIFIER.predict_proba,
    "predict_variance": CLASSIFIER.predict_variance,
    "plot of intervals": lambda bad: plots.intervals(REGRESSOR, bad, Y),
    "plot of depth": lambda bad: depth_study((bad, LABELS, X, LABELS), depths=(1,)),
    "width convergence": lambda bad: finite.convergence(NET, bad, widths=(4,), n_networks=20),
    "finite sample": lambda bad: WIDE.sample(bad, 1),
}
TARGETS = {  # functions of Y, a vector
    "condition": lambda bad: nngp.condition(NET, X, bad),
    "update": lambda bad: POSTERIOR.update(X, bad),
    "recursion by table": lambda bad: TABLE.recursion(bad, depth=1),
    "fit a regressor": lambda bad: nngp.NNGPRegressor().fit(X, bad),
    "layer_covariance": lambda bad: nngp.curves.layer_covariance("relu", bad, 1.0, 0.5),
    "layer_derivatives": lambda bad: nngp.curves.layer_derivatives("relu", 1.0, 1.0, bad),
    "curve": lambda bad: nngp.curves.compile_curve(NET)(bad),
    "curve by gap": lambda bad: nngp.curves.compile_curve(NET)(one_minus=bad),
    "plot of intervals": lambda bad: plots.intervals(REGRESSOR, X, bad),
    "reliability": lambda bad: reliability(bad, LABELS),
    "phase": lambda bad: regimes.phase("tanh", bad, 0.1),
    "critical_line": lambda bad: regimes.critical_line("tanh", bad),
}
MASKED_ONLY = {  # where labels may be anything, or scikit-learn looks at the rest
    "fit a classifier": lambda bad: nngp.NNGPClassifier().fit(X, bad),
    "score of a regressor": lambda bad: REGRESSOR.score(X, bad),
    "score of a classifier": lambda bad: CLASSIFIER.score(X, bad),
    "weights of a score": lambda bad: REGRESSOR.score(X, Y, bad),
    "plot of reliability": lambda bad: plots.reliability(CLASSIFIER, X, bad),
    "weight_var": lambda bad: nngp.Architecture(11, "relu", bad),
    "relevance": lambda bad: nngp.NNGPRegressor(relevance=bad[:2]).fit(X, Y),
}
WIDE = nngp.FiniteNetwork(NET, 4)

DAYS = np.arange(np.datetime64("2020-01-01"), np.datetime64("2020-01-13"))
RECORDS = np.zeros(12, dtype=[("a", float), ("b", float)])
UNUSABLE = {  # of the shape of Y, and the sentence
    "complex": (Y + 1j, "complex|Complex|real"),
    "dates": (DAYS, "holds dates"),
    "lengths of time": (DAYS - DAYS[0], "holds lengths of time"),
    "Python's dates": (np.array([datetime.date(2020, 1, 1)] * 12, object), "holds dates"),
    "text": (np.array(["1.5"] * 12), "holds text"),
    "bytes": (np.array([b"1.5"] * 12), "holds bytes"),
    "records": (RECORDS, "holds records"),
}


def masked(values):
    """The first value masked, in all ways in which a mask can come."""
    bad = np.ma.masked_array(values, mask=np.zeros(values.shape, bool))
    bad[0] = np.ma.masked
    as_objects = np.empty(values.shape, object)
    as_objects[:] = values
    as_objects[(0,) * values.ndim] = np.ma.masked
    rows = [np.ma.masked, *values[1:]] if values.ndim == 1 else [bad[0], *values[1:]]
    return [bad, rows, tuple(rows), as_objects]


def test_masked_inputs():
    for name in INPUTS:
        for bad in masked(X):
            with pytest.raises(TypeError, match="masked values"):
                INPUTS[name](bad)


def test_masked_targets():
    for name in TARGETS | MASKED_ONLY:
        for bad in masked(np.abs(Y) % 1):
            with pytest.raises(TypeError, match="masked values"):
                (TARGETS | MASKED_ONLY)[name](bad)


def test_inputs_that_are_no_numbers():
    for kind in UNUSABLE:
        for name in INPUTS:
            column, sentence = UNUSABLE[kind]
            bad = column if kind == "records" else np.column_stack([column, column])
            check_one_sentence(INPUTS[name], bad, sentence)


def test_targets_that_are_no_numbers():
    for kind in UNUSABLE:
        for name in TARGETS:
            bad, sentence = UNUSABLE[kind]
            if name in ("phase", "critical_line"):
                sentence = "must be a number or an array of numbers"
            check_one_sentence(TARGETS[name], bad, sentence)


def check_one_sentence(function, bad, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence) as caught:
        function(bad)
    text = str(caught.value)
    assert not any(raw in text for raw in ("DType", "ufunc", "\n"))


def test_objects_that_are_no_numbers():
    for value in ("text", None, 10**400, object(), {}):
        bad = X.astype(object)
        bad[3, 1] = value
        with pytest.raises(TypeError, match="must hold real numbers"):
            nngp.kernel(NET, bad)
        with pytest.raises(TypeError, match="must hold real numbers"):
            nngp.condition(NET, X, bad)


def test_sparse_and_ragged():
    for function in (INPUTS["condition"], TARGETS["condition"]):
        with pytest.raises(TypeError, match="sparse"):
            function(sparse.csr_array(X))
        with pytest.raises(TypeError, match="must hold real numbers"):
            function([[1.0, 2.0], [3.0]])


def test_unusual_numbers_are_used():
    """A mask that hides nothing, booleans, integers, Python's own fractions, lists of arrays."""
    bare = np.ma.masked_array(X, mask=np.zeros(X.shape, bool))
    expected = nngp.kernel(NET, X)
    for same in (bare, list(bare), X.tolist(), list(X), X.astype(object)):
        np.testing.assert_array_equal(nngp.kernel(NET, same), expected)
    np.testing.assert_array_equal(REGRESSOR.predict(bare), REGRESSOR.predict(X))
    flags = X > 0
    np.testing.assert_array_equal(nngp.kernel(NET, flags), nngp.kernel(NET, flags.astype(float)))
    halves = np.array([[Fraction(1, 2)], [Fraction(3, 2)]])
    np.testing.assert_array_equal(nngp.kernel(NET, halves), nngp.kernel(NET, [[0.5], [1.5]]))


def test_noise_is_one_real_number():
    for noise in (1j, np.complex128(1), np.str_("1"), np.datetime64(1, "D"), True):
        with pytest.raises(TypeError, match="noise_var must be one number"):
            nngp.condition(NET, X, Y, noise_var=noise)
