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
# # A table with text and missing values
# Give `fit` the table as it comes: words, gaps and all. The model says how it read each column,
# finds columns by name later, and tells you what it has not seen before.

# %%
import os
import tempfile
import textwrap
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

import nngp

cars = pd.read_csv("../data/auto-mpg.csv").dropna(subset="miles_per_gallon").drop(columns="name")
X, y = cars.drop(columns="miles_per_gallon"), cars["miles_per_gallon"]
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0)

model = nngp.NNGPRegressor().fit(X_train, y_train)
lower, upper = model.predict_interval(X_test, 0.9)
error = ((model.predict(X_test) - y_test) ** 2).mean() ** 0.5
print(f"{len(X_test)} cars: error {error:.1f} miles per gallon,")
print(f"{((lower <= y_test) & (y_test <= upper)).mean():.0%} inside their 90% intervals")
X_train[X_train["horsepower"].isna()].head(3)

# %% [markdown]
# The column `origin` is text and `horsepower` has gaps. `columns_` says what became of them, and
# lists the inputs:

# %%
print(*model.columns_.remarks, sep="\n")
print(textwrap.fill("inputs: " + ", ".join(model.columns_.features), 90))

# %% [markdown]
# A word becomes one input for each of its values, all with one common relevance. A missing number
# becomes the median of the training rows. From five gaps on, one more input marks them, and the
# evidence decides whether a gap itself says something.
#
# What the model has learned from the text: one car, built in each of the years, in three regions.
# Bands are 50% intervals of the mean curve.

# %% tags=["thumbnail", "hide-input"]
years = np.arange(1970, 1983)
colours = plt.rcParams["axes.prop_cycle"].by_key()["color"]
car = {"cylinders": 4, "displacement": 120, "horsepower": 85, "weight": 2400, "acceleration": 16}
figure, panel = plt.subplots(figsize=(7, 3.6))
for origin, colour in zip(("Japan", "Europe", "USA"), colours, strict=False):
    frame = pd.DataFrame({"year": years}).assign(origin=origin, **car)
    low, high = model.predict_interval(frame, 0.5, noise=False)
    middle = model.predict(frame, noise=False)
    panel.fill_between(years, low, high, color=colour, alpha=0.15, linewidth=0)
    panel.plot(years, middle, color=colour)
    panel.text(1982.1, middle[-1], origin, color=colour, va="center")
panel.set(xlabel="year", ylabel="miles per gallon", xlim=(1970, 1983))
plt.show()

# %% [markdown]
# ## What a later table may lack
# Gaps and unknown words are accepted, with a `ColumnWarning`. The helper below shows warnings as
# they come.


# %%
def said(call):
    """Call it, and print what it warns of or raises."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call()
        except ValueError as stopped:
            caught, result = [stopped], None
    for one in caught:
        kind = getattr(one, "category", type(one)).__name__
        print(textwrap.fill(f"{kind}: {getattr(one, 'message', one)}", 90))
    return result


row = X_test.iloc[[0]]
changes = {
    "as it is": row,
    "horsepower unknown": row.assign(horsepower=np.nan),
    "weight unknown": row.assign(weight=np.nan),
    "origin unknown": row.assign(origin=None),
    "origin Korea": row.assign(origin="Korea"),
}
found = {
    name: said(lambda frame=frame: model.predict(frame, return_std=True))
    for name, frame in changes.items()
}
print()
for name, (mean, std) in found.items():
    print(f"{name:20s} {mean[0]:5.1f} ± {std[0]:.1f} miles per gallon")

# %% [markdown]
# Training had gaps in `horsepower`, so the model knows what a gap there means: no warning, and a
# larger standard deviation. It never saw one in `weight`. The median stands for it, and the model
# takes that for the truth: it predicts a lighter car than this is. Take the warning seriously, or
# fill the gap yourself.
#
# ## Columns go by name
# Their order does not matter, and others are ignored. A column that is missing is an error.

# %%
other = row[row.columns[::-1]].assign(colour="red")
print("the same:", said(lambda: model.predict(other)).item() == found["as it is"][0].item())
said(lambda: model.predict(row.drop(columns="weight")))

# %% [markdown]
# ## Many different words
# The name of a car differs from row to row. Only the 50 most frequent values become inputs of
# their own, and the rest share one. A message says so, and asks you to group them. The maker,
# which is the first word, is such a group (and shows that data are typed by people):

# %%
named = pd.read_csv("../data/auto-mpg.csv")
named = named.dropna(subset="miles_per_gallon")
quick = nngp.NNGPRegressor(selection=None)  # no search, only messages
said(lambda: quick.fit(named.drop(columns="miles_per_gallon"), named["miles_per_gallon"]))
maker = named["name"].str.split().str[0]
print(f"\n{maker.nunique()} makers, from", ", ".join(maker.value_counts().index[:4]), "to", end=" ")
print(", ".join(maker.value_counts().index[-4:]))

# %% [markdown]
# ## Penguins without a sex
# Classes work the same way. Eleven of these penguins have no sex, and two have no measurement at
# all.

# %%
penguins = pd.read_csv("../data/penguins.csv")
birds, species = penguins.drop(columns=["species", "island"]), penguins["species"]
gaps = birds.isna().any(axis=1)
parts = train_test_split(birds[~gaps], species[~gaps], test_size=0.4, random_state=0)
B_train, B_test, s_train, s_test = parts
classifier = nngp.NNGPClassifier().fit(B_train, s_train)
print(f"accuracy on complete rows: {classifier.score(B_test, s_test):.3f}")
chances = pd.DataFrame(
    said(lambda: classifier.predict_proba(birds[gaps])).round(2),
    index=birds.index[gaps],
    columns=classifier.classes_,
)
chances.assign(gaps=birds[gaps].isna().sum(axis=1), species=species[gaps])

# %% [markdown]
# A missing sex costs nothing. Two rows have five gaps: what stands there is an average penguin,
# which never lived, and its probabilities mean little. Train on rows with gaps if you will
# predict rows with gaps; here we did not, and the warnings say so.
#
# ## The same without Python
# The command line reads the file itself, with the same rules and the same messages. It also leaves
# out rows without a target, which Python leaves to you (`dropna`).

# %%
os.environ["DATA"] = os.path.abspath("../data")
os.chdir(tempfile.mkdtemp())
# !nngp fit $DATA/auto-mpg.csv --target miles_per_gallon --drop name -o cars.nngp

# %%
# !head -4 $DATA/auto-mpg.csv | nngp predict cars.nngp - --keep name

# %% [markdown]
# [The guide to the command line](../guides/command-line.md) has the rest.
