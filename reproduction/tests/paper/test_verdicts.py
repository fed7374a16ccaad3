"""Verdicts follow from the numbers of the data: each word is seen, and each deciding number."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import spearmanr
from stored_grids import put, put_grid, put_line, scores

from nngp import Architecture, kernel, sample_prior
from nngp.finite.width_convergence import Decay
from nngp_paper.part import Results
from nngp_paper.parts import (
    fig04_phase_maps,
    fig05_prior,
    fig07_graphical_model,
    fig09_depth_maps,
    fig10_best,
)
from nngp_paper.published import published
from nngp_paper.report import scopes_of
from nngp_paper.scope import Scope
from nngp_paper.shared import uncertainty, wins
from nngp_paper.shared.propagation import Following, following, sources_sentence, strength
from nngp_paper.shared.tables import AccuracyTable
from nngp_paper.shared.wins import Wins, measured_wins, published_wins
from nngp_paper.verdict import share_word, span


def test_words_of_many_cases():
    assert [share_word(some) for some in ([True], [True, False], [False], [])] == [
        *("supported", "partly", "not supported", "not measured")
    ]
    assert (span([0.5, -1.0], ".1f"), span([2.0, 2.0], ".0f")) == ("−1.0 to 0.5", "2")


def row(infinite, finite, test=10_000):
    result = SimpleNamespace(result={"test_accuracy": finite})
    chosen = SimpleNamespace(test_accuracy=infinite)
    return SimpleNamespace(chosen=chosen, finite=result, test=test, train=1000)


def test_wins_as_printed_and_by_two_standard_errors():
    """At 0.9 and 10,000 images the error of a difference is 0.42 points."""
    rows = [row(0.91, 0.90), row(0.905, 0.90), row(0.90, 0.91), row(0.9, 0.9)]
    assert measured_wins(rows) == Wins(2, 1, 1)
    assert measured_wins(rows, 2.0) == Wins(1, 2, 1)
    unmeasured = SimpleNamespace(chosen=None, finite=rows[0].finite, test=10_000)
    assert measured_wins([unmeasured]).rows == 0
    assert Wins(3, 5, 0).chance == pytest.approx(1 / 8)


def test_the_papers_wins_are_those_of_its_rows():
    """The claim of table 2 says 31 of 36, and names the five others."""
    accuracy = {(r.dataset, r.train, r.activation, r.width is None): r for r in published()}
    lost = [
        key[:3]
        for key, one in accuracy.items()
        if key[3] and one.test_accuracy < accuracy[*key[:3], False].test_accuracy
    ]
    assert published_wins() == Wins(36 - len(lost), 0, len(lost)) == Wins(31, 0, 5)
    assert {name for name, _, _ in lost} == {"mnist"}
    assert sum(train <= 500 for _, train, _ in lost) == 4
    assert published_wins("cifar10") == Wins(18, 0, 0)
    assert published_wins("mnist", trains={100, 1000}) == Wins(2, 0, 2)
    assert published_wins("mnist", 2.0) == Wins(0, 18, 0)
    clear = 0
    for key, one in accuracy.items():
        if key[3] and key[0] == "cifar10":
            pair = np.array([one.test_accuracy, accuracy[*key[:3], False].test_accuracy])
            clear += pair[0] - pair[1] > 2 * np.sqrt((pair * (1 - pair)).sum() / 10_000)
    assert published_wins("cifar10", 2.0) == Wins(clear, 18 - clear, 0)


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        ([row(0.95, 0.90)] * 2 + [row(0.9, 0.9)], "supported"),
        ([row(0.95, 0.90)] + [row(0.9, 0.9)] * 2, "partly"),
        ([row(0.9, 0.9)] * 4, "not supported"),
        ([row(0.90, 0.95)] * 2, "not supported"),
        ([], "not measured"),
    ],
)
def test_tables_count_wins(rows, word):
    found = wins.verdict(AccuracyTable("mnist", tuple(rows)))
    assert found.word == word
    assert ("the paper 2 of 2" in found.reason) == bool(rows)  # its rows of the same sizes
    if rows:
        assert "the paper's wins 0 and loses 0" in found.reason


def curve(correlation, ratio, scale=None):
    bins = np.linspace(0.1, 0.2, 25)
    return uncertainty.UncertaintyCurve(
        100, "relu", ratio * bins, bins, correlation, 500, 20, scale
    )


@pytest.mark.parametrize(
    ("correlations", "word"),
    [((0.95, 0.91), "supported"), ((0.95, 0.75), "partly"), ((0.95, 0.5), "not supported")],
)
def test_uncertainty_is_judged_by_correlation_and_tells_sizes(correlations, word):
    curves = tuple(curve(r, 4.0, 0.25) for r in correlations)
    found = uncertainty.verdict(uncertainty.Uncertainty("digits", curves, 2, 2))
    assert found.word == word
    assert "4.00 times the realised one, 1.00 after the leave-one-out scale" in found.reason
    assert "(chance: ±0.39)" in found.reason  # 1.96 / 5


SCOPE = Scope("mnist", (1000,), depths=(1, 50), activations=("relu",), grid=6)


def put_maps(store, experiment, depth, follow, scope=SCOPE):
    """Test accuracy falls with the distance from the line weight_var = 2 where it follows it."""
    for weight_var in scope.weight_vars:
        config = {
            **{"dataset": "mnist", "train": 1000, "validation": 500, "test": 2000},
            **{"activation": "relu", "depth": depth, "weight_var": weight_var},
            "bias_vars": list(scope.bias_vars),
        }
        rng = np.random.default_rng([depth, round(1000 * weight_var)])
        near = 0.9 - 0.25 * abs(weight_var - 2) + 1e-4 * rng.random(scope.grid)
        own = near if follow else rng.uniform(0.5, 0.9, scope.grid)
        put(store, experiment, config, scores(rng, scope.grid) | {"test_accuracy": own.tolist()})


@pytest.mark.parametrize(
    ("absolute", "relative", "word"),
    [(True, True, "supported"), (True, False, "partly"), (False, False, "not supported")],
)
def test_maps_are_judged_with_both_kinds_of_noise(store, absolute, relative, word):
    put_line(store, "relu", line=(2.0, 2.0, 2.0))
    put_maps(store, "grid", 1, follow=False)
    put_maps(store, "relative_grid", 1, follow=False)
    put_maps(store, "grid", 50, follow=absolute)
    put_maps(store, "relative_grid", 50, follow=relative)
    results = Results(store, SCOPE)
    for figure in (fig04_phase_maps, fig09_depth_maps):
        data = figure.read(results)
        found = figure.verdict(data)
        assert found.word == word
        assert "networks with the exact kernel, relative noise" in found.reason
        grid = data.relative["relu", 50].grid
        flat = np.repeat(np.abs(grid.weight_vars - 2), 6)
        expected = spearmanr(flat, grid.scores["test_accuracy"].ravel()).statistic
        assert following(grid, data.theories["relu"]).correlation == pytest.approx(expected)
        assert f"{expected:.2f}".replace("-", "−") in found.reason


def test_grids_with_relative_noise_may_be_coarser(store, pyplot):
    scope = replace(SCOPE, relative_grid=3)
    put_line(store, "relu", line=(2.0, 2.0, 2.0))
    for depth in scope.depths:
        put_maps(store, "grid", depth, follow=True)
        put_maps(store, "relative_grid", depth, follow=True, scope=scope.relative)
    assert scopes_of(store) == [scope]
    for figure in (fig04_phase_maps, fig09_depth_maps):
        data = figure.read(Results(store, scope))
        assert {one.grid.networks for one in data.maps.values()} == {36}
        assert {(one.grid.networks, one.grid.complete) for one in data.relative.values()} == {
            (9, True)
        }
        chances = 1.96 / np.sqrt([35, 8])
        assert f"(chance: ±{chances[0]:.2f} and ±{chances[1]:.2f})" in figure.verdict(data).reason
        absolute, relative = figure.draw(data).axes[:2]
        assert absolute.get_xlim() == relative.get_xlim()


@pytest.mark.parametrize(
    ("correlation", "networks", "word"),
    [
        *((-0.6, 900, "supported"), (-0.3, 900, "partly"), (-0.08, 900, "not supported")),
        *((-0.6, 8, "not supported"), (0.9, 900, "not supported"), (None, 900, "not measured")),
    ],
)
def test_a_correlation_must_be_beyond_chance(correlation, networks, word):
    assert strength(Following(correlation, 0, networks)) == word


def test_maps_without_a_line_or_relative_noise_say_so(store):
    put_maps(store, "grid", 50, follow=True)
    assert fig04_phase_maps.verdict(fig04_phase_maps.read(Results(store, SCOPE))).word == (
        "not measured"
    )
    put_line(store, "relu", line=(2.0, 2.0, 2.0))
    found = fig04_phase_maps.verdict(fig04_phase_maps.read(Results(store, SCOPE)))
    assert "exact kernel, noise 1e-10" in found.reason
    assert "relative noise" not in found.reason
    assert "accounts for" not in found.reason


def test_what_table_noise_and_network_contribute():
    """Shares of lost networks, one less the next; as many networks need not have been run."""
    kinds = {"authors' table": (6, 10), "exact kernel": (2, 20), "relative noise": (1, 20)}
    lost = {name: [Following(-0.5, *counts)] for name, counts in kinds.items()}
    assert sources_sentence(lost) == (
        "Below 20% accuracy, twice chance, are 60% of 10 networks with the authors' table, 10% of "
        "20 networks with the exact kernel, 5% of 20 networks with the relative noise: the table "
        "accounts for 50, the noise for 5, the network itself for 5 of these 60 points"
    )


def test_figures_have_the_kinds_side_by_side(store, pyplot):
    kinds = ("authors_grid", "grid", "relative_grid")
    for experiment, depth in product(kinds, (1, 50)):
        put_maps(store, experiment, depth, follow=True)
    figure = fig04_phase_maps.draw(fig04_phase_maps.read(Results(store, SCOPE)))
    titles = [axes.get_title().split("\n")[-1] for axes in figure.axes[:4]]
    assert titles == ["relu: authors' table", "noise 1e-10", "relative noise", "relu: phases"]
    data = fig09_depth_maps.read(Results(store, SCOPE))
    wide, narrow = fig09_depth_maps.draw(data), fig09_depth_maps.draw(data, narrow=True)
    labels = [axes.get_ylabel().split("\n")[-2] for axes in wide.axes[:6:2]]
    assert labels == ["authors' table", "noise 1e-10", "relative noise"]
    assert narrow.get_figwidth() < wide.get_figwidth()
    assert narrow.axes[1].get_title() == "relu, authors' table\ndepth 50"


def test_the_best_are_compared_with_random_sets(store):
    scope = Scope("mnist", (100,), (1, 3), ("relu",), grid=12)
    for depth in (1, 3):
        put_grid(store, scope, 100, "relu", depth)
    put_line(store, "relu", line=(2.0, 2.0, 2.0))
    data = fig10_best.read(Results(store, scope))
    every = np.tile(np.repeat(np.abs(np.array(scope.weight_vars) - 2), 12), 2)
    (panel,) = data.panels
    np.testing.assert_allclose(np.sort(data.distances["relu", panel]), np.sort(every))
    median = fig10_best.medians(data)["relu", panel]
    rng = np.random.default_rng(0)
    drawn = [np.median(rng.choice(every, 25, replace=False)) for _ in range(4000)]
    chance = fig10_best.by_chance(median, 25, every)
    assert chance == pytest.approx(np.mean(np.array(drawn) <= median + 1e-9), abs=0.03)
    found = fig10_best.verdict(data)
    assert found.word == ("supported" if chance < 0.05 else "not supported")
    assert f"{median:.2f} (p {chance:.2g})" in found.reason
    assert fig10_best.by_chance(0.2, 25, every) < 1e-6
    data.distances["relu", panel] = every[:199]
    few = fig10_best.verdict(data)
    assert few.word == "not measured"
    assert "(p " not in few.reason


def test_draws_of_the_prior_vary_as_its_kernel():
    net, x = Architecture(3, "relu", 1.8, 0.1), np.linspace(-2, 2, 401)
    values = sample_prior(net, x[:, None], 40, 1)
    data = fig05_prior.Prior(net, x, values)
    found = fig05_prior.verdict(data)
    ratio = np.mean(values**2 / np.diag(kernel(net, x[:, None])))
    assert (found.word, f"{ratio:.2f} of the kernel" in found.reason) == ("supported", True)
    assert fig05_prior.verdict(fig05_prior.Prior(net, x, 3 * values)).word == "partly"


def test_slopes_are_compared_with_a_half():
    widths = (4, 16, 64)
    net = Architecture(1, "relu")

    def word(power):
        error = np.array([[float(width) ** power] for width in widths])
        decay = Decay(widths, error, 1e-3 * error)
        return fig07_graphical_model.verdict(fig07_graphical_model.Spread(net, 100, decay)).word

    assert (word(-0.5), word(-0.7)) == ("supported", "not supported")
