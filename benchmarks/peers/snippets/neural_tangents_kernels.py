import jax
import jax.numpy as jnp
import numpy as np
from neural_tangents import stax

jax.config.update("jax_enable_x64", True)

X = np.random.default_rng(0).standard_normal((6, 4))


def kernel_fn(activation, depth, W_std, b_std):
    layers = []
    for _ in range(depth):
        layers += [stax.Dense(1, W_std, b_std), activation]
    return stax.serial(*layers, stax.Dense(1, W_std, b_std))[2]


for name, activation in {
    "relu": stax.Relu(),
    "leaky_relu": stax.LeakyRelu(0.01),
    "erf": stax.Erf(),
    "gelu": stax.Gelu(),
    "sin": stax.Sin(),
    "tanh": stax.ElementwiseNumerical(jnp.tanh, deg=25),
}.items():
    K = kernel_fn(activation, depth=3, W_std=1.6**0.5, b_std=0.1**0.5)(X, None, "nngp")
    print(name, np.asarray(K)[0].tolist())
