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
# # Reading the choice
# `fit` chooses a network, maps of columns, a transform of the target and the noise. All that it
# tried is on record. Read it to learn about your table, to find mistakes, and to know when to
# stop.

# %%
import textwrap
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import nngp

table = pd.read_csv("../data/concrete.csv").drop_duplicates().sample(700, random_state=0)
X, y = table.drop(columns="strength"), table["strength"]
model = nngp.NNGPRegressor(n_networks=3).fit(X, y)

net = model.network_
print(f"network:          depth {net.depth}, {net.activation.name}")
print(f"target transform: {model.target_transform_}")
print(f"noise:            {model.noise_var_:.3f} of the scaled target's variance")
print(f"log evidence:     {model.log_evidence_:.1f}\n")
maps = ", ".join(f"{name} {kind}" for name, kind in model.column_maps_)
print(textwrap.fill(f"column maps: {maps}", 90))

# %% [markdown]
# ## Which columns matter: `relevance_`
# Each input has a weight variance of its own. An input of small relevance hardly changes the
# prediction over its range. The largest is one.

# %% tags=["hide-input"]
blue, orange, green, purple, ochre, grey = plt.rcParams["axes.prop_cycle"].by_key()["color"][:6]
order = np.argsort(model.relevance_)
figure, panel = plt.subplots(figsize=(7, 3))
panel.barh(X.columns[order].str.replace("_", " "), model.relevance_[order], height=0.65)
panel.set(xlabel="relevance, relative to the largest")
panel.grid(axis="y")
plt.show()

# %% [markdown]
# Relevance is how *curved* the function is along a column, seen through its map, and not how much
# of the variance it explains. For the latter use permutation importance or SHAP ([next
# page](shap_and_partial_dependence)).
#
# ## What was tried: `selection_`
# Each row is one ascent on the evidence, in the order of time. `score` is the objective per
# target; it is comparable where `n`, the number of rows looked at, is the same. Here is the best
# of each stage:

# %%
tried = pd.DataFrame(model.selection_)
tried["log_evidence/n"] = tried["log_evidence"] / tried["n"]
shown = ["stage", "n", "activation", "depth", "maps", "target_transform", "log_evidence/n"]
best = tried.groupby("stage", sort=False)["log_evidence/n"].idxmax()
tried.loc[best, shown].round(3)

# %% [markdown]
# The search is a staircase. First the kind of network, on a subset; then relevances, a transform
# of the target, maps of columns; then more rows. Where a transform of the target wins, the last
# steps are done once more without it, so that held-out rows can judge both. The picture shows
# where the gain was.

# %% tags=["thumbnail", "hide-input"]
figure, panel = plt.subplots(figsize=(7, 3.8))
palette = dict(
    zip(tried["stage"].unique(), (grey, blue, purple, orange, green, ochre), strict=False)
)
below = {"relevance", "more data"}  # where labels have room
labelled = set()
for _, run in tried.groupby((tried["stage"] != tried["stage"].shift()).cumsum()):
    stage, evidence = run["stage"].iloc[0], run["log_evidence/n"]
    panel.plot(run.index, evidence, "o", color=palette[stage], markersize=6)
    ends = run.index[0] - 0.4, run.index[-1] + 0.4
    panel.hlines(evidence.max(), *ends, color=palette[stage], linewidth=1.2)
    if stage not in labelled:
        side = (
            ("top", evidence.min() - 0.025)
            if stage in below
            else ("bottom", evidence.max() + 0.015)
        )
        words = f"{stage},\n{run['n'].iloc[0]} rows"
        panel.text(ends[0], side[1], words, color=palette[stage], va=side[0], fontsize=8)
    labelled.add(stage)
panel.set(xlabel="networks, in the order in which they were tried", xticks=[])
low, high = tried["log_evidence/n"].min(), tried["log_evidence/n"].max()
panel.set(ylabel="log evidence per row", ylim=(low - 0.03, high + 0.1))
plt.show()

# %% [markdown]
# Read from it: the kind of network matters little here, and maps of the columns matter much. That
# is typical of tables. A step that gained nothing tells you what you need not try by hand.
#
# ## The maps: `column_maps_`
# A map is monotone, so it keeps the order of values and changes their distances. Steep parts are
# where the strength changes fast.

# %% tags=["hide-input"]
scaling = model.networks_[0].inputs
mapped = [j for j, (_, kind) in enumerate(model.column_maps_) if kind != "identity"][:6]
columns = min(3, len(mapped))
rows = -(-len(mapped) // columns)
figure, panels = plt.subplots(rows, columns, figsize=(7, 2.1 * rows + 0.3), squeeze=False)
for panel in panels.ravel()[len(mapped) :]:
    panel.set_axis_off()
for panel, j in zip(panels.ravel(), mapped, strict=False):
    name, kind = model.column_maps_[j]
    x = np.linspace(X[name].min(), X[name].max(), 300)
    seen = X[name].to_numpy(dtype=float)
    u = (scaling.maps[j](x) - scaling.center[j]) * scaling.factor[j]
    panel.plot(x, u)
    panel.plot(seen, np.full(len(seen), u.min() - 0.08 * np.ptp(u)), "|", color="0.6", alpha=0.3)
    panel.set_title(f"{name.replace('_', ' ')}\n{kind}", fontsize=9)
figure.supylabel("input of the network", fontsize=9)
plt.show()

# %% [markdown]
# Age has a logarithm: concrete hardens fast in its first days and slowly for a year. The search
# found that by itself.
#
# ## Several networks: `network_weights_`
# With `n_networks=3` up to three are kept, and mixed with the shares that predict held-out rows
# best. A share of one for the first means that the others added nothing.

# %%
for one, share in zip(model.networks_, model.network_weights_, strict=True):
    net = one.posterior.network
    print(f"{share:.2f}  depth {net.depth}, {net.activation.name}, {one.targets.transform}")

# %% [markdown]
# ## Leave-one-out predictions: `left_out()`
# Every training row is predicted from all the others, without fitting again. Use it to look for
# rows that do not fit in: wrong units, swapped digits, a laboratory's mistake.

# %%
left_out = model.left_out()
residual = y.to_numpy() - left_out.mean()[:, 0]
surprise = residual / left_out.std()[:, 0]
print(f"leave-one-out RMSE {np.sqrt(np.mean(residual**2)):.2f} MPa")
odd = np.argsort(-np.abs(surprise))[:4]
shown = X.iloc[odd][["cement", "water", "age"]].assign(strength=y.iloc[odd])
shown.assign(expected=left_out.mean()[odd, 0].round(1), deviations=surprise[odd].round(1))

# %% tags=["hide-input"]
figure, panel = plt.subplots(figsize=(7, 3.4))
panel.axhspan(-2, 2, color="0.94")
panel.plot(left_out.mean()[:, 0], surprise, "o", markersize=3, alpha=0.6)
panel.plot(left_out.mean()[odd, 0], surprise[odd], "o", color=orange, markersize=6)
panel.text(84, -5.3, "19 in 20 should lie in the grey part", color="0.4", ha="right")
panel.set(
    xlabel="strength expected from all other rows, MPa", ylabel="residual, in standard deviations"
)
plt.show()

# %% [markdown]
# ## Least noise: `noise_floor_`
# Targets are written with two decimals, so they carry the noise of rounding: spacing²/12. The
# chosen noise is never below it, unless held-out rows show that nothing was rounded.

# %%
print(f"least noise {model.noise_floor_:.1e}, chosen {model.noise_var_:.1e} (scaled targets)")

# %% [markdown]
# Here rounding is far below the noise. If the two were equal, more decimals would buy accuracy.
#
# ## Would trees do better? `trees_`
# `fit` compares itself with trees on held-out rows. Two tables, one question each:

# %%
cars = pd.read_csv("../data/auto-mpg.csv").drop(columns="name").dropna()
steps = nngp.NNGPRegressor(budget=60)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    steps.fit(cars.drop(columns="cylinders"), cars["cylinders"])

print(textwrap.fill(f"strength of concrete: {model.trees_.sentence}", 90))
print()
print(textwrap.fill(f"cylinders of a car: {caught[0].message}", 90))

# %% [markdown]
# The number of cylinders is 3, 4, 5, 6 or 8: a table of steps. A network of infinite width is
# smooth there, and trees are the better tool. (As classes instead of amounts it would be another
# task.)
#
# ## What to do with all this
# | you see | do |
# |---|---|
# | a column of tiny relevance | leave it out, and see whether the left-out error changes |
# | a map `ranks` or `log` | use the same map in your other models |
# | a stage that gained nothing | set it, such as `column_maps="identity"`, to save its time |
# | two kinds of network close together | `n_networks=3` mixes them |
# | rows with large surprises | look at them before you look at the model |
# | a `TreesWarning` | try gradient boosting |
