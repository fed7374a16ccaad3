import jax
import jax.numpy as jnp
import neural_tangents as nt
import numpy as np
from neural_tangents import stax

jax.config.update("jax_enable_x64", True)

rng = np.random.default_rng(0)
X, Y, Xs = (rng.standard_normal(shape) for shape in ((40, 5), (40, 3), (4, 5)))

# examples/infinite_fcn.py
net = stax.serial(stax.Dense(1, 2.0, 0.05), stax.Relu(), stax.Dense(1, 2.0, 0.05))[2]
predict = nt.predict.gradient_descent_mse_ensemble(
    net, X, Y, diag_reg=1e-3, diag_reg_absolute_scale=True
)
nngp, ntk = predict(x_test=Xs, get=("nngp", "ntk"))
print("infinite_fcn nngp", np.asarray(nngp).ravel().tolist())
print("infinite_fcn ntk", np.asarray(ntk).ravel().tolist())

# examples/elementwise.py
layer = stax.Elementwise(
    nngp_fn=lambda cov, q1, q2: jnp.sqrt(q1 * q2) * jnp.exp(cov / jnp.sqrt(q1 * q2) - 1)
)
T = stax.serial(stax.Dense(1), layer)[2](X[:6], Xs, "ntk")
print("elementwise ntk", np.asarray(T).ravel().tolist())

# examples/elementwise_numerical.py
known = stax.serial(stax.Dense(1), stax.Gelu(), stax.Dense(1))[2](X[:6], Xs, ("nngp", "ntk"))
print("elementwise_numerical nngp", np.asarray(known.nngp).ravel().tolist())
print("elementwise_numerical ntk", np.asarray(known.ntk).ravel().tolist())

# examples/function_space.py, with the kernel of the infinite network for the empirical one
theta = stax.serial(stax.Dense(1, 1.0, 0.05), stax.Erf(), stax.Dense(1, 1.0, 0.05))[2]
descend = nt.predict.gradient_descent_mse(theta(X, None, "ntk"), Y)
start, start_test = np.zeros_like(Y), np.zeros((len(Xs), 3))
_, later = descend(1000.0, start, start_test, theta(Xs, X, "ntk"))
print("function_space mean", np.asarray(later).ravel().tolist())
