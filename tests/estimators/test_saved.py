"""Saved models: equal to the bit in another process, equal to rounding on another engine; damage is
noticed."""

import copy
import json
import os
import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
import safetensors.numpy
from damage import file_of, flip, parts_of
from sklearn.base import clone

import nngp
from nngp import _tensors
from nngp.estimators.saved import read_model


def fitted(kind="regressor", n=40, **parameters):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = X[:, 0] ** 2 + 0.1 * rng.normal(size=n)
    if kind == "classifier":
        labels = np.array(["low", "mid", "high"], dtype=object)[np.digitize(y, [0.3, 1.0])]
        return nngp.NNGPClassifier(budget=15, **parameters).fit(X, labels), X
    if kind == "many":
        y = np.column_stack([y, X])
    return nngp.NNGPRegressor(budget=15, **parameters).fit(X, y), X


def everything(model, X):
    """All predictions of a model at some points."""
    if hasattr(model, "classes_"):
        return [model.predict_proba(X), model.predict_variance(X), model.predict(X)]
    mean, std = model.predict(X, return_std=True)
    return [model.predict(X), mean, std, model.sample_y(X[:5], 3)]


@pytest.mark.parametrize(
    ("kind", "factor"),
    [("regressor", True), ("classifier", True), ("classifier", False), ("many", False)],
)
def test_the_same_bits(tmp_path, kind, factor):
    model, X = fitted(kind)
    path = tmp_path / "model.nngp"
    model.save(path, factor=factor)
    again = nngp.load(path)
    assert again.get_params() == model.get_params()
    assert again.network_ == model.network_
    assert again.report_ == model.report_
    for ours, theirs in zip(everything(model, X + 0.1), everything(again, X + 0.1), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for name, column in model.selection_.items():
        assert column.tolist() == again.selection_[name].tolist()
    np.testing.assert_array_equal(model.relevance_, again.relevance_)


def test_the_same_bits_in_another_process(tmp_path):
    model, X = fitted(n=900, selection=None)  # several tiles
    model.save(tmp_path / "model.nngp")
    np.save(tmp_path / "X.npy", X)
    code = (
        "import nngp, numpy as np\n"
        "model, X = nngp.load('model.nngp'), np.load('X.npy')\n"
        "np.save('out.npy', np.column_stack(model.predict(X, return_std=True)))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    here = np.column_stack(model.predict(X, return_std=True))
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), here)


@pytest.mark.slow_on_jax
def test_on_every_engine(tmp_path, engine):
    """Fitted on one, loaded on the same: the same bits. Loaded on the other: to rounding."""
    model, X = fitted(engine=engine)
    path = tmp_path / "model.nngp"
    model.save(path)
    same = nngp.load(path, engine=engine)
    for ours, theirs in zip(everything(model, X), everything(same, X), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    other = nngp.load(path, engine="cpu")
    np.testing.assert_allclose(other.predict(X), model.predict(X), rtol=1e-9, atol=1e-9)
    if engine.name == "cpu":
        pytest.importorskip("jax")
        from engines import jax_engine

        device = nngp.load(path, engine=jax_engine())
        mean, std = device.predict(X, return_std=True)
        np.testing.assert_allclose(mean, model.predict(X), rtol=1e-9, atol=1e-9)
        assert (std > 0).all()


@pytest.mark.parametrize(
    "parameters",
    [
        {"weight_var": (1.0, 2.0), "depth": 1, "activation": "erf"},
        {"weight_var": [1.0, 2.0], "depth": 1, "relevance": [1.0, 0.5, 0.0]},
        {"bias_var": np.array([0.1, 0.2]), "depth": 1, "random_state": np.random.RandomState(0)},
        {"activation": nngp.activations.leaky_relu(0.2), "selection": "loo"},
    ],
)
def test_a_loaded_model_can_be_fitted_again(tmp_path, parameters):
    model, X = fitted(**parameters)
    model.save(tmp_path / "model.nngp")
    again = nngp.load(tmp_path / "model.nngp", engine="cpu")
    assert again.engine == "cpu"
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    refitted = clone(again).fit(X, X[:, 0])
    if "random_state" not in parameters:
        model.fit(X, X[:, 0])
        np.testing.assert_array_equal(refitted.predict(X), model.predict(X))


def test_a_wrong_engine_is_not_reported_as_damage(tmp_path):
    model, _ = fitted(n=10)
    model.save(tmp_path / "model.nngp")
    with pytest.raises(ValueError, match="engine must be") as caught:
        nngp.load(tmp_path / "model.nngp", engine="tpu")
    assert not isinstance(caught.value, nngp.errors.ModelFileError)


def test_a_file_holds_no_code(tmp_path):
    model, _ = fitted()
    model.save(tmp_path / "model.nngp", notes={"by": "me"})
    with safetensors.safe_open(tmp_path / "model.nngp", framework="np") as file:
        facts = file.metadata()
        assert file.get_tensor("networks.0.posterior.X").shape == (40, 3)
    assert facts["format"] == "nngp-model"
    assert json.loads(facts["description"])["notes"] == {"by": "me"}


def test_truncation_at_every_length(tmp_path):
    model, _ = fitted(n=10)
    path = tmp_path / "model.nngp"
    model.save(path)
    whole = path.read_bytes()
    for length in [0, 1, 10, 100, *range(500, len(whole), 997), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(nngp.errors.ModelFileError, match=r"model\.nngp"):
            nngp.load(path)


def test_a_flipped_bit(tmp_path):
    model, _ = fitted(n=10)
    path = tmp_path / "model.nngp"
    model.save(path)
    whole = path.read_bytes()
    place = whole.index(parts_of(whole)[1]["networks.0.posterior.X"].tobytes())
    path.write_bytes(flip(whole, 8 * place + 3))
    with pytest.raises(nngp.errors.ModelFileError, match=r"damaged .*posterior\.X is wrong"):
        nngp.load(path)


def with_fact(path, name, text):
    """The file with another text among its metadata, its digest right."""
    facts, arrays = parts_of(path.read_bytes())
    path.write_bytes(file_of(facts | {name: text}, arrays))


def test_other_files(tmp_path):
    model, _ = fitted(n=10)
    path = tmp_path / "model.nngp"
    model.save(path)
    with_fact(path, "version", "99")
    with pytest.raises(nngp.errors.ModelFileError, match=r"format 99 .* upgrade nngp"):
        nngp.load(path)
    with_fact(path, "version", "seven")
    with pytest.raises(nngp.errors.ModelFileError, match="damaged"):
        nngp.load(path)
    with_fact(path, "format", "cuckoo")
    with pytest.raises(nngp.errors.ModelFileError, match="is not a saved nngp model"):
        nngp.load(path)
    (tmp_path / "text.nngp").write_text("hello")
    with pytest.raises(nngp.errors.ModelFileError, match="is not a saved nngp model"):
        nngp.load(tmp_path / "text.nngp")
    safetensors.numpy.save_file({"a": np.eye(2)}, tmp_path / "other.nngp")
    with pytest.raises(nngp.errors.ModelFileError, match="is not a saved nngp model"):
        nngp.load(tmp_path / "other.nngp")
    with pytest.raises(nngp.errors.ModelFileError, match="is a folder"):
        nngp.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        nngp.load(tmp_path / "nothing.nngp")


def test_models_of_an_older_format_are_refused(tmp_path):
    model, _ = fitted(n=10)
    path = tmp_path / "model.nngp"
    model.save(path)
    with_fact(path, "version", "6")
    for read in (nngp.load, read_model):
        with pytest.raises(nngp.errors.ModelFileError, match=r"format 6 .* fit the model again"):
            read(path)
    with path.open("wb") as file:
        np.savez(file, a=np.eye(2))
    for read in (nngp.load, read_model):
        with pytest.raises(
            nngp.errors.ModelFileError, match=r"zip archive: .* fit the model again"
        ):
            read(path)


def test_scores_that_are_not_finite_survive(tmp_path):
    """JSON has no infinity and no NaN, so they are kept as text."""
    model, _ = fitted(n=10)
    for value in (np.inf, -np.inf, np.nan):
        model.selection_["score"][0] = value
        model.save(tmp_path / "model.nngp")
        again = nngp.load(tmp_path / "model.nngp").selection_["score"]
        assert again.dtype == np.float64
        np.testing.assert_array_equal(again, model.selection_["score"])


def test_saving_is_atomic(tmp_path, monkeypatch):
    model, _ = fitted(n=10)
    path = tmp_path / "model.nngp"
    model.save(path)
    before = path.read_bytes()

    def broken(*args):
        raise OSError("the disk is full")

    monkeypatch.setattr(_tensors, "_plain_bytes", broken)
    with pytest.raises(OSError, match="the disk is full"):
        model.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.nngp"]


def test_models_that_cannot_be_saved(tmp_path):
    X = np.arange(6.0)[:, None]
    own = nngp.NNGPRegressor(selection=None, activation=np.tanh).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="Python function"):
        own.save(tmp_path / "model.nngp")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        fitted(n=10)[0].save(tmp_path / "no" / "model.nngp")

    class Own(nngp.NNGPRegressor):
        pass

    with pytest.raises(TypeError, match="Own is a class of your own"):
        Own(selection=None).fit(X, X[:, 0]).save(tmp_path / "model.nngp")
    assert os.listdir(tmp_path) == []
    leaky = nngp.NNGPRegressor(selection=None, activation=nngp.activations.leaky_relu(1 / 3)).fit(
        X, X[:, 0]
    )
    leaky.save(tmp_path / "leaky.nngp")
    np.testing.assert_array_equal(nngp.load(tmp_path / "leaky.nngp").predict(X), leaky.predict(X))


WRONG_NOTES = [[1], {"a": float("nan")}, {"a": {1, 2}}, {"a": np.float32(1)}, 3]


def test_notes_that_cannot_be_saved_leave_the_old_file(tmp_path):
    model, _ = fitted(selection=None)
    model.save(tmp_path / "m.nngp")
    before = (tmp_path / "m.nngp").read_bytes()
    for notes in WRONG_NOTES:
        with pytest.raises(TypeError, match="notes must be a dict of values that JSON can hold"):
            model.save(tmp_path / "m.nngp", notes=notes)
    assert (tmp_path / "m.nngp").read_bytes() == before
    assert os.listdir(tmp_path) == ["m.nngp"]


def test_a_file_that_could_not_be_loaded_replaces_no_other(tmp_path):
    model, _ = fitted(selection=None)
    model.save(tmp_path / "m.nngp")
    before = (tmp_path / "m.nngp").read_bytes()
    vars(model.networks_[0].targets)["noise_floor"] = -1.0
    with pytest.raises(ValueError, match=r"m\.nngp was not written: it could not be loaded"):
        model.save(tmp_path / "m.nngp")
    assert (tmp_path / "m.nngp").read_bytes() == before


NUMBERS = [
    {"noise_var": np.float32(0.1)},
    {"noise_var": np.int64(1)},
    {"noise_var": Fraction(1, 10)},
    {"depth": np.float64("inf")},
    {"depth": np.int8(2), "weight_var": np.array([1, 2, 1.5], dtype=np.float32)},
    {"bias_var": np.float16(0.5), "selection_size": np.int64(20), "budget": np.int32(5)},
    {"solver": nngp.CG(tolerance=np.float32(1e-6), max_iterations=np.int64(100))},
    {"relevance": np.array([1, 2, 0], dtype=np.float32), "random_state": np.int64(3)},
    {"network": nngp.Chain(nngp.Dense(np.float32(1)), nngp.Act("relu"), nngp.Dense(1))},
]


def test_numbers_of_every_type_can_be_saved(tmp_path):
    """A regressor and a classifier in turn."""
    X = np.random.default_rng(0).normal(size=(20, 3))
    for k, parameters in enumerate(NUMBERS):
        kind = nngp.NNGPClassifier if k % 2 else nngp.NNGPRegressor
        y = X[:, 0] > 0 if k % 2 else X[:, 0]
        model = kind(**{"selection": None, **parameters}).fit(X, y)
        model.save(tmp_path / "m.nngp")
        assert np.array_equal(nngp.load(tmp_path / "m.nngp").predict(X), model.predict(X))


def test_a_link_stays_one(tmp_path):
    model, X = fitted(selection=None)
    (tmp_path / "inside").mkdir()
    (tmp_path / "link.nngp").symlink_to("inside/m.nngp")  # where there is nothing yet
    for _ in range(2):
        model.save(tmp_path / "link.nngp")
        assert (tmp_path / "link.nngp").is_symlink()
        assert os.listdir(tmp_path / "inside") == ["m.nngp"]
    assert np.array_equal(nngp.load(tmp_path / "inside/m.nngp").predict(X), model.predict(X))


def test_names_of_files_that_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, _ = fitted(selection=None)
    os.mkfifo("pipe")
    for name, sentence in {
        "": "the name of the file is empty; give a file name",
        ".": ". is a folder; give a file name",
        "pipe": "pipe is no plain file; give a file name",
        "no/m.nngp": "the folder no does not exist; create it first",
        "pipe/m.nngp": "the folder pipe does not exist; create it first",
        "x" * 256: "cannot be written (File name too long); use another name or folder",
        "a\0b": "cannot be written (embedded null byte); use another name or folder",
    }.items():
        with pytest.raises(OSError, match=re.escape(sentence)) as caught:
            model.save(name)
        assert "Errno" not in str(caught.value)
    assert os.listdir() == ["pipe"]
    model.save("x" * 255)  # as long as a name may be
    assert sorted(map(len, os.listdir())) == [4, 255]


def test_a_factor_that_was_not_read_yet(tmp_path):
    """A loaded model is pickled, copied, extended and asked by several threads before anything
    needed its factor, and after its file is gone."""
    model, X = fitted(n=700, selection=None)
    path, expected = tmp_path / "model.nngp", model.predict(X[:50] + 0.1, return_std=True)[1]

    def loaded():
        model.save(path)
        again = nngp.load(path, engine="cpu")
        path.unlink()
        return again

    def deviation(one):
        return one.predict(X[:50] + 0.1, return_std=True)[1]

    for again in (pickle.loads(pickle.dumps(loaded())), copy.deepcopy(loaded())):
        np.testing.assert_array_equal(deviation(again), expected)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(deviation, [loaded()] * 4):
            np.testing.assert_array_equal(found, expected)
    again = loaded().partial_fit(X[:3] + 0.5, X[:3, 0])
    model.partial_fit(X[:3] + 0.5, X[:3, 0])
    np.testing.assert_array_equal(deviation(again), deviation(model))
    gradients = [one.posterior_.evidence_gradient() for one in (loaded(), model)]
    assert gradients[0]["noise_var"] == gradients[1]["noise_var"]


def test_labels_of_the_other_byte_order(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 2))
    labels = (X[:, 0] > 0).astype(">i4")
    model = nngp.NNGPClassifier(selection=None, likelihood="regression").fit(X, labels)
    model.save(tmp_path / "model.nngp")
    np.testing.assert_array_equal(nngp.load(tmp_path / "model.nngp").classes_, [0, 1])
