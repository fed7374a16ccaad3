"""The figure of networks that become a Gaussian process: its panels show the study's numbers, and
its words can be read."""

import numpy as np
import pytest

import nngp
from nngp import plots
from nngp.finite.width_convergence import convergence, three_inputs
from nngp.plots.width_convergence import draw_convergence

pytest.importorskip("jax")

NET = nngp.Architecture(2, "relu", 2.0, 0.0)
X = 3.0 * three_inputs()[:2]
WIDTHS, COUNT = (8, 32, 128), 1000


@pytest.fixture(scope="module")
def study():
    return convergence(NET, X, WIDTHS, COUNT, seed=1)


@pytest.fixture(scope="module")
def figure(study):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    yield draw_convergence(study)
    pyplot.close("all")


@pytest.mark.slow
def test_the_function_draws_the_study(study):
    figure = plots.convergence(NET, X=X, widths=WIDTHS, n_networks=COUNT, seed=1)
    check_panels(figure, study)


@pytest.mark.slow
def test_the_picture_shows_the_study(figure, study):
    check_panels(figure, study)


def check_panels(figure, study):
    *strips, error, quantiles, kurtosis, statistic = figure.axes
    for layer, axes in enumerate(strips):
        np.testing.assert_allclose(axes.lines[0].get_ydata(), study.mean[:, layer, 0, 1])
        assert axes.lines[1].get_ydata()[0] == study.exact[layer, 0, 1]
    words = [text.get_text().replace("−", "-") for text in error.get_legend().get_texts()]
    assert [float(word.split()[3]) for word in words] == pytest.approx(list(study.slope), abs=6e-4)
    np.testing.assert_allclose(error.lines[2].get_ydata(), study.error[:, 1])
    fitted = error.lines[3].get_ydata()
    np.testing.assert_allclose(fitted[-2:], study.error[-2:, 1])  # two points, one line
    assert [text.get_text() for text in quantiles.get_legend().get_texts()] == [
        f"width {width}" for width in WIDTHS
    ]
    middle = quantiles.lines[1].get_ydata()
    assert middle[len(middle) // 2] == pytest.approx(np.median(study.outputs[0]))
    np.testing.assert_allclose(kurtosis.lines[0].get_ydata(), study.expected_kurtosis)
    np.testing.assert_allclose(kurtosis.lines[1].get_ydata(), study.kurtosis)
    np.testing.assert_allclose(statistic.lines[0].get_ydata(), study.statistic)
    assert statistic.patches[0].get_extents().y1 == pytest.approx(
        statistic.transData.transform((1, 5.991))[1], abs=0.5
    )


@pytest.mark.slow
def test_no_word_is_cut_off_or_too_small(figure):
    """Sizes as printed across a page, 6.3 inches wide."""
    import matplotlib.text

    figure.canvas.draw()
    box = figure.get_tightbbox()
    assert min(box.x0, box.y0) >= 0
    assert box.x1 <= figure.get_figwidth()
    assert box.y1 <= figure.get_figheight()
    words = [text for text in figure.findobj(matplotlib.text.Text) if text.get_text()]
    assert min(text.get_fontsize() for text in words) * 6.3 / figure.get_figwidth() >= 7


@pytest.mark.slow
def test_the_picture_is_written(study, tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("a.png", "a.svg"):
        draw_convergence(study, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 10_000
