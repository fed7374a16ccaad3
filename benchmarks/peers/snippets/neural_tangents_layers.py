import jax
import jax.numpy as jnp
import numpy as np
from neural_tangents import stax

jax.config.update("jax_enable_x64", True)

X = np.random.default_rng(0).standard_normal((6, 4))

for name, layer in {
    "ABRelu(0.3, 2)": stax.ABRelu(0.3, 2.0),
    "Abs": stax.Abs(),
    "Sign": stax.Sign(),
    "Erf(2, 0.5, 0.1)": stax.Erf(2.0, 0.5, 0.1),
    "Erf(1, 1000)": stax.Erf(1.0, 1000.0),
    "Sigmoid_like": stax.Sigmoid_like(),
    "Gelu": stax.Gelu(),
    "Sin(2, 3, 0.4)": stax.Sin(2.0, 3.0, 0.4),
    "Cos(2, 3, 0.4)": stax.Cos(2.0, 3.0, 0.4),
    "Rbf(0.7)": stax.Rbf(0.7),
    "Gaussian(2, -0.3)": stax.Gaussian(2.0, -0.3),
    "Exp(0.5, 0.4)": stax.Exp(0.5, 0.4),
    "Gabor": stax.Gabor(),
    "Monomial(4)": stax.Monomial(4),
    "Polynomial(1, -2, 0, 0.5)": stax.Polynomial([1.0, -2.0, 0.0, 0.5]),
    "RectifiedMonomial(0)": stax.RectifiedMonomial(0),
    "RectifiedMonomial(1)": stax.RectifiedMonomial(1),
    "ExpNormalized(1, -1)": stax.ExpNormalized(),
    "ElementwiseNumerical(softplus)": stax.ElementwiseNumerical(jax.nn.softplus, deg=25),
    "Elementwise(map)": stax.Elementwise(
        nngp_fn=lambda cov, q1, q2: jnp.sqrt(q1 * q2) * jnp.exp(cov / jnp.sqrt(q1 * q2) - 1)
    ),
}.items():
    dense = stax.Dense(1, 1.6**0.5, 0.1**0.5)
    K = stax.serial(dense, layer, dense)[2](X, None, ("nngp", "ntk"))
    # without the diagonal, which is NaN for RectifiedMonomial
    print(f"{name} K", np.asarray(K.nngp)[0, 1:].tolist())
    print(f"{name} T", np.asarray(K.ntk)[0, 1:].tolist())
