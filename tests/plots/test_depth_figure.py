"""Accuracy against depth: float64 loses it, the library does not."""

import pytest

from nngp.plots.depth import depth_study, digits, draw_depth


def test_depth_costs_accuracy_in_plain_arithmetic_only(tmp_path):
    study = depth_study(digits(400), depths=(3, 60, 400))
    assert study.plain[0] > 0.9
    assert study.plain[1:].max() < 0.3
    assert study.kept.min() > 0.9
    assert study.kept[-1] == pytest.approx(study.limit, abs=0.002)
    assert study.scale[-1] < 1e-100
    pytest.importorskip("matplotlib")
    draw_depth(study, tmp_path / "depth.png")
    assert (tmp_path / "depth.png").stat().st_size > 10_000
