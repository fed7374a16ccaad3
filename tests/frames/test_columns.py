"""Data frames in the estimators: one encoder, learned in fit, saved with the model."""

import datetime
import json

import numpy as np
import pytest
from damage import description_of
from hypothesis import given, settings, strategies as st
from records import read_again
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import nngp
from nngp._records import from_plain, to_plain
from nngp.frames import (
    Columns,
    InputTable,
    learn_numbers,
    table_of,
    with_decimal_mark,
)
from nngp.frames.amounts import possible_marks

pd = pytest.importorskip("pandas")
KINDS = {"regressor": nngp.NNGPRegressor, "classifier": nngp.NNGPClassifier}


def houses(n=60, seed=0):
    """Every kind of column, and a target."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(50, 200, n)
    start = datetime.date(2019, 3, 5)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.2, np.nan, size),
            "rooms": rng.integers(1, 7, n),
            "town": rng.choice(["Ulm", "Bonn", "Köln"], n),
            "heating": rng.choice(["gas", "oil", None], n),
            "garden": rng.random(n) < 0.5,
            "built": [start + datetime.timedelta(days=int(d)) for d in rng.integers(0, 1500, n)],
            "tax": [f"${v:,.2f}" for v in rng.uniform(500, 20000, n)],
            "zone": pd.Categorical(rng.choice([1, 2, 3], n)),
        }
    )
    return frame, 3 * size + 100 * (frame["town"] == "Bonn").to_numpy() + rng.normal(0, 5, n)


def answers(kind, y):
    return y if kind is nngp.NNGPRegressor else np.where(y > 400, "dear", "cheap")


def as_polars(frame):
    polars = pytest.importorskip("polars")
    columns = {
        name: [None if value is pd.NA or value != value else value for value in column.tolist()]
        for name, column in frame.items()
    }
    out = polars.DataFrame(columns)
    return out.with_columns(zone=out["zone"].cast(polars.String).cast(polars.Categorical))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_frame_with_every_kind_of_column(tmp_path, kind):
    """One answer from pandas, polars and a mapping, in any order of columns, before and after
    saving."""
    frame, y = houses()
    model = kind(selection=None).fit(frame, answers(kind, y))
    assert model.feature_names_in_.tolist() == list(frame)
    assert model.n_features_in_ == 8
    new, _ = houses(15, seed=1)
    expected = model.predict(new)
    model.save(tmp_path / "model.nngp")
    again = nngp.load(tmp_path / "model.nngp")
    assert again.columns_ == model.columns_
    assert again.feature_names_in_.tolist() == list(frame)
    for table in (new, new[list(new)[::-1]], as_polars(new), dict(new.items())):
        np.testing.assert_array_equal(again.predict(table), expected)
        np.testing.assert_array_equal(model.predict(table), expected)


def test_the_inputs_are_those_of_scikit_learns_transformers():
    frame, _ = houses()
    frame = frame[["size", "town", "heating"]]
    table = table_of(frame)
    found = Columns.learn(table)
    X, remarks = found.encode(table)
    impute = SimpleImputer(strategy="median", add_indicator=True)
    one_hot = OneHotEncoder(sparse_output=False)
    theirs = make_column_transformer((impute, ["size"]), (one_hot, ["town", "heating"]))
    np.testing.assert_array_equal(X, theirs.fit_transform(frame))
    assert remarks == []
    assert found.features == [
        "size",
        "size (missing)",
        *("town=Bonn", "town=Köln", "town=Ulm"),
        *("heating=gas", "heating=oil", "heating=(missing)"),
    ]


def test_dates_are_days_and_phases():
    days = [datetime.datetime(2020, 1, 6) + datetime.timedelta(hours=31 * i) for i in range(900)]
    table = table_of({"when": days})
    found = Columns.learn(table)
    X, _ = found.encode(table)
    epoch = datetime.datetime(1970, 1, 1)
    np.testing.assert_allclose(X[:, 0], [(d - epoch) / datetime.timedelta(1) for d in days])
    for j, phase in ((1, _of_year), (3, _of_week), (5, _of_day)):
        angle = 2 * np.pi * np.array([phase(d) for d in days])
        np.testing.assert_allclose(X[:, j], np.sin(angle), atol=1e-8)
        np.testing.assert_allclose(X[:, j + 1], np.cos(angle), atol=1e-8)
    assert X.shape[1] == len(found.features) == 7


def _of_year(day):
    start, end = datetime.datetime(day.year, 1, 1), datetime.datetime(day.year + 1, 1, 1)
    return (day - start) / (end - start)


def _of_week(day):
    return (day.weekday() + _of_day(day)) / 7


def _of_day(day):
    return (day - day.replace(hour=0, minute=0, second=0)) / datetime.timedelta(1)


SPANS = [
    (10, 1, []),
    (20, 1, ["week"]),
    (90, 1, ["week"]),
    (90, 10, ["year", "week"]),
]


def test_cycles_that_the_dates_do_not_span_are_no_inputs():
    for count, step, cycles in SPANS:
        first = datetime.date(2021, 5, 1)
        days = [first + datetime.timedelta(days=step * i) for i in range(count)]
        (encoding,) = Columns.learn(table_of({"day": days})).encodings
        assert list(encoding.cycles) == cycles


DATES = {
    "2024-03-01": (2024, 3, 1),
    "2024-03-01T13:30:05": (2024, 3, 1, 13, 30, 5),
    "2024-03-01 13:30:05.250+02:00": (2024, 3, 1, 11, 30, 5, 250000),
    "2024/3/1": (2024, 3, 1),
    "31.12.2024": (2024, 12, 31),
    "31/12/2024 08:15": (2024, 12, 31, 8, 15),
    "12/31/2024 08:15 PM": (2024, 12, 31, 20, 15),
    "1 March 2024": (2024, 3, 1),
    "01-Mar-2024": (2024, 3, 1),
    "Sept 3, 2024": (2024, 9, 3),
    "03.04.24": (2024, 4, 3),
    "03/04/2024": (2024, 3, 4),  # as in America where nothing says otherwise
}


def test_dates_in_text():
    """A date in text is the date that Python has of it."""
    for text in DATES:
        table = table_of({"day": [text, "n/a", text], "x": [1.0, 2.0, 3.0]})
        found = Columns.learn(table)
        X, _ = found.encode(table)
        truth = np.datetime64(datetime.datetime(*DATES[text]), "us").astype(np.int64) / 86_400e6
        np.testing.assert_array_equal(X[:, 0], truth)


def test_the_order_of_day_and_month_is_that_of_the_column():
    found = Columns.learn(table_of({"day": ["03/04/2024", "25/04/2024"]}))
    X, _ = found.encode(table_of({"day": ["03/04/2024"]}))
    assert np.datetime64(int(X[0, 0]), "D") == np.datetime64("2024-04-03")
    assert "like '03/04/2024', read as day/month/year" in found.remarks[0]
    both = Columns.learn(table_of({"day": ["13/04/2024", "04/13/2024"]}))
    assert "is text" in both.remarks[0]


def test_an_order_that_was_not_learned_is_not_guessed():
    for learned in [["2024-03-01", "2024-03-09"], ["1 March 2024", "May 2, 2024"]]:
        found = Columns.learn(table_of({"day": learned}))
        with pytest.raises(ValueError, match="'03/04/2024', which is no date as year-month-day"):
            found.encode(table_of({"day": ["03/04/2024"]}))
        X, _ = found.encode(table_of({"day": ["2024-04-03"]}))
        assert np.datetime64(int(X[0, 0]), "D") == np.datetime64("2024-04-03")


AMOUNTS = [
    (["$1,234.50", "$7", "-$3"], [1234.5, 7, -3]),
    (["1.234,56 €", "7,5 €"], [1234.56, 7.5]),
    (["12%", "7.5 %"], [12, 7.5]),
    (["1 234 567", "12"], [1234567, 12]),
    (["1\u202f234,5", "12,25"], [1234.5, 12.25]),
    (["1'234.5", "2"], [1234.5, 2]),
    (["(1,200)", "300"], [-1200, 300]),
    (["USD 5", "USD 1,000"], [5, 1000]),
    (["1,234", "5,678"], [1234, 5678]),
    (["0,123", "5,678"], [0.123, 5.678]),
    (["1.234", "5.678"], [1.234, 5.678]),
    (["1.234.567", "89"], [1234567, 89]),
    (["12,34,567", "1,00,000"], [1234567, 100000]),
    ([" 5 ", "6"], [5, 6]),
    (["1e-3", "2E5"], [1e-3, 2e5]),
    (["\u22125", "6"], [-5, 6]),
]


def test_numbers_in_text():
    for texts, values in AMOUNTS:
        table = table_of({"x": texts})
        X, _ = Columns.learn(table).encode(table)
        np.testing.assert_array_equal(X[:, 0], values)


NO_NUMBERS = [
    *(["1.2.3", "1.2.4"], ["A1", "A2"], ["10-20", "20-30"], ["192.168.0.1", "10.0.0.1"]),
    *(["1_000", "2_000"], ["030 123", "030 124"], ["4 rooms", "5 rooms"], ["+", "-"]),
]


def test_text_that_is_not_numbers():
    for texts in NO_NUMBERS:
        (encoding,) = Columns.learn(table_of({"x": texts})).encodings
        assert encoding.levels == tuple(sorted(texts))


def test_an_open_decimal_mark_follows_the_rest_of_the_table():
    columns = {"a": ["1,234", "2,345"], "b": ["1,5", "2,5"]}
    X, _ = Columns.learn(table_of(columns)).encode(table_of(columns))
    np.testing.assert_array_equal(X, [[1.234, 1.5], [2.345, 2.5]])
    columns["b"] = ["1.5", "2.5"]
    X, _ = Columns.learn(table_of(columns)).encode(table_of(columns))
    np.testing.assert_array_equal(X, [[1234, 1.5], [2345, 2.5]])


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([["1,5", "2,5"], ["1.5", "2.5"], ["1", "2"]]),
    st.lists(st.floats(0.001, 1e7), min_size=1, max_size=3),
    st.sampled_from([".0f", ".1f", ".3f", ",.0f", ",.2f"]),
    st.booleans(),
)
def test_numbers_are_read_as_training_on_them_would_or_refused(training, values, form, comma):
    """Whatever decimal mark the model was fitted with."""
    texts = [format(value, form) for value in values]
    if comma:
        texts = [text.translate(str.maketrans(",.", ".,")) for text in texts]
    table = table_of({"x": texts})
    alone = learn_numbers(table.columns[0], with_decimal_mark(table).decimal)
    try:
        X, _ = Columns.learn(table_of({"x": training})).encode(table)
    except ValueError as error:
        assert "with the decimal mark of training" in str(error)  # noqa: PT017
        assert str(error).endswith("convert the column to numbers")  # noqa: PT017
        assert len(possible_marks(texts)) == 2
    else:
        np.testing.assert_array_equal(X[:, 0], alone.read(table.columns[0]))


def test_many_levels_are_bounded_and_that_is_said():
    """The rarest share one input. What training did not have is told from them by name."""
    texts = [f"level {i % 70}" for i in range(300)] + ["level 1"] * 5
    table = table_of({"x": texts})
    found = Columns.learn(table)
    X, remarks = found.encode(table)
    assert X.shape == (305, 51)
    assert found.features[-1] == "x=(other)"
    np.testing.assert_array_equal(X.sum(axis=1), 1.0)
    assert remarks == []
    rows = int(X[:, -1].sum())
    assert found.cautions == (
        f"column 'x' has 70 values: the 20 rarest ({rows} row(s)) share one input; group the "
        "values if they matter",
    )
    assert "one for the rest" in found.remarks[0]
    rare = texts[int(np.argmax(X[:, -1]))]
    with pytest.warns(nngp.errors.ColumnWarning, match="the 20 rarest"):
        model = nngp.NNGPRegressor(selection=None).fit({"x": texts}, np.arange(305.0))
    assert read_again(found) == found
    with pytest.warns(nngp.errors.ColumnWarning) as said:
        model.predict({"x": ["level 1", rare, "level 99", "level 98", "level 99"]})
    assert [str(w.message) for w in said] == [
        "column 'x' has 3 value(s) that training did not: 'level 99', 'level 98'; they count like "
        "the rare ones"
    ]


def test_the_encoder_says_which_inputs_belong_together():
    """A category and a cycle are one thing, that a value is missing is another; only amounts and
    days may be mapped."""
    frame, _ = houses(200)
    found = Columns.learn(table_of(frame))
    assert len(found.groups) == len(found.mappable) == len(found.features)
    together = {}
    for feature, group in zip(found.features, found.groups.tolist(), strict=True):
        together.setdefault(group, []).append(feature)
    assert list(together.values()) == [
        ["size"],
        ["size (missing)"],
        ["rooms"],
        ["town=Bonn", "town=Köln", "town=Ulm"],
        ["heating=gas", "heating=oil", "heating=(missing)"],
        ["garden"],
        ["built"],
        ["built (sine of year)", "built (cosine of year)"],
        ["built (sine of week)", "built (cosine of week)"],
        ["tax"],
        ["zone=1", "zone=2", "zone=3"],
    ]
    amounts = [f for f, flag in zip(found.features, found.mappable, strict=True) if flag]
    assert amounts == ["size", "rooms", "built", "tax"]


def test_what_is_left_out_and_what_is_new_is_said():
    frame, y = houses()
    frame["id"] = [f"house {i}" for i in range(len(frame))]
    frame["same"] = 1
    frame["lists"] = [[1]] * len(frame)
    with pytest.warns(nngp.errors.ColumnWarning) as said:
        model = nngp.NNGPRegressor(selection=None).fit(frame, y)
    assert [str(w.message) for w in said] == [
        "column 'id' is left out: each row has a text of its own, as identifiers do",
        "column 'same' is left out: it is constant",
        "column 'lists' is left out: it holds neither numbers, text nor dates",
    ]
    new = frame[model.columns_.used].iloc[:4].assign(town=["Rom", "Rom", "Bern", "Ulm"], extra=1)
    with pytest.warns(nngp.errors.ColumnWarning) as said:
        model.predict(new)
    assert [str(w.message) for w in said] == [
        "column 'town' has 3 value(s) that training did not: 'Rom', 'Bern'; they count as none of "
        "the known ones",
        "columns that training did not have are ignored: 'extra'",
    ]


def test_a_frame_without_columns():
    frame, y = houses()
    for X in (frame[[]], pytest.importorskip("polars").DataFrame()):
        with pytest.raises(ValueError, match="X has no columns; pass a table with at least one"):
            nngp.NNGPRegressor().fit(X, y)


def test_missing_columns_are_named_in_one_error():
    frame, y = houses()
    model = nngp.NNGPRegressor(selection=None).fit(frame, y)
    with pytest.raises(ValueError, match=r"no columns 'size' \(did you mean 'Size'\?\), 'town'"):
        model.predict(frame.rename(columns={"size": "Size"}).drop(columns="town"))
    with pytest.raises(ValueError, match="column 'rooms' held numbers in training and now holds"):
        model.predict(frame.assign(rooms="many"))
    with pytest.raises(ValueError, match="more than one column 'town'"):
        model.predict(frame.rename(columns={"zone": "town"}))


def test_arrays_for_a_model_of_a_table():
    """An array is taken where it can only mean one thing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    gaps = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    frame = pd.DataFrame(gaps, columns=["a", "b", "c"])
    model = nngp.NNGPRegressor(selection=None).fit(frame, X[:, 0])
    np.testing.assert_array_equal(model.predict(gaps), model.predict(frame))
    with pytest.raises(ValueError, match=r"'a', 'b', 'c' and got an array with 2 column"):
        model.predict(X[:, :2])
    text, y = houses()
    with pytest.raises(ValueError, match="pass a data frame, because 'town'"):
        nngp.NNGPRegressor(selection=None).fit(text, y).predict(np.zeros((2, 8)))


def test_plain_numbers_follow_scikit_learn():
    """A frame of numbers is an array with names, and has its bits."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    model = nngp.NNGPRegressor(budget=8)
    bare = clone(model).fit(X, X[:, 0]).predict(X)
    framed = clone(model).fit(pd.DataFrame(X, columns=["a", "b"]), X[:, 0])
    assert framed.columns_ is None
    np.testing.assert_array_equal(framed.predict(pd.DataFrame(X, columns=["a", "b"])), bare)
    np.testing.assert_array_equal(framed.fit(X, X[:, 0]).predict(X), bare)
    assert not hasattr(framed, "feature_names_in_")


def test_scikit_learns_tools_take_such_frames():
    frame, y = houses()
    model = make_pipeline(nngp.NNGPRegressor(selection=None))
    assert cross_val_score(model, frame, y, cv=3).mean() > 0.3


def test_types_of_pandas_that_hold_their_own_missing_values():
    frame = pd.DataFrame(
        {
            "i": pd.array([1, None, 3, 4], dtype="Int64"),
            "b": pd.array([True, None, False, True], dtype="boolean"),
            "s": pd.array(["u", None, "v", "u"], dtype="string"),
            "t": pd.to_datetime(["2024-01-01", None, "2024-01-03", "2024-01-03"]).tz_localize(
                "UTC"
            ),
            "d": pd.to_timedelta([1, None, 2, 4], unit="D"),
            "o": [1, None, "x", 2.5],
            "p": pd.period_range("2024-01", periods=4, freq="M"),
        }
    )
    found = Columns.learn(table_of(frame))
    X, _ = found.encode(table_of(frame))
    assert found.features == [
        *("i", "b", "s=u", "s=v", "s=(missing)", "t", "d", "o=1", "o=2.5", "o=x", "o=(missing)"),
        *("p", "p (sine of week)", "p (cosine of week)"),
    ]
    np.testing.assert_array_equal(X[:, 0], [1, 3, 3, 4])
    np.testing.assert_array_equal(X[:, 1], [1, 1, 0, 1])
    np.testing.assert_array_equal(X[:, 5], [19723, 19725, 19725, 19725])
    np.testing.assert_array_equal(X[:, 6], [1, 2, 2, 4])


def leaves(value, path=()):
    """Paths to every plain value in nested dictionaries and lists."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in items:
            yield from leaves(part, (*path, key))
        yield path
    else:
        yield path


def test_a_changed_encoder_is_a_damaged_file(tmp_path):
    """Every value of the encoder in a file is checked: each is replaced by several wrong ones."""
    frame, y = houses(20)
    nngp.NNGPRegressor(selection=None).fit(frame, y).save(tmp_path / "model.nngp")
    good = description_of((tmp_path / "model.nngp").read_bytes())["columns"]
    paths = [path for path in leaves(good) if path]
    assert len(paths) > 60
    for path in paths:
        for wrong in (None, {}, [3], -1.5e400):
            bad = json.loads(json.dumps(good))
            place = bad
            for key in path[:-1]:
                place = place[key]
            if place[path[-1]] == wrong:
                continue
            place[path[-1]] = wrong
            with pytest.raises(nngp.errors.ModelFileError):
                from_plain(Columns, bad, {})
    assert to_plain(from_plain(Columns, good, {}))[0] == good


def test_what_is_masked_in_a_table_is_missing():
    """What lies under the mask is never read; in an array, which has no gaps, a mask is refused."""
    values, mask = np.arange(12.0), np.arange(12) % 6 == 0
    hidden = np.ma.masked_array(np.where(mask, 1e9, values), mask)
    objects = [np.ma.masked if gap else value for value, gap in zip(values, mask, strict=True)]
    plain = np.where(mask, np.nan, values)
    tables = [table_of({"a": column}) for column in (plain, hidden, objects)]
    expected, *others = (Columns.learn(table).encode(table)[0] for table in tables)
    assert all(np.array_equal(other, expected) for other in others)
    model = nngp.NNGPRegressor(selection=None).fit({"a": plain}, values)
    with pytest.raises(TypeError, match="masked values"):
        model.predict(hidden[:, None])


def test_columns_of_different_length_are_refused():
    with pytest.raises(ValueError, match="differ in length"):
        table_of({"a": [1, 2], "b": [1]})
    assert len(InputTable(())) == 0


GAPS = np.where(np.random.default_rng(3).random((60, 3)) < 0.2, np.nan, 1.0)
NUMBERS = np.random.default_rng(4).normal(size=(60, 3))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_an_array_with_gaps_is_a_table_with_gaps(tmp_path, kind):
    """NaN in an array is what it is in a frame: the median, and an input that shows where."""
    X, y = NUMBERS * GAPS, answers(kind, 400 + NUMBERS[:, 0])
    model = kind(selection=None).fit(X, y)
    framed = kind(selection=None).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 3
    assert model.columns_.features == [
        f"x{j}{more}" for j in range(3) for more in ("", " (missing)")
    ]
    expected = framed.predict(pd.DataFrame(X, columns=["a", "b", "c"]))
    model.save(tmp_path / "model.nngp")
    for same in (model, nngp.load(tmp_path / "model.nngp")):
        np.testing.assert_array_equal(same.predict(X), expected)
        np.testing.assert_array_equal(same.predict(X.tolist()), expected)
        with pytest.warns(UserWarning, match="fitted without feature names"):
            np.testing.assert_array_equal(
                same.predict(pd.DataFrame(X, columns=list("abc"))), expected
            )
        with pytest.raises(ValueError, match="expecting 3 features"):
            same.predict(X[:, :2])


@pytest.mark.parametrize("framed", [False, True])
def test_a_value_that_is_missing_only_later_is_the_median_of_training(tmp_path, framed):
    wrap = (lambda X: pd.DataFrame(X, columns=["a", "b", "c"])) if framed else np.asarray
    model = nngp.NNGPRegressor(selection=None).fit(wrap(NUMBERS), NUMBERS[:, 0])
    assert model.columns_ is None
    model.save(tmp_path / "model.nngp")
    new = NUMBERS[:6].copy()
    new[[1, 4], 2] = np.nan
    full = np.where(np.isnan(new), np.median(NUMBERS, axis=0), new)
    name = "c" if framed else "x2"
    for same in (model, nngp.load(tmp_path / "model.nngp")):
        with pytest.warns(
            nngp.errors.ColumnWarning, match=f"column '{name}' lacks 2 value"
        ) as said:
            found = same.predict(wrap(new))
        assert len(said) == 1
        np.testing.assert_array_equal(found, same.predict(wrap(full)))


def missing_targets():
    """The third of eight targets is missing: numbers and classes, as every library marks it."""
    pl = pytest.importorskip("polars")
    numbers, words = [1, 2, None, 4, 5, 6, 7, 8], ["a", "b", None, "a", "b", "a", "b", "a"]
    typed = [("Int64", numbers), ("Float64", numbers), ("string", words), ("category", words)]
    out = {f"pandas {kind}": pd.Series(values, dtype=kind) for kind, values in typed}
    out |= {f"polars {type(v[0]).__name__}": pl.Series(v) for v in (numbers, words)}
    for name, mark in {
        "None": None,
        "NA": pd.NA,
        "nan": np.nan,
        "np.nan": np.float32("nan"),
    }.items():
        for values in (numbers, words):
            marked = [mark if value is None else value for value in values]
            out[f"{name} in a list of {type(values[0]).__name__}"] = marked
            out[f"{name} among objects, {type(values[0]).__name__}"] = np.array(
                marked, dtype=object
            )
    return out


def test_missing_targets_have_one_message():
    for kind in KINDS.values():
        sentence = (
            r"y contains NaN in 1 of 8 rows \(the first is row 2\); leave out rows without a targ"
        )
        for y in missing_targets().values():
            with pytest.raises(ValueError, match=sentence):
                kind(selection=None).fit(np.arange(16.0).reshape(8, 2), y)


def test_times_and_wide_integers_are_numbers_in_every_frame():
    pl = pytest.importorskip("polars")
    lengths = [datetime.timedelta(hours=i * i) for i in range(8)]
    times = [datetime.time(2 * i, 30) for i in range(8)]
    for values, read in ((lengths, np.arange(8) ** 2 / 24), (times, 2 * np.arange(8) + 0.5)):
        truth = nngp.NNGPRegressor(selection=None).fit(pd.DataFrame({"a": read}), np.arange(8.0))
        for frame in (pd.DataFrame({"a": values}), pl.DataFrame({"a": values}), {"a": values}):
            model = nngp.NNGPRegressor(selection=None).fit(frame, np.arange(8.0))
            expected = truth.predict(pd.DataFrame({"a": read}))
            np.testing.assert_allclose(model.predict(frame), expected, rtol=1e-12)
    wide = pl.DataFrame({"a": pl.Series(range(8)).cast(pl.Int128)})
    model = nngp.NNGPRegressor(selection=None).fit(wide, np.arange(8.0))
    narrow = nngp.NNGPRegressor(selection=None).fit(wide.cast(pl.Int64), np.arange(8.0))
    np.testing.assert_array_equal(model.predict(wide), narrow.predict(wide.cast(pl.Int64)))


def test_frames_and_targets_that_are_refused_in_one_sentence():
    for kind in KINDS.values():
        pl = pytest.importorskip("polars")
        X = np.arange(16.0).reshape(8, 2)
        with pytest.raises(TypeError, match=r"X is a LazyFrame, .* pass X\.collect\(\)"):
            kind().fit(pl.DataFrame({"a": range(8)}).lazy(), range(8))
        lengths = [datetime.timedelta(hours=i) for i in range(8)]
        for y in (lengths, pd.Series(lengths), pl.Series(lengths)):
            with pytest.raises(
                TypeError, match="y must hold real numbers and holds lengths of time"
            ):
                kind().fit(X, y)
        for y in ([datetime.time(i) for i in range(8)], pd.date_range("2024-01-01", periods=8)):
            with pytest.raises(TypeError, match="y must hold real numbers and holds dates"):
                kind().fit(X, y)
        with pytest.raises(TypeError, match=r"no 128-bit integer types.*; cast it first"):
            kind().fit(X, pl.Series(range(8)).cast(pl.Int128))


def test_a_table_is_learned_once(monkeypatch):
    """By the command, which shows what it found, and then by `fit`."""
    table = InputTable.of_array(np.arange(6.0).reshape(3, 2))
    first = Columns.learn(table)
    monkeypatch.setattr(Columns, "_learned_from", None)
    assert Columns.learn(table) is first
