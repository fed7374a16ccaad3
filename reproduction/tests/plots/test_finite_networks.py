"""Accuracy against width and the generalisation gap, from a store that is filled by hand, and the
learning curve of a network."""

from dataclasses import replace

import pytest
from clouds import three_clouds

from nngp.architecture import Architecture
from nngp_paper import plots
from nngp_paper.finite.gap import gaps
from nngp_paper.finite.recipe import Plan, Recipe
from nngp_paper.finite.width_comparison import widths
from nngp_paper.plots.finite_networks import draw_gaps, draw_widths
from nngp_paper.runs import RunStore

PLAN = Plan()
DATA = {"dataset": "clouds", "train": 60, "validation": 60, "test": 60}
SHARED = {**DATA, "activation": "relu", **PLAN.as_dict()}


def put(store, experiment, config, result):
    (key,) = store.declare(experiment, [config])
    store.claim([key])
    store.finish(key, result, seconds=1.0)


def trial(width, number, val, test, depth=2, **more):
    config = {**SHARED, "depth": depth, "width": width, "trial": number, **more}
    result = {"val_accuracy": val, "val_mse": 0.1, "test_accuracy": test, "test_mse": 1 - test}
    return config, result


@pytest.fixture
def store(tmp_path):
    with RunStore(tmp_path / "runs.db") as store:
        for run in (
            trial(8, 0, 0.7, 0.9),  # better on test, but not chosen
            trial(8, 1, 0.8, 0.75),
            trial(8, 2, 0.3, 0.1),
            trial(64, 0, 0.9, 0.85),
            trial(64, 1, 0.9, 0.86),
            trial(64, 0, 0.99, 0.99, depth=3),
        ):
            put(store, "finite", *run)
        for test, accuracy in ((60, 0.88), (50, 0.11)):
            level = {**DATA, "activation": "relu", "test": test, "depth": 2}
            put(store, "infinite", level, {"test_accuracy": accuracy, "test_mse": 1 - accuracy})
        yield store


def test_the_best_by_validation_of_every_width(store):
    data = widths(store, "clouds", 60, "relu", depths=[2])
    (curve,) = data.curves
    assert [found.cell.width for found in curve.found] == [8, 64]
    assert [found.result["test_accuracy"] for found in curve.found] == [0.75, 0.85]
    assert data.trials == 2
    assert sorted(curve.trials) == [(8, 0.1), (8, 0.75), (8, 0.9), (64, 0.85), (64, 0.86)]
    assert curve.infinite.result["test_accuracy"] == 0.88
    assert [c.depth for c in widths(store, "clouds", 60, "relu").curves] == [2, 3]
    with pytest.raises(ValueError, match="no finished trials of tanh networks on clouds with 60"):
        widths(store, "clouds", 60, "tanh")


def test_of_a_trial_the_longest_training_counts(store):
    put(store, "finite", *trial(64, 0, 0.99, 0.99, steps=200))
    both = widths(store, "clouds", 60, "relu", depths=[2])
    assert both.curves[0].found[-1].result["test_accuracy"] == 0.85
    assert sorted(both.curves[0].trials)[-2:] == [(64, 0.85), (64, 0.86)]
    chosen = widths(store, "clouds", 60, "relu", plan=Plan(steps=200))
    assert [found.trials for found in chosen.curves[0].found] == [1]


def test_losses_are_not_mixed(store):
    put(store, "finite", *trial(64, 0, 0.99, 0.99, loss="cross_entropy"))
    with pytest.raises(ValueError, match=r"the runs differ \(loss cross_entropy and mse\)"):
        widths(store, "clouds", 60, "relu", depths=[2])
    chosen = widths(store, "clouds", 60, "relu", depths=[2], plan=PLAN)
    assert chosen.curves[0].found[-1].result["test_accuracy"] == 0.85


def test_the_picture_has_the_best_the_trials_and_the_infinite_network(store, tmp_path):
    pytest.importorskip("matplotlib")
    figure = plots.accuracy_by_width(store, "clouds", 60, "relu", depths=[2])
    left, right = figure.axes
    lines = {tuple(line.get_ydata()) for line in left.lines}
    assert (0.75, 0.85) in lines
    assert (0.88, 0.88) in lines  # across the picture
    assert right.lines[0].get_ydata() == pytest.approx([0.25, 0.15])
    assert left.get_title(loc="right") == "1 trial lies below"
    assert left.get_ylim()[0] > 0.1
    plots.accuracy_by_width(store, "clouds", 60, "relu", tmp_path / "widths.svg")
    assert (tmp_path / "widths.svg").stat().st_size > 1000


def test_levels_that_coincide_are_all_seen(store):
    """Three depths, two of which have the same accuracy: their dashes do not lie on each other."""
    pytest.importorskip("matplotlib")
    for depth, accuracy in ((3, 0.88), (4, 0.8)):
        put(store, "finite", *trial(8, 0, 0.8, 0.8, depth=depth))
        level = {**DATA, "activation": "relu", "depth": depth}
        put(store, "infinite", level, {"test_accuracy": accuracy, "test_mse": 0.1 * depth})
    figure = plots.accuracy_by_width(store, "clouds", 60, "relu", depths=[2, 3, 4])
    left, right = figure.axes
    figure.draw_without_rendering()
    for axes in (left, right):
        depths = [depth for text in axes.texts for depth in text.get_text().split(", ")]
        assert sorted(depths) == ["2", "3", "4"]
        boxes = [text.get_window_extent() for text in axes.texts]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    levels = [line for line in left.lines if line.get_linestyle() == "--" and len(line.get_xdata())]
    assert [line.get_ydata()[0] for line in levels] == [0.88, 0.88, 0.8]
    patterns = [line._unscaled_dash_pattern for line in levels]
    (first, (on, off)), (second, other), (_, alone) = patterns
    assert (on, off) == tuple(other)
    assert on == off == abs(first - second)  # one is seen in the gaps of the other
    assert alone[1] < on


@pytest.mark.parametrize("draw", ["widths", "gaps"])
def test_panels_stand_below_each_other_on_a_phone(store, draw):
    pytest.importorskip("matplotlib")
    gap_runs(store)
    if draw == "widths":
        figure = draw_widths(widths(store, "clouds", 60, "relu"), None, narrow=True)
    else:
        figure = draw_gaps(gaps(store.runs(experiment="gap")), None, narrow=True)
    figure.draw_without_rendering()
    above, below = (axes.get_window_extent() for axes in figure.axes)
    assert (above.x0, above.width) == pytest.approx((below.x0, below.width), abs=1)
    assert above.y0 > below.y1
    assert figure.get_figwidth() == 3.8
    words = figure.findobj(lambda part: hasattr(part, "get_fontsize") and part.get_text().strip())
    assert min(text.get_fontsize() for text in words) >= 9
    title = figure.get_suptitle()
    (shown,) = (text for text in words if text.get_text() == title)
    box = shown.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1


def gap_runs(store, more=()):
    for activation, width, number, train, test in (
        *more,
        ("relu", 8, 0, 1.0, 0.6),
        ("relu", 8, 1, 1.0, 0.7),
        ("relu", 64, 0, 1.0, 0.75),
        ("relu", 64, 1, 0.99, 0.9),  # has not learned all
        ("tanh", 64, 0, 1.0, 0.5),
    ):
        config = {**SHARED, "activation": activation, "depth": 5, "width": width, "trial": number}
        put(store, "gap", config, {"train_accuracy": train, "test_accuracy": test})


def test_only_networks_that_learned_everything_count(store, tmp_path):
    gap_runs(store)
    found = gaps(store.runs(experiment="gap"))
    assert (found.dataset, found.train, found.depth, found.left_out) == ("clouds", 60, 5, 1)
    values = [(one.activation, one.width, round(one.gap, 9)) for one in found.learned]
    assert values == [
        ("relu", 8, 0.4),
        ("relu", 8, 0.3),
        ("relu", 64, 0.25),
        ("tanh", 64, 0.5),
    ]
    with pytest.raises(ValueError, match="needs finished runs, and there are none"):
        gaps([])
    with pytest.raises(ValueError, match="none of 1 networks learned its training set"):
        gaps(store.runs(experiment="gap")[3:4])
    mixed = store.runs(experiment="gap") + store.runs(experiment="finite")
    with pytest.raises(ValueError, match="the runs differ"):
        gaps([replace(run, result={"train_accuracy": 1.0}) for run in mixed])
    pytest.importorskip("matplotlib")
    figure = plots.generalisation_gap(store, "clouds", 60, tmp_path / "gap.svg")
    assert [axes.get_title() for axes in figure.axes] == ["relu: 3 networks", "tanh: 1 network"]
    smallest = figure.axes[0].lines[1]
    assert smallest.get_ydata() == pytest.approx([0.3, 0.25])
    config = {**SHARED, "activation": "relu", "depth": 5, "width": 8, "trial": 0}
    plain = {"train_accuracy": 1.0, "test_accuracy": 0.9}
    put(store, "gap", {**config, "optimiser": "sgd"}, plain)
    both = plots.generalisation_gap(store, "clouds", 60).axes[0]
    assert [text.get_text() for text in both.get_legend().get_texts()] == ["Adam", "SGD"]
    assert both.lines[1].get_markerfacecolor() == "none"
    assert both.lines[1].get_ydata() == pytest.approx([0.1])
    assert both.lines[2].get_ydata() == pytest.approx([0.1, 0.25])
    only = plots.generalisation_gap(store, "clouds", 60, plan=PLAN).axes[0]
    assert only.get_title() == "relu: 3 networks"


def test_every_activation_has_its_panel(store):
    pytest.importorskip("matplotlib")
    names = ("erf", "gelu", "sin", "silu")
    gap_runs(store, [(name, 64, 0, 1.0, 0.5) for name in names])
    figure = plots.generalisation_gap(store, "clouds", 60)
    assert len(figure.axes) == 6
    assert all(axes.lines for axes in figure.axes)


def test_many_depths_look_different(store):
    pytest.importorskip("matplotlib")
    for depth in range(4, 12):
        put(store, "finite", *trial(8, 0, 0.5, 0.5, depth=depth))
    figure = plots.accuracy_by_width(store, "clouds", 60, "relu")
    looks = [(line.get_color(), line.get_marker()) for line in figure.axes[1].lines[::1]]
    drawn = [look for look in looks if look[1] not in ("None", None)]
    assert len(drawn) == len(set(drawn)) == 10


def test_the_learning_curve_is_that_of_the_training():
    pytest.importorskip("matplotlib")
    pytest.importorskip("optax")
    from nngp.finite import FiniteNetwork
    from nngp_paper.finite import train

    network = FiniteNetwork(Architecture(2, "relu"), 16, 3)
    trained = train(network, three_clouds(60), Recipe(0.05), Plan(steps=40, interval=20))
    figure = plots.learning_curve(trained)
    assert list(figure.axes[1].lines[0].get_ydata()) == trained.curve["accuracy"]
