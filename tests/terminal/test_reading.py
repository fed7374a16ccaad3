"""Tables as people have them: encodings, separators, amounts, columns carried along; and a model of
the command line in Python."""

import gzip
import io
import json
from pathlib import Path

import numpy as np
import pytest
from damage import forged, put

pl = pytest.importorskip("polars")
pd = pytest.importorskip("pandas")
pytest.importorskip("typer")

import nngp  # noqa: E402


def table(n=60, seed=0):
    """Columns that differ in what they tell, so that their order matters."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=n), 100 * rng.normal(size=n)
    town = rng.choice(["Ulm", "Bonn", "Köln"], n)
    days = np.datetime64("2021-01-01") + rng.integers(0, 900, n)
    return pl.DataFrame(
        {
            "id": [f"row {seed}-{i}" for i in range(n)],
            "a": a,
            "b": b,
            "town": town,
            "day": days,
            "tax": [f"${v:,.2f}" for v in rng.uniform(100, 9000, n)],
            "gap": [None if g else v for g, v in zip(rng.random(n) < 0.3, b, strict=True)],
            "y": 3 * a + 2 * (town == "Bonn") + 0.1 * rng.normal(size=n),
        }
    )


@pytest.fixture
def fitted(run):
    """A model of the command line, a new table, and what the command predicts for it."""
    table().write_csv("train.csv")
    assert run("fit train.csv -t y --drop id --budget 20 -o model.nngp")[0] == 0
    table(30, seed=1).write_csv("new.csv")
    assert run("predict model.nngp new.csv -o out.csv")[0] == 0
    return pl.read_csv("out.csv")


@pytest.mark.filterwarnings("ignore::nngp.errors.ColumnWarning")
def test_a_model_of_the_command_line_in_python(fitted):
    """The columns come back with the model: by name, in any order, from pandas and polars."""
    model = nngp.load("model.nngp")
    assert model.feature_names_in_.tolist() == ["a", "b", "town", "day", "tax", "gap"]
    pandas, polars = pd.read_csv("new.csv"), pl.read_csv("new.csv", try_parse_dates=True)
    frames = [
        pandas,
        pandas[sorted(pandas, reverse=True)],
        polars,
        polars.select(polars.columns[::-1]),
    ]
    for frame in frames:
        mean, std = model.predict(frame, return_std=True)
        np.testing.assert_array_equal(mean, fitted["y"].to_numpy())
        np.testing.assert_array_equal(std, fitted["y_std"].to_numpy())
        assert model.score(frame, pandas["y"]) > 0.5


def test_columns_of_numbers_in_another_order(run):
    table().select("b", "a", "y").write_csv("train.csv")
    run("fit train.csv -t y --budget 20")
    model, new = nngp.load("model.nngp"), table(30, seed=1).select("b", "a")
    swapped = new.select("a", "b")
    np.testing.assert_array_equal(model.predict(swapped), model.predict(new))
    np.testing.assert_array_equal(model.predict(new.to_numpy()), model.predict(new))


def test_python_and_the_command_say_the_same(fitted):
    model, new = nngp.load("model.nngp"), pd.read_csv("new.csv")[["a", "b", "town", "tax", "day"]]
    with pytest.raises(ValueError, match="there is no column 'gap'; the columns are: a, b, town"):
        model.predict(new)
    with (
        pytest.warns(nngp.errors.ColumnWarning, match="training did not: 'Rom'"),
        pytest.warns(nngp.errors.ColumnWarning, match="ignored: 'more'"),
    ):
        model.predict(new.assign(gap=1.0, town="Rom", more=0))


def test_columns_are_carried_along(fitted, run):
    code, _, _ = run("predict model.nngp new.csv --keep id,town --keep y -o kept.csv")
    assert code == 2  # the name of the prediction
    code, _, said = run("predict model.nngp new.csv --keep id,town --keep tax -o kept.csv")
    assert code == 0
    kept, new = pl.read_csv("kept.csv"), pl.read_csv("new.csv")
    assert kept.columns == ["id", "town", "tax", "y", "y_std", "y_lower", "y_upper"]
    assert kept.select("id", "town", "tax").equals(new.select("id", "town", "tax"))
    assert kept["y"].equals(fitted["y"])
    code, _, said = run("predict model.nngp new.csv --keep ID")
    assert (code, "there is no column 'ID' (did you mean 'id'?)" in said) == (2, True)
    _, out, _ = run("predict model.nngp new.csv --keep id --json")
    assert json.loads(out)["predictions"][2]["id"] == "row 1-2"


ROWS = [(i, i % 3, "Köln" if i % 2 else "Ulm", i * 1.5 + i % 2) for i in range(1, 21)]


def lines(sep=",", decimal=".", names="a b town y"):
    text = [sep.join(names.split())]
    text += [sep.join(str(v).replace(".", decimal) for v in row) for row in ROWS]
    return "\n".join(text) + "\n"


def padded():
    return "\n".join(
        "  ".join(f"{v!s:>8}" for v in line.split(",")) for line in lines().split("\n")
    )


TABLES = {
    "commas": ("t.csv", lines().encode(), "", ""),
    "tabs": ("t.csv", lines("\t").encode(), "", "t.csv is separated by tabs"),
    "tsv": ("t.tsv", lines("\t").encode(), "", ""),
    "commas in a tsv": ("t.tsv", lines().encode(), "", ""),
    "bars": ("t.txt", lines("|").encode(), "", "t.txt is separated by bars"),
    "blanks": ("t.txt", padded().encode(), "", "t.txt is separated by blanks"),
    "semicolons": ("t.csv", lines(";").encode(), "", "t.csv is separated by semicolons"),
    "decimal commas": ("t.csv", lines(";", ",").encode(), "", "like '2,5', read as numbers (2.5)"),
    "a colon": ("t.csv", lines(":").encode(), "--sep :", ""),
    "a tab by its name": ("t.csv", lines("\t").encode(), "--sep tab", ""),
    "gzip": ("t.csv.gz", gzip.compress(lines().encode()), "", ""),
    "gzip without its ending": ("t.csv", gzip.compress(lines("\t").encode()), "", "by tabs"),
    "a mark in front": ("t.csv", b"\xef\xbb\xbf" + lines().encode(), "", ""),
    "UTF-16": ("t.csv", lines().encode("utf-16"), "", ""),
    "Latin-1": ("t.csv", lines().encode("latin-1"), "--encoding latin-1", ""),
    "UTF-16 by name": ("t.csv", lines().encode("utf-16-be"), "--encoding utf-16-be", ""),
    "old Macs": ("t.csv", lines().replace("\n", "\r").encode(), "", ""),
    "Windows": ("t.csv", lines().replace("\n", "\r\n").encode(), "", ""),
    "blanks beside commas": ("t.csv", lines(" , ").encode(), "", ""),
    "blank lines": ("t.csv", ("\n\n" + lines().replace("\n", "\n\n")).encode(), "", ""),
    "no ending": ("t", lines().encode(), "", ""),
}


def test_every_way_of_writing_a_table(run):
    """One table, written in many ways, gives one model."""
    frame = pd.DataFrame(ROWS, columns=["a", "b", "town", "y"])
    inputs = frame[["a", "b", "town"]]
    truth = nngp.NNGPRegressor(selection=None).fit(inputs, frame["y"]).predict(inputs)
    for name, data, options, remark in TABLES.values():
        Path(name).write_bytes(data)
        code, _, said = run(f"fit {name} -t y --selection none {options}")
        assert code == 0, said
        assert remark in said
        model = nngp.load("model.nngp")
        assert model.columns_.features == ["a", "b", "town=Köln", "town=Ulm"]
        np.testing.assert_array_equal(model.predict(inputs), truth)


def test_stdin(run, monkeypatch):
    def given(data):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

    given(lines().encode())
    assert run("fit - -t y --selection none")[0] == 0
    given(lines().encode())
    code, out, _ = run("predict model.nngp - --keep a")
    assert (code, len(out.splitlines())) == (0, 21)
    given(b"")
    code, _, said = run("predict model.nngp -")
    assert (code, said.startswith("error: the input is empty")) == (3, True)


UNUSABLE = [
    ("--sep ab", "--sep must be one character, or comma, tab, semicolon, bar or blank"),
    ("--encoding klingon", "--encoding 'klingon' is not known"),
    ("--encoding hex", "--encoding 'hex' is not known"),
]


def test_options_that_cannot_be_used(run):
    Path("t.csv").write_text(lines())
    run("fit t.csv -t y --selection none")
    for options, sentence in UNUSABLE:
        for command in ("fit t.csv -t y", "predict model.nngp t.csv", "kernel t.csv"):
            code, _, said = run(f"{command} {options}")
            assert (code, sentence in said) == (2, True)


MONEY = {
    "dollars": lambda v: f"${v:,.0f}",
    "euros": lambda v: f"{v:,.2f} €".replace(",", " ").replace(".", ","),
    "percent": lambda v: f"{v / 1000:.2f}%",
    "Swiss": lambda v: f"CHF {v:,.2f}".replace(",", "'"),
    "losses": lambda v: f"({v:,.0f})" if v > 2e5 else f"{v:,.0f}",
}


def test_a_target_of_amounts_is_numbers(run):
    for kind in MONEY:
        rng = np.random.default_rng(0)
        x = rng.uniform(0, 1, 60)
        price = 100_000 + 200_000 * x
        texts = [MONEY[kind](v) for v in price]
        pl.DataFrame({"x": x, "y": texts}).write_csv("t.csv")
        code, out, said = run("fit t.csv -t y --selection none --json")
        assert (code, json.loads(out)["task"]) == (0, "regression")
        assert "column 'y' holds amounts like" in said
        code, out, _ = run("evaluate model.nngp t.csv --json")
        assert (code, json.loads(out)["r2"] > 0.5) == (0, True)


def test_columns_in_one_format_have_one_remark(run):
    """In a table with decimal commas all of them; not one line for each."""
    names = [f"x{j}" for j in range(8)]
    rows = [";".join(f"{i * j + 0.5}".replace(".", ",") for j in range(9)) for i in range(1, 20)]
    Path("t.csv").write_text("\n".join([";".join([*names, "y"]), *rows]))
    code, _, said = run("fit t.csv -t y --selection none")
    assert code == 0
    assert said.count("amounts like") == 2
    assert "column 'y' holds amounts like '8,5', read as numbers (8.5)" in said
    shown = "'x1', 'x2', 'x3', 'x4', 'x5' and 2 more"
    assert f"columns {shown} hold amounts like '1,5', read as numbers (1.5)" in said


MARKS = {"point": ("x,y\n", ",", "."), "comma": ("x;y\n", ";", ",")}


@pytest.fixture
def of_each_mark(run):
    """Models of one table, written with decimal points and with decimal commas."""
    for name, (header, sep, mark) in MARKS.items():
        rows = [f"{i + 0.25}{sep}{2 * i + 0.5}".replace(".", mark) for i in range(12)]
        Path(f"{name}.csv").write_text(header + "\n".join(rows))
        assert run(f"fit {name}.csv -t y --selection none -o {name}.nngp")[0] == 0
    return run


@pytest.mark.parametrize(
    ("trained", "text", "read"),
    [("comma", "x\n1.234\n", ("1234", "1.234")), ("point", "x;z\n1,234;1\n", ("1234", "1.234"))],
)
def test_a_decimal_mark_that_is_open_is_asked_for(of_each_mark, trained, text, read):
    run = of_each_mark
    Path("new.csv").write_text(text)
    code, out, said = run(f"predict {trained}.nngp new.csv")
    assert (code, out) == (3, "")
    assert f"which is {read[0]} with the decimal mark of training" in said
    assert f"and {read[1]} with" in said
    assert said.strip().endswith("name it by --decimal . or --decimal ,")
    mark = text.split("1")[1][0]
    outs = [run(f"predict {name}.nngp new.csv --decimal {mark}")[1] for name in MARKS]
    Path("plain.csv").write_text("x,z\n1.234,0.5\n")
    assert outs == [run("predict point.nngp plain.csv")[1]] * 2
    assert run(f"predict {trained}.nngp new.csv --decimal ;")[0] == 2


def test_a_table_is_read_with_the_decimal_mark_that_it_has(of_each_mark):
    """Each model on both tables, inputs and answers, and on columns that others decide about."""
    run = of_each_mark
    scores = [run(f"evaluate {m}.nngp {t}.csv --json")[:2] for m in MARKS for t in MARKS]
    assert scores == scores[:1] * 4
    assert scores[0][0] == 0
    Path("a.csv").write_text("x;z\n1,234;0,5\n")
    Path("b.csv").write_text("x;z\n1.234;0.5\n")
    outs = {run(f"predict {m}.nngp {t}.csv")[1] for m in MARKS for t in "ab"}
    assert len(outs) == 1
    said = run("predict point.nngp a.csv")[2]
    assert "column 'x' holds amounts like '1,234', read as numbers (1.234)" in said


def test_a_target_whose_decimal_mark_is_open_is_asked_for(run):
    """1,500 is a thousand in a table of thousands, and about one in a table with decimal commas."""
    Path("t.csv").write_text('x,y\n1,"1,5"\n2,"2,5"\n3,"3,75"\n')
    run("fit t.csv -t y --selection none")
    Path("new.csv").write_text('x,y\n1,"1,500"\n2,"2,500"\n3,"3,750"\n')
    code, _, said = run("evaluate model.nngp new.csv")
    assert (code, "'1,500', which is 1.5 with the decimal mark of training" in said) == (3, True)
    files = ("t.csv", "new.csv --decimal ,")
    codes = [run(f"evaluate model.nngp {name} --json")[:2] for name in files]
    assert codes[0] == codes[1]
    assert codes[0][0] == 0


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_words_that_are_nearly_as_many_as_rows(run):
    words = "".join(f"{i},name {i // 1.5:.0f}\n" for i in range(30))
    Path("t.csv").write_text("x,y\n" + words)
    code, _, said = run("fit t.csv -t y --selection none")
    assert (code, "use --task classification if they are classes" in said) == (2, True)
    assert run("fit t.csv -t y --selection none --task classification")[0] == 0


def test_missing_values_by_many_names(run):
    marks = ["", "NA", "n/a", "None", "-", "NULL", "#N/A", "?", "."]
    rows = [f"{i},{i * i}" for i in range(20)] + [f"{mark},7" for mark in marks]
    Path("t.csv").write_text("x,y\n" + "\n".join(rows) + "\n")
    code, _, said = run("fit t.csv -t y --selection none")
    assert code == 0
    assert "column 'x' lacks 9 value(s); the training median 9.5 stands for them" in said
    rows = [f"{i},{i * i}" for i in range(20)] + [f"7,{mark}" for mark in marks]
    Path("t.csv").write_text("x,y\n" + "\n".join(rows) + "\n")
    assert "9 row(s) without 'y' are dropped" in run("fit t.csv -t y --selection none")[2]


def test_a_class_that_is_called_none(run):
    rows = "".join(f"{i},{('None', 'mild', 'severe')[i % 3]}\n" for i in range(30))
    Path("t.csv").write_text("x,y\n" + rows)
    code, _, said = run("fit t.csv -t y --selection none")
    assert (code, "are left out" in said) == (0, False)
    assert nngp.load("model.nngp").classes_.tolist() == ["None", "mild", "severe"]


def test_rows_that_are_repeated_are_counted(run):
    Path("t.csv").write_text("x,y\n1,2\n1,2\n3,4\n1,2\n1,5\n")
    assert "2 row(s) repeat another row" in run("fit t.csv -t y --selection none")[2]


def test_names_that_are_missing(run):
    Path("t.csv").write_text(",x,y\n1,2,3\n2,3,5\n3,5,6\n")
    code, _, said = run("fit t.csv -t y --selection none")
    assert (code, "a column without a name, called 'column 1'" in said) == (0, True)
    Path("n.csv").write_text("1,2\n3,4\n5,6\n")
    _, _, said = run("fit n.csv -t 2 --selection none")
    assert "the first line of n.csv holds numbers and is taken for the names of columns" in said


def test_a_model_of_a_frame_in_python_predicts_on_the_command_line(run):
    frame = table().drop("id", "y")
    with pytest.warns(nngp.errors.ColumnWarning, match="left out"):
        model = nngp.NNGPRegressor(selection=None).fit(
            frame.with_columns(same=pl.lit(1)), table()["y"].to_numpy()
        )
    model.save("model.nngp")
    table(9, seed=1).drop("id", "y").write_csv("new.csv")
    code, _, _ = run("predict model.nngp new.csv -o out.csv")
    assert code == 0
    expected, _ = model.predict(table(9, seed=1).drop("id", "y"), return_std=True)
    np.testing.assert_array_equal(pl.read_csv("out.csv")["prediction"].to_numpy(), expected)
    code, _, said = run("evaluate model.nngp new.csv")
    assert (code, "was saved from Python and knows no target" in said) == (3, True)


def test_a_bomb_is_not_unpacked(run, monkeypatch):
    monkeypatch.setattr("nngp.terminal.tables.available_memory", lambda: 40_000_000)
    Path("t.csv.gz").write_bytes(gzip.compress(b"a,y\n" + b"1,2\n" * 4_000_000))
    code, _, said = run("fit t.csv.gz -t y")
    assert (code, "unpacks to more than the memory of this machine holds" in said) == (3, True)


def test_a_model_whose_columns_are_damaged(run):
    Path("t.csv").write_text("x,y\n" + "".join(f"{i},{i * i}\n" for i in range(12)))
    assert run("fit t.csv -t y --selection none -o m.nngp")[0] == 0
    whole = Path("m.nngp").read_bytes()
    places = [("columns",), ("columns", "names"), ("log_evidence",), ("notes",)]
    places += [("columns", "encodings", 0), ("notes", "target_numbers")]
    for place in places:
        for value in ("x", [3], True):
            Path("m.nngp").write_bytes(forged(whole, lambda h, p=place, v=value: put(h, p, v)))
            for command in ("inspect m.nngp", "predict m.nngp t.csv", "evaluate m.nngp t.csv"):
                code, out, said = run(command)
                assert (code, out) == (3, ""), (place, value, said)
                assert said.startswith("error: m.nngp is damaged"), (place, value, said)


def test_notes_of_ones_own_are_shown_as_they_are(run):
    """Whatever notes a model was saved with in Python."""
    model = nngp.NNGPRegressor(selection=None).fit({"x": np.arange(9.0)}, np.arange(9.0))
    model.save("m.nngp", notes={"target": 3, "summary": "mine", "target_numbers": []})
    code, out, _ = run("inspect m.nngp --json")
    assert (code, json.loads(out)["columns"]) == (0, ["x"])
    Path("t.csv").write_text("x\n1\n")
    assert run("predict m.nngp t.csv")[0] == 0
