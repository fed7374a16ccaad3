"""Other methods for tables, all at their defaults, behind two interfaces.

A regressor takes (X, y, Xs) and returns a `Forecast`: mean, deviation, 95% interval, log density.
A classifier takes (X, y, Xs) with labels 0, 1, ... and returns `Votes`: labels and probabilities.

Inputs are standardised on the training part for methods that need it. Methods without a predictive
density of their own get a Gaussian about their prediction; its deviation is that of the residuals
of a 5-fold cross-validation (out-of-bag for the forest), of as many folds as give 400 residuals.
CatBoost and LightGBM are optional: `pip install catboost lightgbm`.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

Array = NDArray[np.float64]
RESIDUALS = 400  # a deviation from so many is known to 4%
GPR_CHOICE = 8e6  # rows² × inputs for the choice of GPR's length scales: seconds, not minutes
GPR_STEPS = 60
GPR_ROWS = 10_000  # GPR's kernel matrix, held several times, stays below 4 GB
OPTIONAL = {"catboost": "catboost", "lightgbm": "lightgbm"}


@dataclass(frozen=True)
class Forecast:
    """Predictions of some rows. `log_density` takes their targets."""

    mean: Array
    std: Array
    lower: Array
    upper: Array
    log_density: Callable[[Array], Array]
    fit_seconds: float


@dataclass(frozen=True)
class Votes:
    """Labels of some rows, and a probability for each label 0, 1, ... up to the largest seen."""

    labels: NDArray[np.int64]
    probability: Array
    fit_seconds: float


def gaussian(mean: Array, std: Array, fit_seconds: float) -> Forecast:
    """A forecast that is Gaussian in each row."""
    inside = norm.ppf(0.975) * std
    density = partial(norm.logpdf, loc=mean, scale=std)
    return Forecast(mean, std, mean - inside, mean + inside, density, fit_seconds)


def _timed(model: Any, X: Array, y: Array) -> float:
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start


def _with_residuals(make: Callable[[], Any], X: Array, y: Array, Xs: Array) -> Forecast:
    model = make()
    seconds = _timed(model, X, y)
    spread = np.sqrt(np.mean(_residuals(make, X, y) ** 2))
    return gaussian(np.asarray(model.predict(Xs)), np.full(len(Xs), spread), seconds)


def _residuals(make: Callable[[], Any], X: Array, y: Array) -> Array:
    from sklearn.model_selection import KFold

    found: list[Array] = []
    for train, test in KFold(5, shuffle=True, random_state=0).split(X):
        found.append(y[test] - np.asarray(make().fit(X[train], y[train]).predict(X[test])))
        if sum(map(len, found)) >= RESIDUALS:
            break
    return np.concatenate(found)


def _scaled(model: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), model)


def _ridge() -> Any:
    from sklearn.linear_model import Ridge

    return _scaled(Ridge())


def _boosting() -> Any:
    from sklearn.ensemble import GradientBoostingRegressor

    return GradientBoostingRegressor(random_state=0)


def _hist_boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(random_state=0)


def _catboost(kind: str) -> Any:
    quiet = {"verbose": False, "allow_writing_files": False, "thread_count": 1, "random_seed": 0}
    return getattr(import_module("catboost"), f"CatBoost{kind}")(**quiet)


def _lightgbm(kind: str) -> Any:
    quiet = {"verbose": -1, "n_jobs": 1, "random_state": 0}
    return getattr(import_module("lightgbm"), f"LGBM{kind}")(**quiet)


def forest(X: Array, y: Array, Xs: Array) -> Forecast:
    """Random forest; residuals are out of bag."""
    from sklearn.ensemble import RandomForestRegressor

    model = RandomForestRegressor(oob_score=True, random_state=0)
    seconds = _timed(model, X, y)
    spread = np.sqrt(np.mean((model.oob_prediction_ - y) ** 2))
    return gaussian(model.predict(Xs), np.full(len(Xs), spread), seconds)


def gpr(X: Array, y: Array, Xs: Array) -> Forecast:
    """Gaussian process with one length scale for each input.

    The kernel is chosen on a random subset of at most sqrt(8e6 / d) rows by 60 steps of
    scikit-learn's own method (L-BFGS-B), and the process is conditioned on all rows up to 10,000.
    """
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.preprocessing import StandardScaler

    start, order = time.perf_counter(), np.random.default_rng(0).permutation(len(X))
    scaler = StandardScaler().fit(X)
    Z, few = scaler.transform(X), order[: int(np.sqrt(GPR_CHOICE / X.shape[1]))]
    kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel()
    model = GaussianProcessRegressor(kernel, optimizer=_few_steps, normalize_y=True)
    model.fit(Z[few], y[few])
    if len(few) < len(X):
        many = order[:GPR_ROWS]
        model = GaussianProcessRegressor(model.kernel_, optimizer=None, normalize_y=True)
        model.fit(Z[many], y[many])
    seconds = time.perf_counter() - start
    mean, std = model.predict(scaler.transform(Xs), return_std=True)
    return gaussian(mean, std, seconds)


def _few_steps(objective: Any, start: Array, bounds: Array) -> tuple[Array, float]:
    from scipy.optimize import minimize

    options = {"maxiter": GPR_STEPS}
    found = minimize(objective, start, method="L-BFGS-B", jac=True, bounds=bounds, options=options)
    return found.x, found.fun


def spread(probability: Array, classes: NDArray[Any]) -> Array:
    """Probabilities with one column for each label 0, 1, ... up to the largest seen."""
    out = np.zeros((len(probability), int(classes.max()) + 1))
    out[:, classes.astype(int)] = probability
    return out


def _votes(make: Callable[[], Any], X: Array, y: NDArray[Any], Xs: Array) -> Votes:
    model = make()
    seconds = _timed(model, X, y)
    probability = spread(model.predict_proba(Xs), np.asarray(model.classes_))
    return Votes(probability.argmax(axis=1), probability, seconds)


def svc(X: Array, y: NDArray[Any], Xs: Array) -> Votes:
    """Support vectors; probabilities by Platt's sigmoid on a 5-fold cross-validation."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.model_selection import StratifiedKFold
    from sklearn.svm import SVC

    model = _scaled(SVC(random_state=0))
    seconds = _timed(model, X, y)
    # A list of folds: classes of fewer than five rows are missing in some of them.
    count = min(5, int(np.bincount(y).max()))
    folds = list(StratifiedKFold(count, shuffle=True, random_state=0).split(X, y))
    calibrated = CalibratedClassifierCV(_scaled(SVC(random_state=0)), cv=folds, ensemble=True)
    calibrated.fit(X, y)
    probability = spread(calibrated.predict_proba(Xs), calibrated.classes_)
    return Votes(model.predict(Xs).astype(np.int64), probability, seconds)


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression

    return _scaled(LogisticRegression(max_iter=1_000))


def _forest_classifier() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=0)


def _boosting_classifier() -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(random_state=0)


def _hist_boosting_classifier() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=0)


REGRESSORS: dict[str, Callable[[Array, Array, Array], Forecast]] = {
    "catboost": partial(_with_residuals, partial(_catboost, "Regressor")),
    "lightgbm": partial(_with_residuals, partial(_lightgbm, "Regressor")),
    "hist boosting": partial(_with_residuals, _hist_boosting),
    "gradient boosting": partial(_with_residuals, _boosting),
    "forest": forest,
    "gpr": gpr,
    "ridge": partial(_with_residuals, _ridge),
}
CLASSIFIERS: dict[str, Callable[[Array, NDArray[Any], Array], Votes]] = {
    "catboost": partial(_votes, partial(_catboost, "Classifier")),
    "lightgbm": partial(_votes, partial(_lightgbm, "Classifier")),
    "hist boosting": partial(_votes, _hist_boosting_classifier),
    "gradient boosting": partial(_votes, _boosting_classifier),
    "forest": partial(_votes, _forest_classifier),
    "svc": svc,
    "logistic": partial(_votes, _logistic),
}


def missing(methods: list[str]) -> list[str]:
    """Those of `methods` whose package is not installed."""
    return [m for m in methods if m in OPTIONAL and find_spec(OPTIONAL[m]) is None]


def quietly(call: Callable[..., Any], *values: Any) -> Any:
    """Call without warnings: of scikit-learn, about bounds of length scales and small classes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*values)
