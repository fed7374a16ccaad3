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
# # The effect of invariances
# A digit that is moved by a pixel is the same digit. Mirrored, it is another one. Tell a network
# what does not matter, or let the evidence find out, and see how many labelled images that is
# worth.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

import nngp
from nngp import images

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(X))
X, y = X[order], y[order]
train, test = slice(0, 300), slice(300, None)

# %% tags=["hide-input", "thumbnail"]
shape = (8, 8)
moved = {
    "as it is": lambda image: image,
    "shifted": lambda image: np.roll(image, 1, axis=1),
    "mirrored": np.fliplr,
    "turned": np.rot90,
}
figure, panels = plt.subplots(3, 4, figsize=(6, 4.4))
for row, label in zip(panels, (2, 3, 7), strict=True):
    image = X[np.flatnonzero(y == label)[0]].reshape(shape)
    for panel, (title, move) in zip(row, moved.items(), strict=True):
        panel.imshow(move(image), cmap="gray_r")
        panel.set(xticks=[], yticks=[], title=title if label == 2 else "")
        panel.grid(False)
plt.show()

# %% [markdown]
# ## The network does not know
# A fully connected network treats pixels as columns of a table: put them into another order, and it
# learns just as well. What it does not know it must learn from labels. Averaged over
# transformations, its function is the same for an image and its transforms ([the
# formulas](../theory/invariances)). This is exact: no images are added to the training set.
#
# `invariance="auto"` compares such averages by their evidence. It adds one family of
# transformations after the other: mirror images, quarter turns, shifts by one pixel, by two, by
# three. What leaves an image on one side comes back on the other. A family stays if the evidence
# rises clearly and held-out images are predicted better.

# %%
options = {"effort": "fast", "likelihood": "regression"}
plain = nngp.NNGPClassifier(input_scaling="unit", **options).fit(X[train], y[train])
model = nngp.NNGPClassifier(invariance="auto", **options).fit(X[train], y[train])

for name, one in {"plain": plain, "chosen": model}.items():
    families = ", ".join(f"{family.label} by {family.most}" for family in one.invariance_)
    print(f"{name:7} {families or 'no invariance':14} accuracy {one.score(X[test], y[test]):.3f}")

# %% [markdown]
# ## What was tried
# The rows of `selection_` with the stage `invariance` are what was compared, each at the noise and
# the scale that suit it.

# %%
table = pd.DataFrame(model.selection_)
tried = table[table.stage == "invariance"].set_index("invariance")
tried.index = tried.index.where(tried.index != "", "none")
gain = tried.log_evidence - tried.log_evidence["none"]
print(gain.round(0).astype(int).to_string())

# %% tags=["hide-input"]
colours = ["#2b6cb0" if value > 0 else "#d9622b" for value in gain]
figure, panel = plt.subplots(figsize=(7, 2.8))
panel.barh(gain.index.str.replace("_", " "), gain, color=colours, height=0.65)
panel.axvline(0, color="black", lw=0.8)
panel.invert_yaxis()
panel.grid(axis="y")
panel.set(xlabel="log evidence, less that of the network as it is")
plt.show()

# %% [markdown]
# No image was held back for that. Before it sees the labels, a network that is blind to mirror
# images expects a 3 and its mirror image to have one label. The labels of these digits
# are improbable then, and the evidence says so.
#
# ## In images
# How many labelled images does the invariance save? One network, more and more training images,
# with and without it. The noise is found by evidence each time, at the scale that suits it: an
# average over images has a smaller variance than what it averages.

# %%
net = nngp.Architecture(depth=3, activation="relu", weight_var=1.6, bias_var=0.1)
Xu, Y = nngp.normalize(X), np.eye(10)[y] - 0.1


def best(network, n):
    """The largest log evidence of n images over noise and scale, and the test accuracy there."""
    values, vectors = np.linalg.eigh(nngp.kernel(network, Xu[:n]))
    turned, crossed = vectors.T @ Y[:n], nngp.kernel(network, Xu[800:], Xu[:n]) @ vectors
    found = []
    for noise in np.geomspace(1e-4, 1, 25) * values.mean():
        solved = turned / (values + noise)[:, None]
        scale = np.mean(turned * solved)  # it has a formula
        evidence = -0.5 * (10 * n * np.log(scale) + 10 * np.log(values + noise).sum())
        found.append((evidence, np.mean((crossed @ solved).argmax(axis=1) == y[800:])))
    return max(found)


sizes = (50, 100, 200, 400, 800)
networks = {
    "no invariance": net,
    "shifts by 1 pixel": nngp.Invariant(net, images.shifts(1, shape)),
    "mirror images": nngp.Invariant(net, images.flips(shape)),
}
accuracy = {name: [best(one, n)[1] for n in sizes] for name, one in networks.items()}
print((100 * pd.DataFrame(accuracy, index=pd.Index(sizes, name="images"))).round(1))

# %% tags=["hide-input"]
figure, panel = plt.subplots(figsize=(7, 3.4))
for (name, values), marker in zip(accuracy.items(), "osD", strict=True):
    panel.plot(sizes, 100 * (1 - np.array(values)), marker=marker, label=name)
panel.set(xscale="log", yscale="log", xlabel="training images", ylabel="test error, %")
panel.set_xticks(sizes, sizes)
panel.set_yticks((1, 2, 5, 10, 20), (1, 2, 5, 10, 20))
panel.minorticks_off()
panel.legend()
plt.show()

# %% [markdown]
# Read the picture from left to right: where the curve with shifts is at some error, the plain one
# gets there with more images. The wrong invariance costs images instead.
#
# ## How much of it
# An invariance need not be all or nothing. Weights of a family are hyper-parameters, and the
# evidence has derivatives in them. Here is the evidence against the probability of a mirror image
# in the average: at 0 the network is as it was, at one half it is blind to mirror images.

# %%
probabilities = np.linspace(0, 0.5, 11)
widths = np.array([0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5])
flips = [images.flips(shape, probability=p) for p in probabilities]
shifts = [images.shifts(2, shape, width=width) for width in widths]
mirrored = [best(nngp.Invariant(net, one), 200)[0] for one in flips]
shifted = [best(nngp.Invariant(net, one), 200)[0] for one in shifts]

# %% tags=["hide-input"]
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.9), sharey=True)
left.plot(probabilities, np.array(mirrored) - mirrored[0], marker="o")
left.set(xlabel="probability of a mirror image", ylabel="log evidence, less that of none")
right.plot(widths, np.array(shifted) - mirrored[0], marker="s", color="#d9622b")
right.set(xlabel="width of the shifts, pixels")
for panel in (left, right):
    panel.axhline(0, color="black", lw=0.8)
plt.show()

# %% [markdown]
# A few mirror images in the average do good: 0, 1 and 8 are nearly symmetric. But the network must
# not become blind to them. Shifts have a best width: below it digits move more than the network
# knows, and beyond it other digits come into reach.
#
# ## Costs
# Each transformation is a product of the inputs. A group costs as many products as it has elements,
# shifts by up to $s$ pixels $(4s + 1)^2$.

# %%
for families in ([], [images.flips((32, 32, 3))], [images.shifts(1, (32, 32, 3))]):
    one = nngp.Invariant(net, families) if families else net
    names = ", ".join(family.label for family in families)
    print(f"{names or 'none':7} {one.products(3072):3} products for an image of 32 x 32 x 3")

# %% [markdown]
# A kernel takes that many times as long. For colour images give the shape:
# `NNGPClassifier(invariance="auto", image_shape=(32, 32, 3))`.
#
# **Advice.** If you know what does not matter, say it: `invariance=nngp.images.shifts(1)`. If you
# do not, ask: "auto" relies on the evidence, and looks at no test image. An invariance cannot
# replace labels that say something else.
