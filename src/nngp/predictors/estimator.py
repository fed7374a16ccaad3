"""Common base of both estimators: fit, test inputs, saved state."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from nngp._arrays import Array
from nngp._numbers import check_convertible, check_unmasked
from nngp._progress import one_job
from nngp.posterior import Posterior, condition, forecast
from nngp.posterior.serialize import arrays_of, header_of
from nngp.predictors.doubts import SeenRange, warn_of_few_data
from nngp.predictors.fit_forecast import FitForecast
from nngp.predictors.model_file import as_json, from_json, write_model
from nngp.predictors.parameters import VARIANCES, NNGPParameters
from nngp.predictors.scaling import InputScaling, TargetScaling
from nngp.predictors.selection import SearchSettings, SelectionProblem, choice_seconds, choose
from nngp.predictors.selection.problem import MIN_POINTS
from nngp.predictors.selection.table import as_column

ReadArray = Callable[[str], NDArray[Any]]
LEAVE_OUT = 4000  # points left out, one at a time, for the scale of a classifier's variances


def check_data(X: ArrayLike, y: ArrayLike | None = None) -> None:
    """Raise TypeError for data that scikit-learn would convert silently or with an odd error."""
    for name, values in {"X": X, "y": y}.items():
        check_unmasked(values, name)
        if values is not None and not hasattr(values, "toarray"):
            check_convertible(values, name)


class NNGPEstimator(NNGPParameters):
    """A deep network of infinite width behind scikit-learn's interface; see its subclasses."""

    _kind: ClassVar[str]  # name in saved files; a class without its own cannot be saved
    _seen: SeenRange | None = None  # unknown with few points, and in files of earlier versions
    _column_names: list[str] | None = None  # of the columns, for messages, where X has no names

    def _fit_process(self, X: Array, Y: Array, targets: TargetScaling, *, classes: bool) -> None:
        """Scale the data, choose a network on some points, condition it on all."""
        settings = self._search_settings(X.shape, classes=classes)
        kind = self._input_scaling_kind(settings.candidates)
        scaling = InputScaling.learn(X, kind)
        if self._relevance_is_given:
            scaling = scaling.with_relevance(np.asarray(self.relevance, dtype=float))
        # Relevances, given or learned, replace the columns' own spreads.
        keep_spread = kind == "auto" and not (settings.learn_relevance or self._relevance_is_given)
        problem = SelectionProblem(
            **vars(settings),
            X=scaling(X),
            Y=targets(Y),
            engine=self._search_engine,
            rng=np.random.default_rng(check_random_state(self.random_state).randint(2**31)),
            progress=self.progress,
            classes=classes,
            own_spread=scaling.own_spread if keep_spread else None,
        )
        chosen, table = choose(problem)
        scaled = problem.X
        if chosen.relevance is not None:
            scaling = scaling.stretched(chosen.relevance)
            scaled = scaling(X)
        posterior = condition(
            chosen.architecture,
            scaled,
            problem.Y,
            noise_var=chosen.noise_var,
            solver=self.solver,
            engine=self.engine,
            progress=self.progress,
        )
        self._set_fit(posterior, scaling, targets)
        few = len(X) < MIN_POINTS  # a range of so few says nothing
        self._seen = None if few else SeenRange.of(X, scaling.center, scaling.factor)
        self.selection_ = table.columns(chosen, targets.log_density)

    def _search_settings(self, shape: tuple[int, int], *, classes: bool) -> SearchSettings:
        """The search that the parameters describe, for inputs of that shape."""
        candidates = self._candidates()
        kind = self._input_scaling_kind(candidates)
        return SearchSettings(
            candidates=candidates,
            criterion=self.selection,
            size=int(self.selection_size),
            budget=self.budget,
            learn_relevance=self._learns_relevance(shape, kind, classes=classes),
        )

    def _forecast(self, shape: tuple[int, int], outputs: int, *, classes: bool) -> FitForecast:
        """Seconds and bytes that `fit` will take for inputs of that shape."""
        (n, d), left_out = shape, 0.0
        settings = self._search_settings(shape, classes=classes)
        final = forecast(n, d, outputs, solver=self.solver, engine=self.engine)
        if classes:
            some = min(n, LEAVE_OUT)
            left_out = forecast(some, d, outputs, engine=self._search_engine).seconds
        return FitForecast(choice_seconds(settings, n), final, left_out)

    def _warn_of_few_data(self, X: Array, Y: Array, *, classes: bool) -> None:
        """Warn where noise and scale would have to be learned and cannot be."""
        given = self.target_scaling == "none" and not any(
            isinstance(getattr(self, name), str) for name in VARIANCES
        )
        if not given:
            least = 2 if self.selection is None else MIN_POINTS
            warn_of_few_data(X, Y, least, classes=classes, stacklevel=3)

    @contextmanager
    def _one_bar(self, shape: tuple[int, int], outputs: int, *, classes: bool) -> Iterator[None]:
        """Show the whole fit as one job."""
        self._check_parameters(shape[1])
        with one_job(self.progress, lambda: self._forecast(shape, outputs, classes=classes).phases):
            yield

    def _set_fit(self, posterior: Posterior, inputs: InputScaling, targets: TargetScaling) -> None:
        """Set the attributes that both `fit` and `load` set."""
        self.posterior_, self.architecture_ = posterior, posterior.architecture
        self.noise_var_, self.report_ = posterior.noise_var, posterior.report
        self._input_scaling, self._target_scaling = inputs, targets

    @property
    def log_evidence_(self) -> float:
        """Log density of the targets in their own units."""
        check_is_fitted(self, "posterior_")
        posterior = self.posterior_
        return self._target_scaling.log_density(posterior.log_evidence, posterior.n)

    @property
    def relevance_(self) -> Array:
        """Relevance of each scaled input, relative to the largest: the variance of the weights
        that leave it."""
        check_is_fitted(self, "posterior_")
        relevance = self._input_scaling.relevance
        out: Array = relevance / max(relevance.max(), np.finfo(float).tiny)
        return out

    def _scaled(self, X: ArrayLike) -> Array:
        """Check test inputs and bring them to the scale of the training inputs."""
        check_is_fitted(self, "posterior_")
        check_data(X)
        inputs = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        if self._seen is not None:
            names = getattr(self, "feature_names_in_", self._column_names)
            self._seen.warn_if_far(inputs, names, stacklevel=3)
        return self._input_scaling(inputs)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        factor: bool = True,
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the fitted model to one file, which `nngp.load` reads.

        Parameters
        ----------
        path : path
        factor : bool
            Keep the Cholesky factor (4 n² bytes): a loaded model then predicts the same to the bit
            at once. Without it the file holds little more than the data, and loading computes the
            factor again. A model solved by conjugate gradients has no factor, and loads at once.
        notes : dict, optional
            Values that JSON can hold, kept in the file.
        """
        check_is_fitted(self, "posterior_")
        if "_kind" not in vars(type(self)):
            raise TypeError(
                f"{type(self).__name__} is a class of your own; only NNGPRegressor and "
                "NNGPClassifier can be saved"
            )
        values, arrays = self._state()
        header = {
            "kind": self._kind,
            "params": self._saved_params(),
            "fitted": values,
            "notes": notes or {},
            "posterior": header_of(self.posterior_, factor=factor),
        }
        posterior_arrays = arrays_of(self.posterior_, factor=factor)
        write_model(path, header, chain(arrays.items(), posterior_arrays))

    def _saved_params(self) -> dict[str, object]:
        """Return the parameters for a file, without those that `load` takes."""
        params = self.get_params(deep=False)
        if isinstance(params["random_state"], np.random.RandomState):
            params["random_state"] = None  # its state has changed since
        return {k: as_json(v) for k, v in params.items() if k not in ("engine", "progress")}

    def _state(self) -> tuple[dict[str, object], dict[str, NDArray[Any]]]:
        """Return the plain values and the arrays of the fitted model, for a file."""
        names, scaling = getattr(self, "feature_names_in_", None), self._input_scaling
        values = {
            "n_features_in": self.n_features_in_,
            "feature_names": None if names is None else [str(name) for name in names],
            "unit": scaling.unit,
            "constant": scaling.constant,
            "row_size": None if self._seen is None else as_json(self._seen.size),
            "log_evidence": self.log_evidence_ if self.report_.solver == "cholesky" else None,
            "selection": {k: as_json(column.tolist()) for k, column in self.selection_.items()},
        }
        arrays = {
            "input_center": scaling.center,
            "input_factor": scaling.factor,
            "target_center": self._target_scaling.center,
            "target_spread": self._target_scaling.spread,
            "relevance": scaling.relevance,
        }
        if self._seen is not None:
            arrays |= {"input_low": self._seen.low, "input_high": self._seen.high}
        return values, arrays

    def _restore(self, values: Mapping[str, Any], read: ReadArray, posterior: Posterior) -> None:
        """Set the fitted attributes from what `_state` returned."""
        self.n_features_in_ = values["n_features_in"]
        if values["feature_names"] is not None:
            self.feature_names_in_ = np.array(values["feature_names"], dtype=object)
        center, factor, relevance = map(read, ("input_center", "input_factor", "relevance"))
        inputs = InputScaling(center, factor, relevance, values["unit"], values["constant"])
        targets = TargetScaling(read("target_center"), read("target_spread"))
        self._set_fit(posterior, inputs, targets)
        self._seen = None
        size = from_json(values.get("row_size"))
        if size is not None:
            self._seen = SeenRange(read("input_low"), read("input_high"), factor, size)
        columns = values["selection"]
        self.selection_ = {name: as_column(from_json(columns[name])) for name in columns}
