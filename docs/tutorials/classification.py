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
# # Classes with calibrated probabilities
# Read handwritten digits from 300 examples, with probabilities close to the shares that come
# true. So you can hand the doubtful images to a person, and know what remains.

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import nngp

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, train_size=300, random_state=0, stratify=y
)
models = {
    "NNGPClassifier": nngp.NNGPClassifier(),
    "random forest": RandomForestClassifier(500, random_state=0),
    "trained network, width 256": MLPClassifier(256, max_iter=1000, random_state=0),
}
tables = {name: model.fit(X_train, y_train).predict_proba(X_test) for name, model in models.items()}
print(f"{len(X_test)} test images       accuracy   log loss")
for name, table in tables.items():
    right = (table.argmax(axis=1) == y_test).mean()
    print(f"{name:27s} {right:7.3f} {log_loss(y_test, table):10.3f}")

# %% [markdown]
# The log loss is what probabilities cost: minus the logarithm of the probability that the true
# class was given, on average.
#
# ## Does 70% mean 70%?
# Sort test images by the probability of the predicted class, group them, and count how many of a
# group are right. On the diagonal the two agree. The first five dots are the 300 least sure
# images, 60 each.

# %% tags=["thumbnail", "hide-input"]
colours = plt.rcParams["axes.prop_cycle"].by_key()["color"]
figure, panels = plt.subplots(1, 3, sharex=True, sharey=True, figsize=(7, 2.9))
for panel, (name, table), colour in zip(panels, tables.items(), colours, strict=False):
    sure, right = table.max(axis=1), table.argmax(axis=1) == y_test
    groups = np.split(np.argsort(sure), [60, 120, 180, 240, 300, 700, 1100])
    places = np.array([sure[group].mean() for group in groups])
    share = np.array([right[group].mean() for group in groups])
    spread = [np.sqrt(p * (1 - p) / len(g)) for p, g in zip(share, groups, strict=True)]
    panel.plot([0.2, 1], [0.2, 1], color="0.6", linewidth=1)
    panel.errorbar(places, share, spread, fmt="o-", color=colour)
    panel.set_title(name.replace(", ", ",\n"), color=colour)
    panel.set(xlim=(0.2, 1.02), ylim=(0.2, 1.02))
panels[0].set_ylabel("share that is right")
panels[1].set_xlabel("probability of the predicted class")
plt.show()

# %% [markdown]
# The forest is too modest: of the images that it gives 50%, almost all are right. The trained
# network is fairly calibrated here, and it is wrong more often. Bars are one standard error.
#
# ## The images it doubts
# These have the smallest probabilities. Above each: the two classes it hesitates between, the
# true one in bold if it is among them.

# %% tags=["hide-input"]
table = tables["NNGPClassifier"]
doubtful = np.argsort(table.max(axis=1))[:12]
figure, panels = plt.subplots(2, 6, figsize=(7, 3.1))
for panel, k in zip(panels.ravel(), doubtful, strict=True):
    panel.imshow(X_test[k].reshape(8, 8), cmap="gray_r", interpolation="nearest")
    panel.set_axis_off()
    for side, c in enumerate(np.argsort(table[k])[::-1][:2]):
        weight, colour = ("bold", colours[0]) if c == y_test[k] else ("normal", "0.4")
        panel.text(0.5 + 6 * side, -0.9, f"{c}: {table[k, c]:.0%}", weight=weight, color=colour,
                   ha="center", fontsize=8)  # fmt: skip
plt.show()

# %% [markdown]
# ## Abstain where in doubt
# Sort by probability and answer only the surest part. The curve says how good the answers are;
# the model itself forecasts it as the mean of the probabilities that remain, without any labels.

# %%
order = np.argsort(-table.max(axis=1))
kept = np.arange(1, len(order) + 1)
accuracy = np.cumsum((table.argmax(axis=1) == y_test)[order]) / kept
forecast = np.cumsum(table.max(axis=1)[order]) / kept
for share in (1.0, 0.9, 0.8):
    k = int(share * len(order)) - 1
    print(f"answers {share:.0%}: accuracy {accuracy[k]:.3f}, forecast {forecast[k]:.3f}")

# %% tags=["hide-input"]
figure, panel = plt.subplots(figsize=(7, 3.4))
for (name, other), colour in zip(tables.items(), colours, strict=False):
    ranks = np.argsort(-other.max(axis=1))
    curve = np.cumsum((other.argmax(axis=1) == y_test)[ranks]) / kept
    panel.plot(kept[150:] / len(kept), curve[150:], color=colour)
    panel.text(1.01, curve[-1], name.replace(", ", ",\n"), color=colour, va="center")
panel.plot(kept[150:] / len(kept), forecast[150:], ":", color=colours[0])
panel.text(0.12, 0.9905, "dotted: forecast without labels", color=colours[0])
panel.set(
    xlabel="share of images that are answered", ylabel="accuracy of the answers", xlim=(0.1, 1.0)
)
plt.show()

# %% [markdown]
# ## Classes with few members
# Of 442 patients with diabetes, 6% have a progression above 280. That is rare enough for the most
# probable class to be always "slow". `fit` says so:

# %%
patients, progression = load_diabetes(return_X_y=True)
speed = np.where(progression > 280, "fast", "slow")
parts = train_test_split(patients, speed, test_size=0.5, random_state=0, stratify=speed)
P_train, P_test, s_train, s_test = parts

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    plain = nngp.NNGPClassifier().fit(P_train, s_train)
print(*(str(w.message).replace("; ", ";\n") for w in caught))

# %% [markdown]
# Two remedies. `class_weight="balanced"` lets rows of the rare class count more; its labels
# change, and its probabilities no longer match frequencies. Or keep the plain model, whose
# probabilities are right, and lower the threshold: if a missed patient costs nine times a false
# alarm, call from 10% on.

# %%
balanced = nngp.NNGPClassifier(class_weight="balanced").fit(P_train, s_train)
fast = s_test == "fast"
chance = plain.predict_proba(P_test)[:, 0]  # classes_ are sorted: "fast" comes first
calls = {
    "plain labels": plain.predict(P_test) == "fast",
    "balanced labels": balanced.predict(P_test) == "fast",
    "plain, from 10% on": chance > 0.1,
}
print(f"{fast.sum()} fast and {(~fast).sum()} slow patients in the test")
for name, called in calls.items():
    print(f"{name:19s} finds {called[fast].sum():2d}, false alarms {called[~fast].sum():2d}")
print(f"mean probability of 'fast': {chance.mean():.3f}, their share: {fast.mean():.3f}")

# %% [markdown]
# With the second remedy you choose where to stand between misses and false alarms, after the fit.
# With so few members neither makes a weak signal strong.
