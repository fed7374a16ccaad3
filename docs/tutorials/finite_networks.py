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
# # Finite networks become the process
# Draw networks with random weights and make them wider. Their kernels become the exact one, their
# outputs become Gaussian, and an ensemble that is trained in its last layer becomes the posterior.

# %% [markdown]
# The Gaussian process is the limit of infinite width. How wide is wide? `nngp.FiniteNetwork` draws
# networks of any width from the same prior (extra `finite`, which needs JAX). Every draw is fixed
# by its seed.

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import nngp
from nngp import finite
from nngp_paper.finite import last_layer_ensemble

net = nngp.Architecture(3, "relu", weight_var=2.0, bias_var=0.1)
angle = np.linspace(0, 2 * np.pi, 73)
circle = np.sqrt(2) * np.column_stack([np.cos(angle), np.sin(angle)])  # x·x/d = 1

# %% [markdown]
# ## Draws
# Networks of width 4 have few bends, and their sizes differ wildly: some are almost zero
# everywhere. At width 256 the draws look like those of the process on the right.

# %% tags=["hide-input", "thumbnail"]
figure, panels = plt.subplots(1, 3, sharey=True, figsize=(7, 3))
colours = plt.get_cmap("viridis")(np.linspace(0, 0.9, 12))
widths = {"width 4": 4, "width 256": 256, "infinite width": None}
for panel, (title, width) in zip(panels, widths.items(), strict=True):
    if width is None:
        draws = nngp.sample_prior(net, circle, 12, seed=0)
    else:
        draws = nngp.FiniteNetwork(net, width).sample(circle, n_networks=12)[:, :, 0]
    for draw, colour in zip(draws, colours, strict=True):
        panel.plot(np.degrees(angle), draw, color=colour, lw=1.1)
    panel.set(title=title, xticks=[0, 180, 360], ylim=(-5, 5))
panels[1].set_xlabel("direction of the input (degrees)")
panels[0].set_ylabel("output")
plt.show()

# %% [markdown]
# ## Kernels
# In a finite network the covariance of a layer is an average over its units. So it is random, and
# its error should fall as $\text{width}^{-1/2}$. `nngp.finite.convergence` draws networks of
# several widths and compares them with the exact kernel, layer by layer.

# %%
three = circle[[0, 9, 27]]  # inputs at 0, 45 and 135 degrees
found = finite.convergence(net, three, widths=(8, 20, 50, 128), n_networks=2000, progress=False)
print("slope of log error against log width, by layer:", found.slope.round(2))
print("its standard error:                            ", found.slope_error.round(2))

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 2, figsize=(7, 3.4))
for layer in (1, 2, 3):
    colour = f"C{layer - 1}"
    panels[0].loglog(found.widths, found.error[:, layer - 1], "o", color=colour)
    panels[0].loglog(found.widths, found.decay.line(layer), color=colour, lw=1)
    panels[0].text(9, found.error[0, layer - 1], f" layer {layer}", color=colour, va="center")
panels[0].set(title="relative error of the kernel", xlabel="width", xticks=found.widths)
panels[0].set_xticklabels(found.widths)
panels[0].minorticks_off()
panels[0].set_yticks([0.1, 0.2, 0.5, 1.0], labels=["10%", "20%", "50%", "100%"])
panels[1].errorbar(found.widths, found.kurtosis, found.kurtosis_error, fmt="o", capsize=2)
panels[1].plot(found.widths, found.expected_kurtosis, color="C1", lw=1.2)
panels[1].axhline(0, color="0.5", lw=0.8)
panels[1].set_xscale("log", base=2)
panels[1].set(title="excess kurtosis of an output", xlabel="width", xticks=found.widths)
panels[1].set_xticklabels(found.widths)
panels[1].text(20, found.expected_kurtosis[0] * 0.7, "line: theory", color="C1")
panels[1].text(8, 0.1, "Gaussian", color="0.4", va="bottom", fontsize=8)
plt.show()

# %% [markdown]
# The picture on the right is the second statement of the theory. Given its hidden layers, an output
# is Gaussian with the network's own kernel $k$ as its variance. As $k$ differs from network to
# network, outputs are a mixture of Gaussians with heavy tails. Their excess kurtosis is
# $3 \operatorname{Var} k / (\operatorname{E} k)^2$, which falls as depth over width.

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 3.4))
normal = stats.norm.ppf((np.arange(2000) + 0.5) / 2000)
axes.plot([-3.5, 3.5], [-3.5, 3.5], color="0.5", lw=0.8)
for row, colour in ((0, "C1"), (-1, "C0")):
    axes.plot(normal, np.sort(found.outputs[row]), ".", ms=3, color=colour, rasterized=True)
axes.set(xlabel="quantile of the normal distribution", ylabel="quantile of outputs", ylim=(-9, 9))
axes.text(2.1, 5.2, "width 8", color="C1", ha="right")
axes.text(2.4, 1.2, "width 128", color="C0")
axes.set(title="Outputs of 2,000 networks each: narrow ones have heavy tails")
plt.show()
for width, p_value in zip(found.widths, found.p_value, strict=True):
    print(f"width {width:3}: chance of such tails if outputs were Gaussian: {p_value:.2g}")

# %% [markdown]
# ## Training
# The posterior, too, is a limit of networks. Draw many, freeze their hidden layers, and train the
# last layer of each by gradient descent, from its random start towards targets with a little noise
# added. Then the ensemble samples the posterior (sample-then-optimise). The mean of
# `nngp.condition` is the mean over all such networks, and its standard deviation is their spread.
# Training is part of the package that reproduces the paper, `nngp_paper` (`pip install
# ./reproduction`).

# %%
train = np.radians([20, 70, 110, 200, 250, 330])
X = np.sqrt(2) * np.column_stack([np.cos(train), np.sin(train)])
Y = np.array([0.8, 1.5, -0.4, -1.2, 0.3, 1.0])

posterior = nngp.condition(net, X, Y, noise_var=0.01)
mean, variance = posterior.predict(circle)
network = nngp.FiniteNetwork(net, width=256)
ensemble = last_layer_ensemble(
    network, X, Y, circle, n_networks=60, noise_var=0.01, tolerance=1e-4, progress=False
)[:, :, 0]

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(7, 3.6))
degrees = np.degrees(angle)
axes.plot(degrees, ensemble.T, color="C0", lw=0.4, alpha=0.5)
for sign in (-2, 2):
    axes.plot(degrees, mean + sign * np.sqrt(variance), color="C1", lw=1.2, ls="--")
    axes.plot(degrees, ensemble.mean(axis=0) + sign * ensemble.std(axis=0), color="C0", lw=1.2)
axes.plot(degrees, mean, color="C1", lw=2)
axes.plot(degrees, ensemble.mean(axis=0), color="C0", lw=1.2)
axes.plot(np.degrees(train), Y, "o", color="black", ms=6, zorder=5)
axes.set(xlabel="direction of the input (degrees)", ylabel="output", xticks=[0, 90, 180, 270, 360])
axes.set(title="Orange: exact posterior. Blue: 60 trained networks, their mean and spread")
plt.show()

apart = np.abs(ensemble.mean(axis=0) - mean) / np.sqrt(variance / len(ensemble))
print(f"difference of the means: {np.median(apart):.1f} standard errors (median)")

# %% [markdown]
# ## What it costs
# The posterior took one factorisation of a 6 x 6 matrix. The ensemble took sixty trained networks,
# and its mean is still uncertain by one part in eight of the standard deviation. The process is the
# cheaper way to a Bayesian average over wide networks, as long as a factor of $n^3$ operations is
# affordable.
#
# Two cautions. Training *all* layers is another limit (the tangent kernel), which this page does
# not show. And networks of practical width are not infinitely wide: the deeper, the wider they must
# be for this page to describe them, since the kurtosis above grows with depth over width.
