"""Forecasts of `nngp fit`: memory is said before it starts."""

import numpy as np
import pytest

pl = pytest.importorskip("polars")
pytest.importorskip("typer")

import nngp  # noqa: E402
from nngp.terminal import estimator_options as forecast  # noqa: E402

FIT = "fit train.csv -t y --budget 3"


@pytest.fixture
def table(run):
    rng = np.random.default_rng(0)
    pl.DataFrame({"x": rng.normal(size=40), "y": rng.normal(size=40)}).write_csv("train.csv")
    return run


def test_a_small_fit_says_nothing(table):
    assert "this will take" not in table(FIT)[2]


def test_a_large_fit_says_how_much_memory_it_takes(table, monkeypatch):
    monkeypatch.setattr(forecast, "SHOW_MEMORY_FROM", 0.0)
    code, _, said = table(FIT)
    assert code == 0
    assert "this will take 0.067 GB of memory" in said


def test_too_little_memory_for_anything(table, monkeypatch):
    for solver in ("cholesky", "cg", "auto"):
        monkeypatch.setattr("nngp._machine.available_memory", lambda: 10_000_000)
        code, _, said = table(f"{FIT} --solver {solver}")
        assert code == 4
        assert "40 rows need 0.067 GB of memory and 0.01 GB are free; free some memory" in said


def test_too_little_memory_is_said_with_what_would_fit(run, monkeypatch):
    monkeypatch.setattr("nngp._machine.available_memory", lambda: 150_000_000)
    rng = np.random.default_rng(0)
    pl.DataFrame({"x": rng.normal(size=6000), "y": rng.normal(size=6000)}).write_csv("train.csv")
    code, _, said = run(f"{FIT} --solver cholesky")
    assert code == 4
    assert "are free; use --solver cg, which needs less, or take at most" in said
    most = int(said.split("at most ")[1].split(" rows")[0].replace(",", ""))
    assert nngp.forecast(most, 1, engine="cpu").fits
    assert not nngp.forecast(most + 1, 1, engine="cpu").fits


def test_lines_of_progress_where_they_are_asked_for(table):
    assert "%" not in table(FIT)[2]
    said = table(f"{FIT} --progress")[2]
    assert "choose the network: 0%" in said
    assert "100%, done" in said
