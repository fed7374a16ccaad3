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
# Which depth, which variances? A validation set can choose, or the log evidence of the training
# data alone, or leave-one-out. Compare the three on digits, see where they disagree, and what each
# costs.

# %% [markdown]
# The three judges:
#
# - **Validation** holds some labelled data back and measures the error on them.
# - **Evidence** is the probability $\log p(Y \mid X)$ that the network gives to all training
#   targets before it sees them. It holds nothing back. One factorisation gives it, and its
#   gradient.
# - **Leave-one-out** predicts each training point from all others. The same factorisation gives all
#   $n$ predictions.
#
# ## A grid of networks
# 400 digits to train, 400 to validate, the rest to test. One `condition` for each network gives all
# scores.

# %%
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

posteriors = [nngp.condition(net, X[train], Y[train], noise_var=1e-2) for net in grid]
print(len(grid), "networks")


def surface(values):
    return np.reshape(values, (len(depths), -1))


evidence = surface([posterior.log_evidence for posterior in posteriors])
val_means = [posterior.mean(X[val]) for posterior in posteriors]
val_error = surface([np.mean((mean - Y[val]) ** 2) for mean in val_means])

# %% [markdown]
# A posterior gives leave-one-out errors as well. It also gives a second evidence, for reasons that
# come below: the evidence with the overall scale of kernel and noise set to its best value, which
# has a formula.

# %%
left_out, free_scale = [], []
for posterior in posteriors:
    mean, variance = posterior.leave_one_out(noise=True)
    left_out.append(np.mean((mean - Y[train]) ** 2))
    # With Q = y·K⁻¹y the best scale is Q/n; (y - mean)/variance is K⁻¹y
    Q, n = np.sum(Y[train] * (Y[train] - mean) / variance[:, None]), Y[train].size
    free_scale.append(posterior.log_evidence + Q / 2 - n / 2 * (1 + np.log(Q / n)))
left_out, free_scale = surface(left_out), surface(free_scale)

# %% tags=["hide-input", "thumbnail"]
maps = {
    "log evidence": (evidence, 1),
    "log evidence, best scale": (free_scale, 1),
    "error, leave-one-out": (left_out, -1),
    "error, validation": (val_error, -1),
}
figure, panels = plt.subplots(2, 2, sharex=True, sharey=True, figsize=(7, 4.5))
for panel, (title, (values, sign)) in zip(panels.flat, maps.items(), strict=True):
    goodness = sign * values
    shown = (goodness - np.median(goodness)) / (goodness.max() - np.median(goodness))
    panel.imshow(shown, cmap="magma", origin="lower", vmin=-1, vmax=1, aspect="auto")
    best = np.unravel_index(goodness.argmax(), goodness.shape)
    panel.plot(best[1], best[0], "*", ms=14, color="white", mec="black")
    panel.set(title=title, xticks=[0, 2, 4, 6, 8], yticks=range(len(depths)))
    panel.set_xticklabels([f"{w:.1f}" for w in weight_vars[::2]])
    panel.set_yticklabels(depths)
    panel.grid(False)
for panel in panels[1]:
    panel.set_xlabel("weight variance")
for panel in panels[:, 0]:
    panel.set_ylabel("depth")
plt.show()

# %% [markdown]
# Bright is good, and the star is the choice. All four have a ridge that narrows with depth: deep
# networks need a weight variance near the critical one.

# %%
print(f"critical weight variance: {nngp.regimes.critical_line('erf', 0.1):.2f}")

# %% [markdown]
# ## What each choice is worth
# Judge the choices on the test set, next to the best network that the test set itself would have
# chosen, and the median of the grid.

# %%
test_means = [posterior.mean(X[test]) for posterior in posteriors]
test_error = surface([np.mean((mean - Y[test]) ** 2) for mean in test_means])
test_accuracy = surface([np.mean(mean.argmax(axis=1) == y[test]) for mean in test_means])


def report(name, index):
    depth, weight_var = depths[index[0]], weight_vars[index[1]]
    print(
        f"{name:>24}: depth {depth:2}, weight variance {weight_var:4.1f}; "
        f"test error {test_error[index]:.4f}, accuracy {test_accuracy[index]:.3f}"
    )


for title, (values, sign) in maps.items():
    report(title.removeprefix("error, "), np.unravel_index((sign * values).argmax(), values.shape))
report("best on test", np.unravel_index(test_error.argmin(), test_error.shape))
print(f"median of the grid: test error {np.median(test_error):.4f}")

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 3, sharey=True, figsize=(7, 3.1))
for panel, (title, (values, sign)) in zip(panels, maps.items(), strict=False):
    for row in range(len(depths)):
        colour = plt.get_cmap("viridis")(row / len(depths))
        panel.plot(values[row], test_error[row], "o", color=colour, mec="white", mew=0.4, ms=6)
    best = np.unravel_index((sign * values).argmax(), values.shape)
    panel.plot(values[best], test_error[best], "*", ms=13, color="#d9622b", mec="black")
    panel.set(xlabel=title, ylim=(0, 0.04))
    worst = np.quantile(values, 0.5 - 0.35 * sign)
    panel.set_xlim(*np.sort([worst, values[best] + 0.06 * (values[best] - worst)]))
panels[0].set_ylabel("error on the test set")
panels[0].set_title("dark: shallow, bright: deep")
plt.show()

# %% [markdown]
# Each point is a network; the axes leave out the worst. A good judge puts the points on one falling
# or rising line, so that its best network is the best on the test set.
#
# ## When they disagree
# The plain evidence chose another network than the others, for one reason. It judges a network's
# *scale* as well: the targets must be as large as the network says they are. A larger weight
# variance makes outputs larger, beyond what one-hot targets are, and the evidence objects. Errors
# do not care: the mean stays the same if kernel and noise are scaled together.
#
# So the weight variance had two jobs, the shape of the kernel and its scale. With the scale chosen
# by itself (second panel; in practice a weight variance of its own for the last layer) the evidence
# agrees with the others.
#
# Two more causes of disagreement, with these data or yours:
#
# - **The likelihood is not the task.** One-hot targets with Gaussian noise are a fiction. The
#   evidence is exact for that fiction. Validation measures what you want.
# - **Validation is noisy.** Many networks have errors that differ by less than their sampling
#   error. A small validation set chooses among them by chance, and its winner looks better
#   than it is.

# %%
errors = np.mean((val_means[val_error.argmin()] - Y[val]) ** 2, axis=1)
smallest, spread = errors.mean(), errors.std() / np.sqrt(len(errors))
near = np.sum(val_error < smallest + spread)
print(f"validation error of the winner: {smallest:.4f} ± {spread:.4f}")
print(f"networks within one standard error of it: {near} of {len(grid)}")

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
# **Advice.** Climb the evidence. Check the winner on held-out rows, which is free. Keep a
# validation set only if you have data to spare, and never choose by the test set.
