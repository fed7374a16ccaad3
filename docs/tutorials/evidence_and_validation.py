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
# # Evidence against validation
# Which depth, which variances? A validation set can choose, or the log evidence of the training data
# alone, or leave-one-out. Compare the three on digits, see where they disagree, and what each costs.

# %% [markdown]
# The three judges:
#
# - **Validation** holds some labelled data back and measures the error on them.
# - **Evidence** is the probability $\log p(Y \mid X)$ that the network gives to all training targets
#   before it sees them. It holds nothing back. One factorisation gives it, and its gradient.
# - **Leave-one-out** predicts each training point from all others. The same factorisation gives all
#   $n$ predictions.
#
# ## A grid of networks
# 400 digits to train, 400 to validate, the rest to test. `nngp.Sweep` scores many networks on one data
# set; inner products of the inputs are computed once.

# %%
import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import nngp

X, y = load_digits(return_X_y=True)
X, order = nngp.normalize(X), np.random.default_rng(0).permutation(len(X))
X, y = X[order], y[order]
Y = np.eye(10)[y] - 0.1
train, val, test = slice(0, 400), slice(400, 800), slice(800, None)

depths = (1, 2, 3, 5, 8, 12)
weight_vars = np.geomspace(0.5, 8, 9)
grid = [nngp.Architecture(depth, "erf", w, bias_var=0.1) for depth in depths for w in weight_vars]

began = time.perf_counter()
sweep = nngp.Sweep(X[train], Y[train], X[val], Y[val], X[test], Y[test], noise_var=1e-2)
results = list(sweep.run(grid))
print(len(grid), "networks")


def surface(name):
    return np.array([getattr(result, name) for result in results]).reshape(len(depths), -1)


# %% [markdown]
# `condition` gives leave-one-out errors:

# %%
left_out = []
for net in grid:
    posterior = nngp.condition(net, X[train], Y[train], noise_var=1e-2)
    left_out.append(np.mean((posterior.leave_one_out().mean - Y[train]) ** 2))
left_out = np.reshape(left_out, (len(depths), -1))

# %% tags=["hide-input", "thumbnail"]
maps = {
    "log evidence": (surface("log_evidence"), 1),
    "error, leave-one-out": (left_out, -1),
    "error, validation": (surface("mse"), -1),
}
figure, panels = plt.subplots(1, 3, sharey=True, figsize=(7, 3.1))
for panel, (title, (values, sign)) in zip(panels, maps.items(), strict=True):
    goodness = sign * values
    shown = (goodness - np.median(goodness)) / (goodness.max() - np.median(goodness))
    panel.imshow(shown, cmap="magma", origin="lower", vmin=-1, vmax=1, aspect="auto")
    best = np.unravel_index(goodness.argmax(), goodness.shape)
    panel.plot(best[1], best[0], "*", ms=13, color="white", mec="black")
    panel.set(title=title, xticks=[0, 4, 8], yticks=range(len(depths)))
    panel.set_xticklabels([f"{w:.1f}" for w in weight_vars[[0, 4, 8]]])
    panel.set_yticklabels(depths)
    panel.grid(False)
panels[0].set_ylabel("depth")
panels[1].set_xlabel("weight variance")
plt.show()

# %% [markdown]
# Bright is good, and the star is the choice. The valleys have one shape: deep networks need a weight
# variance near the critical one. (For erf with this bias it is the number printed here.)

# %%
print(f"critical weight variance: {nngp.regimes.critical_line('erf', 0.1):.2f}")

# %% [markdown]
# ## What each choice is worth
# Judge the three choices on the test set, beside the best network that the test set itself would have
# chosen, and the median of the grid.

# %%
test_error, test_accuracy = surface("test_mse"), surface("test_accuracy")


def report(name, index):
    depth, weight_var = depths[index[0]], weight_vars[index[1]]
    print(f"{name:>16}: depth {depth:2}, weight variance {weight_var:4.1f}; "
          f"test error {test_error[index]:.4f}, accuracy {test_accuracy[index]:.3f}")


for title, (values, sign) in maps.items():
    report(title.removeprefix("error, "), np.unravel_index((sign * values).argmax(), values.shape))
report("best on test", np.unravel_index(test_error.argmin(), test_error.shape))
print(f"median of the grid: test error {np.median(test_error):.4f}")

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 3, sharey=True, figsize=(7, 3.1))
for panel, (title, (values, sign)) in zip(panels, maps.items(), strict=True):
    for row, depth in enumerate(depths):
        colour = plt.get_cmap("viridis")(row / len(depths))
        panel.plot(values[row], test_error[row], "o", color=colour, mec="white", mew=0.4, ms=6)
    best = np.unravel_index((sign * values).argmax(), values.shape)
    panel.plot(values[best], test_error[best], "*", ms=13, color="#d9622b", mec="black")
    panel.set(xlabel=title)
panels[0].set_ylabel("error on the test set")
panels[0].set_title("dark: shallow, bright: deep")
plt.show()

# %% [markdown]
# ## When they disagree
# Noise is where evidence and validation part. For classes, squared error on one-hot targets is not
# the task, and the noise is no measurement noise. The evidence cares whether the *spread* of the
# targets is as predicted; accuracy only asks which output is the largest.

# %%
noises = np.geomspace(1e-6, 1.0, 13)
net = nngp.Architecture(3, "erf", 2.0, 0.1)
evidence, val_error, val_accuracy = [], [], []
for noise in noises:
    posterior = nngp.condition(net, X[train], Y[train], noise_var=noise)
    predicted = posterior.mean(X[val])
    evidence.append(posterior.log_evidence)
    val_error.append(np.mean((predicted - Y[val]) ** 2))
    val_accuracy.append(np.mean(predicted.argmax(axis=1) == y[val]))

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 3, figsize=(7, 2.9))
curves = {"log evidence": evidence, "validation error": val_error, "validation accuracy": val_accuracy}
for panel, (title, values) in zip(panels, curves.items(), strict=True):
    best = np.argmin(values) if "error" in title else np.argmax(values)
    panel.semilogx(noises, values, "o-", ms=3)
    panel.plot(noises[best], values[best], "*", ms=13, color="#d9622b", mec="black")
    panel.set(title=title, xticks=[1e-6, 1e-3, 1])
panels[1].set_xlabel("noise variance")
plt.show()

# %% [markdown]
# ## Costs
# With $n$ training and $m$ validation points and many networks, each network needs
#
# | | operations | labelled data held back | gradient |
# |---|---|---|---|
# | evidence | $n^3/3$ | none | yes, for about $2n^3/3$ more |
# | leave-one-out | $2n^3/3$ | none | yes, for about $2n^3$ more |
# | validation | $n^3/3 + n^2 m$ | $m$ | no |
#
# For two hyper-parameters a grid will do. For twenty, one for each column of a table say, only a
# gradient will: `nngp.NNGPRegressor` climbs the evidence, and lets leave-one-out decide where the
# evidence is known to err (the shape of the noise, the likelihood for classes).
#
# **Advice.** Climb the evidence. Check the winner on rows left out, which is free. Keep a validation
# set only if you have data to spare, and never choose by the test set.
