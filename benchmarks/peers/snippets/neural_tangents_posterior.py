import jax
import neural_tangents as nt
import numpy as np
from neural_tangents import stax

jax.config.update("jax_enable_x64", True)

rng = np.random.default_rng(0)
X, Y, X_test = (rng.standard_normal(shape) for shape in ((20, 4), (20, 2), (3, 4)))

dense = {"W_std": 1.6**0.5, "b_std": 0.1**0.5}
_, _, kernel_fn = stax.serial(
    stax.Dense(1, **dense), stax.Erf(), stax.Dense(1, **dense), stax.Erf(), stax.Dense(1, **dense)
)
predict_fn = nt.predict.gradient_descent_mse_ensemble(
    kernel_fn, X, Y, diag_reg=1e-2, diag_reg_absolute_scale=True
)
posterior = predict_fn(x_test=X_test, get="nngp", compute_cov=True)
print("mean", np.asarray(posterior.mean).ravel().tolist())
print("variance", np.diagonal(posterior.covariance).tolist())
