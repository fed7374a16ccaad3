# ---
# jupytext:
#   text_representation:
#     extension: .py
#     format_name: percent
# kernelspec:
#   name: python3
#   display_name: Python 3
# ---

# %% [markdown]
# # Your own activation
# Write a function of one number. Everything else follows from it: the kernel of the infinitely wide
# network at any depth, its phase diagram, predictions with their uncertainty, and the error of
# each.

# %% [markdown]
# ## In two minutes
# An activation is any function that maps an array to an array of the same shape, element by
# element. Wrap it, name a network, predict.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import nngp

# your function here
bump = nngp.Activation(lambda x: x * np.exp(-(x**2) / 8), name="bump")

net = nngp.Architecture(depth=3, activation=bump, weight_var=2.0, bias_var=0.1)

X, y = load_digits(return_X_y=True)
X = nngp.normalize(X)
posterior = nngp.condition(net, X[:500], np.eye(10)[y[:500]] - 0.1, noise_var=1e-3)
mean, variance = posterior.predict(X[500:])
print(f"{np.mean(mean.argmax(axis=1) == y[500:]):.3f} of 1297 digits right")

# %% [markdown]
# That is all. No formula for the kernel was needed: expectations over the Gaussian pre-activations
# are computed numerically, to twelve digits. The estimators take it too:
# `nngp.NNGPRegressor(activation=bump)`. (A model with a Python function of yours cannot be saved to
# a file. Names can.)
#
# The rest of this page says what to do about kinks, how to see the errors, and what happens with a
# function that does not qualify.
#
# ## Kinks and jumps
# A kink is a point where the function or its slope jumps. They are found by a search. If you know
# them, say so: it is faster and more accurate.

# %%
staircase = nngp.Activation(
    lambda x: np.clip(x, -2, 2) + 0.5 * np.sign(x), name="staircase", kinks=(-2, 0, 2)
)


def leaky_wave(x):  # no kinks declared
    return np.maximum(x, 0) + 0.3 * np.sin(3 * np.minimum(x, 0))


wave = nngp.Activation(leaky_wave)

# %% [markdown]
# Functions of JAX arrays work as they are. They are evaluated in double precision, and no setting
# of JAX is changed.


# %%
def of_jax(x):
    import jax

    return x * jax.numpy.tanh(jax.nn.softplus(x))


mish = nngp.Activation(of_jax, name="mish")

# %% [markdown]
# ## One layer, with its error
# A layer turns two Gaussian numbers $u, v$ into $\mathrm{E}[\varphi(u)\,\varphi(v)]$.
# `nngp.curves.layer_covariance` computes it and says how far it may be off. Check it by an
# independent way: a million random pairs, and a plain sum over a fine grid.

# %%
q1, q2, c = 1.0, 2.0, 0.5
z = np.random.default_rng(0).standard_normal((2, 1_000_000))
u, v = np.sqrt(q1) * z[0], np.sqrt(q2) * (c * z[0] + np.sqrt(1 - c**2) * z[1])
t = np.linspace(-9, 9, 1801)
density = np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi) * 0.01
grid_u = np.sqrt(q1) * t[:, None]
grid_v = np.sqrt(q2) * (c * t[:, None] + np.sqrt(1 - c**2) * t)

print(f"{'':9} {'nngp':>18} {'its error':>9}   {'fine grid':>18}   Monte Carlo")
for phi in (bump, staircase, wave, mish):
    value, error = nngp.curves.layer_covariance(phi, q1, q2, c, return_error=True)
    on_grid = density @ (phi(grid_u) * phi(grid_v)) @ density
    drawn = phi(u) * phi(v)
    spread = drawn.std() / np.sqrt(len(drawn))
    print(
        f"{phi.name:10} {value:.15f} {error:9.0e}   {on_grid:.15f}   "
        f"{drawn.mean():.4f} ± {spread:.4f}"
    )

# %% [markdown]
# For the smooth functions the grid agrees to rounding. Where there are kinks and jumps it
# errs much earlier, because it steps over them. The second number is the error that `nngp` states.

# %% tags=["hide-input", "thumbnail"]
snake = nngp.Activation(lambda x: x + np.sin(x) ** 2, name="snake")
mine = (bump, staircase, snake)
x = np.linspace(-4, 4, 801)
angle = np.linspace(0, 180, 181)
figure, panels = plt.subplots(1, 2, figsize=(7, 3.6))
for phi in mine:
    curve = nngp.curves.compile_curve(nngp.Architecture(3, phi, 2.0, 0.1))
    panels[0].plot(x, phi(x), label=phi.name)
    panels[1].plot(angle, curve(np.cos(np.radians(angle))) / curve.variance, label=phi.name)
panels[0].set(title="the function", xlabel="x", ylim=(-2.7, 4))
panels[1].set(title="its kernel, three layers", xlabel="angle between two inputs (degrees)")
panels[1].set(ylabel="correlation", xticks=[0, 45, 90, 135, 180])
panels[0].legend(loc="upper left")
plt.show()

# %% [markdown]
# Look at the left end of the right picture. A jump, as in `staircase`, makes the kernel fall at
# once, with a corner at angle zero: functions drawn from that network are rough.
#
# ## Where can it be deep?
# The phase diagram needs one line, for your function as for a named one: (a) phases, (b) how many
# layers remember, (c) the map of correlations from layer to layer, (d) variance and correlation by
# layer. `regimes.diagnose` puts it into words for one network.

# %%
figure = nngp.plots.phase_diagram(bump)

# %%
print(nngp.regimes.diagnose(nngp.Architecture(30, bump, 2.0, 0.1)))

# %% [markdown]
# ## Compared with the named ones
# Same data, depth 3. Each activation gets the best weight variance out of three, judged by the
# log evidence of the training data alone.

# %%
targets = np.eye(10)[y[:500]] - 0.1
for phi in (*mine, "relu", "erf", "gelu"):
    nets = [nngp.Architecture(3, phi, w, 0.1) for w in (1.0, 2.0, 4.0)]
    posteriors = [nngp.condition(net, X[:500], targets, noise_var=1e-3) for net in nets]
    best = max(posteriors, key=lambda posterior: posterior.log_evidence)
    net, right = best.network, best.mean(X[500:]).argmax(axis=1) == y[500:]
    print(
        f"{net.activation.name:>10}: weight variance {net.weight_var:.1f}, "
        f"log evidence {best.log_evidence:6.0f}, accuracy {right.mean():.3f}"
    )

# %% [markdown]
# All are within some digits of each other; the jump of `staircase` costs most. On these data no
# activation is worth a fight; read [an activation designed by the
# evidence](designed_activation.py) for a search over functions.
#
# ## What cannot work
# An activation must be defined on the whole real line, act element by element, and grow slowly
# enough that a Gaussian input leaves a finite variance. If not, the message says which.

# %%
bad = {
    "log": lambda x: np.log(x),
    "softmax": lambda x: np.exp(x).sum(),
    "scalar only": lambda x: x if x > 0 else 0.0,
    "explosive": lambda x: np.exp(x**2),
}
for name, fn in bad.items():
    try:
        nngp.curves.layer_covariance(nngp.Activation(fn, name=name), 1.0, 1.0, 0.5)
    except (nngp.errors.ActivationError, nngp.errors.VarianceError) as error:
        print(f"{type(error).__name__}: {error}\n")
