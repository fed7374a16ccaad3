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
# # Regression on a table, with intervals
# Predict the strength of concrete from its recipe and its age. One call, nothing to tune, and
# each prediction comes with an interval that means what it says.

# %%
import tempfile
import textwrap
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.model_selection import GroupShuffleSplit, train_test_split

import nngp

table = pd.read_csv("../data/concrete.csv").drop_duplicates()
X, y = table.drop(columns="strength"), table["strength"]  # kg per cubic metre, days; MPa
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)

model = nngp.NNGPRegressor().fit(X_train, y_train)
mean = model.predict(X_test)
lower, upper = model.predict_interval(X_test, 0.9)

inside = (lower <= y_test) & (y_test <= upper)
print(f"{len(X_train)} rows to learn from, {len(X_test)} to test")
print(f"root mean square error: {((mean - y_test) ** 2).mean() ** 0.5:.1f} MPa")
print(f"measurements inside their 90% intervals: {inside.mean():.0%}")

# %% [markdown]
# Each bar is the 90% interval of a test row. An orange bar misses its measurement.

# %% tags=["thumbnail", "hide-input"]
blue, orange = plt.rcParams["axes.prop_cycle"].by_key()["color"][:2]

figure, panel = plt.subplots(figsize=(7, 4.4))
panel.plot([0, 85], [0, 85], color="0.6", linewidth=1)
for which, colour, layer in ((inside, blue, 1), (~inside, orange, 2)):
    bars = y_test[which], lower[which], upper[which]
    panel.vlines(*bars, color=colour, alpha=0.4, linewidth=1.2, zorder=layer)
    panel.plot(y_test[which], mean[which], "o", color=colour, markersize=3, zorder=layer + 2)
panel.set(xlabel="measured strength, MPa", ylabel="predicted strength, MPa")
panel.set(xlim=(0, 85), ylim=(0, 92))
plt.show()

# %% [markdown]
# ## Against the usual methods
# The same rows, the same split, every method with its defaults.

# %%
others = {
    "mean of training rows": DummyRegressor(),
    "random forest": RandomForestRegressor(random_state=0),
    "gradient boosting": HistGradientBoostingRegressor(random_state=0),
    "NNGPRegressor": nngp.NNGPRegressor(),
}
guesses = {
    name: mean if name == "NNGPRegressor" else other.fit(X_train, y_train).predict(X_test)
    for name, other in others.items()
}
for name, guess in guesses.items():
    print(f"{name:22s} {((guess - y_test) ** 2).mean() ** 0.5:5.2f} MPa")

# %% [markdown]
# Read such a table with care. One recipe was often measured at several ages. A random split puts
# some of them into the training rows and the others into the test rows. To predict *new recipes*,
# split by recipe:

# %%
recipe = X.drop(columns="age").astype(str).agg(" ".join, axis=1)
train, test = next(GroupShuffleSplit(1, test_size=0.3, random_state=0).split(X, y, recipe))
for name, other in others.items():
    guess = other.fit(X.iloc[train], y.iloc[train]).predict(X.iloc[test])
    print(f"{name:22s} {((guess - y.iloc[test]) ** 2).mean() ** 0.5:5.2f} MPa")

low, high = others["NNGPRegressor"].predict_interval(X.iloc[test], 0.9)
held = ((low <= y.iloc[test]) & (y.iloc[test] <= high)).mean()
print(f"measurements inside their 90% intervals: {held:.0%}")

# %% [markdown]
# The lead is gone: which method comes first now depends on the split. And the intervals are too
# narrow. `fit` checks their width on leave-one-out predictions, and the sisters of such a row
# stay in. No method can know that your new rows will be less familiar than your old ones. If they
# come in groups, test on groups that were held back.
#
# ## Are the intervals calibrated?
# For rows like the training rows, yes, with a little caution. The quantile of 10% lies above
# about 10% of the measurements, and so on (left). The outer quantiles, which make intervals, are
# right; in the middle more rows lie close to the prediction than promised. Rows with wide
# intervals are those with large errors (right).

# %% tags=["hide-input"]
levels = np.arange(0.05, 1, 0.05)
below = [(y_test <= model.predict_quantile(X_test, q)).mean() for q in levels]
half_width = np.subtract(*model.predict_interval(X_test, 0.5)[::-1]) / 2
fifth = pd.qcut(half_width, 5, labels=False)
promised = pd.Series(half_width).groupby(fifth).median()
found = (mean - y_test).abs().groupby(fifth).median()

figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.4))
chance = 1.64 * np.sqrt(levels * (1 - levels) / len(y_test))
left.fill_between(levels, levels - chance, levels + chance, color="0.9", linewidth=0)
left.plot([0, 1], [0, 1], color="0.6", linewidth=1)
left.plot(levels, below, "o-")
left.text(0.97, 0.03, "grey: chance,\nwith 90%", color="0.4", ha="right")
left.set(
    title="Quantiles, asked and found", xlabel="quantile asked for", ylabel="share of rows below it"
)
right.plot([0, 5], [0, 5], color="0.6", linewidth=1)
right.plot(promised, found, "o-")
right.text(promised[0], found[0] - 0.2, "surest fifth", color=blue, va="top")
right.text(promised[4], found[4] + 0.2, "least sure", color=blue, ha="right")
right.set(title="Wide where errors are large", xlabel="half width of the 50% interval, MPa")
right.set(ylabel="median error, MPa", xlim=(0, 5), ylim=(0, 5))
plt.show()

# %% [markdown]
# No rows were held back for this. The prediction of a training row without that row is a closed
# form; `fit` looks at all of them and corrects the widths.
#
# ## A recipe that is strong enough, almost surely
# A mean says how strong a mix is on average. A builder asks how much cement reaches 40 MPa with a
# probability of 90%. That is a question about the quantile of 10%: nine in ten such mixes are
# stronger.

# %%
cement = np.arange(200.0, 500.0)
rest = {"slag": 0, "fly_ash": 0, "water": 180, "superplasticizer": 6}
rest |= {"coarse_aggregate": 1000, "fine_aggregate": 750, "age": 28}
mixes = pd.DataFrame({"cement": cement}).assign(**rest)

goal = 40
curves = {
    "on average": model.predict(mixes),
    "nine times in ten": model.predict_quantile(mixes, 0.1),
}
enough = {name: cement[np.argmax(curve >= goal)] for name, curve in curves.items()}
for name, amount in enough.items():
    print(f"{goal} MPa {name}: {amount:.0f} kg of cement")

# %% tags=["hide-input"]
figure, panel = plt.subplots(figsize=(7, 3.6))
panel.axhline(goal, color="0.5", linewidth=1)
panel.text(202, goal + 0.8, "wanted", color="0.4")
for (name, curve), colour in zip(curves.items(), (blue, orange), strict=True):
    panel.plot(cement, curve, color=colour)
    panel.plot([enough[name]] * 2, [0, goal], ":", color=colour)
    panel.plot(enough[name], goal, "o", color=colour, markersize=6)
panel.text(445, curves["on average"][245] + 1.5, "mean", color=blue, ha="right")
label = "nine in ten\nare stronger"
panel.text(440, 38, label, color=orange, va="top")
panel.set(xlabel="cement, kg per cubic metre (with 180 kg of water, after 28 days)")
panel.set(ylabel="strength, MPa", xlim=(200, 500), ylim=(10, 64))
plt.show()

# %% [markdown]
# ## Far from the training rows
# There the model should say "I do not know", and it does. The intervals grow, while a forest stays
# flat and says nothing. Very far out `predict` also warns, and names the column.

# %%
cement = np.linspace(0, 1100, 150)
line = pd.DataFrame({"cement": cement}).assign(**rest)
middle = model.predict(line)
low, high = model.predict_interval(line, 0.9)
forest = others["random forest"].fit(X_train, y_train).predict(line)

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model.predict(mixes.head(1).assign(cement=4500))  # a decimal point that got lost
said = f"{caught[0].category.__name__}: {caught[0].message}"
print(textwrap.fill(said, 80))

# %% tags=["hide-input"]
figure, panel = plt.subplots(figsize=(7, 3.6))
seen = X_train["cement"].min(), X_train["cement"].max()
panel.axvspan(*seen, color="0.95")
panel.fill_between(cement, low, high, alpha=0.2, color=blue, linewidth=0)
panel.plot(cement, middle, color=blue)
panel.plot(cement, forest, color=orange)
panel.text(np.mean(seen), 113, "training rows are here", color="0.4", ha="center", va="top")
panel.text(1090, middle[-1] + 2, "NNGPRegressor, 90% interval", color=blue, ha="right")
panel.text(1090, forest[-1] - 2, "random forest", color=orange, ha="right", va="top")
panel.set(
    xlabel="cement, kg per cubic metre", ylabel="strength, MPa", xlim=(0, 1100), ylim=(-5, 115)
)
plt.show()

# %% [markdown]
# ## Keep it
# A model is one file without pickled code. Loaded, it predicts the same to the last bit.

# %%
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "concrete.nngp"
    model.save(path)
    print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")
    print("the same predictions:", (nngp.load(path).predict(X_test) == mean).all())

# %% [markdown]
# ## When to use something else
# With more than some ten thousand rows, gradient boosting needs a small part of the time. On
# tables of steps and switches it often predicts better; `fit` compares itself with trees and
# warns if it loses. [Reading the choice](reading_the_choice) shows such a table.
