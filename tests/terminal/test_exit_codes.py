"""Exit codes and messages: the same for the same fault in all commands, as
docs/guides/command-line.md has them, in the command's words, and no line wider than a terminal."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pl = pytest.importorskip("polars")
pytest.importorskip("typer")

import nngp  # noqa: E402
from nngp.terminal.app import COMMANDS  # noqa: E402
from nngp.terminal.output import in_command_words  # noqa: E402

DONE, USAGE, DATA, RESOURCES, INTERRUPTED = 0, 2, 3, 4, 130
FAULTS = {  # the exit code of a fault, and each command that can meet it
    "missing file": (
        DATA,
        [
            "fit no.csv -t y",
            "predict no.nngp good.csv",
            "predict good.nngp no.csv",
            "evaluate no.nngp good.csv",
            "evaluate good.nngp no.csv",
            "inspect no.nngp",
            "kernel no.csv",
        ],
    ),
    "a folder in place of a file": (
        DATA,
        [
            "fit folder.csv -t y",
            "predict folder.nngp good.csv",
            "evaluate folder.nngp good.csv",
            "inspect folder.nngp",
            "kernel folder.csv",
        ],
    ),
    "unreadable file": (
        DATA,
        [
            "fit broken.parquet -t y",
            "predict good.nngp broken.parquet",
            "evaluate good.nngp broken.parquet",
            "kernel broken.parquet",
        ],
    ),
    "damaged model": (
        DATA,
        ["predict cut.nngp good.csv", "evaluate cut.nngp good.csv", "inspect cut.nngp"],
    ),
    "unknown value": (
        USAGE,
        [
            "fit good.csv -t y --engine tpu",
            "fit good.csv -t y --solver lu",
            "fit good.csv -t y --selection cv",
            "fit good.csv -t y --activation rleu",
            "fit good.csv -t no",
            "predict good.nngp good.csv --engine tpu",
            "evaluate good.nngp good.csv --engine tpu",
            "kernel good.csv --activation rleu",
            "phase rleu",
        ],
    ),
    "output that cannot be written": (
        USAGE,
        [
            "fit good.csv -t y -o no/model.nngp",
            "fit good.csv -t y -o /proc/model.nngp",
            "fit good.csv -t y -o folder.csv",
            "predict good.nngp good.csv -o no/out.csv",
            "predict good.nngp good.csv -o /proc/out.csv",
            "kernel good.csv -o no/K.npy",
            "kernel good.csv -o /proc/K.npy",
            "phase -o no/phase.svg",
            "phase -o /proc/phase.svg",
            "demo --folder /proc/demo",
            "demo --folder good.csv",
        ],
    ),
    "no GPU": (
        RESOURCES,
        [
            "fit good.csv -t y --engine gpu",
            "predict good.nngp good.csv --engine gpu",
            "evaluate good.nngp good.csv --engine gpu",
        ],
    ),
}
WORK = {  # a function that every command calls, to fail in
    "fit": ("nngp.terminal.fit.read_table", "fit good.csv -t y"),
    "predict": ("nngp.terminal.predict.read_model", "predict good.nngp good.csv"),
    "evaluate": ("nngp.terminal.predict.read_model", "evaluate good.nngp good.csv"),
    "plot": ("nngp.terminal.predict.read_model", "plot good.nngp good.csv"),
    "inspect": ("nngp.terminal.predict.read_model", "inspect good.nngp"),
    "kernel": ("nngp.terminal.networks.read_table", "kernel good.csv"),
    "phase": ("nngp.terminal.networks.phases", "phase"),
    "demo": ("nngp.terminal.demo.train_test_split", "demo"),
}
FAILURES = {
    "interrupted": (KeyboardInterrupt(), INTERRUPTED),
    "out of memory": (MemoryError(), RESOURCES),
    "missing package": (ImportError("install it with: pip install 'nngp[plots]'"), RESOURCES),
    "unreadable": (PermissionError(13, "Permission denied"), DATA),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Files, good and bad."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=30)
    table = pl.DataFrame({"a_column_with_a_long_name": X[:, 0], "b": X[:, 1], "y": y})
    table.write_csv(folder / "good.csv")
    (folder / "broken.parquet").write_text("hello")
    for name in ("folder.csv", "folder.nngp"):
        (folder / name).mkdir()
    before = os.getcwd()
    try:
        os.chdir(folder)
        with pytest.raises(SystemExit):
            call("fit good.csv -t y --budget 3 -o good.nngp")
    finally:
        os.chdir(before)
    whole = (folder / "good.nngp").read_bytes()
    (folder / "cut.nngp").write_bytes(whole[: len(whole) // 2])
    return folder


def call(words):
    from nngp.terminal.app import app

    app(words.split())


@pytest.fixture
def said(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "80")

    def words_to_output(words):
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            call(words)
        return left.value.code or 0, *capsys.readouterr()

    return words_to_output


@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_has_one_code(said, fault):
    if fault == "no GPU":
        jax = pytest.importorskip("jax")
        if any(device.platform == "gpu" for device in jax.devices()):
            pytest.skip("this machine has a GPU")
    expected, calls = FAULTS[fault]
    for words in calls:
        if "/proc" in words and not Path("/proc").is_dir():
            continue
        code, out, err = said(words)
        assert code == expected, words
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
def test_failures_on_the_way(said, monkeypatch, failure):
    error, expected = FAILURES[failure]

    def fail(*arguments, **more):
        raise error

    for command in COMMANDS:
        place, words = WORK[command]
        monkeypatch.setattr(place, fail)
        code, out, err = said(words)
        assert code == expected, command
        check_message(out, err)


def test_a_missing_package_of_the_command_itself(monkeypatch, capsys):
    from nngp.terminal import main

    monkeypatch.setitem(sys.modules, "nngp.terminal.app", None)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == RESOURCES
    assert "pip install 'nngp[cli]'" in capsys.readouterr().err


RESULTS = [
    "fit good.csv -t y --budget 3 -o other.nngp",
    "evaluate good.nngp good.csv",
    "inspect good.nngp",
    "kernel good.csv -o K.csv",
    "phase relu -o phase.svg",
    *(f"{name} --help" for name in COMMANDS),
    "--help",
]


def test_results_fit_the_terminal(said, monkeypatch):
    monkeypatch.setattr("nngp.plots.phases.GRID", (12, 9))  # quick to compute
    for words in RESULTS:
        code, out, err = said(words)
        assert code == DONE, words
        assert out
        assert max(map(len, [*out.splitlines(), *err.splitlines()])) <= 80


def test_json_is_one_line(said):
    for words in ("inspect good.nngp --json", "evaluate good.nngp good.csv --json"):
        _, out, _ = said(words)
        assert len(out.splitlines()) == 1
        json.loads(out)


def test_words_of_the_command():
    for python, ours in {
        "use solver='cg' or engine='cpu'": "use --solver cg or --engine cpu",
        "noise_var must be >= 0, got None": "--noise-var must be >= 0, got None",
        "depth must be a whole number": "--depth must be a whole number",
        "at this depth the engine": "at this depth the engine",
        "set weight_var and bias_var": "set --weight-var and --bias-var",
    }.items():
        assert in_command_words(python) == ours


@pytest.mark.parametrize(
    "package",
    ["scipy", *(pytest.param(name, marks=pytest.mark.slow) for name in ("typer", "polars"))],
)
def test_an_interruption_of_any_import_is_one_sentence(tmp_path, package):
    """Also where an import turns it into another error: a package that interrupts its process."""
    stand_in = "import os, signal\ntry:\n    {}\nexcept BaseException:\n    raise ImportError"
    kill = "os.kill(os.getpid(), signal.SIGINT)"
    (tmp_path / f"{package}.py").write_text(stand_in.format(kill))
    (tmp_path / "t.csv").write_text("x,y\n1,2\n2,3\n")
    paths = os.pathsep.join([str(tmp_path), str(Path(nngp.__file__).parents[1])])
    command = [sys.executable, "-m", "nngp", "fit", "t.csv", "-t", "y"]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths}, cwd=tmp_path, capture_output=True
    )
    sentence = b"error: interrupted; nothing was written\n"
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, b"", sentence)


def test_a_seed_that_is_none_is_wrong_usage(run):
    for seed in (-1, 2**32):
        Path("t.csv").write_text("x,y\n1,2\n2,3\n3,5\n")
        code, _, said = run(f"fit t.csv -t y --seed {seed}")
        assert (code, f"--seed must be from 0 to 2**32 - 1, got {seed}" in said) == (USAGE, True)


def test_a_wrong_encoding_is_said_to_be_wrong(run):
    for encoding in ("utf-16", "utf-16-be", "utf-32", "cp500"):
        Path("t.csv").write_text("x,y\n1,2\n2,3\n3,5\n")
        code, _, said = run(f"fit t.csv -t y --encoding {encoding}")
        assert (code, f"t.csv is not text in {encoding.upper()}" in said) == (DATA, True)
