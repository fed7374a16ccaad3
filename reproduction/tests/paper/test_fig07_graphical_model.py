"""Figure 7: kernels spread as moments say; the graph is the chain of moments."""

import numpy as np
import pytest

from nngp.finite import requirements
from nngp_paper.part import Results
from nngp_paper.parts import fig07_graphical_model
from nngp_paper.runs import RunStore
from nngp_paper.runs.study import Outcome, Study, carry_out
from nngp_paper.scope import Scope

SCOPE = Scope("digits", (100,))
WIDTHS = [4, 16, 64, 256]
SLOPES = {1: 0.4, 2: 0.5, 3: 0.6}


def put(store, study, result):
    carry_out(store, Study(study.experiment, study.configs, lambda _: Outcome(result)))


def test_kernels_of_one_layer_spread_as_moments_say():
    pytest.importorskip("jax")
    (config,) = fig07_graphical_model.study(SCOPE).configs
    assert config["inputs"] == 3
    network = {"depth": 1, "weight_var": 1.6, "bias_var": 0.1}
    small = {"widths": [8, 32], "networks": 1500, "inputs": 1, "seed": 3}
    outcome = fig07_graphical_model.study(SCOPE).work({**config, **network, **small})
    result = outcome.result
    assert result["widths"] == [8, 32]
    q = 1.7  # of the units, whose relu² has the variance 5 q² / 4
    theory = 1.6 * q * np.sqrt(5 / 4 / np.array([8, 32])) / (0.1 + 0.8 * q)
    error, error_of_error = (
        np.array(result["error"])[:, 0],
        np.array(result["error_of_error"])[:, 0],
    )
    assert np.all(np.abs(error - theory) < 4 * error_of_error)
    assert np.all(error_of_error < 0.05 * theory)  # 1500 networks
    slope = np.log(error[1] / error[0]) / np.log(4)
    assert result["slope"] == pytest.approx([slope], abs=1e-6)
    relative = np.hypot(*(error_of_error / error)) / np.log(4)
    assert result["slope_error"] == pytest.approx([relative], rel=1e-5)
    assert outcome.device


def test_without_jax_the_spread_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(requirements, "find_spec", lambda name: None)
    with RunStore(tmp_path / "runs.db") as store:
        with pytest.raises(ImportError, match=r"need jax; install it with: pip install 'nngp\[fi"):
            carry_out(store, fig07_graphical_model.study(SCOPE))
        assert store.counts()["pending"] == 1


def put_spread(store):
    error = [[2.0 * layer / width ** SLOPES[layer] for layer in (1, 2, 3)] for width in WIDTHS]
    error_of_error = [[0.01 * value for value in row] for row in error]
    result = {"widths": WIDTHS, "error": error, "error_of_error": error_of_error}
    put(
        store,
        fig07_graphical_model.study(SCOPE),
        {**result, "slope": [-0.5] * 3, "slope_error": [0.01] * 3},
    )


def test_the_spread_is_read_with_its_slopes(store):
    put_spread(store)
    data = fig07_graphical_model.read(Results(store, SCOPE))
    assert (data.networks, data.decay.widths) == (2000, tuple(WIDTHS))
    assert (data.architecture.depth, data.architecture.weight_var) == (3, 1.6)
    np.testing.assert_allclose(data.decay.slope, [-0.4, -0.5, -0.6])
    np.testing.assert_allclose(data.decay.slope_error, 0.01 * np.sqrt(2) / np.log(4))
    np.testing.assert_allclose(data.decay.line(2), 4 / np.sqrt(WIDTHS))


@pytest.fixture
def picture(store, pyplot):
    put_spread(store)
    return fig07_graphical_model.draw(fig07_graphical_model.read(Results(store, SCOPE)))


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
