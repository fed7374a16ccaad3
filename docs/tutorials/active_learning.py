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
# # Active learning: which label to ask for next
# Labels cost money, images do not. A process that says what it does not know can choose the images
# that a person should label. On handwritten digits that saves most of the labels, if one asks for
# the right kind of uncertainty.

# %% [markdown]
# The posterior variance of a Gaussian process is exact, and it depends on the inputs alone. So it
# is known before the label is. The paper names active learning as one use of it. We start with
# twenty labelled digits, let a rule pick ten more at a time, and watch the accuracy on images that
# no rule may touch.

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ndtr
from sklearn.datasets import load_digits

import nngp

pixels, labels = load_digits(return_X_y=True)
X, Y = nngp.normalize(pixels), np.eye(10)[labels] - 0.1
net = nngp.Architecture(depth=3, activation="relu", weight_var=1.6, bias_var=0.1)
START, BATCH, LAST, NOISE = 20, 10, 200, 1e-2


def split(seed):
    """The pool, 1,297 images that may be asked for, and 500 test images."""
    order = np.random.default_rng(seed).permutation(len(X))
    return order[:1297], order[1297:]


# %% [markdown]
# ## Four rules
# The network has ten outputs, one for each class, and predicts the class whose output is largest.
# The *gap* is the distance from the largest mean to the second largest. Each rule gives every
# image of the pool a score, and asks for the ten highest.
#
# - **random** looks at nothing.
# - **variance** asks where the process knows least about the function.
# - **gap** asks where the two best classes are nearly level.
# - **doubt** uses both: the probability that the second class is really ahead of the first. All
#   outputs share one variance $v$, so that is $\Phi(-\mathrm{gap} / \sqrt{2 v})$.


# %%
def gap(mean):
    second, first = np.sort(mean, axis=1)[:, -2:].T
    return first - second


rules = {
    "random": lambda mean, variance, rng: rng.random(len(mean)),
    "variance": lambda mean, variance, rng: variance,
    "gap": lambda mean, variance, rng: -gap(mean),
    "doubt": lambda mean, variance, rng: ndtr(-gap(mean) / np.sqrt(2 * variance)),
}

# %% [markdown]
# `posterior.update` adds the new images to the factor. What was factored before is not computed
# again, so a round costs little more than its predictions.


# %%
def learn(rule, seed):
    """Accuracy after each round, and the images in the order in which they were asked for."""
    rng = np.random.default_rng(seed)
    pool, test = split(seed)
    asked, rest = pool[:START], pool[START:]
    posterior = nngp.condition(net, X[asked], Y[asked], noise_var=NOISE)
    accuracy = []
    while True:
        accuracy.append(np.mean(posterior.mean(X[test]).argmax(axis=1) == labels[test]))
        if len(asked) >= LAST:
            return accuracy, asked
        mean, variance = posterior.predict(X[rest])
        best = np.argsort(-rules[rule](mean, variance, rng))[:BATCH]
        new = rest[best]
        posterior.update(X[new], Y[new])
        asked, rest = np.append(asked, new), np.delete(rest, best)


SEEDS = range(6)
runs = {rule: [learn(rule, seed) for seed in SEEDS] for rule in rules}


def with_all_labels(seed):
    pool, test = split(seed)
    mean = nngp.condition(net, X[pool], Y[pool], noise_var=NOISE).mean(X[test])
    return np.mean(mean.argmax(axis=1) == labels[test])


everything = np.mean([with_all_labels(seed) for seed in SEEDS])

# %% [markdown]
# ## What it saves
# Lines are means over six splits, bands go from the worst split to the best.

# %% tags=["thumbnail", "hide-input"]
counts = np.arange(START, LAST + 1, BATCH)
colours = {"random": "C5", "variance": "C1", "gap": "C2", "doubt": "C0"}
figure, axes = plt.subplots(figsize=(6, 4))
for rule, found in runs.items():
    accuracy = 100 * np.array([curve for curve, _ in found])
    axes.plot(counts, accuracy.mean(axis=0), color=colours[rule], label=rule)
    axes.fill_between(
        counts, accuracy.min(axis=0), accuracy.max(axis=0), color=colours[rule], alpha=0.12, lw=0
    )
axes.hlines(100 * everything, 20, 200, color="0.3", lw=1, ls="--")
axes.text(22, 100 * everything + 0.3, "all 1,297 labels", color="0.3", va="bottom")
places = {"gap": 99.2, "doubt": 97.4, "variance": 95.6, "random": 93.8}
for rule, height in places.items():
    axes.text(203, height, rule, color=colours[rule], va="center")
axes.set(xlabel="labels", ylabel="test accuracy (%)", ylim=(55, 102), xlim=(20, 225))
axes.set_xticks(range(20, 201, 20))
plt.show()

# %%
for rule, found in runs.items():
    curve = np.mean([accuracy for accuracy, _ in found], axis=0)
    reached = counts[curve >= 0.95]
    when = f"{reached[0]} labels" if len(reached) else f"more than {LAST} labels"
    print(f"{rule:9} 95% after {when:21} with {LAST}: {100 * curve[-1]:.1f}%")
print(f"all labels: {100 * everything:.1f}%")

# %% [markdown]
# The two rules that look at the gap need about half as many labels as chance, and with 200 labels
# they are level with a model that has all of them. **Variance alone is only a little better than
# chance.** That is no fault of the variance: it answers another question.
#
# ## Why variance is not enough
# Here is the pool of one split when fifty images are labelled. Each dot is an image.

# %% tags=["hide-input"]
pool, _ = split(0)
first, others = pool[:50], pool[50:]
posterior = nngp.condition(net, X[first], Y[first], noise_var=NOISE)
mean, variance = posterior.predict(X[others])
wrong = mean.argmax(axis=1) != labels[others]

figure, axes = plt.subplots(figsize=(6, 4))
axes.scatter(gap(mean)[~wrong], variance[~wrong], s=9, color="C5", alpha=0.35, lw=0)
axes.scatter(gap(mean)[wrong], variance[wrong], s=16, color="C1", lw=0)
top = np.sort(variance)[-BATCH]
axes.axhline(top, color="0.3", lw=0.8, ls=":")
axes.text(0.98, top, " variance asks above this line", color="0.3", va="bottom", ha="right")
width = np.sort(gap(mean))[BATCH]
axes.axvline(width, color="C2", lw=0.8, ls=":")
axes.annotate(
    "gap asks left of this line",
    (width, 0.04 * variance.max()),
    (0.14, 0.04 * variance.max()),
    color="C2",
    arrowprops={"arrowstyle": "-", "color": "C2", "lw": 0.6},
    va="center",
)
axes.text(0.2, variance[wrong].max(), "predicted wrongly", color="C1")
axes.set(xlabel="gap between the two largest means", ylabel="variance", xlim=(0, 1), ylim=(0, None))
plt.show()

# %%
cosines = np.clip(X[others] @ X[others].T / X.shape[1], -1, 1)
nearest = np.degrees(np.arccos(np.sort(cosines, axis=1)[:, -11:-1])).mean(axis=1)
rng = np.random.default_rng(0)
print("of the 100 images that a rule would ask for first")
for rule, score in rules.items():
    first = np.argsort(-score(mean, variance, rng))[:100]
    print(f"{rule:9} {wrong[first].sum():3} are predicted wrongly; ", end="")
    print(f"their ten nearest neighbours are {nearest[first].mean():.1f} degrees away")

# %% [markdown]
# Wrong predictions have a small gap, at nearly any variance. So the gap finds more of them than
# the variance does. And variance is largest for *loners*, images that are unlike all others. Their
# labels say little about any other image. Variance finds what is unseen, the gap finds what is
# undecided.
#
# ## What each rule asks for
# The first twenty images of each rule in one split, with the labels that they turned out to have.

# %% tags=["hide-input"]
figure, panels = plt.subplots(6, 10, figsize=(7, 4.5), layout="none")
figure.subplots_adjust(left=0.12, right=0.995, top=0.99, bottom=0.01, wspace=0.08, hspace=0.08)
for block, rule in enumerate(("random", "variance", "doubt")):
    asked = runs[rule][0][1][START : START + 20]
    for panel, image in zip(panels[2 * block : 2 * block + 2].flat, asked, strict=True):
        panel.imshow(pixels[image].reshape(8, 8), cmap="gray_r")
        panel.text(-0.2, 0.6, labels[image], fontsize=7, color=colours[rule], weight="bold")
        panel.set(xticks=[], yticks=[])
        panel.grid(False)
        panel.spines[:].set_visible(True)
        panel.spines[:].set_color(colours[rule])
    middle = panels[2 * block, 0].get_position().y0
    figure.text(0.055, middle, rule, ha="center", va="center", color=colours[rule], rotation=90)
plt.show()

# %%
for rule in ("random", "variance", "doubt"):
    asked = np.concatenate([order[START:100] for _, order in runs[rule]])
    shares = np.bincount(labels[asked], minlength=10) / len(asked)
    print(
        f"{rule:9}", " ".join(f"{digit}: {100 * share:2.0f}%" for digit, share in enumerate(shares))
    )

# %% [markdown]
# Chance asks for all digits alike. Variance and doubt each have digits of their own that they ask
# for more often; zeros, which look like nothing else, need few. Variance also asks for the same
# thing many times: ten images that are unlike the labelled ones are often alike among themselves,
# as the sevens above.
#
# ## What to keep in mind
# - The labels that a rule asked for are not a random sample. Estimate the accuracy on images that
#   were drawn at random, as here.
# - These labels are right. Where people disagree, undecided images are also those whose labels are
#   worth least; a rule that only looks at the gap does not know that.
# - Take smaller batches where labels are expensive; the factor grows at the same cost.
# - The network stays as it was. Choose it again by the evidence when there are some hundred labels,
#   for instance with `NNGPClassifier().fit`; `partial_fit` then adds labels to that.
