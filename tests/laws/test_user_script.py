"""A user's script under mypy: predictions and loaded models have types, misspelt names are errors;
and `help(nngp)` and signatures can be read."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = """\
import numpy as np
import nngp

X = np.zeros((5, 2))
model = nngp.NNGPRegressor().fit(X, X[:, 0])
reveal_type(model.predict(X))
reveal_type(model.predict(X, return_std=True))
reveal_type(nngp.load("model.nngp"))
nngp.NNGPRegresor
nngp.plots.interval
nngp.finite.FiniteNetwrk
"""
NUMBER = r"(numpy\.)?(floating\[_64Bit\]|float64)"
ARRAY = rf"(numpy\.)?ndarray\[tuple\[Any, \.\.\.\], (numpy\.)?dtype\[{NUMBER}\]\]"


@pytest.mark.slow
def test_a_script_under_mypy(tmp_path):
    api = pytest.importorskip("mypy.api")
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    config = ["--config-file", str(ROOT / "pyproject.toml"), "--python-version", "3.12"]
    out, err, _ = api.run([*config, "--cache-dir", str(tmp_path / "cache"), str(path)])
    said = [line.split("script.py:", 1)[1] for line in out.splitlines() if "script.py:" in line]
    assert err == ""
    assert re.match(rf'6: note: Revealed type is "{ARRAY}"', said[0]), said
    assert re.match(rf'7: note: Revealed type is "tuple\[{ARRAY}, {ARRAY}\]"', said[1]), said
    assert "NNGPRegressor | " in said[2]
    assert "Any" not in said[2]
    assert [line.split(":")[0] for line in said[3:]] == ["9", "10", "11"]
    assert all("error: Module has no attribute" in line for line in said[3:])
