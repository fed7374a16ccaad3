"""`nngp-paper runs`: what is in a store, on the terminal, as JSON, in files."""

import json
import math
from pathlib import Path

import pytest

pl = pytest.importorskip("polars")
pytest.importorskip("typer")

from nngp_paper.runs import RunStore  # noqa: E402
from nngp_paper.terminal.app import app  # noqa: E402


@pytest.fixture
def filled(run, tmp_path):
    """The command beside a store of six runs: four done, one failed, one pending."""
    with RunStore(tmp_path / "runs.db") as store:
        keys = store.declare(
            "search",
            [
                {"width": width, "activation": act, "data": "mnist", "opt": {"rate": 0.1}}
                for width in (64, 512)
                for act in ("relu", "tanh")
            ],
        )
        accuracies = [0.91, 0.97, math.nan, 0.94]
        for key, accuracy in zip(keys, accuracies, strict=True):
            result = {"val_accuracy": accuracy, "curve": [1, 2], "width": 1}
            store.finish(key, result, seconds=1.25)
        failed, _ = store.declare("grid", [{"depth": 3}, {"depth": math.inf}])
        store.fail(failed, "out of memory")
    return run


def lines(text):
    return [line.split() for line in text.splitlines()]


def test_a_table_of_what_differs(filled):
    code, out, said = filled("runs --experiment search")
    assert (code, said) == (0, "")
    title, head, *rows = lines(out)
    assert " ".join(title) == "runs.db: 0 pending, 0 running, 4 done, 0 failed"
    assert head == ["key", "config.width", "activation", "val_accuracy", "result.width", "seconds"]
    assert [row[1:] for row in rows] == [
        ["64", "relu", "0.91", "1", "1.25"],
        ["64", "tanh", "0.97", "1", "1.25"],
        ["512", "relu", "nan", "1", "1.25"],
        ["512", "tanh", "0.94", "1", "1.25"],
    ]


def test_experiments_are_counted(filled):
    code, out, said = filled("runs")
    assert code == 0
    title, head, *rows = lines(out)
    assert " ".join(title) == "runs.db: 1 pending, 0 running, 4 done, 1 failed"
    assert head == ["experiment", "pending", "running", "done", "failed", "seconds", "finished"]
    assert [row[:6] for row in rows] == [
        ["search", "0", "0", "4", "0", "5"],
        ["grid", "1", "0", "0", "1", "0"],
    ]
    with RunStore("runs.db") as store:
        last = max(run.finished for run in store.runs(experiment="search"))
    assert last.startswith(rows[0][6])
    assert said == "to list runs: nngp-paper runs runs.db --experiment search"


@pytest.mark.parametrize("words", ["--limit 9", "--sort seconds"])
def test_runs_of_several_experiments_have_the_columns_that_all_have(filled, words):
    _, out, said = filled(f"runs {words}")
    assert "out of memory" in out
    head = lines(out)[1]
    assert head == ["key", "experiment", "status", "seconds", "error"]
    assert said == "only what all of them have is shown; choose with --columns"


@pytest.mark.parametrize("name", ["grid", "finite"])
@pytest.mark.parametrize("words", ["", "--limit 3", "--experiment {first}"])
def test_the_committed_stores_fit_a_terminal(request, monkeypatch, capsys, name, words):
    packed = Path(__file__).parents[2] / "measured" / f"{name}.db.gz"
    monkeypatch.chdir(packed.parent)  # the name of a file is not broken
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as left:
        app(["runs", packed.name, *words.format(first=name).split()])
    out, said = capsys.readouterr()
    assert left.value.code == 0
    assert len(out.splitlines()) > 3
    assert max(map(len, [*out.splitlines(), *said.splitlines()])) <= 80
    assert words or "no room for" not in said


@pytest.mark.parametrize(
    ("words", "widths"),
    [
        ("--where width=512", [512, 512]),
        ("--where width=512 --where activation=relu", [512]),
        ("--where opt.rate=0.1 --sort val_accuracy", [64, 512, 64, 512]),
        ("--sort val_accuracy --limit 2", [64, 512]),
        ("--sort val_accuracy --ascending", [64, 512, 64, 512]),
        ("--sort config.width", [512, 512, 64, 64]),
        ("--sort activation --limit 1", [64]),
        ("--status done --limit 3", [64, 64, 512]),
    ],
)
def test_filters_and_order(filled, words, widths):
    code, out, _ = filled(f"runs runs.db --experiment search --json {words}")
    assert code == 0
    assert [row["config.width"] for row in json.loads(out)["runs"]] == widths


def test_best_first_and_nan_last(filled):
    for words, expected in (("", [0.97, 0.94, 0.91]), ("--ascending", [0.91, 0.94, 0.97])):
        _, out, _ = filled(f"runs --experiment search --sort val_accuracy --json {words}")
        found = [row["result.val_accuracy"] for row in json.loads(out)["runs"]]
        assert found == [*expected, "nan"]


def test_json_has_everything(filled):
    _, out, _ = filled("runs --json")
    told = json.loads(out)
    assert told["counts"] == {"pending": 1, "running": 0, "done": 4, "failed": 1}
    assert (told["store"], told["matched"], len(told["runs"])) == ("runs.db", 6, 6)
    assert told["runs"][5]["config.depth"] == "inf"
    assert told["runs"][4]["error"] == "out of memory"
    assert "result.curve" not in told["runs"][0]
    _, out, _ = filled("runs --json --lists --status done --limit 1")
    assert json.loads(out)["runs"][0]["result.curve"] == [1, 2]
    assert json.loads(out)["matched"] == 4
    _, out, _ = filled("runs --json --where depth=inf --columns status,depth --columns key")
    (row,) = json.loads(out)["runs"]
    assert list(row) == ["status", "config.depth", "key"]


def test_columns_as_asked(filled):
    _, out, said = filled("runs --experiment search --columns seconds,data --limit 2")
    assert lines(out)[1:] == [["seconds", "data"], ["1.25", "mnist"], ["1.25", "mnist"]]
    assert said == "2 of 4 runs; more with --limit"


def test_what_has_no_room_on_a_terminal_is_named(filled, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    _, out, said = filled("runs --experiment search")
    assert lines(out)[2] == ["key", "config.width", "activation"]  # after two lines of a title
    assert said.startswith("no room for val_accuracy, result.width, seconds; choose with --columns")


def test_long_listings_stop_at_twenty(run, tmp_path):
    with RunStore(tmp_path / "runs.db") as store:
        store.declare("e", [{"i": i, "text": "word " * i} for i in range(30)])
    _, out, said = run("runs")
    assert len(out.splitlines()) == 22
    assert said == "20 of 30 runs; more with --limit"
    assert "word word word word word word word wo..." in out


def test_export(filled):
    name = "out.csv"
    code, out, said = filled(f"runs --status done --sort val_accuracy --export {name}")
    assert (code, out, said) == (0, "", f"4 runs written to {name}")
    table = pl.read_csv(name)
    assert table["result.val_accuracy"].to_list()[:3] == [0.97, 0.94, 0.91]
    assert "result.curve" not in table.columns
    _, out, _ = filled(f"runs --export {name} --limit 2 --lists --json")
    assert json.loads(out)["export"] == name
    table = pl.read_csv(name)
    assert table["result.curve"].to_list() == ["[1, 2]"] * 2


def test_merge_and_retry(filled, tmp_path):
    with RunStore(tmp_path / "far.db") as far:
        (key,) = far.declare("grid", [{"depth": math.inf}])
        far.finish(key, {"val_accuracy": 0.5}, seconds=3)
    _, out, said = filled("runs --merge far.db --retry-failed --experiment search --json")
    assert said == "1 finished runs taken over from far.db 0 failed runs are pending again"
    _, out, said = filled("runs --retry-failed --where depth=3 --json")
    assert said == "1 failed runs are pending again"
    _, out, _ = filled("runs --json")
    assert json.loads(out)["counts"] == {"pending": 1, "running": 0, "done": 5, "failed": 0}


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("runs nothing.db", 3, "error: there is no store nothing.db; check the name"),
        ("runs --status finished", 2, "--status must be one of pending, running, done, failed"),
        ("runs --where width", 2, "--where must be name=value, got 'width'"),
        ("runs --where widht=3", 2, "no configuration has 'widht' (did you mean 'width'?)"),
        ("runs --experiment serach", 2, "no experiment is called 'serach' (did you mean 'search'"),
        ("runs --sort accuracy", 2, "there is no column 'accuracy' (did you mean 'val_accuracy'"),
        ("runs --columns key,sceonds", 2, "there is no column 'sceonds' (did you mean 'seconds'"),
        ("runs --sort width", 2, "'width' may be config.width or result.width; write it out"),
        ("runs --export out.xlsx", 2, "the name must end in .csv"),
        ("runs --export no/out.csv", 2, "the folder no does not exist"),
        ("runs --merge far.db", 3, "there is no store far.db"),
        ("runs --limit 0", 2, "--limit"),
        (
            "runs text.db",
            3,
            "text.db cannot be used (file is not a database); it is no store of runs",
        ),
    ],
)
def test_sentences(filled, tmp_path, words, code, sentence):
    (tmp_path / "text.db").write_text("hello\n" * 200)
    before = sorted(path.name for path in tmp_path.iterdir())
    left, out, said = filled(words)
    assert (left, out) == (code, "")
    assert sentence in said
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_the_store_is_not_written_over(filled, tmp_path):
    (tmp_path / "runs.db").rename(tmp_path / "runs.csv")
    code, _, said = filled("runs runs.csv --export runs.csv")
    assert (code, said) == (2, "error: the output runs.csv is the store; choose another name")


def test_nothing_matches(filled):
    code, out, said = filled("runs --where width=7 --sort val_accuracy")
    assert (code, said) == (0, "no run matches")
    assert out.startswith("runs.db: 0 pending")
