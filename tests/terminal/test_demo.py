"""The demo runs, prints its scores and leaves its pictures."""

import re

import pytest


@pytest.mark.slow
def test_demo(tmp_path, capfd):
    pytest.importorskip("typer")
    from nngp.terminal import demo
    from nngp.terminal.options import DemoOptions

    demo.demo(DemoOptions(folder=tmp_path))
    printed = capfd.readouterr().out
    assert "$ nngp fit" in printed
    (accuracy,) = re.findall(r"accuracy on 899 held-out images: (0\.\d+)", printed)
    assert float(accuracy) > 0.97
    ours, softmax = map(float, re.findall(r"calibration error, .*: (0\.\d+)", printed))
    assert ours < 0.03 < softmax
    for name in ("intervals", "reliability"):
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) > 200
