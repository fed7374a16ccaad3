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
# # An image classifier without training
# A convolutional network with infinitely many channels is a Gaussian process, so it classifies
# images by solving one linear system: no epochs, no learning rate, no random seed. Build one from
# parts, compare it with a network that does not know that pixels have neighbours, and see what
# pooling is.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

import nngp
from nngp import Act, AvgPool, Chain, Conv, Dense, Flatten, Image, Repeat

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(X))
X, y = X[order] / 16, y[order]
train, test = slice(0, 150), slice(150, 450)

# %% tags=["hide-input", "thumbnail"]
figure, panels = plt.subplots(1, 8, figsize=(7, 1))
for panel, row, label in zip(panels, X, y, strict=False):
    panel.imshow(row.reshape(8, 8), cmap="gray_r")
    panel.set(xticks=[], yticks=[], title=label)
    panel.grid(False)
plt.show()

# %% [markdown]
# ## Parts
# `Image` reads each row of 64 numbers as 8 x 8 pixels of one channel. `Conv` has the same weights
# at every position of its 3 x 3 window, `weight_var` divided by the fan-in of the window. `Flatten`
# puts all positions side by side, for the last `Dense`.

# %%
block = Chain(Conv(3, 2.0, 0.1), Act("relu"))
convolutional = Chain(Image((8, 8)), Repeat(block, 2), Flatten(), Dense(1.0))
print(convolutional)

# %% [markdown]
# With `AvgPool` in front of the readout the network compares a position with its neighbours, too.
# That needs more covariances for each pair of images: `forecast` counts these planes.

# %%
pooled = Chain(Image((8, 8)), Repeat(block, 2), AvgPool(2, 1), Flatten(), Dense(1.0))
for name, net in (("flatten", convolutional), ("pooled", pooled)):
    print(name, nngp.forecast(len(X), 64, network=net).planes)

# %% [markdown]
# ## The same classifier, three networks
# A classifier by regression on the labels: one column for each digit, the largest prediction wins.

# %%
networks = {
    "dense": nngp.Architecture(3, "relu", weight_var=2.0, bias_var=0.1),
    "convolution": convolutional,
    "convolution, pooling": pooled,
}
targets = np.eye(10)[y] - 0.1


scores = {}
for name, net in networks.items():
    noise = 1e-3 * nngp.kernel_diag(net, X[train]).mean()
    posterior = nngp.condition(net, X[train], targets[train], noise_var=noise, engine="cpu")
    found = posterior.mean(X[test]).argmax(axis=1)
    scores[name] = {
        "log evidence": posterior.log_evidence,
        "accuracy": (found == y[test]).mean(),
    }
pd.DataFrame(scores).T.round(3)

# %% [markdown]
# With noise fixed at a thousandth of the scale, evidence and accuracy rank these networks in
# opposite order. Where the class that is named is what counts, compare accuracies on held-out
# images.
#
# ## Pooling is an average over shifts
# If what leaves the image on one side comes back on the other (`padding="circular"`), the network
# that is pooled over all positions is the average of the network over all shifts of the image. The
# two kernels are the same number. That is why pooling helps: it tells the network that a digit that
# is moved is the same digit.

# %%
circular = Repeat(Chain(Conv(3, 2.0, 0.1, padding="circular"), Act("relu")), 2)
everywhere = Chain(Image((8, 8)), circular, nngp.GlobalAvgPool(), Dense(1.0))
flat = Chain(Image((8, 8)), circular, Flatten(), Dense(1.0))
average = 0.0
for down in range(8):
    for across in range(8):
        moved = np.roll(X[:3].reshape(3, 8, 8), (down, across), axis=(1, 2)).reshape(3, 64)
        average = average + nngp.kernel(flat, X[:3], moved) / 64
print(np.abs(nngp.kernel(everywhere, X[:3]) - average).max())

# %% [markdown]
# ## In an estimator
# `NNGPClassifier` takes such a network as it is, and gives calibrated probabilities.

# %% tags=["remove-stderr"]
model = nngp.NNGPClassifier(network=convolutional).fit(X[train], y[train])
print(f"accuracy {model.score(X[test], y[test]):.3f}")
