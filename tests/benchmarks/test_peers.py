"""The comparison with other libraries: what is measured, what a failing worker leaves behind, that
nothing is measured twice, and the tables. No other library is needed."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

ROOT = Path(__file__).parents[2]


@pytest.fixture
def small():
    from peers_plan import Measurement, network

    def make(library="nngp", what="kernel", **task):
        return Measurement(library, {"what": what, "net": network("relu", 3), **task})

    return make


def test_every_library_is_asked_for_inference_and_behaviour():
    from peers_plan import FULL, LIBRARIES, measurements

    found = measurements(FULL)
    assert len({m.key for m in found}) == len(found)
    for what in ("inference", "duplicates", "singular"):
        assert {m.library for m in found if m.task["what"] == what} == set(LIBRARIES)
    ten = [m for m in found if m.task.get("outputs") == 10 and m.library == "gpytorch"]
    assert max(m.task["n"] for m in ten) < max(FULL.inference)


def test_the_forecast_grows_with_n_and_depth_and_stays_below_twenty_minutes():
    from peers_plan import FULL, Measurement, forecast, measurements, network

    def seconds(depth, n):
        task = {"what": "kernel", "net": network("relu", depth), "n": n}
        return forecast(Measurement("neural-tangents", task), FULL)

    assert seconds(3, 500) < seconds(3, 5000) < seconds(50, 5000)
    assert sum(forecast(m, FULL) for m in measurements(FULL)) < 20 * 60


def test_what_is_recorded_is_not_measured_again(tmp_path, small):
    from peers_plan import QUICK
    from peers_run import Record, run

    path, calls = tmp_path / "peers.json", []

    def do(measurement):
        calls.append(measurement.library)
        return {"first": 2.0, "steady": 1.0, "peak_bytes": 2**20}

    first, second = small(n=5, seconds=0.0), small("scipy", n=5, seconds=0.0)
    run([first], Record(path), QUICK, do, {})
    run([first, second], Record(path), QUICK, do, {})
    assert calls == ["nngp", "scipy"]
    run([first, second], Record(path, fresh=True), QUICK, do, {"scipy": "no wheel"})
    assert calls == ["nngp", "scipy", "nngp"]
    content = json.loads(path.read_text())
    assert [r["library"] for r in content["results"]] == ["nngp"]
    assert content["skipped"] == {"scipy": "no wheel"}
    assert content["machine"]["cores"] >= 1


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("print('noise'); print('{\"steady\": 1.5}')", {"steady": 1.5}),
        ("raise SystemExit('no such layer')", {"failed": "no such layer"}),
        ("import time; time.sleep(60)", {"failed": "not done after 0.5 s"}),
        ("import os; os.kill(os.getpid(), 9)", {"failed": "killed"}),
    ],
)
def test_a_worker_that_fails_leaves_a_reason(program, expected):
    from peers_run import call

    limit = 0.5 if "sleep" in program else 60
    found = call([sys.executable, "-c", program], {"what": "kernel"}, limit)
    (name, value), *rest = expected.items()
    assert not rest
    assert str(found[name]).startswith(str(value))


def test_numbers_are_read_from_what_a_snippet_prints():
    from peers_run import read_numbers

    printed = "a warning\nrelu [0.5, -1e-3]\ndepth 10 [2]\n"
    assert read_numbers(printed) == {"relu": [0.5, -1e-3], "depth 10": [2]}


def test_every_snippet_belongs_to_a_library_with_pinned_versions():
    from peers_plan import LIBRARIES
    from peers_run import HERE, PROGRAMS, SNIPPETS, pinned

    assert {path.stem for path in (HERE / "snippets").glob("*.py")} == {*SNIPPETS, *PROGRAMS}
    for library in LIBRARIES:
        assert any(line.startswith("numpy==") for line in pinned(library))
        assert (HERE / "workers" / f"worker_{library.replace('-', '_')}.py").exists()


def test_exact_kernels_agree_with_the_library():
    from peers_exact import errors, exact
    from peers_plan import network

    import nngp

    angles = np.array([0.0, 1e-3, 0.7, 2.0])
    X = np.sqrt(2) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for name, depth in (("relu", 20), ("erf", 3)):
        right = exact(network(name, depth), X)
        K = nngp.kernel(nngp.Architecture(depth, name, 1.6, 0.1), X)
        found = errors(right, {"row": K[0], "deficits": 1 - K[0] / K[0, 0]})
        assert found["entry"] < 1e-13
        assert found["deficit"] < 1e-8
    wrong = errors(right, {"row": K[0] * 1.01, "deficits": 1 - K[0] / K[0, 0]})
    assert wrong["entry"] > 5e-3


def test_the_sum_for_tanh_agrees_with_the_library():
    import mpmath
    from peers_exact import tanh

    import nngp

    found = float(tanh(mpmath.mpf(1.7), mpmath.mpf(1.2)))
    assert_allclose(found, nngp.curves.layer_covariance("tanh", 1.7, 1.7, 1.2 / 1.7), rtol=1e-12)


def test_inputs_have_equal_norms_and_no_twins():
    from peers_inputs import images

    found = images()
    assert_allclose((found["X"] ** 2).mean(axis=1), 1, rtol=1e-12)
    assert len(np.unique(found["X"][:, :50], axis=0)) == len(found["X"])
    assert found["norms"].std() > 0.01


def test_words_on_behaviour(small):
    from peers_report import behaviour

    task = {"task": small(noise_var=0.0).task}
    raised = {"outcome": "error", "message": "LinAlgError: not positive definite", **task}
    assert behaviour(raised) == "raises LinAlgError"
    assert behaviour({"outcome": "NaN", "warnings": [], **task}) == "NaN, silent"
    climbed = {"outcome": "numbers", "error": 2e-9, "noise_used": 1e-10, **task}
    climbed["warnings"] = ["NoiseWarning: noise_var was raised"]
    assert behaviour(climbed) == "error 2e-09 with noise 1e-10, NoiseWarning"
    assert behaviour({"cannot": "no kernel of a network", **task}) == "–"


def test_tables_and_picture_of_a_small_record(tmp_path):
    import peers_report
    from peers_plan import QUICK, measurements

    found = []
    for m in measurements(QUICK):
        result = {"library": m.library, "task": m.task, "import": 0.5, "versions": {"x": "1"}}
        if m.task["what"] in ("kernel", "inference"):
            result |= {"first": 2.0, "steady": 1.25, "peak_bytes": 2**29}
        elif m.task["what"] != "accuracy":
            result |= {"outcome": "NaN", "warnings": []}
        found.append(result)
    machine = {"processor": "P", "cores": 2, "memory_gib": 8, "system": "S", "python": "3"}
    record = {"machine": machine, "command": "c", "date": "d", "results": found}
    text = peers_report.tables(record, {})
    assert "| one bare product X Xᵀ, n = 90 | 1.2 s (2.0 s) |" in text
    assert "| nngp, 10 outputs | 1.2 s (2.0 s), 0.50 GiB | 1.2 s (2.0 s), 0.50 GiB |" in text
    peers_report.draw(record, tmp_path / "peers.png")
    assert (tmp_path / "peers.png").stat().st_size > 5000


def test_the_readme_has_the_records_numbers():
    from peers_report import readme_times

    record = json.loads((ROOT / "benchmarks" / "results" / "peers.json").read_text())
    for page in ("README.md", "docs/index.md"):
        text = (ROOT / page).read_text("utf-8")
        for seconds in readme_times(record):
            assert f" {seconds} " in text.replace("**", " ").replace("\n", " "), (page, seconds)
