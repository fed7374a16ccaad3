"""Strips of the grid, and what is tried on larger sets, against networks conditioned one by one."""

import gc
import weakref
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import nngp
from nngp_paper import datasets
from nngp_paper.grids import study as grid
from nngp_paper.grids.arrays import read_grids
from nngp_paper.grids.study import grid_studies, grid_study, map_study, promising_study
from nngp_paper.published import Published
from nngp_paper.runs import RunStore
from nngp_paper.runs.study import carry_out
from nngp_paper.scope import Scope
from nngp_paper.shared import settings
from nngp_paper.shared.settings import setting_study
from nngp_paper.shared.uncertainty import uncertainty_study

SCOPE = Scope("digits", (60, 100), (1, 3), ("relu", "tanh"), 3, engine="cpu")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with RunStore(tmp_path_factory.mktemp("grid") / "runs.db") as store:
        carry_out(store, grid_study(SCOPE))
        yield store


def test_there_is_a_run_for_each_strip(store):
    runs = store.runs("grid", "done")
    assert len(runs) == 2 * 2 * 2 * 3
    assert {run.config["weight_var"] for run in runs} == {0.1, 2.55, 5.0}
    assert {tuple(run.config["bias_vars"]) for run in runs} == {(0.0, 1.0, 2.0)}
    assert {(run.config["validation"], run.config["test"]) for run in runs} == {(297, 500)}
    assert {run.device for run in runs} == {"cpu"}


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_scores_are_those_of_single_networks(store, activation):
    where = {"train": 100, "activation": activation, "depth": 3, "weight_var": 2.55}
    (run,) = store.runs("grid", where=where)
    data = datasets.split("digits", 100)
    Y = data.targets(data.labels)
    for i, bias_var in enumerate(run.config["bias_vars"]):
        net = nngp.Architecture(3, activation, 2.55, bias_var)
        posterior = nngp.condition(net, data.X, Y, engine="cpu")
        for name, X, labels in (
            ("val", data.X_val, data.labels_val),
            ("test", data.X_test, data.labels_test),
        ):
            mean = posterior.mean(X)
            right = np.mean(mean.argmax(axis=1) == labels)
            error = np.mean((mean - data.targets(labels)) ** 2)
            assert run.result[f"{name}_accuracy"][i] == pytest.approx(right, rel=1e-7)
            assert run.result[f"{name}_mse"][i] == pytest.approx(error, rel=1e-6)
        assert run.result["log_evidence"][i] == pytest.approx(posterior.log_evidence, rel=1e-6)
        assert run.result["noise_var"][i] == 1e-10
    assert run.jitter == 1e-10


def test_networks_without_a_kernel_are_gaps_with_a_sentence(tmp_path):
    scope = Scope("digits", (20,), (1500,), ("relu",), 2, engine="cpu")
    with RunStore(tmp_path / "runs.db") as store:
        carry_out(store, grid_study(scope))
        steep = store.runs("grid", where={"weight_var": 5.0})[0].result
    assert steep["test_accuracy"] == steep["log_evidence"] == [None, None]
    assert all("past the range of float64" in sentence for sentence in steep["errors"])


def test_larger_sets_try_the_best_of_the_next_smaller(store, monkeypatch):
    monkeypatch.setattr(grid, "LARGEST_FULL_GRID", 100)
    monkeypatch.setattr(grid, "MOST", ((150, 5), (10**9, 2)))
    scope = replace(SCOPE, sizes=(100, 150, 500))
    first, second = list(grid_studies(store, scope))[:2]
    assert {config["train"] for config in first.configs} == {100}
    tried = _networks(second)
    for activation in SCOPE.activations:
        best = _ranked(store, 100, activation)
        near = [name for order, name in best if order <= _furthest(store, activation)]
        assert {name for name in tried if name[0] == activation} == set(near[:5])
    assert {config["train"] for config in second.configs} == {150}


def test_the_best_are_done_first(store, monkeypatch):
    monkeypatch.setattr("nngp_paper.grids.candidates.shortfalls", lambda *all: {})
    monkeypatch.setattr(grid, "BATCH", 4)
    study = promising_study(store, replace(SCOPE, sizes=(100, 500), activations=("relu",)), 500)
    order = [
        (c["activation"], c["depth"], c["weight_var"], b)
        for c in study.configs
        for b in c["bias_vars"]
    ]
    ranked = [name for _, name in _ranked(store, 100, "relu")]
    assert len(order) == len(ranked) == 2 * 3 * 3
    for start in range(0, len(ranked), 4):
        assert set(order[start : start + 4]) == set(ranked[start : start + 4])


def test_what_was_tried_is_not_tried_again(tmp_path, store, monkeypatch):
    monkeypatch.setattr(grid, "MOST", ((10**9, 6),))
    scope = replace(SCOPE, sizes=(100, 150), activations=("relu",))
    with RunStore(tmp_path / "runs.db") as other:
        other.merge(store.path)
        wanted = promising_study(other, scope, 150)
        half = replace(wanted, configs=wanted.configs[:2])
        carry_out(other, half)
        left = promising_study(other, scope, 150)
        assert [*left.configs] == [*wanted.configs[2:]]
        carry_out(other, left)
        assert not promising_study(other, scope, 150).configs


def test_each_activation_has_a_next_smaller_set_of_its_own(tmp_path, store):
    """relu has been tried on more points than tanh, which is not left out for it."""
    with RunStore(tmp_path / "runs.db") as other:
        other.merge(store.path)
        scope = replace(SCOPE, sizes=(200,), depths=(1,), activations=("relu",))
        carry_out(other, grid_study(scope))
        found = promising_study(other, replace(SCOPE, sizes=(200, 500)), 500)
    by_name = {
        name: [c for c in found.configs if c["activation"] == name] for name in ("relu", "tanh")
    }
    assert {c["depth"] for c in by_name["relu"]} == {1}  # the set of 200
    tanh = [(c["weight_var"], c["depth"]) for c in by_name["tanh"]]
    assert tanh
    assert tanh == sorted(tanh)


def test_other_activations_are_tried_with_few_points_only(store):
    scope = replace(SCOPE, sizes=(100, 500), activations=("relu", "tanh", "erf"))
    with_erf = replace(SCOPE, activations=("relu", "erf"))
    assert {c["activation"] for c in grid_study(with_erf).configs} == {"relu", "erf"}
    assert {c["activation"] for c in promising_study(store, scope, 500).configs} == {"relu", "tanh"}


def test_other_activations_get_every_third_value():
    scope = Scope("mnist", (100,), (1,), ("tanh", "erf"))
    found = grid_study(scope).configs
    whole = [c for c in found if c["activation"] == "tanh"]
    coarse = [c for c in found if c["activation"] == "erf"]
    assert (len(whole), {len(c["bias_vars"]) for c in whole}) == (30, {30})
    assert sorted(c["weight_var"] for c in coarse) == list(scope.weight_vars[::3])
    assert {tuple(c["bias_vars"]) for c in coarse} == {scope.bias_vars[::3]}
    alone = grid_study(replace(scope, activations=("erf",))).configs
    assert (len(alone), len(alone[0]["bias_vars"])) == (30, 30)
    few = {grid: grid_study(replace(scope, grid=grid)).configs for grid in (10, 3)}
    assert {c["activation"]: len(c["bias_vars"]) for c in few[10]} == {"tanh": 10, "erf": 4}
    assert {len(c["bias_vars"]) for c in few[3]} == {3}


def test_deep_silu_networks_of_unbounded_variance_are_left_out():
    scope = Scope("mnist", (100,), (5, 7), ("relu", "silu"))
    found = [c for c in grid_study(scope).configs if c["activation"] == "silu"]
    by_depth = {d: [c["weight_var"] for c in found if c["depth"] == d] for d in (5, 7)}
    assert (len(by_depth[5]), max(by_depth[5])) == (10, scope.weight_vars[27])
    assert sorted(by_depth[7]) == sorted(w for w in by_depth[5] if w <= 2.0)
    assert (scope.networks("silu", 5), scope.networks("silu", 7)) == (100, 40)


def test_relative_noise_is_an_experiment_of_its_own(tmp_path):
    scope = replace(SCOPE, sizes=(30, 60), depths=(50,), activations=("relu",))
    with RunStore(tmp_path / "runs.db") as store:
        carry_out(store, map_study(scope, "relative_grid"))
        runs = store.runs("relative_grid", "done")
        assert not read_grids(store, scope).by_name
        (found,) = read_grids(store, scope, "relative_grid").by_name.values()
    assert {(run.config["train"], run.config["relative_noise"]) for run in runs} == {(60, True)}
    assert found.complete
    data = datasets.split("digits", 60)
    arguments = nngp.Architecture(50, "relu", 0.1, 1.0), data.X, data.targets(data.labels)
    relative = nngp.condition(*arguments, relative_noise=True, engine="cpu")
    with pytest.warns(nngp.errors.ConstantKernelWarning):
        absolute = nngp.condition(*arguments, engine="cpu")
    knows, hidden = (
        np.mean(one.mean(data.X_test).argmax(1) == data.labels_test) for one in (relative, absolute)
    )
    assert found.scores["test_accuracy"][0, 1] == knows
    assert knows > hidden + 0.3


@pytest.mark.parametrize("kind", ["grid", "relative_grid", "authors_grid"])
def test_maps_are_those_of_the_figures(kind):
    scope = Scope("mnist", (100, 1000, 50_000))
    found = map_study(scope, kind).configs
    assert {c["train"] for c in found} == {1000}
    assert {c["depth"] for c in found} == {1, 3, 10, 50}
    assert {c["activation"] for c in found} == {"relu", "tanh"}
    assert len(found) == 30 * 4 * 2
    deep = map_study(scope, kind, deep=True).configs
    assert [*deep] == [c for c in found if c["depth"] == 50]
    assert map_study(Scope("mnist", (50_000,)), kind).configs == []
    some = map_study(Scope("digits", (100, 700, 1000)), kind).configs
    assert {c["train"] for c in some} == {1000}
    some = map_study(Scope("mnist", (700,), (1, 3, 20)), kind).configs
    assert {c["depth"] for c in some} == {1, 3, 20}


def test_maps_with_absolute_noise_are_runs_of_the_whole_grid():
    """So what one figure has done, the others need not do."""
    whole = [dict(c) for c in grid_study(SCOPE).configs]
    assert all(dict(c) in whole for c in map_study(SCOPE).configs)


def test_maps_by_the_authors_table(tmp_path, monkeypatch):
    """Against the matrices that the table gives."""
    table = nngp.curves.LookupTable("relu", 51, 51, 50, 20.0, s_min=1e-8, clamp=True)
    monkeypatch.setattr(grid, "authors_table", lambda activation: table)
    scope = replace(SCOPE, sizes=(60,), depths=(2,), activations=("relu",))
    with RunStore(tmp_path / "runs.db") as store:
        carry_out(store, map_study(scope, "authors_grid"))
        (run,) = store.runs("authors_grid", "done", where={"weight_var": 2.55})
    data = datasets.split("digits", 60)
    Y = data.targets(data.labels)
    for i, bias_var in enumerate(run.config["bias_vars"]):
        kernel = partial(table.kernel, depth=2, weight_var=2.55, bias_var=bias_var)
        K = kernel(data.X) + run.result["noise_var"][i] * np.eye(60)
        mean = kernel(data.X_test, data.X) @ np.linalg.solve(K, Y)
        error = np.mean((mean - data.targets(data.labels_test)) ** 2)
        assert run.result["test_mse"][i] == pytest.approx(error, rel=1e-6)
        right = np.mean(mean.argmax(axis=1) == data.labels_test)
        assert run.result["test_accuracy"][i] == pytest.approx(right, rel=1e-7)


def test_nothing_smaller_is_nothing_to_try(tmp_path):
    with RunStore(tmp_path / "runs.db") as store:
        assert promising_study(store, SCOPE, 500).configs == []


def _networks(study):
    return {
        (c["activation"], c["depth"], c["weight_var"], b)
        for c in study.configs
        for b in c["bias_vars"]
    }


def _ranked(store, train, activation):
    """Validation error (with the squared error for ties) and name of every network, sorted."""
    found = []
    for run in store.runs("grid", where={"train": train, "activation": activation}):
        config, result = run.config, run.result
        for i, bias_var in enumerate(config["bias_vars"]):
            order = 1 - result["val_accuracy"][i], result["val_mse"][i]
            found.append((order, (activation, config["depth"], config["weight_var"], bias_var)))
    return sorted(found)


def _furthest(store, activation):
    """The largest error that the best network with 150 points may have with 100: relative to the
    least, as that of the best with 100 points was with 60."""
    small, large = (_ranked(store, train, activation) for train in (60, 100))
    then = {name: order[0] for order, name in small}[large[0][1]]
    return large[0][0][0] * then / small[0][0][0] + 1e-9, 0.0


def test_published_settings_with_both_kernels(tmp_path, monkeypatch):
    """Against the matrices that `nngp.kernel` and the table give."""
    rows = (
        Published("digits", 60, "relu", 2, None, 1.5, 0.2, 0.9),
        Published("digits", 60, "relu", 2, 512, 1.5, 0.2, 0.9),
        Published("mnist", 60, "relu", 2, None, 1.5, 0.2, 0.9),
        Published("digits", 60, "relu", 60, None, 5.0, 0.2, 0.9),
    )
    table = nngp.curves.LookupTable("relu", 51, 51, 50, 20.0)
    monkeypatch.setattr(settings, "published", lambda: rows)
    monkeypatch.setattr(settings, "authors_table", lambda activation: table)
    with RunStore(tmp_path / "runs.db") as store:
        carry_out(store, setting_study(SCOPE))
        runs = store.runs("setting", "done", where={"depth": 2})
        done = {run.config["kernel"]: run for run in runs}
        (failed,) = store.runs("setting", "failed")
    data = datasets.split("digits", 60)
    net, Y = nngp.Architecture(2, "relu", 1.5, 0.2), data.targets(data.labels)
    by_table = partial(table.kernel, depth=2, weight_var=1.5, bias_var=0.2)
    for name, kernel in (("exact", partial(nngp.kernel, net)), ("authors", by_table)):
        run = done[name]
        K = kernel(data.X) + run.jitter * np.eye(60)
        mean = kernel(data.X_test, data.X) @ np.linalg.solve(K, Y)
        error = np.mean((mean - data.targets(data.labels_test)) ** 2)
        assert run.result["test_mse"] == pytest.approx(error, rel=1e-6)
        assert run.result["test_accuracy"] == np.mean(mean.argmax(axis=1) == data.labels_test)
    assert failed.config["kernel"] == "authors"
    assert "past the table's s_max" in failed.error


def test_data_that_cannot_be_read_are_no_result(tmp_path, monkeypatch):
    def damaged(*arguments, **more):
        raise ValueError("the file is damaged")

    monkeypatch.setattr("nngp_paper.grids.sweeps.split", damaged)
    rows = (Published("digits", 60, "relu", 2, None, 1.5, 0.2, 0.9),)
    monkeypatch.setattr(settings, "published", lambda: rows)
    monkeypatch.setattr(settings, "authors_table", lambda activation: None)
    with RunStore(tmp_path / "runs.db") as store:
        with pytest.raises(ValueError, match="the file is damaged"):
            carry_out(store, setting_study(SCOPE))
        assert store.counts()["pending"] == 2


@pytest.mark.parametrize("module", ["grids.sweeps", "shared.one_network"])
def test_data_are_let_go_of_when_a_study_is_done(tmp_path, monkeypatch, module):
    kept, real = [], datasets.split

    def remembered(*arguments, **more):
        data = real(*arguments, **more)
        kept.append(weakref.ref(data))
        return data

    monkeypatch.setattr(f"nngp_paper.{module}.split", remembered)
    scope = replace(SCOPE, sizes=(30,), depths=(1,), activations=("relu",), grid=2)
    study = {"grids.sweeps": grid_study, "shared.one_network": uncertainty_study}[module](scope)
    with RunStore(tmp_path / "runs.db") as store:
        carry_out(store, study)
    gc.collect()
    assert [data() for data in kept] == [None]


def test_the_order_is_from_coarse_to_fine():
    assert grid.coarse_to_fine(range(9)) == [0, 8, 4, 2, 6, 1, 3, 5, 7]
    for count in (1, 2, 30):
        assert sorted(grid.coarse_to_fine(range(count))) == list(range(count))


def test_a_split_holds_the_smaller_ones():
    whole, part = datasets.split("digits", 300), datasets.split("digits", 77)
    np.testing.assert_array_equal(whole.first(77).X, part.X)
    np.testing.assert_array_equal(whole.first(77).labels, part.labels)
