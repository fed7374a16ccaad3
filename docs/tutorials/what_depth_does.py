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
# # What depth does
# Every layer moves two inputs nearer together or further apart. After enough layers a network has
# forgotten them, or so it seems: some of that is the model, and some is only rounding.

# %% [markdown]
# A network of infinite width does one thing to a pair of inputs: it maps the correlation of their
# hidden units in one layer to that in the next. Depth repeats that map. Where it settles is decided
# by three things: the activation, the variance of the weights, and the variance of the biases.
# `nngp.regimes` computes it for any activation.

# %%
import math
import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from sklearn.datasets import load_digits

import nngp
from nngp import regimes

BIAS = 0.1
critical = regimes.critical_line("tanh", BIAS)
networks = {"ordered": 1.5, "critical": critical, "chaotic": 3.0}  # weight variances
for name, weight_var in networks.items():
    xi = regimes.depth_scale("tanh", weight_var, BIAS).xi_c
    limit = regimes.correlation_fixed_point("tanh", weight_var, BIAS)
    print(f"{name:>8}: weight variance {weight_var:.2f}, depth scale {xi:.1f}, c* = {limit:.2f}")

# %% [markdown]
# In the **ordered** phase all inputs become equal: their correlation tends to $c^* = 1$. In the
# **chaotic** phase all different inputs become equally different: $c^* < 1$ for every pair. Both
# happen exponentially fast, and the depth scale $\xi_c$ says how fast. On the critical line between
# them $\xi_c$ is infinite.

# %% tags=["thumbnail", "hide-input"]
colours = {"ordered": "#1f5fa8", "critical": "black", "chaotic": "#d9622b"}
bias_vars = 2 * np.linspace(0, 1, 31) ** 2  # close to each other near 0, where the line is steep
diagram = regimes.phase_diagram("tanh", np.linspace(0.1, 5, 50), bias_vars)
figure, axes = plt.subplots(figsize=(7, 3.8))
image = axes.pcolormesh(
    diagram.weight_vars,
    diagram.bias_vars,
    np.clip(diagram.xi_c, 1, 100),
    norm=LogNorm(1, 100),
    cmap="viridis",
    shading="gouraud",
    rasterized=True,
)
axes.plot(diagram.critical_weight_vars, diagram.bias_vars, "w--", lw=1.4)
for name, weight_var in networks.items():
    axes.plot(weight_var, BIAS, "o", ms=9, color=colours[name], mec="white", mew=1.4, clip_on=False)
axes.text(0.9, 1.25, "ordered\nall inputs become equal", color="white", fontsize=9)
axes.text(3.3, 0.3, "chaotic\nall become equally different", color="white", fontsize=9)
axes.set(xlabel="weight variance", ylabel="bias variance", title="tanh: how many layers remember")
axes.set(xlim=(0.1, 5), ylim=(0, 2))
axes.grid(False)
bar = figure.colorbar(image, label="depth scale (layers)", pad=0.02)
bar.set_ticks([1, 10, 100], labels=["≤ 1", "10", "≥ 100"])
plt.show()

# %% [markdown]
# `nngp.plots.phase_diagram("tanh")` draws this and three more panels in one line, for names and for
# your own functions.
#
# ## Three digits, layer by layer
# Take two images of a zero and one of another digit. `nngp.curves.compile_curves` composes the
# layers into functions of the cosine, one for each depth. A cosine goes in, a covariance comes out.

# %%
digits = load_digits()
X = nngp.normalize(digits.data)  # x·x/d = 1 for every image
zero, other_zero, seven = X[0], X[10], X[7]
print("labels:", digits.target[[0, 10, 7]])
cosines = np.array([zero @ other_zero, zero @ seven]) / X.shape[1]

# %% tags=["hide-input"]
LAYERS = 60
figure, panels = plt.subplots(1, 2, figsize=(7, 3.6))
for name, weight_var in networks.items():
    net = nngp.Architecture(LAYERS, "tanh", weight_var, BIAS)
    curves = nngp.curves.compile_curves(net)
    correlation = np.array([curve(cosines) / curve.variance for curve in curves])
    apart = np.array([curve.deficit(cosines) / curve.variance for curve in curves])
    panels[0].plot(correlation[:, 0], color=colours[name], ls="--", lw=1.2)
    panels[0].plot(correlation[:, 1], color=colours[name])
    # what still differs between the two pairs: the part a network can learn from
    panels[1].semilogy(np.abs(apart[:, 1] - apart[:, 0]), color=colours[name], label=name)
panels[0].text(13, 0.925, "ordered", color=colours["ordered"], va="top")
panels[0].text(37, 0.855, "critical", color=colours["critical"], va="top")
panels[0].text(37, 0.51, "chaotic", color=colours["chaotic"])
panels[0].set(ylim=(0.4, 1.01), xlabel="layer", title="correlation of two images")
panels[0].text(1, 0.42, "dashed: two zeros\nsolid: a zero and a seven", fontsize=8, color="0.35")
panels[1].set(xlabel="layer", title="difference between the pairs")
panels[1].text(40, 6e-2, "critical", color=colours["critical"])
panels[1].text(15, 2e-3, "ordered", color=colours["ordered"])
panels[1].text(46, 1e-2, "chaotic", color=colours["chaotic"])
plt.show()

# %% [markdown]
# The picture on the right is what a network can learn from: how differently it sees the two pairs.
# Away from the critical line it falls along a straight line on this logarithmic axis.
#
# ## A network that forgets
# Does it matter? Train on 500 digits with relu networks in the ordered (for relu: "bounded") phase,
# with the noise that the paper uses, and look at the rest.

# %%
order = np.random.default_rng(0).permutation(len(X))
train, test = order[:500], order[500:]
targets = np.eye(10)[digits.target[train]] - 0.1


def accuracy(net, **options):
    posterior = nngp.condition(net, X[train], targets, **options)
    return np.mean(posterior.mean(X[test]).argmax(axis=1) == digits.target[test])


def relu(depth):
    return nngp.Architecture(depth, "relu", weight_var=1.0, bias_var=0.1)


for depth in (3, 20, 60):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        score = accuracy(relu(depth), noise_var=1e-10)
    print(f"depth {depth:2}: {score:.3f}", *[warning.category.__name__ for warning in caught])

# %% [markdown]
# At depth 60 the network guesses, and a warning says why. Look at the matrix itself.

# %%
K = nngp.kernel(relu(60), X[train])
print(f"K(x,x) = {K[0, 0]:.3f}, largest difference of two entries: {np.ptp(K):.0e}")
print(regimes.diagnose(relu(60), X[train]))

# %% [markdown]
# The matrix is constant up to rounding. What tells the images apart is smaller than float64 can
# write next to `K(x,x)`, and long before that it is smaller than the noise. So the paper found that
# deep networks fall to chance.
#
# ## A network that does not
# But the difference of two entries is a perfectly good number. It is only small. The curve carries
# $K(x, x) - K(x, x')$ itself, to relative precision, and never subtracts two large numbers:

# %%
curve = nngp.curves.compile_curve(relu(500))
print("K(x,x)          =", curve.variance)
print("K(x,x) - K(x,x') =", curve.deficit(cosines))

# %% [markdown]
# `nngp.condition` uses that. It splits the kernel into a constant, which all inputs share, and the
# rest. The constant has a posterior of its own. What remains is as well conditioned as at depth 3.
# One more thing must change: noise of variance $10^{-10}$ would cover a signal of $10^{-152}$.
# `relative_noise=True` states the noise in units of the signal.

# %%
posterior = nngp.condition(relu(500), X[train], targets, noise_var=1e-10, relative_noise=True)
right = posterior.mean(X[test]).argmax(axis=1) == digits.target[test]
print(f"depth 500: {right.mean():.3f}")
print(f"scale of the kernel {posterior.report.scale:.0e}")
print(f"the constant is {posterior.report.offset:.0e} times that")

endless = relu(math.inf)
print(f"infinite depth: {accuracy(endless, relative_noise=True):.3f}")

# %% [markdown]
# In the ordered phase the proportions of the differences converge while their size vanishes. What
# they converge to is the kernel of the infinitely deep network.

# %% tags=["hide-input"]
depths = (1, 2, 3, 5, 10, 20, 30, 36, 40, 50, 80, 130, 200, 300, 500)
chaotic_depths = (1, 2, 3, 5, 10, 20, 30, 40, 50, 65, 80, 130)


def by_depth(network, depths, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nngp.errors.ConstantKernelWarning)  # it is what we show
        return [accuracy(network(depth), **options) for depth in depths]


def chaotic(depth):
    return nngp.Architecture(depth, "tanh", 3.0, BIAS)


figure, axes = plt.subplots(figsize=(7, 3.8))
axes.semilogx(depths, by_depth(relu, depths, relative_noise=True), "o-", color="#3b8f5a")
axes.semilogx(depths, by_depth(relu, depths), "s-", color="#1f5fa8")
axes.semilogx(
    chaotic_depths, by_depth(chaotic, chaotic_depths, relative_noise=True), "D-", color="#d9622b"
)
axes.axhline(accuracy(endless, relative_noise=True), color="#3b8f5a", ls=":", lw=1.2)
axes.axhline(0.1, color="0.6", ls=":", lw=1)
axes.text(95, 0.925, "relu, relative noise", color="#3b8f5a", va="top")
axes.text(1.1, 0.925, "dotted: infinite depth", color="#3b8f5a", va="top", fontsize=8)
axes.text(36, 0.5, "relu,\nnoise 1e-10", color="#1f5fa8", ha="right")
axes.text(100, 0.5, "tanh, chaotic phase", color="#d9622b")
axes.text(1.1, 0.12, "guessing", color="0.4", fontsize=8)
axes.set(xlabel="depth", ylabel="test accuracy", ylim=(0, 1.03), title="500 digits to learn from")
plt.show()

# %% [markdown]
# ## What it means
# - **Order forgets nothing.** The ordered phase only makes the signal small. Noise of a fixed
#   size hides it first, rounding next. With noise relative to the signal, and the constant apart,
#   depth costs no accuracy, but brings none either: on these digits depth 3 is as good as 500.
# - **Chaos does forget.** Every pair of different images ends at the same correlation. The matrix
#   becomes a constant plus a multiple of the identity: the network knows its training images by
#   heart, and predicts the mean of all targets for every other image. Here that is the model and
#   not rounding, so `relative_noise` does not help.
# - **Networks of finite width, trained by gradient descent, keep no constant apart.** For them the
#   rule of thumb stands: they train up to about $6\,\xi_c$ layers. `regimes.diagnose` states it:

# %%
for net in (chaotic(130), nngp.Architecture(130, "tanh", critical, BIAS)):
    print(regimes.diagnose(net, X[train]), end="\n\n")

# %% [markdown]
# All of this needs inputs of equal norm, so `nngp.normalize` your data before you go deep.
