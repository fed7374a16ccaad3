"""A frame with every kind of column, whichever way it goes: one answer, to the bit."""

import datetime
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import nngp

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
KINDS = {"regression": nngp.NNGPRegressor, "classification": nngp.NNGPClassifier}
SETTING = {"budget": 4, "depth": 2}
WORDS = "--budget 4 --depth 2"
UNSEEN = "column 'town' has 2 value(s) that training did not: 'Rom'"


def frame(n=48, seed=0):
    """Numbers with gaps, one of them wild; text, amounts, a category, truth, dates; a target."""
    rng = np.random.default_rng(seed)
    size, rooms = rng.uniform(50, 200, n), rng.integers(1, 7, n).astype(float)
    rooms[5] = 4e5
    start = datetime.datetime(2019, 3, 5)
    table = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.2, np.nan, size),
            "rooms": rooms,
            "town": rng.choice(["Ulm", "Bonn", "Köln"], n),
            "heating": rng.choice(["gas", "oil", None], n),
            "garden": rng.random(n) < 0.5,
            "built": [start + datetime.timedelta(days=int(d)) for d in rng.integers(0, 1500, n)],
            "tax": [f"${value:,.2f}" for value in rng.uniform(500, 20000, n)],
            "zone": pd.Categorical(rng.choice(["A", "B", "C"], n)),
        }
    )
    price = 3 * size + 100 * (table["town"] == "Bonn").to_numpy() + rng.normal(0, 5, n)
    return table, price


def new_rows():
    """Rows of another seed, two of them of a town that training did not have."""
    out, _ = frame(14, seed=1)
    out.loc[[3, 8], "town"] = "Rom"
    return out


def as_polars(table):
    """The same in polars: null for what is missing, Categorical for categories."""
    columns = {
        name: [None if value != value else value for value in column.tolist()]
        for name, column in table.items()
    }
    out = pl.DataFrame(columns)
    return out.with_columns(zone=out["zone"].cast(pl.Categorical))


def answers(kind, price):
    return price if kind is nngp.NNGPRegressor else np.where(price > 400, "dear", "cheap")


def predictions(model, table):
    """All that a model says, as one array."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(model, nngp.NNGPClassifier):
            return np.column_stack([model.predict(table) == "dear", model.predict_proba(table)])
        mean, std = model.predict(table, return_std=True)
        return np.column_stack([mean, std, *model.predict_interval(table, 0.9)])


@pytest.fixture(scope="module", params=KINDS)
def fitted(request):
    """A model, what it was fitted to, and what it says of new rows."""
    kind = KINDS[request.param]
    table, price = frame()
    y = answers(kind, price)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind(**SETTING).fit(table, y)
    return request.param, model, table, y, predictions(model, new_rows())


def test_the_unseen_category_is_named(fitted):
    _, model, *_ = fitted
    with pytest.warns(nngp.errors.ColumnWarning, match="column 'town' has 2 value") as said:
        model.predict(new_rows())
    assert any(UNSEEN in str(one.message) for one in said)


def test_frames_and_orders(fitted):
    """pandas, polars, a mapping; columns in another order; more columns."""
    _, model, _, _, expected = fitted
    new = new_rows()
    assert model.feature_names_in_.tolist() == list(new)
    assert model.n_features_in_ == new.shape[1]
    tables = (new[list(new)[::-1]], as_polars(new), dict(new.items()), new.assign(more=1))
    for table in tables:
        np.testing.assert_array_equal(predictions(model, table), expected)
    assert np.isfinite(expected).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_fit_to_polars_is_the_fit_to_pandas(fitted):
    _, model, table, y, expected = fitted
    twin = clone(model).fit(as_polars(table), y)
    assert twin.columns_.features == model.columns_.features
    np.testing.assert_array_equal(predictions(twin, new_rows()), expected)


def test_files_and_pickles(fitted, tmp_path):
    _, model, _, _, expected = fitted
    model.save(tmp_path / "model.nngp")
    loaded = nngp.load(tmp_path / "model.nngp")
    assert loaded.columns_ == model.columns_
    for same in (loaded, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(predictions(same, new_rows()), expected)
        np.testing.assert_array_equal(predictions(same, as_polars(new_rows())), expected)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_pipelines_and_searches(fitted):
    """A clone, behind transformers that give frames, and chosen by a search."""
    _, model, table, y, expected = fitted
    keep = make_column_transformer(
        ("passthrough", list(table)), verbose_feature_names_out=False
    ).set_output(transform="pandas")
    same = FunctionTransformer(lambda X: X.copy(), feature_names_out="one-to-one")
    for first in (keep, same.set_output(transform="pandas"), "passthrough"):
        pipeline = clone(make_pipeline(first, clone(model))).fit(table, y)
        np.testing.assert_array_equal(pipeline.predict(new_rows()), model.predict(new_rows()))
        assert pipeline[-1].feature_names_in_.tolist() == list(table)
    search = GridSearchCV(clone(model), {"depth": [2]}, cv=2).fit(table, y)
    np.testing.assert_array_equal(predictions(search.best_estimator_, new_rows()), expected)
    assert len(cross_val_predict(clone(model), table, y, cv=2)) == len(y)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_command_line(fitted, run, ending):
    """A file of that table gives that model and those predictions, digit by digit."""
    task, model, table, y, expected = fitted
    write = {"csv": pl.DataFrame.write_csv, "parquet": pl.DataFrame.write_parquet}[ending]
    write(as_polars(table).with_columns(answer=pl.Series(y)), f"train.{ending}")
    write(as_polars(new_rows()), f"new.{ending}")
    code, _, said = run(f"fit train.{ending} -t answer --task {task} {WORDS}")
    assert code == 0, said
    mine = nngp.load("model.nngp")
    assert mine.columns_.features == model.columns_.features
    np.testing.assert_array_equal(predictions(mine, new_rows()), expected)
    code, _, said = run(f"predict model.nngp new.{ending} -o out.parquet --interval 0.9")
    assert (code, UNSEEN in said) == (0, True)
    found = pl.read_parquet("out.parquet")
    if task == "classification":
        found = found.with_columns(answer=(pl.col("answer") == "dear").cast(pl.Float64))
    np.testing.assert_array_equal(found.to_numpy(), expected)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_numbers_without_gaps(run, kind):
    """A table of numbers needs no encoder in Python and has one at the command line; no bit of the
    predictions differs, and a gap that comes later is filled alike."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "c"])
    y = answers(kind, 400 + 90 * table["a"].to_numpy())
    model = kind(**SETTING).fit(table, y)
    assert model.columns_ is None
    columns = {name: column.to_numpy() for name, column in table.items()}
    pl.DataFrame({**columns, "answer": y}).write_csv("train.csv")
    task = next(name for name, other in KINDS.items() if other is kind)
    assert run(f"fit train.csv -t answer --task {task} {WORDS}")[0] == 0
    mine = nngp.load("model.nngp")
    gaps = table.mask(table > 1)
    for new in (table, gaps):
        np.testing.assert_array_equal(predictions(mine, new), predictions(model, new))
    bare = kind(**SETTING).fit(table.to_numpy(), y)
    np.testing.assert_array_equal(predictions(bare, gaps.to_numpy()), predictions(model, gaps))
