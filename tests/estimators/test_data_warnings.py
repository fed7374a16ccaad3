"""Warnings where predictions would look surer than the data: nothing to learn noise and scale from,
and rows far outside what was seen; and none on ordinary data."""

import warnings

import numpy as np
import pytest

import nngp
from nngp.estimators.data_warnings import TrainingRange
from nngp.frames.maps import ColumnMap
from nngp.frames.scaling import InputScaling
from nngp.predictive.blend import Blend

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + 0.1 * RNG.normal(size=60)
LABELS = (Y > 0).astype(int)
FEW = {
    "one point": (X[:1], Y[:1], {}, "one training point"),
    "one point, nothing to choose": (X[:1], Y[:1], {"selection": None}, "one training point"),
    "two points": (X[:2], Y[:2], {}, "2 training points are too few"),
    "equal targets": (X, 0 * Y + 7, {"budget": 2}, "all targets are equal"),
    "equal inputs": (0 * X + 3, Y, {"budget": 2}, "all inputs are equal"),
}
FIXED = {"depth": 1, "weight_var": 1.0, "bias_var": 0.1, "noise_var": 0.1, "target_scaling": "none"}


@pytest.mark.filterwarnings("ignore::nngp.errors.ConstantKernelWarning")
def test_few_data():
    for name in FEW:
        inputs, targets, parameters, sentence = FEW[name]
        model = nngp.NNGPRegressor(**parameters)
        with pytest.warns(nngp.errors.FewDataWarning, match=f"intervals: {sentence}") as caught:
            model.fit(inputs, targets)
        assert [one.filename for one in caught if one.category is nngp.errors.FewDataWarning] == [
            __file__
        ]
        assert np.isfinite(model.predict(inputs)).all()


def test_few_labels():
    for labels, sentence in ((["a"] * 60, "all labels are the same"), (LABELS[:3], "3 training")):
        with pytest.warns(nngp.errors.FewDataWarning, match=f"probabilities: {sentence}"):
            nngp.NNGPClassifier(budget=2).fit(X[: len(labels)], labels)


def test_enough_data():
    """Nothing is said of ordinary data, nor where everything was given."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nngp.NNGPRegressor(budget=2).fit(X[:5], Y[:5])
        nngp.NNGPRegressor(selection=None).fit(X[:2], Y[:2])
        nngp.NNGPRegressor(**FIXED).fit(X[:1], Y[:1])
        nngp.NNGPClassifier(selection=None).fit(X, LABELS)


@pytest.mark.parametrize("scaling", ["auto", "standardize", "sphere", "unit", "none"])
def test_far_rows_are_counted_and_their_columns_named(scaling, tmp_path):
    pandas = pytest.importorskip("pandas")
    parameters = {"selection": None, "input_scaling": scaling}
    model = nngp.NNGPRegressor(**parameters).fit(X, Y)
    far = X[:20].copy()
    far[3, 1], far[7, 1], far[8, 2] = 4000.0, -4000.0, 100.0
    model.save(tmp_path / "model.nngp")
    for one in (model, nngp.load(tmp_path / "model.nngp")):
        for call in (one.predict, one.predict_interval, one.sample_y):
            with pytest.warns(
                nngp.errors.ExtrapolationWarning, match=r"3 of 20 .* column\(s\) 1, 2 \("
            ):
                call(far)
    frame, far_frame = (pandas.DataFrame(part, columns=["a", "b", "c"]) for part in (X, far))
    named = nngp.NNGPClassifier(**parameters).fit(frame, LABELS)
    with pytest.warns(
        nngp.errors.ExtrapolationWarning, match=r"3 of 20 .* column\(s\) 'b', 'c' \("
    ):
        named.predict_proba(far_frame)


def test_columns_of_a_table_are_named_once_each():
    """Several inputs may come from one column."""
    days = np.datetime64("2020-01-01") + 20 * np.arange(60)
    table = {"town": ["Ulm", "Bonn"] * 30, "size": X[:, 0], "day": days}
    model = nngp.NNGPRegressor(selection=None).fit(table, Y)
    assert model.columns_.origins == ["town", "town", "size", *["day"] * 5]
    size, day = X[:20, 0].copy(), days[:20].copy()
    size[3], day[4] = 4000.0, np.datetime64("2120-01-01")
    far = {"day": day, "town": ["Rome"] * 20, "size": size}
    words = r"2 of 20 .* column\(s\) 'size', 'day' \("
    new = pytest.warns(nngp.errors.ColumnWarning, match="'Rome'")
    with new, pytest.warns(nngp.errors.ExtrapolationWarning, match=words):
        model.predict(far)


def test_what_is_far():
    """Beyond the range by three widths: not by one, not in a constant column, and not where the
    column counts for nothing beside the others."""
    seen = np.column_stack([np.linspace(0, 1, 50), np.full(50, 5.0), 1e-6 * np.linspace(0, 1, 50)])
    scaling = TrainingRange.of(seen, seen.mean(axis=0), np.array([1.0, 0.0, 1.0]))
    rows = np.array([[2.0, 5.0, 0.0], [4.1, 5.0, 0.0], [0.5, 900.0, 0.0], [0.5, 5.0, 1e-4]])
    assert (scaling.widths_beyond(rows) > 3).tolist() == [[False] * 3, [True, False, False]] + [
        [False] * 3
    ] * 2
    assert scaling.widths_beyond(rows)[1, 0] == pytest.approx(3.1)


def test_a_map_does_not_hide_what_is_far():
    """A power's origin is zero, however far from it the values of a column are."""
    for power in [-1.0, 0.2, 1.0, 2.5]:
        seen = np.column_stack([np.linspace(600, 1000, 50), np.linspace(100, 500, 50)[::-1]])
        maps = [
            ColumnMap("yeo-johnson", 0.0, 70.0, power, *np.sort(x[[0, -1]] / 70.0)) for x in seen.T
        ]
        scaling = InputScaling.learn(seen, "standardize", maps)
        range_ = TrainingRange.of(seen, scaling.raw_center, scaling.raw_factor)
        assert 0.5 < range_.size / np.sqrt(np.square(scaling(seen)).sum(axis=1).mean()) < 2
        assert (range_.widths_beyond(np.array([[800.0, 4500.0], [9000.0, 300.0]])) > 3).sum() == 2


def test_nothing_is_said_of_held_out_rows():
    """Real tables, cut in two at random."""
    from sklearn.datasets import load_diabetes, load_digits, load_iris, load_wine
    from sklearn.model_selection import train_test_split

    with warnings.catch_warnings():
        warnings.simplefilter("error", nngp.errors.ExtrapolationWarning)
        for load in (load_diabetes, load_digits, load_iris, load_wine):
            inputs, answers = load(return_X_y=True)
            for seed in range(2):
                A, B, a, _ = train_test_split(inputs, answers, test_size=0.3, random_state=seed)
                kind = nngp.NNGPRegressor if load is load_diabetes else nngp.NNGPClassifier
                kind(selection=None).fit(A[:150], a[:150]).predict(B[:50])


def test_how_often_real_tables_have_rows_far_outside(data_folder):
    """Tables of the UCI repository, a tenth of the rows held out at random."""
    folder = data_folder("uci_regression/boston.npz")
    datasets = pytest.importorskip("nngp_paper.datasets")
    names = [name for name in datasets.names() if name.startswith("uci/")]
    fired = 0
    for name in names:
        inputs = np.asarray(datasets.load(name, folder).X, dtype=float)
        order = np.random.default_rng(0).permutation(len(inputs))
        held = len(inputs) // 10
        train, test = inputs[order[held:]], inputs[order[:held]]
        spread = train.std(axis=0)
        factor = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        seen = TrainingRange.of(train, train.mean(axis=0), factor)
        fired += bool((seen.widths_beyond(test) > 3).any())
    assert len(names) > 5
    assert fired == 0


def test_the_range_is_that_of_the_first_network_that_is_kept(monkeypatch, tmp_path):
    second = Blend(np.ones(1), np.array([[0.0], [1.0]]))
    monkeypatch.setattr("nngp.estimators.regressor.learn_blend", lambda *_, **__: second)
    model = nngp.NNGPRegressor(n_networks=2).fit(X, Y)
    assert len(model.networks_) == 1
    model.save(tmp_path / "model.nngp")
    loaded = nngp.load(tmp_path / "model.nngp")
    np.testing.assert_array_equal(model._seen.factor, model.networks_[0].inputs.raw_factor)
    np.testing.assert_array_equal(loaded._seen.factor, model._seen.factor)
