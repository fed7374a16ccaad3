"""Exit codes and messages: the same for the same fault in all commands, and the same as those of
the command `nngp`, in the command's words, and no line wider than a terminal."""

import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from nngp_paper.runs import RunStore
from nngp_paper.terminal.app import COMMANDS
from nngp_paper.terminal.words import in_command_words

DONE, USAGE, DATA, RESOURCES, INTERRUPTED = 0, 2, 3, 4, 130
FINITE = "--trials 1 --width 4 --steps 10 --train 20"
FAULTS = {  # the exit code of a fault, and each command that can meet it
    "missing file": (DATA, ["runs no.db", "report no.db"]),
    "a folder in place of a file": (DATA, ["runs folder.db", "report folder.db"]),
    "damaged store": (
        DATA,
        [
            "runs damaged.db",
            "report damaged.db",
            f"finite --store damaged.db {FINITE}",
            f"gap --store damaged.db {FINITE}",
            "reproduce fig7 --store damaged.db",
        ],
    ),
    "unknown value": (
        USAGE,
        [
            "runs runs.db --status lost",
            "finite --activation rleu",
            "finite --engine tpu",
            "gap --activation rleu",
            "reproduce fig7 --engine tpu",
            "reproduce fig77",
            "reproduce fig7 --dataset mnits",
            "datasets --unknown",
        ],
    ),
    "output that cannot be written": (
        USAGE,
        [
            "runs runs.db --export no/runs.csv",
            "runs runs.db --export /proc/runs.csv",
            f"finite -o no/finite.png {FINITE}",
            f"finite -o /proc/finite.png {FINITE}",
            f"gap -o /proc/gap.png {FINITE}",
            "reproduce fig7 -o /proc/reproduced",
            "report runs.db -o no/report.html",
            "report runs.db -o /proc/report.html",
        ],
    ),
    "no GPU": (RESOURCES, ["finite --engine gpu", "reproduce fig7 --engine gpu"]),
}
CASES = [(fault, words) for fault, (_, calls) in FAULTS.items() for words in calls]
WORK = {  # a function that every command calls, to fail in
    "runs": ("nngp_paper.terminal.runs.unpacked", "runs runs.db"),
    "finite": ("nngp_paper.terminal.finite.split", "finite"),
    "gap": ("nngp_paper.terminal.finite.split", "gap"),
    "reproduce": ("nngp_paper.terminal.reproduce.RunStore", "reproduce fig7"),
    "report": ("nngp_paper.terminal.report.merged", "report runs.db"),
    "datasets": ("nngp_paper.terminal.datasets.where", "datasets"),
}
FAILURES = {
    "interrupted": (KeyboardInterrupt(), INTERRUPTED),
    "out of memory": (MemoryError(), RESOURCES),
    "missing package": (ImportError("install it with: pip install 'nngp[plots]'"), RESOURCES),
    "unreadable": (PermissionError(13, "Permission denied"), DATA),
    "of the database": (sqlite3.DatabaseError("file is not a database"), DATA),
}
RESULTS = [
    "runs runs.db",
    "runs runs.db --columns width,a_result_1,a_result_2,a_result_3,a_long_name_of_a_setting",
    "datasets",
    *(f"{name} --help" for name in COMMANDS),
    "--help",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Stores, good and bad."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "damaged.db").write_bytes(b"SQLite format 3\0" + b"x" * 4000)
    (folder / "folder.db").mkdir()
    with RunStore(folder / "runs.db") as store:
        configs = [{"width": w, "a_long_name_of_a_setting": "text " * 9} for w in (1, 2)]
        for key in store.declare("e", configs):
            store.claim([key])
            store.finish(key, {f"a_result_{i}": i / 7 for i in range(9)}, seconds=1.0)
    return folder


@pytest.fixture
def said(place, monkeypatch, capsys):
    from nngp_paper.terminal.app import app

    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "80")

    def words_to_output(words):
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            app(words.split())
        return left.value.code or 0, *capsys.readouterr()

    return words_to_output


@pytest.mark.parametrize(("fault", "words"), CASES)
def test_one_fault_has_one_code(said, fault, words):
    if "/proc" in words and not Path("/proc").is_dir():
        pytest.skip("there is no /proc")
    if fault == "no GPU":
        jax = pytest.importorskip("jax")
        if any(device.platform == "gpu" for device in jax.devices()):
            pytest.skip("this machine has a GPU")
    code, out, err = said(words)
    assert code == FAULTS[fault][0]
    check_message(out, err)


def check_message(out, err):
    """One sentence in the command's words, in lines that fit, and no result."""
    text = re.sub(r"[│╭╮╰╯─]", " ", err)
    assert out == ""
    assert "Traceback" not in err
    assert "error" in text.lower()
    assert not re.search(r"\b\w+_(var|scaling)\b|=None|='|String|Float64|NoneType|Errno", text)
    assert max(map(len, err.splitlines())) <= 80


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("command", COMMANDS)
def test_failures_on_the_way(said, monkeypatch, command, failure):
    error, expected = FAILURES[failure]
    place, words = WORK[command]

    def fail(*arguments, **more):
        raise error

    monkeypatch.setattr(place, fail)
    if command == "datasets" and isinstance(error, OSError):
        pytest.skip("a set that cannot be read is one of its results")
    code, out, err = said(words)
    assert code == expected
    check_message(out, err)


@pytest.mark.parametrize("words", RESULTS)
def test_results_fit_the_terminal(said, words):
    code, out, err = said(words)
    assert code == DONE
    assert out
    assert max(map(len, [*out.splitlines(), *err.splitlines()])) <= 80


def test_tables_that_are_too_wide_go_on_below(monkeypatch, capsys):
    from nngp_paper.terminal.output import print_rows

    names = [f"a_column_{i}" for i in range(12)]
    rows = [{name: 10.0**i for i, name in enumerate(names)} for _ in range(3)]
    for columns, blocks in (("60", 3), ("", 1)):
        monkeypatch.setenv("COLUMNS", columns)
        print_rows("a title", rows, names, 3)
        title, *lines = capsys.readouterr().out.splitlines()
        assert title == "a title"
        assert len(lines) == 4 * blocks
        assert columns == "" or max(map(len, lines)) <= 60
        assert " ".join(lines).split().count("1e+11") == 3
        assert [head for line in lines[::4] for head in line.split()] == names


def test_words_of_the_command():
    for python, ours in {
        "use engine='cpu'": "use --engine cpu",
        "depth must be a whole number": "--depth must be a whole number",
        "at this depth the engine": "at this depth the engine",
    }.items():
        assert in_command_words(python) == ours


WRONG = {
    "reproduce": "missing argument",
    "nope": "no such command 'nope'",
    "report --nope": "no such option: --nope",
    "runs --limit 0": "invalid value for '--limit'",
}


@pytest.mark.parametrize("words", WRONG)
def test_a_wrong_command_line_gives_one_sentence(run, words):
    code, out, said = run(words)
    assert (code, out) == (2, "")
    assert said.startswith("error: ")
    assert WRONG[words] in said
    assert said.endswith("--help")
    assert "│" not in said


def test_a_reader_that_has_seen_enough_is_no_error():
    words = [sys.executable, "-u", "-m", "nngp_paper", "datasets", "--json"]
    told = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    told.stdout.close()
    said = told.stderr.read()
    told.stderr.close()
    assert (told.wait(), said) == (0, "")


def test_without_a_command_there_is_help(run):
    code, out, said = run("")
    assert (code, said) == (2, "")
    assert "reproduce" in out
