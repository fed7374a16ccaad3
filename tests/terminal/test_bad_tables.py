"""Tables that are not as they should be, and the one sentence that the command says to each."""

import gzip
import re
from pathlib import Path

import pytest

pl = pytest.importorskip("polars")
pytest.importorskip("typer")

from nngp.terminal.app import app  # noqa: E402

ROWS = "".join(f"{i},{i % 3},{i * 1.5}\n" for i in range(1, 10))
GOOD = "a,b,y\n" + ROWS
NUMBERS = "".join(f"{i},{i}\n" for i in range(1, 10))
DATES = "".join(f"2024-01-0{i},{i}\n" for i in range(1, 10))
NAMES = ".csv, .tsv, .txt, .dat, .data, .tab, .csv.gz, .tsv.gz, .txt.gz, .parquet, .pq, .xlsx"
QUOTED = "(values that hold commas need quotation marks)"
# What each table is, its file, its content, the exit code, the sentence.
BAD = [
    (
        "an empty file",
        "t.csv",
        "",
        3,
        "t.csv is empty; a table has a line of names, then a line for each row",
    ),
    (
        "blank lines alone",
        "t.csv",
        " \n\n \n",
        3,
        "t.csv is empty; a table has a line of names, then a line for each row",
    ),
    ("only a header", "t.csv", "a,b,y\n", 3, "t.csv has a line of names and no rows below it"),
    (
        "Latin-1",
        "t.csv",
        "a,y\nUlm,1\nKöln,2\n".encode("latin-1"),
        3,
        "t.csv is not text in UTF-8 (line 3); try --encoding cp1252 or latin-1",
    ),
    (
        "UTF-16 without a mark",
        "t.csv",
        GOOD.encode("utf-16-le"),
        3,
        "t.csv holds NUL bytes, so it is no text; write it as CSV, or name its encoding "
        "(--encoding utf-16)",
    ),
    (
        "a NUL byte",
        "t.csv",
        b"a,y\n1,2\n3\0,4\n",
        3,
        "t.csv holds NUL bytes, so it is no text; write it as CSV, or name its encoding "
        "(--encoding utf-16)",
    ),
    (
        "half a character at the end",
        "t.csv",
        (GOOD + "Köln").encode()[:-3],
        3,
        "t.csv is not text in UTF-8 (line 11); try --encoding cp1252 or latin-1",
    ),
    (
        "a spreadsheet called CSV",
        "t.csv",
        b"PK\x03\x04\x14\0\x06\0",
        3,
        "t.csv could not be read as Excel: it is damaged, or another kind of zip archive",
    ),
    (
        "a picture",
        "t.csv",
        b"\x89PNG\r\n\x1a\n\0\0",
        3,
        "t.csv is a picture, not a table; save it as CSV first",
    ),
    ("an old spreadsheet", "t.xls", b"PK\x03\x04", 2, f"t.xls: the name must end in {NAMES}"),
    (
        "damaged Parquet",
        "t.parquet",
        b"PAR1 and no more PAR1",
        3,
        "t.parquet could not be read as PARQUET: it is damaged, or no Parquet file",
    ),
    (
        "a gzip file that was cut",
        "t.csv.gz",
        gzip.compress(GOOD.encode())[:-12],
        3,
        "t.csv.gz is a damaged gzip file; get a fresh copy",
    ),
    (
        "a row that is too long",
        "t.csv",
        "a,b,y\n1,2,3\n4,5,6,7\n",
        3,
        f"line 3 of t.csv has 4 value(s) and the header 3; mend the line {QUOTED}",
    ),
    (
        "a row that is too short, below a blank line",
        "t.csv",
        "a,b,y\n1,2,3\n\n4,5\n",
        3,
        f"line 4 of t.csv has 2 value(s) and the header 3; mend the line {QUOTED}",
    ),
    (
        "a short row below a value of two lines",
        "t.csv",
        'a,b,y\n"1\n2",2,3\n4,5\n',
        3,
        f"line 4 of t.csv has 2 value(s) and the header 3; mend the line {QUOTED}",
    ),
    (
        "a quotation mark that is not closed",
        "t.csv",
        'a,b,y\n1,2,3\n"4,5,6\n7,8,9\n',
        3,
        "line 3 of t.csv has a quotation mark that is not closed; close it, or write it twice",
    ),
    (
        "text after a closing mark",
        "t.csv",
        'a,b,y\n1,2,3\n"x"z,2,3\n',
        3,
        "line 3 of t.csv has text after a closing quotation mark; write marks inside a value twice",
    ),
    (
        "a huge value",
        "t.csv",
        "a,y\n1,2\n" + "x" * 200_000 + ",1\n",
        3,
        "line 3 of t.csv has a value of more than 131072 characters; is a quotation mark not "
        "closed?",
    ),
    (
        "names that are repeated",
        "t.csv",
        "a,b, a,b,y\n1,2,3,4,5\n",
        3,
        "t.csv has more than one column 'a', 'b'; rename all but one",
    ),
    (
        "no names",
        "t.csv",
        "1,2,3\n4,5,6\n",
        2,
        "there is no column 'y'; the columns are: 1, 2, 3",
    ),
    (
        "names in capitals",
        "t.csv",
        "A,B,Y\n1,2,3\n",
        2,
        "there is no column 'y' (did you mean 'Y'?); the columns are: A, B, Y",
    ),
    (
        "a target and nothing else",
        "t.csv",
        "y\n1\n2\n4\n",
        3,
        "no column is left to learn from: there is only 'y'",
    ),
    (
        "constant inputs",
        "t.csv",
        "a,y\n5,1\n5,2\n5,4\n",
        3,
        "no column is left to learn from: column 'a' is left out: it is constant",
    ),
    (
        "inputs that are all missing",
        "t.csv",
        "a,b,y\n,-,1\nNA,n/a,2\nNone,-,4\n",
        3,
        "no column is left to learn from: column 'a' is left out: all its values are missing; "
        "column 'b' is left out: all its values are missing",
    ),
    (
        "an infinite input",
        "t.csv",
        "a,y\n1,1\n-inf,2\n3,4\n",
        3,
        "column 'a' holds infinite values; replace or remove them",
    ),
    (
        "an infinite target",
        "t.csv",
        "a,y\n1,1\n2,inf\n3,4\n",
        3,
        "column 'y' holds infinite values; replace or remove them",
    ),
    (
        "a target that is missing everywhere",
        "t.csv",
        "a,y\n1,\n2,NA\n3,n/a\n",
        3,
        "column 'y' is empty; there is nothing to learn from or compare with",
    ),
    (
        "a target with one value",
        "t.csv",
        "a,y\n1,5\n2,5.0\n3,5\n",
        3,
        "column 'y' is 5 in every row; there is nothing to learn",
    ),
    (
        "one class",
        "t.csv",
        "a,y\n1,no\n2,no\n",
        3,
        "column 'y' is 'no' in every row; there is nothing to learn",
    ),
    (
        "words among numbers",
        "t.csv",
        "a,y\n" + NUMBERS + "oops,3\n",
        3,
        "column 'a' holds numbers but for 'oops' (1 value(s)); replace it, or leave the cell empty",
    ),
    (
        "words among numbers in the target",
        "t.csv",
        "a,y\n" + NUMBERS + "3,on request\n",
        3,
        "column 'y' holds numbers but for 'on request' (1 value(s)); replace it, or leave the cell "
        "empty",
    ),
    (
        "a day that is not in the calendar",
        "t.csv",
        "a,y\n" + DATES + "2024-02-30,3\n",
        3,
        "column 'a' holds dates but for '2024-02-30' (1 value(s)); replace it, or leave the cell "
        "empty",
    ),
    (
        "two currencies",
        "t.csv",
        "a,y\n1,$5\n2,€7\n3,$9\n",
        3,
        "column 'y' holds numbers in different formats, such as '$5' and '€7'; write all in one",
    ),
    (
        "points and commas",
        "t.csv",
        'a,y\n"1,5",1\n2.5,2\n"3,5",4\n',
        3,
        "column 'a' holds numbers in different formats, such as '1,5' and '2.5'; write all in one",
    ),
    (
        "a name for every row as the target",
        "t.csv",
        "a,y\n" + "".join(f"{i},house {i}\n" for i in range(30)),
        2,
        "column 'y' holds 30 different words in 30 rows, such as 'house 0'; use --task "
        "classification if they are classes",
    ),
    (
        "dates as the target",
        "t.csv",
        "a,y\n" + "".join(f"{i},2024-01-0{i}\n" for i in range(1, 9)),
        2,
        "column 'y' holds dates, which cannot be predicted; turn them into numbers first",
    ),
]
# Words of the libraries underneath, which a user of the command has never met.
FOREIGN = re.compile(r"polars|pandas|numpy|dtype|String|Int64|Float64|Utf8|schema|\bNone\b|ndarray")


@pytest.fixture
def fit(tmp_path, monkeypatch, capsys):
    """Fit a file of that content, on a terminal of 80 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def call(name, content):
        data = content.encode() if isinstance(content, str) else content
        Path(name).write_bytes(data)
        with pytest.raises(SystemExit) as left:
            app(f"fit {name} -t y --selection none".split())
        return left.value.code, *capsys.readouterr()

    return call


def test_a_bad_table(fit):
    for what, name, content, code, sentence in BAD:
        left, out, said = fit(name, content)
        assert left == code, what
        assert max(map(len, said.splitlines())) <= 80, what
        *before, error = " ".join(said.splitlines()).split("error: ")
        assert error == sentence, what
        assert len(before) == 1
        assert out == ""
        assert "Traceback" not in said
        assert not FOREIGN.search(said)
        assert not Path("model.nngp").exists()


PREDICTED = [
    ("a,b\n1,2\n", "there is no column 'c'; the columns are: a, b"),
    ("b\n1\n", "there are no columns 'a', 'c'; the columns are: b"),
    ("A,c,d\n1,x,3\n", "there is no column 'a' (did you mean 'A'?); the columns are: A, c, d"),
    (
        "a,c\nmany,x\n",
        "column 'a' held numbers in training and now holds 'many'; mend the value, or leave the "
        "cell empty",
    ),
    ("a,c\ninf,x\n", "column 'a' holds infinite values; replace or remove them"),
    ("a,c\n", "new.csv has a line of names and no rows below it"),
]


def test_a_table_that_is_unlike_training(run):
    """The same fault has the same sentence and exit code in all commands."""
    rows = "".join(f"{i},{'xz'[i % 2]},{i * i}\n" for i in range(12))
    Path("train.csv").write_text("a,c,y\n" + rows)
    assert run("fit train.csv -t y --selection none")[0] == 0
    for text, sentence in PREDICTED:
        for command in ("predict", "evaluate"):
            if command == "evaluate":  # the same table with answers
                head, *rest = text.splitlines()
                text = "\n".join([f"{head},y", *(f"{line},1" for line in rest)]) + "\n"
            Path("new.csv").write_text(text)
            code, out, said = run(f"{command} model.nngp new.csv")
            assert (code, out) == (3, "")
            assert said.split("error: ")[1] == sentence
