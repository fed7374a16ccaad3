"""Training: against Adam in NumPy, in lanes as alone, early stopping, and what is reported."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import plain_training
import pytest
from clouds import three_clouds

pytest.importorskip("jax")
pytest.importorskip("optax")

import nngp
import nngp.plots
from nngp_paper.finite import lanes as side_by_side
from nngp_paper.finite.lanes import Score, program_shape
from nngp_paper.finite.recipe import Plan, Recipe
from nngp_paper.finite.training import Trainer, Trial, train
from nngp_paper.finite.training_data import TrainingData
from nngp_paper.finite.training_state import Evaluation, TrainingState

NETWORK = nngp.FiniteNetwork(nngp.Architecture(1, "tanh"), 7, 3)


DATA = three_clouds()


def started(shape, recipe):
    """The weights that a training starts from."""
    settings = side_by_side.settings_of([recipe], [60])
    nothing = side_by_side.empty_lanes(shape, settings)
    lanes = side_by_side.fill_lanes(shape, nothing, np.ones(1, bool), settings)
    return [{name: part[0] for name, part in layer.items()} for layer in lanes.layers]


@pytest.mark.parametrize("loss", ["mse", "cross_entropy"])
def test_full_batches_are_adam_with_weight_decay(loss):
    recipe = Recipe(0.01, 0.03, 1.5, 0.2, batch_size=len(DATA.X), seed=5)
    plan = Plan(loss, steps=20, interval=20)
    trained = train(NETWORK, DATA, recipe, plan)
    shape = program_shape(NETWORK, DATA, plan, recipe.batch_size)
    start = [tuple(np.asarray(one[name], float) for name in "wb") for one in started(shape, recipe)]
    Y = DATA.targets(DATA.labels)
    wanted = plain_training.adam(start, DATA.X, Y, loss, 0.01, 0.03, 20)
    got = [layer[name] for layer in trained.weights for name in "wb"]
    for ours, theirs in zip(got, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


def test_a_batch_is_the_training_set_at_most():
    plan = Plan(steps=20, interval=20)
    all_points, more = (train(NETWORK, DATA, Recipe(0.01, batch_size=b), plan) for b in (60, 256))
    assert all_points.curve == more.curve


def test_the_start_is_a_draw_from_the_prior():
    network = nngp.FiniteNetwork(nngp.Architecture(2, "relu"), 300, 3)
    recipe = Recipe(weight_var=2.0, bias_var=0.5, seed=1)
    shape = program_shape(network, DATA, Plan(), 60)
    layers = started(shape, recipe)
    assert np.asarray(layers[1]["w"]).var() * 300 == pytest.approx(2.0, rel=0.02)
    assert np.asarray(layers[1]["b"]).var() == pytest.approx(0.5, rel=0.3)


def test_lanes_are_filled_again_and_change_nothing():
    rates = (0.003, 0.01, 0.03)
    sizes = (4, 11, 60)
    pairs = enumerate(zip(rates, sizes, strict=True))
    recipes = [Recipe(rate, batch_size=size, seed=i) for i, (rate, size) in pairs]
    plan = Plan(steps=60, interval=20)
    together = train(NETWORK, DATA, recipes, plan, lanes=2)
    one_by_one = train(NETWORK, DATA, recipes, plan, lanes=1)
    for recipe, one, alone in zip(recipes, together, one_by_one, strict=True):
        assert one.recipe == recipe.of(NETWORK.architecture)
        np.testing.assert_allclose(one.curve["loss"], alone.curve["loss"], rtol=1e-3)
        np.testing.assert_allclose(one.weights[0]["w"], alone.weights[0]["w"], atol=1e-3)
    room_of_its_own = train(NETWORK, DATA, recipes[0], plan)
    np.testing.assert_allclose(room_of_its_own.curve["loss"], together[0].curve["loss"], rtol=1e-3)


def test_an_epoch_of_batches_is_the_whole_training_set():
    recipe = Recipe(1e-12, 0.0, 1.6, 0.1, batch_size=10, seed=3)  # the weights stay as they are
    plan = Plan(steps=6, interval=6)
    trained = train(NETWORK, DATA, recipe, plan)
    layers = started(program_shape(NETWORK, DATA, plan, 10), recipe)
    outputs = NETWORK.forward(layers, DATA.X)
    error = np.mean((outputs - DATA.targets(DATA.labels)) ** 2)
    assert trained.curve["train_loss"] == pytest.approx([error], rel=1e-4)


def test_batches_are_drawn_anew_after_every_evaluation():
    recipe = Recipe(1e-12, batch_size=10, seed=3)
    losses = train(NETWORK, DATA, recipe, Plan(steps=10, interval=5)).curve["train_loss"]
    assert len(set(losses)) == 2  # of 50 of the 60 points


def test_progress_ends_at_all_networks(monkeypatch):
    steps = []

    @contextmanager
    def bar(phase, total, shown):
        steps.append(0.0)
        yield lambda work: steps.append(steps[-1] + work / total)

    monkeypatch.setattr("nngp_paper.finite.training.progress_bar", bar)
    recipes = [Recipe(1e-6, seed=seed) for seed in range(3)]
    train(NETWORK, DATA, recipes, Plan(steps=60, interval=20), lanes=2)
    assert steps == sorted(steps)
    assert steps[1] == pytest.approx(1 / 9)
    assert steps[-1] == pytest.approx(1.0)


def test_a_seed_fixes_everything():
    plan = Plan(steps=40, interval=20)
    first, again, other = (
        train(NETWORK, DATA, Recipe(0.01, seed=seed), plan) for seed in (0, 0, 1)
    )
    assert first.curve == again.curve
    assert first.curve != other.curve


def test_what_is_reported_is_what_the_best_weights_do():
    trained = train(NETWORK, DATA, Recipe(0.05), Plan(steps=200, interval=20))
    outputs = NETWORK.forward(trained.weights, DATA.X_test)
    assert trained.test_accuracy == np.mean(outputs.argmax(axis=1) == DATA.labels_test)
    error = np.mean((outputs - DATA.targets(DATA.labels_test)) ** 2)
    assert trained.test_mse == pytest.approx(error, rel=1e-4)
    best = trained.curve["step"].index(trained.best_step)
    assert trained.curve["accuracy"][best] == max(trained.curve["accuracy"])
    assert trained.val_accuracy == pytest.approx(max(trained.curve["accuracy"]), abs=1e-6)
    assert trained.val_mse == pytest.approx(trained.curve["loss"][best], rel=1e-4)
    assert trained.test_accuracy > 0.8


@pytest.mark.slow
def test_training_ends_when_all_labels_are_learned():
    plan = Plan("cross_entropy", steps=2000, interval=50, monitor="train", patience=40)
    network = nngp.FiniteNetwork(nngp.Architecture(2, "relu"), 64, 3)
    trained = train(network, three_clouds(20), Recipe(0.01), plan)
    assert trained.train_accuracy == 1.0
    assert trained.steps < 2000


def test_overflow_is_said_and_leaves_numbers():
    network = nngp.FiniteNetwork(nngp.Architecture(1, "relu"), 7, 3)
    trained = train(network, DATA, Recipe(1e29), Plan(steps=100, interval=20))
    assert trained.overflowed
    assert trained.steps == 20
    values = [value for name, value in trained.result().items() if name.endswith(("racy", "mse"))]
    assert np.isfinite(values).all()
    assert trained.curve["accuracy"] == [None]


def test_better_is_more_labels_right_or_as_many_with_a_lower_loss():
    best = Score(30, 1.0)
    for score, better in (
        (Score(31, 9.0), True),
        (Score(30, 0.9), True),
        (Score(30, 1.1), False),
        (Score(29, 0.1), False),
        (Score(-1, np.inf), False),
    ):
        assert bool(side_by_side._is_better(score, best)) == better


def test_patience_counts_evaluations_without_a_better_one():
    plan, state = Plan(steps=1000, interval=10, patience=2), TrainingState("x", Recipe(), 60)
    for accuracy, better, lower, ended in (
        (0.5, True, True, False),
        (0.5, False, False, False),
        (0.5, True, False, False),
        (0.4, False, False, False),
        (0.4, False, True, False),
        (0.4, False, False, False),
        (0.45, False, False, True),
    ):
        state.record(10, Evaluation(0.0, accuracy, 1.0, better, lower))
        assert state.ended(plan) == ended
    assert (state.best_step, state.best, state.lowest_step) == (30, 0.5, 50)
    full, long = TrainingState("y", Recipe(), 60), TrainingState("z", Recipe(), 60)
    full.record(10, Evaluation(0.0, 1.0, 0.3, True, True))
    assert full.ended(plan)
    long.record(1000, Evaluation(0.0, 0.1, 1.0, True, True))
    assert long.ended(plan)


def test_all_right_is_seen_whatever_the_number_of_points():
    """The mean of 94 ones in single precision is below 1."""
    data = three_clouds(94, noise=0.01)
    plan = Plan(steps=400, interval=20, monitor="train", patience=20)
    trained = train(NETWORK, data, Recipe(0.05, batch_size=60), plan)
    assert trained.train_accuracy == 1.0
    assert trained.steps < 400


def test_the_part_that_is_monitored_decides():
    wrong = replace(DATA, labels_val=(DATA.labels_val + 1) % 3)
    plan = Plan(steps=100, interval=20)
    on_validation = train(NETWORK, wrong, Recipe(0.05), plan)
    on_training = train(NETWORK, wrong, Recipe(0.05), replace(plan, monitor="train"))
    assert max(on_validation.curve["accuracy"]) < 0.5 < max(on_training.curve["accuracy"])


@pytest.mark.parametrize("lanes", [0, -1, 2.5, True])
def test_lanes_that_cannot_be(lanes):
    with pytest.raises(ValueError, match="lanes must be a whole number of at least 1"):
        train(NETWORK, DATA, Recipe(), lanes=lanes)


def test_recipes_are_recipes():
    with pytest.raises(TypeError, match="recipes must be a Recipe or a list of them"):
        train(NETWORK, DATA, [Plan()])


def test_an_epoch_has_every_row_once():
    import jax

    epochs = jax.jit(side_by_side._epochs, static_argnums=(2, 3))
    for n in (10, 4, 13):  # one program for all numbers of points
        order = np.asarray(epochs(jax.random.key(0), n, 25, 13))
        whole = order[: -(-25 // n) * n].reshape(-1, n)
        for epoch in whole:
            assert sorted(epoch) == list(range(n))
        assert (whole[0] != whole[1]).any()
        assert (whole[0] != np.arange(n)).any()


def test_every_place_of_an_epoch_is_as_likely_for_every_row():
    import jax

    keys = jax.random.split(jax.random.key(1), 4000)
    first = np.asarray(jax.vmap(lambda key: side_by_side._epochs(key, 5, 5, 8))(keys))[:, 0]
    counts = np.bincount(first, minlength=5)
    assert abs(counts - 800).max() < 4 * np.sqrt(800)


def test_smaller_training_sets_are_the_first_points_in_the_same_lanes():
    """What a lane with fewer points does is what training on these points alone does."""
    plan, recipe = Plan(steps=40, interval=20), Recipe(0.01, 0.0, 1.5, 0.1, batch_size=12, seed=2)
    order = np.argsort(DATA.labels, kind="stable")  # by class, so the first rows are not balanced
    sorted_rows = replace(DATA, X=DATA.X[order], labels=DATA.labels[order])
    data = TrainingData.of(sorted_rows)
    trainer = Trainer(NETWORK, data, plan, 60, lanes=2, keep_weights=True)
    trials = [Trial("few", recipe, 12), Trial("all", recipe, 60)]
    found = dict(trainer.run(trials, lambda work: None))
    few = sorted_rows.first(12)
    assert set(map(tuple, few.X.astype("f4"))) == set(map(tuple, np.asarray(data.train.X)[:12]))
    alone = train(NETWORK, few, recipe, plan)  # full batches: their order does not matter
    np.testing.assert_allclose(found["few"].weights[0]["w"], alone.weights[0]["w"], atol=1e-4)
    assert found["few"].train_accuracy == alone.train_accuracy
    assert found["few"].train_mse == pytest.approx(alone.train_mse, rel=1e-3)
    assert found["all"].train_mse != pytest.approx(alone.train_mse, rel=1e-3)


@pytest.mark.parametrize("monitor", ["validation", "train"])
def test_the_lowest_loss_is_scored_beside_the_highest_accuracy(monitor):
    data = three_clouds(94, noise=1.5)  # overlapping, so that the two are found at different steps
    plan = Plan(steps=400, interval=20, patience=20, monitor=monitor)
    trained = train(NETWORK, data, Recipe(0.05, batch_size=20), plan)
    curve, lowest = trained.curve, trained.least_loss
    assert min(curve["loss"]) == curve["loss"][curve["step"].index(lowest.step)]
    own = lowest.val_mse if monitor == "validation" else lowest.train_mse
    assert own == pytest.approx(min(curve["loss"]), rel=1e-4)
    assert lowest.step != trained.best_step
    stored = trained.result()
    assert stored["least_loss_test_mse"] == lowest.test_mse != stored["test_mse"]


def test_plain_gradient_descent():
    recipe = Recipe(0.5, 0.03, 1.5, 0.2, batch_size=len(DATA.X), seed=5)
    plan = Plan(steps=20, interval=20, optimiser="sgd")
    trained = train(NETWORK, DATA, recipe, plan)
    shape = program_shape(NETWORK, DATA, plan, recipe.batch_size)
    start = [tuple(np.asarray(one[name], float) for name in "wb") for one in started(shape, recipe)]
    wanted = plain_training.sgd(start, DATA.X, DATA.targets(DATA.labels), "mse", 0.5, 0.03, 20)
    got = [layer[name] for layer in trained.weights for name in "wb"]
    for ours, theirs in zip(got, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


def test_outputs_and_classes_must_agree():
    with pytest.raises(ValueError, match="2 outputs and clouds has 3 classes; take n_out=3"):
        train(nngp.FiniteNetwork(nngp.Architecture(1), 5, 2), DATA, Recipe())


def test_a_network_brings_its_own_variances():
    network = nngp.FiniteNetwork(nngp.Architecture(1, "tanh", 0.7, 0.05), 7, 3)
    plan = Plan(steps=20, interval=20)
    for recipe, variances in (
        (None, (0.7, 0.05)),
        (Recipe(0.01), (0.7, 0.05)),
        (Recipe(0.01, bias_var=0.3), (0.7, 0.3)),
        (Recipe(0.01, weight_var=2.0, bias_var=0.3), (2.0, 0.3)),
    ):
        used = train(network, DATA, recipe, plan).recipe
        assert (used.weight_var, used.bias_var) == variances
    assert train(network, DATA, []) == []
    layered = nngp.FiniteNetwork(nngp.Architecture(1, "tanh", (1.0, 2.0)), 7, 3)
    with pytest.raises(ValueError, match="one weight_var and one bias_var for all layers"):
        train(layered, DATA)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"X": np.full((60, 2), np.nan)}, "the training inputs hold values that are not finite"),
        ({"X_test": np.full((60, 2), np.inf)}, "the test inputs hold values that are not finite"),
        ({"X_val": np.zeros((0, 2)), "labels_val": np.zeros(0, int)}, "at least one point"),
        ({"labels_test": np.zeros(59, int)}, "the test part has inputs .* and 59 labels"),
        ({"X_test": np.zeros((60, 3))}, "and 2 features"),
        ({"labels": np.full(60, 3)}, "training labels must be whole numbers from 0 to 2"),
        ({"labels": np.zeros(60)}, "training labels must be whole numbers"),
    ],
)
def test_data_that_cannot_be(change, said):
    with pytest.raises(ValueError, match=said):
        train(NETWORK, replace(DATA, **change), Recipe())


def shape(*dropout):
    """Residual, layer norm, units side by side and, where it is asked for, dropout."""
    dense = nngp.Dense(1.6, 0.1)
    inside = nngp.LayerNorm(), nngp.Act("tanh"), *dropout, dense
    joined = nngp.Concat(nngp.Act("relu"), nngp.Chain())
    net = nngp.Chain(dense, nngp.Residual(*inside), joined, dense)
    return nngp.FiniteNetwork(net, 8, 3)


def test_other_shapes_descend_on_the_loss():
    """A step of plain descent is the gradient: its product with a direction is the slope there."""
    network = shape()
    plan = Plan(steps=1, interval=1, optimiser="sgd")
    recipe = Recipe(0.1, 0.0, 1.6, 0.1, batch_size=60, seed=2)
    start = [
        {name: np.asarray(part, float) for name, part in layer.items()}
        for layer in started(program_shape(network, DATA, plan, 60), recipe)
    ]
    moved = train(network, DATA, recipe, plan).weights
    rng = np.random.default_rng(0)
    way = [{name: rng.standard_normal(part.shape) for name, part in one.items()} for one in start]

    def loss(t):
        at = [{k: one[k] + t * go[k] for k in one} for one, go in zip(start, way, strict=True)]
        return np.mean((network.forward(at, DATA.X) - DATA.targets(DATA.labels)) ** 2)

    slope = sum(
        np.sum((one[k] - new[k]) / 0.1 * go[k])
        for one, new, go in zip(start, moved, way, strict=True)
        for k in one
    )
    assert slope == pytest.approx((loss(1e-4) - loss(-1e-4)) / 2e-4, rel=1e-3)


def test_dropout_is_for_steps_and_not_for_scores():
    network = shape(nngp.Dropout(0.8))
    still = Recipe(1e-12, batch_size=60, seed=3)  # the weights stay as they are
    curve = train(network, DATA, still, Plan(steps=4, interval=2)).curve
    assert len(set(curve["train_loss"])) == 2
    assert len(set(curve["loss"])) == 1
    trained = train(network, DATA, Recipe(0.01), Plan(steps=200, interval=20))
    outputs = network.forward(trained.weights, DATA.X_test)
    assert trained.test_accuracy == np.mean(outputs.argmax(axis=1) == DATA.labels_test)
    assert trained.test_accuracy > 0.8


def test_shapes_of_several_variances_need_them_in_the_recipe():
    net = nngp.FiniteNetwork(nngp.Chain(nngp.Dense(1.0), nngp.Act("relu"), nngp.Dense(2.0)), 8, 3)
    with pytest.raises(ValueError, match="give them in the recipe"):
        train(net, DATA)
    assert train(net, DATA, Recipe(weight_var=1.5, bias_var=0.1), Plan(steps=20, interval=20))
