"""Figures 5, 6 and 7 from a store filled by hand."""

import numpy as np
import pytest

from nngp.errors import NothingMeasuredError
from nngp.paper.readings.angular import angular
from nngp.paper.readings.finished import finished
from nngp.paper.readings.prior import prior
from nngp.paper.readings.spread import spread
from nngp.paper.scope import Scope
from nngp.paper.studies.angular import angular_study
from nngp.paper.studies.prior import prior_study
from nngp.paper.studies.spread import spread_study
from nngp.runs import RunStore
from nngp.runs.study import Outcome, Study, carry_out

SCOPE = Scope("digits", (100,))
WIDTHS = [4, 16, 64, 256]
SLOPES = {1: 0.4, 2: 0.5, 3: 0.6}


@pytest.fixture
def store(tmp_path):
    with RunStore(tmp_path / "runs.db") as store:
        yield store


def put(store, study, result):
    carry_out(store, Study(study.experiment, study.configs, lambda _: Outcome(result)))


def put_prior(store):
    x = np.linspace(-2, 2, 9)
    values = [(slope * x).tolist() for slope in range(12)]
    put(store, prior_study(SCOPE), {"x": x.tolist(), "values": values})


def put_spread(store):
    error = [[2.0 * layer / width ** SLOPES[layer] for layer in (1, 2, 3)] for width in WIDTHS]
    doubt = [[0.01 * value for value in row] for row in error]
    result = {"widths": WIDTHS, "error": error, "error_of_error": doubt}
    put(store, spread_study(SCOPE), {**result, "slope": [-0.5] * 3, "slope_error": [0.01] * 3})


@pytest.fixture
def pyplot():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    yield pyplot
    pyplot.close("all")


@pytest.mark.parametrize("read", [prior, angular, spread])
def test_where_nothing_is_finished_a_sentence_says_so(store, read):
    with pytest.raises(NothingMeasuredError, match=f"no finished run of '{read.__name__}'"):
        read(store, SCOPE)


def test_finished_runs_come_in_the_order_of_the_study(store):
    def work(config):
        if config["x"] == 2:
            raise ArithmeticError("two fails")
        return Outcome({"y": config["x"]})

    carry_out(store, Study("some", [{"x": x} for x in (3, 1, 2)], work))
    store.declare("some", [{"x": 5}])
    carry_out(store, Study("other", [{"x": 4}], work))
    asked = Study("some", [{"x": x} for x in range(6)], work)
    assert [run.result for run in finished(store, asked)] == [{"y": 1}, {"y": 3}]
    with pytest.raises(NothingMeasuredError, match="no finished run of 'some' with these options"):
        finished(store, Study("some", [{"x": 0}, {"x": 2}, {"x": 5}], work))


def test_draws_are_read_and_drawn(store, pyplot, tmp_path):
    from nngp.paper.figures.prior import draw_prior

    put_prior(store)
    data = prior(store, SCOPE)
    assert (data.architecture.depth, data.architecture.weight_var) == (10, 1.8)
    assert (data.x[0], data.values.shape) == (-2.0, (12, 9))
    (axes,) = draw_prior(data).axes
    assert len(axes.lines) == 12
    for slope, line in enumerate(axes.lines):
        np.testing.assert_allclose(line.get_xdata(), data.x)
        np.testing.assert_allclose(line.get_ydata(), slope * data.x)
    looks = {(line.get_color(), line.get_linestyle()) for line in axes.lines}
    assert len(looks) == 12
    assert axes.get_title() == "12 draws: relu, depth 10, weight_var 1.8, bias_var 0.01"
    for name in ("a.png", "a.svg"):
        draw_prior(data, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 10_000


def test_angular_structure_is_read_and_drawn(store, pyplot):
    from nngp.plots.angular_figure import draw_angular_structure

    curves = {
        "theta": [0.0, 1.0, 3.0],
        "exact": [[3.0, 2.0, 1.0], [2.5, 2.0, 1.5]],
        "sparse_theta": [0.0, 3.0],
        "lookup": [[3.1, 1.1], [2.6, 1.6]],
    }
    put(store, angular_study(SCOPE), curves)
    data = angular(store, SCOPE)
    assert data.architecture.activation.name == "relu"
    assert (data.architecture.depth, data.architecture.bias_var) == (9, 0.1)
    for name, values in curves.items():
        np.testing.assert_array_equal(getattr(data, name), values)
    (axes,) = draw_angular_structure(data).axes
    np.testing.assert_array_equal(axes.lines[3].get_ydata(), [2.6, 1.6])


def test_the_spread_is_read_with_its_slopes(store):
    put_spread(store)
    data = spread(store, SCOPE)
    assert (data.networks, data.decay.widths) == (2000, tuple(WIDTHS))
    assert (data.architecture.depth, data.architecture.weight_var) == (3, 1.6)
    np.testing.assert_allclose(data.decay.slope, [-0.4, -0.5, -0.6])
    np.testing.assert_allclose(data.decay.slope_error, 0.01 * np.sqrt(2) / np.log(4))
    np.testing.assert_allclose(data.decay.line(2), 4 / np.sqrt(WIDTHS))


@pytest.fixture
def picture(store, pyplot):
    from nngp.paper.figures.spread import draw_spread

    put_spread(store)
    return draw_spread(spread(store, SCOPE))


def test_the_chain_goes_from_the_inputs_to_the_output(picture):
    """Each arrow goes from the rim of one node to that of another, or to the dots between."""
    from matplotlib.patches import Circle, FancyArrowPatch

    picture.canvas.draw()
    graph = picture.axes[0]
    words = {text.get_position(): text.get_text().strip("$") for text in graph.texts}
    rims: dict[tuple[float, float], float] = {}
    for patch in graph.patches:
        if isinstance(patch, Circle):
            rims[patch.center] = max(patch.radius, rims.get(patch.center, 0.0))

    def node_at(point):
        for center, radius in rims.items():
            if np.hypot(*np.subtract(center, point)) == pytest.approx(radius, abs=0.08):
                return words[center].replace("{-}", "-")
        return "..."

    chain = []
    for patch in graph.patches:
        if isinstance(patch, FancyArrowPatch):
            start, _, tip = patch.get_path().vertices[:3]
            chain.append(f"{node_at(start)} > {node_at(tip)}")
    assert sorted(chain) == sorted(
        [
            "x > K^0",
            "K^0 > z^0",
            "z^0 > K^1",
            "K^1 > z^1",
            "z^1 > ...",
            "... > K^{L-1}",
            "K^{L-1} > z^{L-1}",
            "z^{L-1} > K^L",
            "K^L > z^L",
        ]
    )


def test_every_layer_has_a_plate_with_its_number_of_units(picture):
    from matplotlib.patches import FancyBboxPatch

    graph = picture.axes[0]
    at = {text.get_text(): text.get_position() for text in graph.texts}
    plates = [patch for patch in graph.patches if isinstance(patch, FancyBboxPatch)]
    pairs = (("$N_1$", "$z^0$"), ("$N_2$", "$z^1$"), (r"$d_{\rm out}$", "$z^L$"))
    for pair in (*pairs, ("$N_L$", "$z^{L{-}1}$")):
        around = [
            plate
            for plate in plates
            if all(
                plate.get_x() < at[name][0] < plate.get_x() + plate.get_width()
                and plate.get_y() < at[name][1] < plate.get_y() + plate.get_height()
                for name in pair
            )
        ]
        assert len(around) == 1
    assert len(plates) == 4
    assert sum("=" in words for words in at) == 3  # equations


def test_the_measured_spread_is_beside_it(picture, tmp_path):
    measured = picture.axes[1]
    np.testing.assert_allclose(measured.lines[2].get_ydata(), 4 / np.sqrt(WIDTHS))
    guide = measured.lines[-1]
    x, y = (np.asarray(values, dtype=float) for values in guide.get_data())
    assert np.log(y[1] / y[0]) / np.log(x[1] / x[0]) == pytest.approx(-0.5)
    words = [text.get_text() for text in measured.get_legend().get_texts()]
    assert words[0] == "layer 1: slope −0.400 ± 0.010"
    assert "2000 networks of each width" in picture.get_suptitle()
    for name in ("a.png", "a.svg"):
        picture.savefig(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 10_000


def test_no_word_is_cut_off_too_small_or_wider_than_its_node(picture):
    from matplotlib.patches import Circle
    from matplotlib.text import Text

    picture.canvas.draw()
    box = picture.get_tightbbox()
    assert min(box.x0, box.y0) >= 0
    assert box.x1 <= picture.get_figwidth() <= 7.2
    assert box.y1 <= picture.get_figheight()
    assert min(t.get_fontsize() for t in picture.findobj(Text) if t.get_text()) >= 8
    graph = picture.axes[0]
    words = {text.get_position(): text for text in graph.texts}
    for patch in graph.patches:
        if isinstance(patch, Circle):
            inside, around = words[patch.center].get_window_extent(), patch.get_window_extent()
            assert inside.width < around.width
