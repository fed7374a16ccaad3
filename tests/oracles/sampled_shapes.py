"""A network for each part and five composed ones, and kernels of sampled networks.

Weights are NumPy's normal numbers, and inputs have one norm; two of them are equal, which dropout
tells apart.
"""

import jax
import numpy as np

import nngp
from nngp import Act, Chain, Concat, Dense, Dropout, LayerNorm, Product, Repeat, Residual, Sum
from nngp.finite.batched_networks import DrawnNetwork
from nngp.finite.tangent_kernel import outputs_and_tangents
from nngp.finite.weights import layers_from

D, RELU, ERF, TANH = Dense(1.4, 0.1), Act("relu"), Act("erf"), Act("tanh")
PARTS = {
    "dense": Chain(D, Dense(0.7, 0.2)),
    "act": Chain(D, ERF, Dense(1.5, 0.05)),
    "residual": Chain(D, Residual(RELU, Dense(1.2, 0.1)), TANH, Dense(1.0)),
    "layer norm": Chain(Dense(3.0, 0.5), LayerNorm(), RELU, Dense(2.0)),
    "dropout": Chain(D, RELU, Dropout(0.6), Dense(1.5), ERF, Dense(1.0, 0.1)),
    "sum": Chain(Sum(Chain(D, RELU, Dense(0.8)), Dense(0.5, 0.3)), ERF, Dense(1.3)),
    "product": Chain(Product(Chain(D, RELU), Chain(Dense(1.0), TANH)), Dense(2.0, 0.1)),
    "concat": Chain(
        Concat(Chain(D, RELU), Chain(Dense(2.0), ERF), shares=(0.25, 0.75)), Dense(1.6)
    ),
    "repeat": Chain(D, Repeat(Chain(RELU, Dense(1.8, 0.1)), 3)),
}
COMPOSED = {
    "residual blocks with layer norm": Chain(
        Dense(1.0),
        Repeat(Residual(LayerNorm(), RELU, Dense(1.0, 0.1), TANH, Dense(0.5)), 2),
        LayerNorm(),
        RELU,
        Dense(1.5),
    ),
    "gates": Chain(
        D,
        RELU,
        Product(Chain(Dense(1.0, 0.2), ERF), Chain(Dense(1.5), RELU)),
        Dense(1.2),
        TANH,
        Dense(1.0, 0.1),
    ),
    "inputs beside hidden units": Chain(
        Concat(Chain(), Chain(D, RELU)), Dense(1.5), RELU, Dense(1.0)
    ),
    "dropout of inputs and in blocks": Chain(
        Dropout(0.8),
        Dense(1.5),
        Repeat(Residual(RELU, Dropout(0.7), Dense(0.8)), 2),
        RELU,
        Dense(1.0, 0.1),
    ),
    "outputs that are no affine map": Chain(
        D, Residual(ERF, Sum(Dense(1.0), Chain(Dense(1.5), RELU, Dense(0.7, 0.1)))), LayerNorm()
    ),
}
X = nngp.normalize(np.random.default_rng(0).standard_normal((4, 4)))[[0, 1, 2, 3, 0]]
AT_A_TIME = 25  # networks


def sampled(net, width, networks, seed=0):
    """K and Θ of networks, each (networks, n, n)."""
    layout = nngp.FiniteNetwork(net, width).layout(X.shape[1])
    rng, start = np.random.default_rng(seed), jax.random.key(seed)

    def one(row, key):
        variances = np.array(net.weight_vars), np.array(net.bias_vars)
        drawn = DrawnNetwork(layers_from(layout.shapes, row, *variances), layout, *variances, key)
        _, kernels, tangent = outputs_and_tangents(drawn, X)
        return kernels[-1], tangent

    with jax.enable_x64(True):
        many = jax.jit(jax.vmap(one))
        found = []
        for i in range(networks // AT_A_TIME):
            rows = rng.standard_normal((AT_A_TIME, layout.n_weights))
            found.append(many(rows, jax.random.split(jax.random.fold_in(start, i), AT_A_TIME)))
        return tuple(np.concatenate(part) for part in zip(*found, strict=True))
