import json

import jax
import jax.numpy as jnp
import neural_tangents as nt
import numpy as np
from neural_tangents import stax

jax.config.update("jax_enable_x64", True)

rng = np.random.default_rng(0)
X, Y, X_test = (rng.standard_normal(shape) for shape in ((20, 4), (20, 2), (5, 4)))
dense = {"W_std": 1.6**0.5, "b_std": 0.1**0.5}
_, _, kernel_fn = stax.serial(
    stax.Dense(1, **dense), stax.Erf(), stax.Dense(1, **dense), stax.Erf(), stax.Dense(1, **dense)
)
found = {}

# Ensembles at finite and infinite time, of all layers and of the last.
ensemble = nt.predict.gradient_descent_mse_ensemble(
    kernel_fn, X, Y, learning_rate=0.7, diag_reg=1e-2
)
for get in ("ntk", "nngp"):
    for t in (3.0, 200.0, None):
        moments = ensemble(t=t, x_test=X_test, get=get, compute_cov=True)
        found[f"{get} {t}"] = [np.asarray(part).tolist() for part in moments]

# Another loss, with and without momentum.
classes = np.eye(2)[(X[:, 0] > 0).astype(int)]
theta = kernel_fn(X, None, "ntk")


def loss(f, y):
    return -jnp.mean(jnp.sum(y * jax.nn.log_softmax(f), axis=1))


for momentum in (None, 0.8):
    predict = nt.predict.gradient_descent(loss, theta, classes, 1.0, momentum)
    both = predict(
        jnp.array([1.0, 8.0, 40.0]), jnp.zeros((20, 2)), jnp.zeros((5, 2)),
        kernel_fn(X_test, X, "ntk"),
    )  # fmt: skip
    found[f"descent {momentum}"] = [np.asarray(part).tolist() for part in both]

# The empirical tangent kernel of a network of finite width, and its linearisation.
init, apply, _ = stax.serial(stax.Dense(30, **dense), stax.Erf(), stax.Dense(3, **dense))
_, params = init(jax.random.PRNGKey(0), (-1, 4))
moved = jax.tree_util.tree_map(lambda a: 1.1 * a + 0.1, params)
found["params"] = [[np.asarray(a).tolist() for a in layer] for layer in params]
found["empirical"] = [
    np.asarray(nt.empirical_ntk_fn(apply, trace_axes=axes)(X[:6], X_test, params)).tolist()
    for axes in ((), (-1,))
]
found["linear"] = np.asarray(nt.linearize(apply, params)(moved, X[:6])).tolist()
print(json.dumps(found))
