"""The posterior of the last layer given the hidden layers, in closed form.

Takes networks of finite width and data; gives for each network drawn from the prior the mean that
an ensemble which shares its hidden layers has (`ensemble.py` samples that ensemble by descent):

    f(x) = ψ(x)·Ψᵀ (Ψ Ψᵀ + noise_var)⁻¹ Y = ψ(x)·(Ψᵀ Ψ + noise_var)⁻¹ Ψᵀ Y

with ψ the features and Ψ those of the training inputs: ridge regression on random features. The
smaller of the two matrices is factored.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve
from numpy.typing import ArrayLike

from nngp import FiniteNetwork
from nngp_paper.arrays import Array, DeviceArray
from nngp_paper.finite.ensemble import LastLayer, as_noise, checked_data, last_variances


def last_layer_means(
    network: FiniteNetwork,
    X: ArrayLike,
    Y: ArrayLike,
    X_test: ArrayLike,
    n_networks: int,
    noise_vars: Sequence[float],
    seed: int = 0,
) -> Array:
    """Posterior means at test inputs given the hidden layers of each network, for each noise
    variance: (networks, noises, n_test, n_out). Networks are those of `network.sample`."""
    inputs, tests, targets = checked_data(network, X, Y, X_test)
    found = network.evaluate(
        LastLayer(_posterior_means, network.functions(inputs.shape[1])),
        inputs,
        *(targets, tests, last_variances(network)),
        np.array([as_noise(one) for one in noise_vars]),
        n_networks=n_networks,
        seed=seed,
        progress=False,
    )
    return np.asarray(found)


def _posterior_means(
    own: DeviceArray,
    Y: DeviceArray,
    tests: DeviceArray,
    noise_vars: DeviceArray,
    start: DeviceArray,
    key: DeviceArray,
) -> DeviceArray:
    """Means of one network, (noises, n_test, n_out), for any start and random numbers."""
    wide = own.shape[1] > len(own)
    gram, right = (own @ own.T, Y) if wide else (own.T @ own, own.T @ Y)

    def mean(noise_var: DeviceArray) -> DeviceArray:
        factor = jnp.linalg.cholesky(gram + noise_var * jnp.eye(len(gram)))
        solved = cho_solve((factor, True), right)
        return tests @ (own.T @ solved if wide else solved)

    return jax.vmap(mean)(noise_vars)
