"""Damaged and forged model files: refused with one sentence, or no prediction differs.

`pytest tests/estimators/test_damaged.py -m slow -s` prints tables of what was done and what came of
it: every bit of the headers, 5,000 random mutations of a model with 3,000 points.
"""

import inspect
import sys
import tracemalloc
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from damage import (
    bits_of_structure,
    description_of,
    file_of,
    finite,
    flip,
    forged,
    leaves,
    mutated,
    outcome,
    parts_of,
    peak,
    put,
    table,
)

import nngp
from nngp.estimators.fitted_network import FittedNetwork
from nngp.estimators.training_rows import TrainingRows
from nngp.frames.maps import KINDS, ColumnMap, learn_ranks
from nngp.frames.scaling import InputScaling

FINE = ("refused", "same")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
NOISE = RNG.normal(size=60)
Y = X[:, 0] ** 2 + 0.1 * NOISE


def labels(values, edges):
    return np.array(["a", "b", "cc"])[np.digitize(values, edges)]


CLASSES = labels(Y, [0.3, 1])
TABLE = {
    "size": [*X[:50, 0], *[np.nan] * 10],
    "town": ["Ulm", "Bonn", None] * 20,
    "day": np.datetime64("2024-01-01") + np.arange(60),
    "price": [f"${1000 + 7 * i:,}" for i in range(60)],
}
SKEWED = np.column_stack([np.exp(1.5 * X[:, 0]), X[:, 1:]])
SKEWED[5, 1] = 4000.0  # its column gets a bounded map
LABELS = labels(np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.5 * NOISE, [0.3, 1.5])
UNEVEN = np.sin(X[:, 0]) + np.where(X[:, 1] > 0, 1.0, 0.02) * RNG.normal(size=60)
WEIGHTS = RNG.uniform(0.5, 2, 60)
MAPPED = np.exp(np.column_stack([X, X[:, 0] - X[:, 1], X[:, 2] - X[:, 0]]))
FAST = {"effort": "fast", "budget": 40}


def with_every_map():
    """A model that a search would hardly find: each column with a map of another kind."""
    model = nngp.NNGPRegressor(selection=None).fit(MAPPED, Y)
    found, rows = model.networks_[0], TrainingRows(MAPPED, Y[:, None])
    maps = [learned_map(kind, column) for kind, column in zip(KINDS, MAPPED.T, strict=True)]
    scaling = InputScaling.learn(MAPPED, "standardize", maps)
    chosen = replace(found._chosen, inputs=scaling)
    model._set_networks([FittedNetwork.condition(chosen, rows, model._machine)])
    return model


def learned_map(kind, column):
    if kind == "identity":
        return ColumnMap()
    if kind == "ranks":
        return learn_ranks(column, 0.0, 1.0)
    if kind == "bounded":
        return ColumnMap(kind, 1.0, 0.3)
    return ColumnMap(kind, 0.0, 1.0, 0.5, float(column.min()), float(column.max()))


MODELS = {
    "mixture": lambda: nngp.NNGPRegressor(n_networks=3, target_transform="log", **FAST).fit(
        SKEWED, np.exp(Y)
    ),
    "classes": lambda: nngp.NNGPClassifier(n_networks=3, class_weight="balanced", depth=2).fit(
        X, LABELS
    ),
    "noise": lambda: nngp.NNGPRegressor(noise="heteroscedastic", effort="fast", budget=10).fit(
        X, UNEVEN, sample_weight=WEIGHTS, noise_var=0.01 * WEIGHTS
    ),
    "maps": with_every_map,
    "trees": lambda: nngp.NNGPRegressor(budget=5, depth=1).fit(X, Y),
    "regressor": lambda: nngp.NNGPRegressor(selection=None).fit(X, Y),
    "sphere": lambda: nngp.NNGPRegressor(selection=None, input_scaling="sphere").fit(X, Y),
    "whitened": lambda: nngp.NNGPRegressor(selection=None, input_scaling="whiten").fit(X, Y),
    "invariant": lambda: nngp.NNGPRegressor(
        selection=None, invariance=nngp.images.flips((1, 3))
    ).fit(X, Y),
    "classifier": lambda: nngp.NNGPClassifier(selection=None, likelihood="regression").fit(
        X, CLASSES
    ),
    "dirichlet": lambda: nngp.NNGPClassifier(
        selection=None, likelihood="dirichlet", class_weight={"a": 2.5}
    ).fit(X, CLASSES),
    "softmax": lambda: nngp.NNGPClassifier(selection=None, likelihood="softmax").fit(X, CLASSES),
    "cg": lambda: nngp.NNGPRegressor(selection=None, solver="cg").fit(X, Y),
    "no factor": lambda: nngp.NNGPRegressor(selection=None).fit(X, Y),
    "table": lambda: nngp.NNGPRegressor(selection=None).fit(TABLE, Y),
}
POINTS = {"table": TABLE, "mixture": SKEWED, "maps": MAPPED}


@cache
def fitted(name):
    return MODELS[name]()


def predictions(model, points=X):
    if hasattr(model, "classes_"):
        return np.column_stack([model.predict_proba(points), model.predict_variance(points)])
    of_rows = model.predict(points, return_std=True), model.predict_interval(points, 0.9)
    return np.column_stack([*of_rows[0], *of_rows[1], model.sample_y(points, 2)])


class Saved:
    """A saved model, and a file for damaged copies of it."""

    def __init__(self, path, model, points=X, **options):
        model.save(path, **options)
        self.path, self.whole, self.points = path, path.read_bytes(), points
        self.expected = predictions(model, points)

    def judge(self, data, same=None):
        """What becomes of a file: see `outcome`."""
        self.path.write_bytes(data)
        return outcome(self.predict, nngp.errors.ModelFileError, same or self.same)

    def same(self, found):
        return np.array_equal(found, self.expected)

    def predict(self):
        return predictions(nngp.load(self.path, engine="cpu"), self.points)

    def array(self, name):
        return parts_of(self.whole)[1][name]


# One reader for all models: two of them are damaged in each run, the others in the deep one.
DAMAGED = [
    name if name in ("regressor", "dirichlet") else pytest.param(name, marks=pytest.mark.deep)
    for name in MODELS
]


@pytest.fixture(params=DAMAGED)
def saved(request, tmp_path):
    name = request.param
    factor, points = name != "no factor", POINTS.get(name, X)
    return Saved(tmp_path / "model.nngp", fitted(name), points, factor=factor)


@pytest.fixture
def regressor(tmp_path):
    return Saved(tmp_path / "model.nngp", fitted("regressor"))


def test_the_models_have_what_is_damaged():
    assert len(fitted("mixture").networks_) == len(fitted("classes").networks_) == 2
    assert fitted("noise").networks_[0].varying is not None
    assert fitted("trees").trees_ is not None
    assert [kind.split("(")[0] for _, kind in fitted("maps").column_maps_] == list(KINDS)


def test_a_shape_that_was_changed(tmp_path):
    """With every digest right: the shape of a tile, of an array of numbers, and of none."""
    points = np.random.default_rng(1).normal(size=(200, 3))
    model = nngp.NNGPRegressor(selection=None).fit(points, points[:, 0])
    saved = Saved(tmp_path / "model.nngp", model, points)
    facts, arrays = parts_of(saved.whole)
    for name, array in arrays.items():
        for shape in (array.shape[::-1], (array.size,), (1, *array.shape), (array.size, 1)):
            if shape != array.shape:
                changed = file_of(facts, arrays | {name: array.reshape(shape)})
                assert saved.judge(changed) == "refused", (name, shape)


def test_tiles_that_are_too_small_for_blas(regressor):
    names = [name for name in parts_of(regressor.whole)[1] if ".factor." in name]
    assert names
    for shape in ((1, 384), (60, 1), (1, 1), (0, 60)):
        tiles = {name: np.zeros(shape) for name in names}
        assert regressor.judge(forged(regressor.whole, **tiles)) == "refused"


OF_A_POSTERIOR = [
    ("noise.stated", "nan"),
    ("noise.stated", -1.0),
    ("noise.stated", 1e400),
    ("noise.unit", 0),
    ("noise.input_var", -1.0),
    ("noise_var", 7.0),
    ("report.n", 61),
    ("report.outputs", 2),
    ("report.scale", 2.0),
    ("report.noise_var", 0.3),
    ("report.kernel_error", -1e-9),
    ("report.residual", -1e-14),
    ("report.residual", 1e300),
    ("report.tolerance", 1e300),
    ("split.scale", 0),
    ("split.scale", -1.0),
    ("split.offset", -1),
    ("split.input_var", 1.0),
    ("network.value.depth", -1),
    ("network.value.depth", 10**9),
    ("network.value.depth", 2.5),
    ("network.value.depth", True),
    ("network.value.depth", "deep"),
    ("network.value.activation", "rleu"),
    ("network.value.activation", ["leaky_relu", 10**400]),
    ("network.value.activation", {}),
    ("network.value.weight_var", -1.0),
    ("network.value.weight_var", "nan"),
    ("network.value.weight_var", 1e300),
    ("network.value.bias_var", [0.1]),
    ("X", {"type": "arrays"}),
    ("X", 1),
    ("Y", None),
    ("solution.failed_attempts", 10**30),
    ("solution.edges", [0, 30, 30, 60]),
    ("solution.edges", [0, "60"]),
    ("solution.edges", [0, 61]),
    ("solution.constant", {"type": "SavedConstant", "beta": 1.0}),
    ("solution.type", "SavedByLU"),
    ("solution.factor", "yes"),
    ("solution.factor.0", 1.0),
    ("solution.log_det", 3.0),
    ("report.n", -1),
    ("report.seconds", [1]),
    ("solution.seconds", []),
    ("single", True),
]


def test_values_that_no_model_has(regressor):
    for place, value in OF_A_POSTERIOR:
        path = ["networks", 0, "posterior", *place.split(".")]
        changed = forged(regressor.whole, lambda h, p=path, v=value: put(h, p, v))
        assert regressor.judge(changed) == "refused", (place, value)


def test_parameters_that_no_estimator_has(regressor):
    params = [
        ("depth", "x"),
        ("depth", 10**9),
        ("noise_var", -1),
        ("solver", {"type": "CG", "value": {"rank": -1}}),
    ]
    params += [
        ("selection", 3),
        ("budget", 0.5),
        ("activation", {"type": "Activation", "value": 5}),
        ("new", 1),
    ]
    for name, value in params:
        changed = forged(regressor.whole, lambda h, n=name, v=value: put(h["params"], [n], v))
        assert regressor.judge(changed) == "refused", (name, value)


def test_scalings_that_no_fit_has(regressor):
    for value in (0.0, -1.0, 1e308):
        changed = forged(regressor.whole, **{"networks.0.targets.spread": np.array([value])})
        assert regressor.judge(changed) == "refused"
    for name, value in (("factor", -1.0), ("factor", 1e300), ("center", 1e300)):
        name = f"networks.0.inputs.{name}"
        array = regressor.array(name)
        array[1] = value
        assert regressor.judge(forged(regressor.whole, **{name: array})) == "refused"


OF_A_FIT = {
    "mixture": [
        ("networks.1", None),
        ("networks.0.noise_var", 0.77),
        ("networks.0.weights", {"type": "array"}),
        ("networks.0.inputs.unit", True),
        ("networks.0.inputs.constant", True),
        ("networks.0.inputs.maps.1.kind", "cube"),
        ("networks.0.inputs.maps.1.unit", 0.0),
        ("networks.0.inputs.maps", [{"type": "ColumnMap", "kind": "identity"}]),
        ("networks.1.targets.transforms.0.kind", "sqrt"),
        ("networks.1.targets.transforms", [1]),
        ("networks.1.targets.positive", 1),
        ("networks.1.targets.transforms.0.power", 3.5),
        ("networks.1.targets.transforms.0.unit", -1.0),
        ("networks.1.targets.noise_floor", -1.0),
        ("networks.0.varying", {}),
        ("fit.blend.weights", 1),
        ("fit.blend.factors", 1),
        ("fit.blend.factors", None),
        ("fit.duplicate_rows", 61),
        ("fit.duplicate_rows", -1),
        ("fit.single", "yes"),
        ("params.networks", 0),
        ("params.effort", "much"),
        ("params.column_maps", "cube"),
        ("params.calibrate", 2),
        ("params.noise", "loud"),
        ("params.target_transform", "sqrt"),
    ],
    "maps": [
        ("networks.0.inputs.maps.1.power", 7.0),
        ("networks.0.inputs.maps.1.high", -1e9),
        ("networks.0.inputs.maps.2.low", 0.0),
        ("networks.0.inputs.maps.3.knots", [1.0, 0.5]),
        ("networks.0.inputs.maps.3.scores", []),
    ],
    "noise": [
        ("networks.0.weights", None),
        ("networks.0.varying.level", 0.0),
        ("networks.0.varying.least", -1.0),
        ("networks.0.varying.gain", "much"),
        ("networks.0.varying.posterior.X", {"type": "array", "n": 59}),
        ("networks.0.varying.posterior.single", False),
        ("networks.0.varying", None),  # its arrays are left over
    ],
    "whitened": [
        ("networks.0.inputs.whitening", None),
        ("networks.0.inputs.whitening.strength", 0.3),
        ("networks.0.inputs.whitening.strength", 0.0),
        ("networks.0.inputs.unit", False),
        ("networks.0.inputs.constant", True),
        ("params.whitening", -1.0),
    ],
    "invariant": [
        ("networks.0.posterior.network.value.families", []),
        ("params.invariance", "flips"),
        ("params.invariance", {"type": "Family", "value": {"family": "flips"}}),
        ("params.image_shape", [5]),
    ],
    "classes": [
        ("fit.models", {}),
        ("fit.models.0.link.scale", 0.0),
        ("fit.models.0.link.exponent", 11),
        ("fit.models.1.link.mixing", 1.1),
        ("fit.models.0.dirichlet.alpha", 0.0),
        ("fit.models.0.dirichlet.scale", 1e300),
        ("fit.models.0.regression_loss", -1.0),
        ("fit.class_type", "<U1"),
        ("params.class_weight", {"a": -1.0}),
        ("params.likelihood", "probit"),
        ("networks.0.weights", None),
    ],
    "trees": [
        ("fit.trees.rows", 0),
        ("fit.trees.few_valued", 4),
        ("fit.trees.measure", "loss"),
        ("fit.trees.method", "oaks"),
        ("fit.trees.network", -1.0),
        ("fit.trees.deviations", "inf"),
    ],
}


@pytest.mark.parametrize("name", OF_A_FIT)
def test_values_that_no_fit_has(tmp_path, name):
    saved = Saved(tmp_path / "model.nngp", fitted(name), POINTS.get(name, X))
    for place, value in OF_A_FIT[name]:
        changed = forged(saved.whole, lambda h, p=place, v=value: put(h, p.split("."), v))
        assert saved.judge(changed) == "refused", (place, value)


ARRAYS_OF_A_FIT = {
    "mixture": [
        ("fit.blend.weights", lambda a: 2 * a),
        ("fit.blend.weights", lambda a: -a),
        ("fit.blend.factors", lambda a: 0 * a),
        ("fit.blend.factors", lambda a: 1e6 * a),
        ("networks.1.targets.spread", lambda a: 0 * a),
        ("networks.0.inputs.relevance", lambda a: -1 - a),
    ],
    "whitened": [
        ("networks.0.inputs.whitening.matrix", lambda a: 2 * a),
        ("networks.0.inputs.whitening.matrix", lambda a: -a),
        ("networks.0.inputs.whitening.matrix", lambda a: a + 0.01 * np.triu(a)),
        ("networks.0.inputs.whitening.matrix", lambda a: a[::-1].copy()),
        ("networks.0.inputs.whitening.matrix", lambda a: np.outer(a[0], a[0])),
        ("networks.0.inputs.whitening.matrix", np.eye(3).__mul__),
        ("networks.0.inputs.factor", lambda a: a * [1.0, 2.0, 1.0]),
        ("networks.0.inputs.factor", lambda a: 0 * a),
        ("networks.0.inputs.relevance", lambda a: 0.5 * a),
    ],
    "classes": [
        ("fit.network_weights", lambda a: 0.5 * a),
        ("fit.network_weights", lambda a: np.array([2.0, -1.0])),
        ("networks.0.weights", lambda a: -a),
        ("networks.0.weights", lambda a: a[::-1].copy()),
        ("networks.1.weights", lambda a: 2 * a),
    ],
    "noise": [
        ("networks.0.weights", np.ones_like),
        ("networks.0.varying.posterior.X", lambda a: a[:, :2].copy()),
        ("networks.0.varying.posterior.Y", lambda a: 2 * a),
    ],
}


@pytest.mark.parametrize("model", ARRAYS_OF_A_FIT)
def test_arrays_that_no_fit_has(tmp_path, model):
    saved = Saved(tmp_path / "model.nngp", fitted(model), POINTS.get(model, X))
    for name, change in ARRAYS_OF_A_FIT[model]:
        changed = forged(saved.whole, **{name: change(saved.array(name))})
        assert saved.judge(changed) == "refused", name


def test_invariances_that_no_network_has(tmp_path):
    saved = Saved(tmp_path / "model.nngp", fitted("invariant"))
    values = {"shape": [2, 2], "probability": 0.2, "axis": "both", "family": "turns", "most": 1}
    for name, value in values.items():

        def change(header, name=name, value=value):
            families = header["networks"][0]["posterior"]["network"]["value"]["families"]
            families[0][name] = value

        assert saved.judge(forged(saved.whole, change)) == "refused", name


def test_ranges_that_no_data_have(regressor):
    low, high = regressor.array("seen.low"), regressor.array("seen.high")
    others = {"seen.low": high + 1, "seen.high": np.full_like(high, np.nan)}
    for name, array in (*others.items(), ("seen.low", low[:2]), ("seen.high", high[None])):
        assert regressor.judge(forged(regressor.whole, **{name: array})) == "refused", name
    for path, values in {
        ("seen", "size"): (-1.0, "1", None, "inf"),
        ("log_evidence",): (None, 7, {}),
    }.items():
        for value in values:
            changed = forged(regressor.whole, lambda h, p=path, v=value: put(h, p, v))
            assert regressor.judge(changed) == "refused", (path, value)


OF_AN_ENCODER = [
    (["names"], ["size", "town", "day", "day"]),
    (["names"], ["size", "town", "day", "cost"]),
    (["encodings"], []),
    (["encodings", 0, "fill"], "many"),
    (["encodings", 0, "fill"], 10**400),
    (["encodings", 0, "fill"], 1e300),
    (["encodings", 2, "fill"], 1.0),  # a day that was not seen
    (["encodings", 0, "indicator"], False),  # another number of inputs
    (["encodings", 0, "type"], "code"),
    (["encodings", 1, "levels"], ["Bonn", "Bonn"]),
    (["encodings", 1, "levels"], ["Bonn"]),
    (["encodings", 1, "levels"], ["Ulm", "Bonn"]),
    (["encodings", 2, "cycles"], ["century"]),
    (["encodings", 2, "fill"], 1e12),
    (["encodings", 3, "format", "decimal"], ";"),
    (["encodings", 3, "format", "unit"], "x"),
    (["left_out"], [3]),
    ([], None),
]


def test_columns_that_no_encoder_has(tmp_path):
    saved = Saved(tmp_path / "model.nngp", fitted("table"), TABLE)
    assert saved.judge(saved.whole) == "same"
    for place, value in OF_AN_ENCODER:
        path = ["columns", *place]
        changed = forged(saved.whole, lambda h, p=path, v=value: put(h, p, v))
        assert saved.judge(changed) == "refused", (place, value)


def test_a_factor_that_is_not_that_of_the_weights(tmp_path):
    """Signs of entries change no row's length, so only the weights can tell."""
    model = nngp.NNGPRegressor(selection=None, noise_var=1e-8).fit(*sines(700))
    saved = Saved(tmp_path / "model.nngp", model, X[:5, :2])
    tiles = [name for name in parts_of(saved.whole)[1] if ".factor." in name]
    assert len(tiles) > 1
    for name in tiles:
        tile = saved.array(name)
        tile[np.unravel_index(np.abs(np.tril(tile, -1)).argmax(), tile.shape)] *= -1
        assert saved.judge(forged(saved.whole, **{name: tile})) == "refused", name


def sines(n):
    points = np.random.default_rng(0).normal(size=(n, 2))
    return points, np.sin(points[:, 0])


def test_classes_that_are_not_in_order(tmp_path):
    saved = Saved(tmp_path / "model.nngp", fitted("classifier"))
    for labels in (["b", "a", "cc"], ["a", "a", "cc"], ["a", "b"]):
        changed = forged(saved.whole, lambda h, v=labels: put(h, ["fit", "classes"], v))
        assert saved.judge(changed) == "refused"


NASTY = (None, True, -1, 0, 3.7, 1e300, 1e-300, 10**400, "x", "nan", "inf", [], ["a"], {}, [[[]]])


@pytest.mark.filterwarnings("ignore::nngp.errors.ColumnWarning")  # of categories with other names
def test_any_value_in_the_header(saved):
    """Whatever stands in the place of a value: an error with a sentence, or finite predictions."""
    rng = np.random.default_rng(0)
    places = [place for place in leaves(description_of(saved.whole)) if len(place) < 7]
    tried = [place for place in places if place[0] == "selection"]
    skipped = set(tried[20:])  # cells of a long table
    for place in (place for place in places if place not in skipped):
        value = NASTY[rng.integers(len(NASTY))]
        changed = forged(saved.whole, lambda h, p=place, v=value: put(h, p, v))
        assert saved.judge(changed, finite) in FINE, (place, value)


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore::nngp.errors.ColumnWarning")  # as above
def test_every_value_in_the_header(saved):
    """Of several networks, or with a long table, 300 values at random."""
    places = list(leaves(description_of(saved.whole)))
    if len(places) > 300:
        places = [places[k] for k in RNG.choice(len(places), 300, replace=False)]
    for place in places:
        for value in NASTY:
            changed = forged(saved.whole, lambda h, p=place, v=value: put(h, p, v))
            assert saved.judge(changed, finite) in FINE, (place, value)


@pytest.mark.parametrize(
    "values",
    [(np.nan, 1e160, 0.0), pytest.param((np.inf, 1e308, -1e308), marks=pytest.mark.deep)],
)
def test_any_value_in_an_array(saved, values):
    """Right digests, wrong values: an error with a sentence, or finite predictions."""
    for name, array in parts_of(saved.whole)[1].items():
        if name.startswith("networks.1.") and 0.0 in values:
            continue  # read as the first is; in the deep run
        for value in values:
            one = array.copy()
            one.flat[RNG.integers(one.size)] = value
            for other in (one, np.full_like(array, value)):
                changed = forged(saved.whole, **{name: other})
                assert saved.judge(changed, finite) in FINE, (name, value)
        for other in (array.T.copy(), array[:1], array.astype("f4"), array[None]):
            changed = forged(saved.whole, **{name: other})
            assert saved.judge(changed, finite) in FINE, (name, other.shape, other.dtype)


def test_arrays_that_changed_places(saved):
    """Arrays of one shape under each other's names, their digests left where they were."""
    facts, arrays = parts_of(saved.whole)
    pairs = 0
    for a in arrays:
        for b in arrays:
            same = arrays[a].shape == arrays[b].shape and np.array_equal(arrays[a], arrays[b])
            if a < b and arrays[a].nbytes == arrays[b].nbytes and not same:

                def exchange(header, a=a, b=b):
                    header[a], header[b] = header[b], header[a]

                assert saved.judge(file_of(facts, arrays, exchange)) == "refused", (a, b)
                pairs += 1
    assert pairs


def test_files_of_another_kind(regressor):
    (facts, arrays), whole = parts_of(regressor.whole), regressor.whole
    assert regressor.judge(file_of(facts, arrays)) == "same"
    assert regressor.judge(file_of(facts, arrays | {"more": np.eye(2)})) == "refused"
    assert regressor.judge(file_of(facts | {"code": "import os"}, arrays)) == "refused"
    assert regressor.judge(b"PK" + whole) == "refused"
    assert regressor.judge(b"PK\3\4" + whole) == "refused"
    assert regressor.judge(whole + b"\0") == "refused"
    for text in ("", "{}", "3", '{"type": "SavedModel"}', "[" * 100, "[" * 1_000_000):
        assert regressor.judge(file_of(facts | {"description": text}, arrays)) == "refused"
    for name in facts:
        others = {key: text for key, text in facts.items() if key != name}
        assert regressor.judge(file_of(others, arrays)) == "refused", name


def test_headers_that_safetensors_does_not_allow(regressor):
    """With a right digest of the whole: names that stand twice, gaps, overlaps, types, NaN."""
    facts, arrays = parts_of(regressor.whole)
    name = next(iter(arrays))

    def moved(header, by):
        header[name]["data_offsets"] = [place + by for place in header[name]["data_offsets"]]

    for change in (
        lambda header: moved(header, 8),
        lambda header: moved(header, -8),
        lambda header: header[name].update(dtype="F16"),
        lambda header: header[name].update(dtype="F32"),
        lambda header: header[name].update(dtype="float64"),
        lambda header: header[name].update(shape=[2**61, 8]),
        lambda header: header[name].update(shape=[-1]),
        lambda header: header.pop(name),
        lambda header: header["__metadata__"].update(digests="[]"),
        lambda header: header["__metadata__"].update(digests="{}"),
        lambda header: header["__metadata__"].update(version=7),
        lambda header: header["__metadata__"].pop("digest"),
        lambda header: header.pop("__metadata__"),
    ):
        assert regressor.judge(file_of(facts, arrays, change)) == "refused"
    twice = '"dtype":"F64","dtype":"F64"'
    for change in (
        lambda text: text.replace('"dtype":"F64"', twice, 1),
        lambda text: text.replace('"version":"7"', '"version":"7","version":"7"', 1),
        lambda text: text.replace(r"\"notes\": {}", r"\"notes\": {}, \"notes\": {}", 1),
        lambda text: text.replace(r"\"notes\": {}", r"\"notes\": {\"a\": NaN}", 1),
    ):
        changed = file_of(facts, arrays, change_text=change)
        assert changed != file_of(facts, arrays)
        assert regressor.judge(changed) == "refused"


def test_what_is_not_the_files_fault_is_not_called_damage(regressor, monkeypatch):
    for error in (MemoryError("full"), KeyboardInterrupt(), RuntimeError("GPU")):

        def broken(*arguments, error=error, **options):
            raise error

        monkeypatch.setattr("nngp.posterior.saved.find_engine", broken)
        with pytest.raises(type(error)):
            nngp.load(regressor.path)


def test_a_callers_recursion_is_not_called_damage(regressor):
    """Near the end of Python's stack a good file is loaded, or there is no room: no damage."""

    def descend(frames):
        return descend(frames - 1) if frames else regressor.predict()

    for left in (20, 40, 80, 160):
        frames = sys.getrecursionlimit() - len(inspect.stack()) - left
        found = outcome(lambda frames=frames: descend(frames), nngp.errors.ModelFileError, finite)
        assert found == "same" or found.startswith("RecursionError")


def test_no_more_is_allocated_than_the_file_holds(regressor):
    facts, arrays = parts_of(regressor.whole)
    for shape in ([60_000_000, 3], [6_000_000_000]):

        def larger(header, shape=shape):
            header["networks.0.posterior.X"]["shape"] = shape

        changed = file_of(facts, arrays, larger)
        assert peak(lambda data=changed: regressor.judge(data)) < 5e6


def test_a_byte_of_the_factor_is_checked_when_it_is_needed(tmp_path):
    """Loading and means do not read the factor; variances do, and notice."""
    saved = large_model(tmp_path / "model.nngp", 600)
    place = saved.whole.rindex(parts_of(saved.whole)[1][FIRST_TILE].tobytes()[:200])
    saved.path.write_bytes(flip(saved.whole, 8 * (place + 5000)))
    model = nngp.load(saved.path, engine="cpu")
    np.testing.assert_array_equal(model.posterior_.mean(X4), fitted_large(600).posterior_.mean(X4))
    with pytest.raises(nngp.errors.ModelFileError, match=r"model\.nngp is damaged"):
        model.posterior_.predict(X4)


def test_bits_of_the_headers(regressor):
    """A sample; the deep run flips every one."""
    for bits in bits_of_structure(regressor.whole).values():
        for bit in RNG.choice(bits, min(len(bits), 60), replace=False):
            assert regressor.judge(flip(regressor.whole, int(bit))) in FINE


@pytest.mark.deep
def test_every_bit_of_the_headers(regressor, capsys):
    counts = {}
    for kind, bits in bits_of_structure(regressor.whole).items():
        counts[kind] = Counter(regressor.judge(flip(regressor.whole, bit)) for bit in bits)
    with capsys.disabled():
        print("\n" + table("Every single bit of a saved model's headers, flipped", counts))
    assert all(set(found) <= set(FINE) for found in counts.values())


FIRST_TILE = "networks.0.posterior.solution.factor.0"
X4 = np.random.default_rng(5).normal(size=(7, 4))


@cache
def fitted_large(n):
    points = np.random.default_rng(0).normal(size=(n, 4))
    return nngp.NNGPRegressor(selection=None).fit(points, np.sin(points[:, 0]))


def large_model(path, n):
    points = np.random.default_rng(0).normal(size=(n, 4))
    return Saved(path, fitted_large(n), points[:20])


def mutations(saved, number, seed):
    """Counts of outcomes by kind, and the largest memory beside the file, in files."""
    rng, counts, most = np.random.default_rng(seed), {}, 0
    for _ in range(number):
        kind, data = mutated(saved.whole, rng)
        saved.path.write_bytes(data)
        size = len(data)
        del data
        tracemalloc.start()
        found = outcome(saved.predict, nngp.errors.ModelFileError, saved.same)
        most = max(most, tracemalloc.get_traced_memory()[1] - 2 * size)
        tracemalloc.stop()
        counts.setdefault(kind, Counter())[found] += 1
    return counts, most


SLACK = 30e6  # bytes beside twice the file: Python's own, and those of a prediction


def test_random_mutations(tmp_path):
    counts, most = mutations(large_model(tmp_path / "model.nngp", 600), 40, 0)
    assert all(set(found) <= set(FINE) for found in counts.values()), counts
    assert most < SLACK


@pytest.mark.deep
def test_five_thousand_random_mutations(tmp_path, capsys):
    saved = large_model(tmp_path / "model.nngp", 1500)
    counts, most = mutations(saved, 5000, 1)
    title = f"Random mutations of a model with 1,500 points, {len(saved.whole) / 1e6:.0f} MB"
    with capsys.disabled():
        print("\n" + table(title, counts) + f"\nmemory beyond twice the file: {most / 1e6:.0f} MB")
    assert all(set(found) <= set(FINE) for found in counts.values()), counts
    assert most < SLACK


def test_the_largest_array_is_read_to_its_end(tmp_path):
    saved = large_model(tmp_path / "model.nngp", 600)
    array = max(parts_of(saved.whole)[1].values(), key=lambda one: one.nbytes).tobytes()
    start = saved.whole.rindex(array)
    assert len(array) > 100_000
    for place in (start, start + 5000, start + len(array) - 1):
        assert saved.judge(flip(saved.whole, 8 * place)) == "refused"
