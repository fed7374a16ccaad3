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
# # Bayesian optimisation with posterior draws
# Each experiment is expensive, so choose the next one by what the previous ones showed. Draws from
# the posterior make good choices, several at a time. Here they find the strongest of a thousand
# concretes, and tune a support vector machine.

# %% [markdown]
# A draw from the posterior is one function that the data allow. Take a draw and try the input at
# which it is largest: that is *Thompson sampling*. Where much is unknown draws differ, so it
# explores; where little is unknown they agree, so it exploits. Nothing has to be balanced by hand.
#
# ## Two parameters, one picture
# An experiment is the cross-validation of a support vector machine on the breast-cancer data, for
# one pair of $C$ and $\gamma$. We allow 256 pairs. To have something to compare with, the page
# runs all of them, which is not affordable when experiments are expensive.

# %%
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patheffects import withStroke
from scipy.special import ndtr
from sklearn.datasets import load_breast_cancer
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import scale
from sklearn.svm import SVC

import nngp

X, y = load_breast_cancer(return_X_y=True)
X = scale(X)
squares = euclidean_distances(X, squared=True)
folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))


def losses_at(log_gamma, logs_c):
    """Log loss of three folds for every C, by a logistic of the distance to the boundary."""
    K = np.exp(-(10**log_gamma) * squares)
    total = np.zeros(len(logs_c))
    for train, test in folds:
        fitted_on, asked_at = K[np.ix_(train, train)], K[np.ix_(test, train)]
        for i, log_c in enumerate(logs_c):
            machine = SVC(C=10**log_c, kernel="precomputed").fit(fitted_on, y[train])
            margin = machine.decision_function(asked_at)
            total[i] += np.logaddexp(0, -np.where(y[test] == 1, margin, -margin)).sum()
    return total / len(y)


side = 16
logs_c, logs_gamma = np.linspace(-1, 5, side), np.linspace(-6, 0, side)
pairs = np.array([(c, gamma) for gamma in logs_gamma for c in logs_c])
losses = np.concatenate([losses_at(gamma, logs_c) for gamma in logs_gamma])
print(f"best of {len(pairs)}: loss {losses.min():.4f} at", pairs[losses.argmin()].round(1))

# %% [markdown]
# The target is minus the logarithm of the loss, so larger is better. Inputs run from -2 to 2. The
# search begins with five random pairs. In each round it draws four functions, tries the pair at
# which each is largest, and updates the posterior with what it saw.

# %%
inputs = 2 * (pairs - pairs.mean(axis=0)) / (pairs.max(axis=0) - pairs.mean(axis=0))
target = -np.log(losses)
net = nngp.Architecture(depth=2, activation="erf", weight_var=4.0, bias_var=0.5)


def begin(inputs, target, known, noise):
    """A posterior of standardized targets, and how to standardize them."""
    middle, spread = target[known].mean(), target[known].std()
    standard = (target - middle) / spread
    return nngp.condition(net, inputs[known], standard[known], noise_var=noise), standard


def tried(posterior, inputs, standard, new):
    """Add experiments to the posterior, each once."""
    new = np.unique(new)
    return posterior.update(inputs[new], standard[new])


rng = np.random.default_rng(1)
known = rng.choice(len(pairs), 5, replace=False)
posterior, standard = begin(inputs, target, known, noise=1e-4)
rounds = [known]
for _ in range(5):
    draws = posterior.sample(inputs, 4, seed=rng)
    draws[:, np.concatenate(rounds)] = -np.inf  # what was tried is known
    new = np.unique(draws.argmax(axis=1))
    posterior = tried(posterior, inputs, standard, new)
    rounds.append(new)
found = np.concatenate(rounds)
better = np.sum(losses < losses[found].min())
print(f"{len(found)} experiments: loss {losses[found].min():.4f}", end="; ")
print(f"{better} of {len(pairs)} pairs are better")

# %% tags=["thumbnail", "hide-input"]
mean, variance = posterior.predict(inputs)
surfaces = {f"all {len(pairs)} experiments": target, f"what {len(found)} experiments say": mean}
figure, panels = plt.subplots(1, 2, sharey=True, sharex=True, figsize=(6, 3.7))
for panel, (title, values) in zip(panels, surfaces.items(), strict=True):
    table = values.reshape(side, side)
    panel.contourf(logs_c, logs_gamma, table, levels=18, cmap="viridis")
    panel.set_title(title)
    panel.set_xlabel(r"$\log_{10} C$")
    panel.grid(False)
panels[0].set_ylabel(r"$\log_{10} \gamma$")
panels[0].plot(*pairs[losses.argmin()], "*", color="white", ms=13, mec="black")
for number, some in enumerate(rounds):
    for pair in pairs[some]:
        panels[1].text(
            *pair,
            number,
            color="white",
            weight="bold",
            ha="center",
            va="center",
            path_effects=[withStroke(linewidth=2, foreground="0.15")],
        )
panels[0].set(xlim=(-1.3, 5.3), ylim=(-6.3, 0.3))
plt.show()

# %% [markdown]
# Yellow is a small loss. Left is the truth, with its best pair as a star. Right is the posterior
# mean; numbers say in which round a pair was tried (0 is where it began). The surface is right
# where it matters and coarse elsewhere, as little was spent there.
#
# ## Four draws, four experiments
# One line of that plane, as the search saw it after its first five experiments. The draws
# disagree, so their largest values lie in different places: four experiments that can be done side
# by side.

# %% tags=["hide-input"]
start, standard = begin(inputs, target, rounds[0], noise=1e-4)
line = np.column_stack([np.linspace(-2, 2, 120), np.full(120, inputs[losses.argmin(), 1])])
place = np.linspace(-1, 5, 120)
mean, variance = start.predict(line)
draws = start.sample(line, 4, seed=3)
figure, axes = plt.subplots(figsize=(6, 3.3))
band = 2 * np.sqrt(variance)
axes.fill_between(place, mean - band, mean + band, color="0.88", lw=0)
axes.plot(place, mean, color="0.45", lw=1, ls="--")
for number, draw in enumerate(draws):
    axes.plot(place, draw, color=f"C{number}")
    axes.plot(place[draw.argmax()], draw.max(), "v", color=f"C{number}", ms=9, mec="black")
axes.set(
    xlabel=r"$\log_{10} C$ at the best $\gamma$", ylabel="standardized -log loss", xlim=(-1.1, 5.1)
)
axes.text(-0.95, (mean - band)[4] + 0.15, "95% of the posterior", color="0.35")
plt.show()

# %% [markdown]
# ## A thousand concretes
# The table has 1,030 mixtures of cement, slag, ash, water and so on, each cast, kept for some days
# and crushed. Suppose that we had cast none, and look for the strongest. We may try four a day.
# Three ways to choose them, and one that is none:
#
# - **draws**: four draws, the best mixture of each (fewer, where two draws agree);
# - **expected improvement**: the four mixtures with the largest expected gain over the best so
#   far, $\mathbb{E}[\max(f - f_\mathrm{best}, 0)]$, in closed form from mean and variance;
# - **mean**: the four that are predicted strongest, no matter how uncertain;
# - **random**.

# %%
table = np.loadtxt("../data/concrete.csv", delimiter=",", skiprows=1)
mixtures, strength = scale(np.log1p(table[:, :-1])), table[:, -1]
print(f"the strongest has {strength.max()} MPa, the median is {np.median(strength):.0f}")


def expected_improvement(mean, variance, best):
    std = np.sqrt(variance) + 1e-9
    t = (mean - best) / std
    return std * (t * ndtr(t) + np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi))


def search(rule, seed, days=10):
    """The strongest mixture known at the end of each day."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(strength))
    known, rest = order[:8], order[8:]
    posterior, standard = begin(mixtures, strength, known, noise=1e-2)
    best = [strength[known].max()]
    for _ in range(days):
        if rule == "draws":
            chosen = np.unique(posterior.sample(mixtures[rest], 4, seed=rng).argmax(axis=1))
        elif rule == "random":
            chosen = np.arange(4)
        else:
            mean, variance = posterior.predict(mixtures[rest])
            gain = expected_improvement(mean, variance, standard[known].max())
            chosen = np.argsort(-(mean if rule == "mean" else gain))[:4]
        new = rest[chosen]
        posterior = tried(posterior, mixtures, standard, new)
        known, rest = np.append(known, new), np.delete(rest, chosen)
        best.append(strength[known].max())
    return best


rules = {"draws": "C0", "expected improvement": "C1", "mean": "C2", "random": "C5"}
SEEDS = range(6)
curves = {rule: np.array([search(rule, seed) for seed in SEEDS]) for rule in rules}
for rule, curve in curves.items():
    days = [np.argmax(one == strength.max()) for one in curve if strength.max() in one]
    print(f"{rule:21} found the strongest in {len(days)} of {len(curve)} searches", end="")
    print(f", after {np.median(days):.0f} days (median)" if days else "")

# %% tags=["hide-input"]
figure, axes = plt.subplots(figsize=(6, 3.7))
for rule, colour in rules.items():
    curve = curves[rule]
    axes.plot(curve.mean(axis=0), "o-", color=colour, label=rule)
    low, high = np.quantile(curve, [0.25, 0.75], axis=0)
    axes.fill_between(range(11), low, high, color=colour, alpha=0.12, lw=0)
axes.axhline(strength.max(), color="0.3", lw=1, ls="--")
axes.text(0, strength.max() + 0.3, "strongest of all 1,030", color="0.3", va="bottom")
axes.set(xlabel="days, with four mixtures each", ylabel="strongest so far (MPa)", xticks=range(11))
axes.set_ylim(top=strength.max() + 3)
axes.legend(loc="lower right", ncols=2)
plt.show()

# %% [markdown]
# Lines are means over six beginnings, bands hold the middle half of them. Rules that use the
# posterior find in a few days what chance does not find in ten. Between the three there is little
# to choose on this table. It is kind to them: strength rises smoothly with cement and age and
# falls with water, so even the mean alone, which never explores, is not trapped.
#
# Draws cost more than the other rules, as they need the joint covariance of all candidates: $m^2$
# numbers and $m^3$ operations for $m$ of them. With more than some thousands draw on a random part
# of the candidates. In return they give as many different experiments as one asks for, where the
# largest expected improvements are often neighbours of each other.
#
# An estimator does the same with `sample_y`, and also chooses network and noise from the data.
# Refit it now and then as experiments come in.
