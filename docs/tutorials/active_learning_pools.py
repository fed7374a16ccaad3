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
# # Active learning with scikit-activeml
# Strategies that somebody else wrote ask our estimators which labels they want. On digits, asking
# where the two likeliest classes are level takes half of the labels that chance takes.

# %% [markdown]
# [scikit-activeml](https://scikit-activeml.github.io) has some dozens of *pool strategies*: given a
# pool of inputs, of which few have labels, and a model, they say which label to ask for next. It
# wraps any scikit-learn estimator, so `NNGPClassifier` and `NNGPRegressor` work as they are: a
# strategy needs `predict_proba` of the one, and `predict(..., return_std=True)` of the other.
# [Another page](active_learning.py) does the same by hand with `nngp.condition`, and shows why the
# variance alone asks for the wrong images.
#
# ## Classes: digits
# Missing labels are NaN. The network is given, so that a round costs a fit without a search.

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np
from skactiveml.classifier import SklearnClassifier
from skactiveml.pool import GreedySamplingTarget, RandomSampling, UncertaintySampling
from skactiveml.regressor import SklearnNormalRegressor
from sklearn.datasets import load_diabetes, load_digits

import nngp

warnings.filterwarnings(
    "ignore", category=nngp.errors.FewDataWarning
)  # at first there are few labels
images, digits = load_digits(return_X_y=True)
START, BATCH, LAST = 20, 20, 160

strategies = {
    "random": lambda seed: RandomSampling(random_state=seed),
    "entropy": lambda seed: UncertaintySampling(method="entropy", random_state=seed),
    "margin": lambda seed: UncertaintySampling(method="margin_sampling", random_state=seed),
}


def learn(make, seed):
    """Accuracy on test images after each round of questions."""
    order = np.random.default_rng(seed).permutation(len(images))
    pool, test = order[:700], order[700:1300]
    X, labels = images[pool], np.full(len(pool), np.nan)
    labels[:START] = digits[pool[:START]]
    model = nngp.NNGPClassifier(selection=None, input_scaling="unit", depth=3)
    model, strategy = SklearnClassifier(model, classes=range(10)), make(seed)
    needs_model = isinstance(strategy, UncertaintySampling)
    accuracy = []
    while True:
        model.fit(X, labels)
        accuracy.append(np.mean(model.predict(images[test]) == digits[test]))
        known = np.isfinite(labels).sum()
        if known >= LAST:
            return accuracy
        more = {"clf": model, "fit_clf": False} if needs_model else {}
        asked = strategy.query(X, labels, batch_size=BATCH, **more)
        labels[asked] = digits[pool[asked]]


curves = {name: [learn(make, seed) for seed in range(2)] for name, make in strategies.items()}

# %% tags=["thumbnail", "hide-input"]
counts = np.arange(START, LAST + 1, BATCH)
figure, axes = plt.subplots(figsize=(6, 3.7))
for (name, found), colour in zip(curves.items(), ("C5", "C1", "C0"), strict=True):
    found = 100 * np.array(found)
    axes.plot(counts, found.mean(axis=0), "o-", color=colour, label=name)
    axes.fill_between(counts, found.min(axis=0), found.max(axis=0), color=colour, alpha=0.12, lw=0)
axes.set(xlabel="labels", ylabel="test accuracy (%)", xticks=counts)
axes.legend(loc="lower right")
plt.show()

# %%
for name, found in curves.items():
    mean = np.mean(found, axis=0)
    at = {count: 100 * value for count, value in zip(counts, mean, strict=True)}
    print(f"{name:8} {at[80]:.1f}% with 80 labels, {at[LAST]:.1f}% with {LAST}")

# %% [markdown]
# Lines are means over two splits, bands go from the one to the other.
#
# ## Numbers: diabetes
# For a regression the predicted deviation goes along: `SklearnNormalRegressor` passes it on. Greedy
# sampling asks for rows that are unlike those it knows, in inputs and predictions; "deviation" asks
# where the prediction is least certain, which needs no strategy at all.

# %%
patients, progression = load_diabetes(return_X_y=True)


def learn_numbers(rule, seed):
    """Root mean squared error on test rows after each round."""
    order = np.random.default_rng(seed).permutation(len(patients))
    pool, test = order[:250], order[250:]
    X, targets = patients[pool], np.full(len(pool), np.nan)
    targets[:10] = progression[pool[:10]]
    model = SklearnNormalRegressor(nngp.NNGPRegressor(selection=None, noise_var=0.5, depth=1))
    greedy, errors = GreedySamplingTarget(random_state=seed), []
    rng = np.random.default_rng(seed)
    while np.isfinite(targets).sum() <= 60:
        model.fit(X, targets)
        errors.append(np.sqrt(np.mean((model.predict(patients[test]) - progression[test]) ** 2)))
        rest = np.flatnonzero(np.isnan(targets))
        if rule == "random":
            asked = rng.choice(rest, 10, replace=False)
        elif rule == "deviation":
            asked = rest[np.argsort(-model.predict(X[rest], return_std=True)[1])[:10]]
        else:
            asked = greedy.query(X, targets, reg=model, fit_reg=False, batch_size=10)
        targets[asked] = progression[pool[asked]]
    return errors


for rule in ("random", "deviation", "greedy"):
    errors = np.mean([learn_numbers(rule, seed) for seed in range(3)], axis=0)
    print(f"{rule:10} root mean squared error {errors[0]:.1f} -> {errors[-1]:.1f} with 60 rows")

# %% [markdown]
# Strategies that fit a model for each candidate (`ExpectedModelVarianceReduction`,
# `KLDivergenceMaximization`) work too, and take seconds a question with a hundred candidates.
# `nngp.Posterior.update` adds rows without fitting again, where that matters.
