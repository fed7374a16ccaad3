"""Accuracy on tables: nngp's estimators and other methods, all at their defaults.

    python benchmarks/tabular.py regression --data DIR --out tabular_regression.jsonl
    python benchmarks/tabular.py classification --data DIR --out tabular_classification.jsonl
    python benchmarks/tabular.py summary tabular_regression.jsonl

DIR holds `uci_regression/` (nine sets with the splits of Hernández-Lobato and Adams 2015) and
`uci_classification/` (the 90 small sets of Arora et al. 2020 with four splits each), as .npz files
with the keys X, y and test, or X, y, cv_train and cv_test. All methods get the same folds; inputs
are standardised on the training part for the methods that need it. Nothing is tuned by hand, and
test rows are used for the scores only. Results are appended line by line; finished runs are not
repeated. On many cores run one process per core, each with its --shard and its --out, pinned with
taskset (NNGP_ENGINE=cpu); then concatenate the files.

Predictive densities: a Gaussian process has its own. Those of the others are Gaussians about the
prediction; their variance is that of out-of-bag residuals (forest) or 5-fold residuals (boosting).
"""

import argparse
import csv
import json
import os
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp import datasets

Array = NDArray[np.float64]
Job = tuple[str, str, int]  # method, data set, split
SPLITS = {"kin8nm": 1, "naval": 1, "power": 1, "protein": 1}  # the others have 20
SKIP_GPR = 12_000  # training points from which scikit-learn's GPR does not fit in 24 GB


def gaussian_process(X: Array, y: Array, Xs: Array) -> tuple[Array, Array]:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    from sklearn.preprocessing import StandardScaler

    if len(X) > SKIP_GPR:
        raise MemoryError("GaussianProcessRegressor holds several n x n matrices")
    scaler = StandardScaler().fit(X)
    model = GaussianProcessRegressor(RBF() + WhiteKernel(), normalize_y=True, random_state=0)
    model.fit(scaler.transform(X), y)
    mean, std = model.predict(scaler.transform(Xs), return_std=True)
    return mean, std


def forest(X: Array, y: Array, Xs: Array) -> tuple[Array, Array]:
    from sklearn.ensemble import RandomForestRegressor

    model = RandomForestRegressor(oob_score=True, random_state=0).fit(X, y)
    return model.predict(Xs), _constant(model.oob_prediction_ - y, Xs)


def boosting(X: Array, y: Array, Xs: Array) -> tuple[Array, Array]:
    from sklearn.ensemble import GradientBoostingRegressor

    return _cross_validated(GradientBoostingRegressor(random_state=0), X, y, Xs)


def hist_boosting(X: Array, y: Array, Xs: Array) -> tuple[Array, Array]:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return _cross_validated(HistGradientBoostingRegressor(random_state=0), X, y, Xs)


def nngp_regressor(X: Array, y: Array, Xs: Array) -> tuple[Array, Array]:
    import nngp

    mean, std = nngp.NNGPRegressor(engine=ENGINE).fit(X, y).predict(Xs, return_std=True)
    return mean, std


def _cross_validated(model: Any, X: Array, y: Array, Xs: Array) -> tuple[Array, Array]:
    from sklearn.model_selection import KFold, cross_val_predict

    folds = KFold(5, shuffle=True, random_state=0)
    missed = cross_val_predict(model, X, y, cv=folds) - y
    return model.fit(X, y).predict(Xs), _constant(missed, Xs)


def _constant(residuals: Array, Xs: Array) -> Array:
    return np.full(len(Xs), np.sqrt(np.mean(residuals**2)))


def nngp_classifier(X: Array, y: Array, Xs: Array) -> Array:
    import nngp

    model = nngp.NNGPClassifier(engine=ENGINE).fit(X, y)
    probability: Array = model.predict_proba(Xs)
    return _spread(probability, model.classes_)


def forest_classifier(X: Array, y: Array, Xs: Array) -> Array:
    from sklearn.ensemble import RandomForestClassifier

    model = RandomForestClassifier(500, random_state=0).fit(X, y)
    return _spread(model.predict_proba(Xs), model.classes_)


def svm_classifier(X: Array, y: Array, Xs: Array) -> Array:
    """RBF kernel, C and gamma by 3-fold cross-validation over powers of two (every third)."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    grid = {"svc__C": 2.0 ** np.arange(-5, 16, 3), "svc__gamma": 2.0 ** np.arange(-15, 4, 3)}
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    pipeline = make_pipeline(StandardScaler(), SVC(cache_size=500))
    model = GridSearchCV(pipeline, grid, cv=folds).fit(X, y)
    votes = model.predict(Xs)
    return np.eye(int(max(y.max(), votes.max())) + 1)[votes]


def _spread(probability: Array, classes: NDArray[Any]) -> Array:
    """Probabilities with one column for each label 0, 1, ... up to the largest seen."""
    out = np.zeros((len(probability), int(classes.max()) + 1))
    out[:, classes] = probability
    return out


REGRESSORS = {
    "nngp": nngp_regressor,
    "gaussian process": gaussian_process,
    "forest": forest,
    "boosting": boosting,
    "hist boosting": hist_boosting,
}
CLASSIFIERS = {"nngp": nngp_classifier, "forest": forest_classifier, "svm": svm_classifier}
ENGINE = os.environ.get("NNGP_ENGINE", "auto")


def table(collection: str, name: str, data: Path) -> datasets.Table:
    found = datasets.load(f"{collection}/{name}", data)
    assert isinstance(found, datasets.Table)
    return found


def regression_jobs(data: Path, sets: list[str]) -> list[Job]:
    known = [name.removeprefix("uci/") for name in datasets.names() if name.startswith("uci/")]
    jobs = []
    for name in sets or known:
        count = min(len(table("uci", name, data).splits), SPLITS.get(name, 20))
        jobs += [(m, name, s) for m in REGRESSORS for s in range(count)]
    return jobs


def classification_jobs(data: Path, sets: list[str]) -> list[Job]:
    with (data / "uci_classification" / "index.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["small90"] == "1"]
    rows.sort(key=lambda row: -int(row["n"]))  # large sets first, so that shards end together
    names = [row["name"] for row in rows if not sets or row["name"] in sets]
    return [(m, name, split) for name in names for m in CLASSIFIERS for split in range(4)]


def regress(data: Path, method: str, name: str, split: int) -> dict[str, float]:
    found = table("uci", name, data)
    X, y, (train, test) = found.X, found.y, found.splits[split]
    start = time.perf_counter()
    mean, std = REGRESSORS[method](X[train], y[train], X[test])
    missed = (y[test] - mean) / std
    density = -0.5 * np.log(2 * np.pi * std**2) - 0.5 * missed**2
    return {
        "rmse": float(np.sqrt(np.mean((y[test] - mean) ** 2))),
        "log_likelihood": float(density.mean()),
        "inside_95": float(np.mean(np.abs(missed) < 1.96)),
        "seconds": time.perf_counter() - start,
    }


def classify(data: Path, method: str, name: str, split: int) -> dict[str, float]:
    found = table("uci_class", name, data)
    X, y, (train, test) = found.X, found.y, found.splits[split]
    start = time.perf_counter()
    probability = CLASSIFIERS[method](X[train], y[train], X[test])
    right = probability.argmax(axis=1) == y[test]
    return {"accuracy": float(right.mean()), "seconds": time.perf_counter() - start}


def run(task: str, data: Path, job: Job) -> dict[str, Any]:
    """Do one run and return its record for the file of results."""
    method, name, split = job
    record: dict[str, Any] = {"task": task, "method": method, "set": name, "split": split}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, about bounds and small folds
        try:
            record |= (regress if task == "regression" else classify)(data, *job)
        except (MemoryError, ValueError) as error:
            record |= {"error": str(error)}
    return record


def measure(
    task: str,
    data: Path,
    sets: list[str],
    methods: list[str],
    out: Path,
    shard: tuple[int, int],
) -> None:
    listed = regression_jobs if task == "regression" else classification_jobs
    jobs = [job for job in listed(data, sets) if not methods or job[0] in methods]
    jobs = jobs[shard[0] :: shard[1]]
    done = set()
    if out.exists():
        records = [json.loads(line) for line in out.read_text().splitlines()]
        done = {(r["method"], r["set"], r["split"]) for r in records}
    left = [job for job in jobs if job not in done]
    print(f"{len(left)} of {len(jobs)} runs to do", flush=True)
    with out.open("a") as file:
        for job in left:
            file.write(json.dumps(run(task, data, job)) + "\n")
            file.flush()
    summary(out)


def summary(path: Path) -> None:
    records = [json.loads(line) for line in path.read_text().splitlines()]
    if records[0]["task"] == "regression":
        for measure_of, sign in (("rmse", 1), ("log_likelihood", -1)):
            _ranks(records, measure_of, sign)
        _means(records, "inside_95", "share of test points inside the 95% interval")
    else:
        _ranks(records, "accuracy", -1)
        _means(records, "accuracy", "average accuracy")
    _means(records, "seconds", "average seconds")


def _by_set(records: list[dict[str, Any]], measure_of: str) -> dict[str, dict[str, list[float]]]:
    table: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        value = record.get(measure_of)
        table[record["set"]][record["method"]].append(np.nan if value is None else value)
    return table


def _ranks(records: list[dict[str, Any]], measure_of: str, sign: int) -> None:
    """Print a table of means and the average rank over sets; a method that failed ranks last."""
    from scipy.stats import rankdata

    table = _by_set(records, measure_of)
    methods = list(dict.fromkeys(record["method"] for record in records))
    methods.sort(key=lambda m: m != "nngp")
    wide = measure_of != "accuracy"
    print(f"\n{measure_of:<28}" + "".join(f"{m:>18}" for m in methods))
    ranks = []
    for name in sorted(table):
        means = np.array([np.mean(table[name].get(m, [np.nan])) for m in methods])
        ranks.append(rankdata(np.where(np.isnan(means), np.inf, sign * means)))
        if wide:
            print(f"{name:<28}" + "".join(f"{v:>18.4f}" for v in means))
    print(f"{'average rank':<28}" + "".join(f"{v:>18.2f}" for v in np.mean(ranks, axis=0)))


def _means(records: list[dict[str, Any]], measure_of: str, title: str) -> None:
    table = _by_set(records, measure_of)
    methods = sorted({record["method"] for record in records}, key=lambda m: m != "nngp")
    print(f"\n{title}, over {len(table)} sets")
    for method in methods:
        values = [np.nanmean(row[method]) for row in table.values() if method in row]
        print(f"  {method:<18} {np.nanmean(values):.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("task", choices=["regression", "classification", "summary"])
    parser.add_argument("record", nargs="?", type=Path, help="for summary: a file of results")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", nargs="*", default=[])
    parser.add_argument("--methods", nargs="*", default=[])
    parser.add_argument("--shard", default="0/1", help="2/8: every eighth run, from the third on")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.task == "summary":
        summary(args.record)
    else:
        part, parts = map(int, args.shard.split("/"))
        measure(args.task, args.data, args.sets, args.methods, args.out, (part, parts))


if __name__ == "__main__":
    main()
