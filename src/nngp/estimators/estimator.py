"""Common base of both estimators: fit, test inputs, saved state."""

import json
import math
import os
import warnings
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from nngp._arrays import Array
from nngp._html import facts_table, panel
from nngp._numbers import check_convertible, check_unmasked
from nngp._progress import one_job
from nngp._threads import by_rows
from nngp.architecture import Architecture, Invariant, Network, average_of
from nngp.architecture.invariances import Family
from nngp.errors import ColumnWarning, ModelFileError
from nngp.estimators.data_warnings import TrainingRange, warn_of_few_data, warn_of_leakage
from nngp.estimators.fit_forecast import FitForecast
from nngp.estimators.fitted_network import LEAVE_OUT, ComputeSettings, FittedNetwork
from nngp.estimators.parameters import VARIANCES, CommonParameters, is_auto
from nngp.estimators.saved import (
    SavedClassification,
    SavedModel,
    SavedNetwork,
    SavedRange,
    SavedRegression,
    plain_params,
    write_model,
)
from nngp.estimators.training_rows import TrainingRows
from nngp.frames import (
    Columns,
    InputTable,
    TableLike,
    fill_gaps,
    is_nothing,
    mixed_table,
    table_of,
)
from nngp.frames.column_moments import medians
from nngp.posterior import forecast
from nngp.posterior.saved import DEEPEST
from nngp.predictive.targets import TargetScaling
from nngp.selection import SearchSettings, SelectionProblem, choice_work, choose
from nngp.selection.families import expected_families
from nngp.selection.problem import MIN_POINTS, averaged

FINITE_OR_MISSING: dict[str, Any] = {
    "dtype": np.float64,
    "order": "C",
    "ensure_all_finite": "allow-nan",
}
READ_AGAIN = 2000  # rows up to which a saved model is read completely before it replaces another


def check_data(values: Any, name: str) -> None:
    """Raise TypeError for data that scikit-learn would convert silently or with an odd error."""
    check_unmasked(values, name)
    if values is not None and not hasattr(values, "toarray"):
        check_convertible(values, name)


def check_targets_are_there(y: ArrayLike) -> None:
    """Raise ValueError for missing targets, however they are marked, with the first such row, and
    TypeError for dates and times."""
    try:  # NumPy would make text of a list of texts and NaN
        typed = hasattr(y, "dtype") or hasattr(y, "__array__")
        values = np.asarray(y) if typed else np.array(y, dtype=object)
    except Exception as cause:
        raise TypeError(f"y cannot be converted to an array ({cause}); cast it first") from None
    if values.size == 0 or values.ndim == 0 or values.dtype.kind not in "fmMO":
        return
    if values.dtype.kind == "O":
        gaps = np.array([is_nothing(value) for value in values.flat], dtype=bool)
    else:
        gaps = np.isnat(values) if values.dtype.kind in "mM" else np.isnan(values)
    missing = gaps.reshape(len(values), -1).any(axis=1)
    if not missing.any() and values.dtype.kind != "f":
        check_convertible(values, "y")
    if missing.any():
        raise ValueError(
            f"Input y contains NaN in {missing.sum()} of {len(values)} rows (the first is row "
            f"{missing.argmax()}); leave out rows without a target"
        )


class NNGPEstimator(CommonParameters, BaseEstimator):
    """A deep network of infinite width behind scikit-learn's interface; see its subclasses."""

    _kind: ClassVar[str]  # name in saved files; a class without its own cannot be saved
    _medians: Array | None  # of the inputs, unless an encoder has them
    _seen: TrainingRange | None = None  # unknown with few points

    @property
    def _keeps_units(self) -> bool:
        """Whether targets are taken in their own units."""
        return False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _validated(self, X: TableLike, y: ArrayLike, **checks: bool) -> tuple[Array, NDArray[Any]]:
        """Check training inputs and targets; learn the encoding of a table that is not all
        numbers, or lacks some."""
        table, columns = mixed_table(X), None
        if table is not None:
            columns = Columns.learn(table)
            X, _ = columns.encode(table)
        else:
            check_data(X, "X")
        check_targets_are_there(y)
        inputs, answers = validate_data(self, X, y, **FINITE_OR_MISSING, **checks)
        if any(by_rows(lambda rows: np.isnan(rows).any(), inputs)):
            table = InputTable.of_array(inputs)  # an array with gaps
            columns = Columns.learn(table)
            inputs, _ = columns.encode(table)
        if columns is not None:  # names and number of the columns, not of their encodings
            _warn(columns.cautions)
            self.n_features_in_ = len(columns.names)
            if columns.named:
                self.feature_names_in_ = np.array(columns.names, dtype=object)
        self.columns_ = columns
        self._medians = None if columns else medians(inputs)
        return inputs, answers

    def _choose_networks(
        self,
        rows: TrainingRows,
        targets: tuple[TargetScaling, ...],
        final: TrainingRows | None = None,
        *,
        classes: bool,
    ) -> list[FittedNetwork]:
        """Choose networks on some rows, and condition them on all, or on `final` ones."""
        settings = self._search_settings(rows.X.shape, classes=classes)
        given = np.asarray(self.relevance, dtype=float) if self._relevance_is_given else None
        columns = self.columns_
        # Scalings that have no value for some rows name them.
        named = settings.scaling in ("unit", "whiten")
        order = np.arange(len(rows.X)) if named else rows.order()
        problem = SelectionProblem(
            **vars(settings),
            **vars(rows.some(order)),
            targets=targets,
            relevance=given,
            groups=None if columns is None else columns.groups,
            mappable=None if columns is None else columns.mappable,
            rng=np.random.default_rng(check_random_state(self.random_state).randint(2**31)),
            progress=self.progress,
        )
        choice = choose(problem)
        final, machine = final or rows, self._machine
        found = [one.with_rows(order) for one in choice.finalists]
        self.selection_ = choice.table.columns()
        return [FittedNetwork.condition(one, final, machine) for one in found]

    def _see(self, X: Array) -> None:
        """Remember the range of the training inputs, as the first network sees them."""
        few = len(X) < MIN_POINTS  # a range of so few says nothing
        scaling = self.networks_[0].inputs
        self._seen = None if few else TrainingRange.of(X, scaling.raw_center, scaling.raw_factor)

    @property
    def _machine(self) -> ComputeSettings:
        return ComputeSettings(self.solver, self.engine, self._search_engine, self.progress)

    def _search_settings(self, shape: tuple[int, int], *, classes: bool) -> SearchSettings:
        """The search that the parameters describe, for inputs of that shape."""
        candidates = self._candidates()
        kind = self._input_scaling_kind(candidates)
        return SearchSettings(
            candidates=candidates,
            criterion=self.selection,
            size=int(self.selection_size),
            budget=self.budget,
            learn_relevance=self._learns_relevance(shape, kind),
            scaling=kind,
            maps=self._maps,
            effort=self.effort,
            networks=int(self.n_networks),
            classes=classes,
            network=self.network,
            scale_is_free=not self._keeps_units,
            whitening=None if isinstance(self.whitening, str) else float(self.whitening),
            columns=shape[1],
            invariance=None if is_auto(self.invariance) else self._families(shape[1]),
            image_shape=self._image_shape(shape[1]) if is_auto(self.invariance) else None,
            engine=self._search_engine,
        )

    @property
    def _maps(self) -> str:
        """Whether columns may get maps: not where their scaling or relevances were given."""
        given = self._relevance_is_given or self.relevance is False or self.network is not None
        given = given or self.invariance is not None
        return self.column_maps if self.input_scaling == "auto" and not given else "identity"

    def _forecast(self, shape: tuple[int, int], outputs: int, *, classes: bool) -> FitForecast:
        """Work and bytes that `fit` will take for inputs of that shape."""
        n, d = shape
        settings = self._search_settings(shape, classes=classes)
        network = self._expected_network(settings)
        final = forecast(n, d, outputs, network=network, solver=self.solver, engine=self.engine)
        products = 1 if network is None else network.products(d)
        choice, rows = choice_work(settings, n), min(n, LEAVE_OUT)
        return FitForecast(choice, final, rows, d, products, int(self.n_networks))

    def _expected_network(self, settings: SearchSettings) -> Network | None:
        """A network that costs what the final one does, or may: "auto" may choose flips and the
        largest shifts. All that are no average cost the same."""
        families = settings.invariance
        if families is None:
            assert settings.image_shape is not None
            families = expected_families(settings.image_shape)[-1]
        if families:
            return averaged(Architecture(1), families)
        return self.network

    def _warn_of_few_data(self, X: Array, Y: Array, *, classes: bool) -> None:
        """Warn where noise and scale would have to be learned and cannot be."""
        given = self._keeps_units and not any(
            isinstance(getattr(self, name), str) for name in VARIANCES
        )
        if not given:
            least = 2 if self.selection is None else MIN_POINTS
            warn_of_few_data(X, Y, least, classes=classes, stacklevel=4)

    def _warn_of_leakage(self, X: Array, Y: Array, *, classes: bool) -> None:
        """Warn of a column that explains the targets almost perfectly."""
        columns, d = self.columns_, X.shape[1]
        groups = np.arange(d) if columns is None else np.asarray(columns.groups)
        names = getattr(self, "feature_names_in_", None) if columns is None else columns.origins
        warn_of_leakage(X, Y, groups, names, stacklevel=4, classes=classes)

    @contextmanager
    def _one_bar(self, shape: tuple[int, int], outputs: int, *, classes: bool) -> Iterator[None]:
        """Show the whole fit as one job."""
        self._check_parameters(shape[1])
        with one_job(self.progress, lambda: self._forecast(shape, outputs, classes=classes).phases):
            yield

    def _set_networks(self, networks: Sequence[FittedNetwork]) -> None:
        """Set the attributes that both `fit` and `load` set."""
        self.networks_ = tuple(networks)
        best = self.networks_[0]
        self.posterior_, self.report_ = best.posterior, best.posterior.report
        self.network_, self.noise_var_ = best.network, best.noise_var

    def _choices(self) -> dict[str, object]:
        """Choices of `fit`, for a page or a notebook."""
        out: dict[str, object] = {
            "network": _network_words(self.network_),
            "noise variance (scaled targets)": float(np.max(self.noise_var_)),
        }
        maps = [f"{name}: {how}" for name, how in self.column_maps_ if how != "identity"]
        out["column maps"] = maps or "none"
        names = {"target transform": "target_transform_", "likelihood": "likelihood_"}
        out |= {label: getattr(self, name) for label, name in names.items() if hasattr(self, name)}
        trees = getattr(self, "trees_", None)
        if trees is not None:
            out["comparison with trees"] = trees.sentence
        if self.report_.solver == "cholesky":
            out["log evidence"] = self.log_evidence_
        return out

    def _repr_mimebundle_(self, **asked: Any) -> dict[str, str]:
        """Representation in a notebook: the choices of a fitted estimator, otherwise its
        parameters."""
        if not hasattr(self, "posterior_"):
            bundle: dict[str, str] = super()._repr_mimebundle_(**asked)
            return bundle
        report = self.report_
        rows = {"fitted to": f"{report.n:,} rows, {report.d} inputs"}
        drawing = self.network_._repr_html_()
        body = facts_table(rows | self._choices())
        given = {k: v for k, v in self.get_params(deep=False).items() if _is_set(self, k, v)}
        parameters = facts_table(given) if given else "all defaults"
        title = type(self).__name__
        html = panel(title, body, ("network", drawing), ("parameters that were set", parameters))
        return {"text/plain": repr(self), "text/html": html}

    @property
    def log_evidence_(self) -> float:
        """Log density of the targets in their own units."""
        check_is_fitted(self, "posterior_")
        return self.networks_[0].log_evidence

    @property
    def column_maps_(self) -> list[tuple[str, str]]:
        """Name and map of each input: identity, yeo-johnson with its power, log, ranks, bounded."""
        check_is_fitted(self, "posterior_")
        scaling, columns = self.networks_[0].inputs, self.columns_
        maps = [one.name for one in scaling.maps] or ["identity"] * len(scaling.center)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(len(maps))])
        return list(zip(columns.features if columns else names, maps, strict=True))

    @property
    def whitening_(self) -> float | None:
        """Strength of the whitening of the inputs; None where they are not whitened."""
        check_is_fitted(self, "posterior_")
        whitening = self.networks_[0].inputs.whitening
        return None if whitening is None else whitening.strength

    @property
    def invariance_(self) -> tuple[Family, ...]:
        """Families of transformations that the network is averaged over; empty without any."""
        check_is_fitted(self, "posterior_")
        network = average_of(self.networks_[0].network)
        return network.transformations if isinstance(network, Invariant) else ()

    @property
    def relevance_(self) -> Array:
        """Relevance of each scaled input, relative to the largest: the variance of the weights
        that leave it."""
        check_is_fitted(self, "posterior_")
        relevance = self.networks_[0].inputs.relevance
        out: Array = relevance / max(relevance.max(), np.finfo(float).tiny)
        return out

    def _test_inputs(self, X: TableLike) -> Array:
        """Check test inputs and encode them as training was encoded; warn of those far outside."""
        check_is_fitted(self, "posterior_")
        columns = self.columns_
        if columns is None:
            inputs = self._plain(X)
            names = getattr(self, "feature_names_in_", None)
            inputs, remarks = fill_gaps(inputs, self._medians, names)
            _warn(remarks)
        else:
            inputs, names = self._encoded(X, columns), columns.origins
        if self._seen is not None:
            self._seen.warn_if_far(inputs, names, stacklevel=4)
        return inputs

    def _encoded(self, X: TableLike, columns: Columns) -> Array:
        """Encode a table, or an array of numbers, as training was encoded."""
        table = table_of(X) if columns.named else None
        if table is None:
            if columns.named:
                check_data(X, "X")
                plain = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
            else:
                plain = self._plain(X)
            table = columns.table_of_array(plain)
        inputs, remarks = columns.encode(table)
        _warn(remarks)
        return inputs

    def _plain(self, X: TableLike) -> Array:
        """Test inputs that are numbers or missing, in the columns of training."""
        check_data(X, "X")
        out: Array = validate_data(self, X, reset=False, **FINITE_OR_MISSING)
        return out

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

        Examples
        --------
        >>> import nngp
        >>> model = nngp.NNGPRegressor(selection=None)
        >>> model = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0])
        >>> model.save("model.nngp", notes={"unit": "kg"})
        >>> type(nngp.load("model.nngp")).__name__
        'NNGPRegressor'
        """
        check_is_fitted(self, "posterior_")
        if "_kind" not in vars(type(self)):
            raise TypeError(
                f"{type(self).__name__} is a class of your own; only NNGPRegressor and "
                "NNGPClassifier can be saved"
            )
        try:
            json.dumps(dict(notes or {}), allow_nan=False)
        except (TypeError, ValueError) as cause:
            raise TypeError(f"notes must be a dict of values that JSON can hold: {cause}") from None
        self._check_saved(len(self.networks_[0].inputs.center))
        networks = tuple(SavedNetwork.of(one, factor=factor) for one in self.networks_)
        names, seen = getattr(self, "feature_names_in_", None), self._seen
        model = SavedModel(
            params=plain_params(self.get_params(deep=False)),
            notes=dict(notes or {}),
            n_features_in=self.n_features_in_,
            feature_names=None if names is None else tuple(str(name) for name in names),
            columns=self.columns_,
            medians=self._medians,
            seen=None if seen is None else SavedRange(seen.low, seen.high, seen.size),
            log_evidence=self.log_evidence_ if self.report_.solver == "cholesky" else None,
            selection={name: column.tolist() for name, column in self.selection_.items()},
            networks=networks,
            fit=self._saved_fit(),
        )
        write_model(path, model, self._check_written)

    @abstractmethod
    def _saved_fit(self) -> SavedRegression | SavedClassification:
        """Return what the fit has beyond its networks, for a file."""

    def _check_saved(self, d: int) -> None:
        """Raise ValueError or TypeError for parameters that `fit` would not accept."""
        self._check_parameters(d)
        if not isinstance(self.depth, str) and DEEPEST < self.depth < math.inf:
            raise ValueError(f"depth must be at most {DEEPEST} in a file, got {self.depth}")
        self._candidates()
        check_random_state(self.random_state)

    @classmethod
    def _loaded(cls, saved: SavedModel, engine: Any = "auto", progress: Any = None) -> Self:
        """The estimator in a file."""
        model = cls._with_params(saved, engine=engine, progress=progress)
        model._restore(saved)
        return model

    def _check_written(self, saved: SavedModel) -> None:
        """Read what was saved: all of it if that takes no time, else all but factor and weights."""
        if self.posterior_.n <= READ_AGAIN:
            self._loaded(saved)
        else:
            self._with_params(saved)

    @classmethod
    def _with_params(cls, saved: SavedModel, **others: Any) -> Self:
        """The estimator that is not fitted; ModelFileError for parameters that none has."""
        params = dict(saved.params)
        if set(params) != set(cls().get_params(deep=False)) - {"engine", "progress"}:
            raise ModelFileError("it has not the parameters of an estimator")
        try:
            if params.get("image_shape") is not None:
                params["image_shape"] = tuple(params["image_shape"])
            model = cls(**params, **others)
            model._check_saved(len(saved.networks[0].inputs.center))
        except (TypeError, ValueError, KeyError, ArithmeticError) as cause:
            raise ModelFileError(f"its parameters cannot be used: {cause}") from None
        return model

    def _restore(self, saved: SavedModel) -> None:
        """Set the fitted attributes from what `save` wrote."""
        self._set_networks([one.restore(self.engine, self.progress) for one in saved.networks])
        self.n_features_in_ = saved.n_features_in
        if saved.feature_names is not None:
            self.feature_names_in_ = np.array(saved.feature_names, dtype=object)
        self.columns_, self._medians = saved.columns, saved.medians
        self._seen, self.selection_ = saved.training_range(), saved.table()
        factored = self.report_.solver == "cholesky"
        saved.check_log_evidence(self.log_evidence_ if factored else None)


def _network_words(network: Network) -> str:
    """The parameters of an `Architecture` with three digits, the text of another network."""
    if not isinstance(network, Architecture):
        return repr(network)
    values = {"weight_var": network.weight_var, "bias_var": network.bias_var}
    parts = [
        f"{name} {', '.join(f'{v:.3g}' for v in np.atleast_1d(by_layer))}"
        for name, by_layer in values.items()
    ]
    return f"{network.activation.name}, depth {network.depth}; {'; '.join(parts)}"


def _is_set(model: NNGPEstimator, name: str, value: object) -> bool:
    """Whether a parameter differs from its default."""
    default = type(model)().get_params(deep=False)[name]
    return value is not default and not (isinstance(value, str | float) and value == default)


def _warn(remarks: Iterable[str]) -> None:
    for remark in remarks:
        warnings.warn(remark, ColumnWarning, stacklevel=5)
