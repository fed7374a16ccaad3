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
# # SHAP and partial dependence
# A fitted model is a scikit-learn estimator, so the usual tools explain it. And because it is a
# Gaussian process, an explanation can have error bars of its own.

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.inspection import PartialDependenceDisplay, permutation_importance
from sklearn.model_selection import train_test_split

import nngp

with warnings.catch_warnings():  # shap misses a progress bar
    warnings.simplefilter("ignore")
    import shap

table = pd.read_csv("../data/concrete.csv").drop_duplicates()
X, y = table.drop(columns="strength").astype(float), table["strength"]
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)

# With an untransformed target a mean needs no variance, so thousands of predictions take no time.
model = nngp.NNGPRegressor(effort="fast", target_transform="identity").fit(X_train, y_train)
print(f"R² on {len(X_test)} test rows: {model.score(X_test, y_test):.3f}")

# %% [markdown]
# ## Partial dependence with its own uncertainty
# A partial dependence is an average: set one column to a value in many rows, predict, take the
# mean. A posterior draw is a whole function, so its average is a draw of the curve. Many draws
# are a band: what the data leave open.

# %%
rows = X_train.sample(40, random_state=0)


def dependence_draws(column, values, draws=100):
    """Draws of the partial dependence on a column: (values, draws)."""
    copies = [rows.assign(**{column: value}) for value in values]
    functions = model.sample_y(pd.concat(copies), draws, noise=False)
    return functions.reshape(len(values), len(rows), draws).mean(axis=1)


curves = {}
for column in ("age", "cement", "water", "superplasticizer"):
    low, high = X_train[column].min(), X_train[column].max()
    curves[column] = (
        np.linspace(low, high, 20),
        dependence_draws(column, np.linspace(low, high, 20)),
    )

# %% tags=["thumbnail", "hide-input"]
blue, orange = plt.rcParams["axes.prop_cycle"].by_key()["color"][:2]
units = {"age": "days"}
figure, panels = plt.subplots(2, 2, sharey=True, figsize=(7, 4.5))
for panel, (column, (values, draws)) in zip(panels.ravel(), curves.items(), strict=True):
    panel.plot(values, draws[:, :30], color=blue, alpha=0.12, linewidth=0.8)
    panel.fill_between(
        values, *np.quantile(draws, [0.05, 0.95], axis=1), color=blue, alpha=0.2, linewidth=0
    )
    panel.plot(values, draws.mean(axis=1), color=blue, linewidth=2)
    ticks = np.quantile(X_train[column], np.linspace(0.05, 0.95, 10))
    panel.plot(ticks, np.full(10, 0.03), "|", color="0.4", transform=panel.get_xaxis_transform())
    panel.set(xlabel=f"{column}, {units.get(column, 'kg per cubic metre')}")
for panel in panels[:, 0]:
    panel.set(ylabel="mean strength, MPa", ylim=(0, 75))
plt.show()

# %% [markdown]
# Thin lines are draws, the band holds 90% of them, and ticks mark tenths of the training rows.
# The band widens where rows are few: with very little or much water, and with much
# superplasticizer. A single curve would hide that.
#
# Draws answer questions about the curve, with a probability:

# %%
values, draws = curves["superplasticizer"]
at = {amount: draws[np.argmin(abs(values - amount))] for amount in (0, 10, 30)}
print(f"10 kg are better than none: {(at[10] > at[0]).mean():.0%} of the draws")
print(f"30 kg are better than 10 kg: {(at[30] > at[10]).mean():.0%} of the draws")

# %% [markdown]
# ## Partial dependence by scikit-learn
# The same mean curves, with single rows behind them, and two columns at once.
# `PartialDependenceDisplay` takes the model as it is.

# %%
figure, panels = plt.subplots(1, 2, figsize=(7, 3.4))
common = {"grid_resolution": 20, "random_state": 0}
thin = {"ice_lines_kw": {"color": blue, "alpha": 0.25, "linewidth": 0.7},
        "pd_line_kw": {"color": orange, "linewidth": 2.5, "label": "mean"}}  # fmt: skip
PartialDependenceDisplay.from_estimator(
    model, rows, ["water"], kind="both", ax=panels[0], **thin, **common
)
PartialDependenceDisplay.from_estimator(model, rows, [("cement", "water")], ax=panels[1], **common)
plt.show()

# %% [markdown]
# ## SHAP: one mix, explained
# SHAP values share the difference between a prediction and the average prediction among the
# columns. Any explainer that needs only a function will do. With eight columns the exact one is
# affordable: 2⁸ subsets for each row of a small background.

# %%
background = shap.maskers.Independent(X_train.sample(12, random_state=1), max_samples=12)
explain = shap.explainers.ExactExplainer(
    lambda array: model.predict(pd.DataFrame(array, columns=X.columns)), background
)
chosen = X_test.sample(40, random_state=0)
explained = explain(chosen, silent=True)

k = int(np.argmax(model.predict(chosen)))
shares = pd.Series(explained.values[k], X.columns)
print(
    f"average {explained.base_values[k]:.1f}, this mix {model.predict(chosen.iloc[[k]])[0]:.1f} MPa"
)
print(f"sum of average and shares: {explained.base_values[k] + shares.sum():.1f}")

# %% tags=["hide-input"]
order = shares.abs().sort_values().index
start = explained.base_values[k] + shares[order[::-1]].cumsum().shift(fill_value=0)[order]
figure, panel = plt.subplots(figsize=(7, 3.4))
names = [f"{c.replace('_', ' ')} = {chosen.iloc[k][c]:g}" for c in order]
panel.barh(
    names, shares[order], left=start, color=[blue if v > 0 else orange for v in shares[order]]
)
for name, c in zip(names, order, strict=True):
    panel.text(
        start[c] + max(shares[c], 0) + 0.3, name, f"{shares[c]:+.1f}", va="center", fontsize=8
    )
panel.axvline(explained.base_values[k], color="0.5", linewidth=1)
panel.margins(x=0.08)
panel.set(xlabel="strength, MPa (grey line: the average of the background)")
panel.grid(axis="y")
plt.show()

# %% [markdown]
# And all forty mixes, each a dot. Colour is the value of the column: orange is high.

# %% tags=["hide-input"]
importance = pd.Series(np.abs(explained.values).mean(axis=0), X.columns).sort_values()
ramp = plt.matplotlib.colors.LinearSegmentedColormap.from_list("", [blue, "0.8", orange])
figure, panel = plt.subplots(figsize=(7, 3.8))
rng = np.random.default_rng(0)
for height, column in enumerate(importance.index):
    j = X.columns.get_loc(column)
    shift = height + rng.uniform(-0.22, 0.22, len(chosen))
    panel.scatter(explained.values[:, j], shift, c=chosen[column].rank(pct=True), cmap=ramp, s=14)
panel.axvline(0, color="0.5", linewidth=1, zorder=0)
panel.set(yticks=range(len(importance)), yticklabels=importance.index.str.replace("_", " "))
panel.set(xlabel="SHAP value, MPa")
plt.show()

# %% [markdown]
# ## Three measures of importance
# `relevance_` is free, and says how much the *prior* lets the function vary along a column.
# Permutation importance says how much the error grows without the column, and SHAP how far it
# moves predictions. They need not agree.

# %%
permuted = permutation_importance(model, X_test, y_test, n_repeats=5, random_state=0)
measures = pd.DataFrame(
    {
        "relevance_": pd.Series(model.relevance_, X.columns),
        "permutation": pd.Series(permuted.importances_mean, X.columns),
        "SHAP": importance,
    }
)
measures = (measures / measures.max()).sort_values("SHAP")

# %% tags=["hide-input"]
figure, panels = plt.subplots(1, 3, sharey=True, figsize=(7, 3))
for panel, (name, column) in zip(panels, measures.items(), strict=True):
    panel.barh(column.index.str.replace("_", " "), column, height=0.65)
    panel.set_title(name)
    panel.set_xticks([0, 0.5, 1])
    panel.grid(axis="y")
figure.supxlabel("relative to the largest", fontsize=9)
plt.show()

# %% [markdown]
# Cement moves the strength most, and superplasticizer least; by relevance it is the other way
# round. Strength is nearly a straight line in cement (see its curve above), and a straight line
# needs little variance. Along superplasticizer it bends. Use relevance to see what could be left
# out; use the others to see what counts.
#
# ## What these pictures do not say
# Columns of a recipe depend on each other: more of one leaves less room for another. Partial
# dependence and SHAP mix rows as if they did not, and so ask the model about concrete that nobody
# would make. The band helps, since it is wide there. None of it says what would happen if you
# changed the recipe.
