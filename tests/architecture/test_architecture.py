"""An Architecture is a validated, hashable value; bad descriptions get one clear sentence."""

import numpy as np
import pytest

import nngp


def test_equal_descriptions_are_equal_and_hash_alike():
    a = nngp.Architecture(2, "relu", 1.5, 0.1)
    b = nngp.Architecture(2, "ReLU", [1.5, 1.5, 1.5], np.array([0.1, 0.1, 0.1]))
    assert a == b
    assert hash(a) == hash(b)
    assert a != nngp.Architecture(2, "relu", 1.5, (0.1, 0.1, 0.2))


def test_variances_per_layer_run_from_input_to_output():
    net = nngp.Architecture(2, "tanh", (1.0, 2.0, 3.0), 0.5)
    assert net.weight_vars == (1.0, 2.0, 3.0)
    assert net.bias_vars == (0.5, 0.5, 0.5)
    assert net.truncated(1) == nngp.Architecture(1, "tanh", (1.0, 2.0), 0.5)


def test_it_is_frozen():
    with pytest.raises(AttributeError):
        nngp.Architecture(2).depth = 3


BAD_DESCRIPTIONS = [
    ({"depth": -1}, "depth must be a whole number"),
    ({"depth": 1.5}, "depth must be a whole number"),
    ({"depth": True}, "depth must be a whole number"),
    ({"depth": 1, "weight_var": -1.0}, "weight_var must be finite and not negative"),
    ({"depth": 1, "weight_var": 0.0}, "weight_var must be positive"),
    ({"depth": 1, "bias_var": float("nan")}, "bias_var must be finite"),
    ({"depth": 2, "weight_var": (1.0, 2.0)}, "has 2 values; a network of depth 2 has 3"),
    ({"depth": 1, "activation": "rellu"}, "unknown activation 'rellu'; did you mean: relu"),
]


def test_bad_descriptions_are_refused():
    for arguments, message in BAD_DESCRIPTIONS:
        with pytest.raises(ValueError, match=message):
            nngp.Architecture(**arguments)


def test_variances_may_be_numpy_numbers_but_not_strings():
    assert nngp.Architecture(1, "relu", np.array(1.5), np.float32(0.5)).weight_var == 1.5
    with pytest.raises(TypeError, match="must be a number or a sequence"):
        nngp.Architecture(1, "relu", "12")


@pytest.mark.parametrize("activation", [3, None])
def test_other_types_are_no_activation(activation):
    with pytest.raises(TypeError, match="activation must be a name, a callable"):
        nngp.Architecture(1, activation)


def test_named_activations_are_equal_and_survive_pickling():
    import pickle

    assert nngp.activations.leaky_relu(0.2) == nngp.activations.leaky_relu(0.2)
    assert nngp.Architecture(1, "leaky_relu") == nngp.Architecture(1, nngp.activations.leaky_relu())
    for name in (*nngp.activations.names(), nngp.activations.leaky_relu(0.3)):
        net = nngp.Architecture(2, name)
        assert pickle.loads(pickle.dumps(net)) == net
    mine = nngp.Activation(np.arctan, kinks=(1.0,))
    assert pickle.loads(pickle.dumps(mine)) == mine


def test_an_unhashable_callable_is_refused():
    class Unhashable:
        __hash__ = None

        def __call__(self, x):
            return x

    with pytest.raises(TypeError, match="must be hashable"):
        nngp.Activation(Unhashable())


def test_a_users_function_is_never_taken_for_ours():
    impostor = nngp.Activation(lambda x: 2 * np.maximum(x, 0), name="relu", kinks=(0,))
    assert nngp.curves.layer_covariance(impostor, 1.0, 1.0, 1.0) == pytest.approx(2.0, rel=1e-12)


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda x: np.full_like(x, np.nan), "returned NaN"),
        (lambda x: np.log(x), "returned NaN"),
        (lambda x: x.sum(), "must act elementwise"),
        (lambda x: x[:3], "must act elementwise"),
        (lambda x: np.exp(x**2), "grows too fast"),
        (lambda x: np.exp(30 * np.abs(x)), "grows too fast"),
        (lambda x: x + 1j, "complex"),
        (lambda x: float(x), "failed on a float64 array"),
        (lambda x: undefined_name, None),  # noqa: F821 - the user's own error passes through
    ],
)
def test_an_unusable_callable_is_explained(fn, message):
    if message is None:
        with pytest.raises(NameError):
            nngp.curves.layer_covariance(fn, 1.0, 1.0, 0.5)
    else:
        with pytest.raises(nngp.errors.ActivationError, match=message):
            nngp.curves.layer_covariance(fn, 1.0, 1.0, 0.5)


def test_a_jax_function_is_evaluated_in_double_precision():
    jax = pytest.importorskip("jax")
    theirs = nngp.curves.layer_covariance(jax.nn.silu, 1.0, 2.0, 0.3)
    assert theirs == pytest.approx(nngp.curves.layer_covariance("silu", 1.0, 2.0, 0.3), rel=1e-13)
    assert jax.numpy.asarray(1.0).dtype == np.float32  # and the global setting is untouched


def test_every_named_activation_agrees_with_its_closed_form_numerically():
    for name in nngp.activations.names():
        named = nngp.Architecture(1, name).activation
        anonymous = nngp.Activation(named.fn, kinks=named.kinks)
        expected = nngp.curves.layer_covariance(named, 0.7, 1.9, [0.4, -0.8])
        got = nngp.curves.layer_covariance(anonymous, 0.7, 1.9, [0.4, -0.8])
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14, err_msg=name)


def test_an_activation_is_written_by_its_name():
    assert f"{nngp.Architecture(2, 'erf').activation}" == "erf"
    assert str(nngp.Activation(np.tanh)) == "tanh"
