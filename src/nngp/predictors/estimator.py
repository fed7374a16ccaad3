"""What both estimators share: parameters, scaling, the choice of a network, the posterior."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from nngp.architecture import as_activation
from nngp.posterior import Posterior, condition
from nngp.predictors.scaling import (
    INPUT_SCALINGS,
    TARGET_SCALINGS,
    InputScaling,
    TargetScaling,
    check_choice,
)
from nngp.predictors.search import GRID_DEPTHS, Search, Table, grid_search
from nngp.predictors.space import ACTIVATIONS, DEPTHS, STARTS, Candidate, Setting

Array = NDArray[np.float64]
SELECTIONS = ("evidence", "loo", "grid", None)
DEFAULT_DEPTH = 2  # where nothing is chosen: selection=None, or too few points
ENOUGH = 5  # points from which on something can be chosen
SLOW_SIZE = 200  # points for the choice where each gradient takes seconds


class NNGPEstimator(BaseEstimator):
    """A deep network of infinite width behind scikit-learn's interface; see its subclasses."""

    def __init__(
        self,
        *,
        depth: int | str = "auto",
        activation: Any = "auto",
        weight_var: Any = "auto",
        bias_var: Any = "auto",
        noise_var: float | str = "auto",
        relevance: Any = "auto",
        input_scaling: str = "auto",
        target_scaling: str = "standardize",
        selection: str | None = "evidence",
        selection_size: int = 1000,
        budget: int | None = None,
        engine: Any = "auto",
        random_state: Any = 0,
        progress: Any = None,
    ) -> None:
        self.depth = depth
        self.activation = activation
        self.weight_var = weight_var
        self.bias_var = bias_var
        self.noise_var = noise_var
        self.relevance = relevance
        self.input_scaling = input_scaling
        self.target_scaling = target_scaling
        self.selection = selection
        self.selection_size = selection_size
        self.budget = budget
        self.engine = engine
        self.random_state = random_state
        self.progress = progress

    def _fit_process(self, X: Array, Y: Array, *, classes: bool) -> None:
        """Scale, choose a network, condition it on everything."""
        self._check_parameters(X.shape[1])
        scaling = InputScaling.learn(X, self.input_scaling)
        own_spread = scaling.own_spread if self.input_scaling == "auto" else None
        self._relevance = np.ones(X.shape[1])
        if not _is_auto(self.relevance) and not isinstance(self.relevance, bool | np.bool_):
            self._relevance, own_spread = np.asarray(self.relevance, dtype=float), None
            scaling = scaling.stretched(self._relevance)
        targets = TargetScaling.learn(Y, self.target_scaling)
        scaled, answers = scaling(X), targets(Y)
        setting, table = self._choose(scaled, answers, own_spread, classes)
        if setting.relevance is not None:
            self._relevance = setting.relevance
            scaling = scaling.stretched(setting.relevance)
            scaled = scaling(X)
        posterior = condition(
            setting.architecture,
            scaled,
            answers,
            noise_var=setting.noise_var,
            engine=self.engine,
            progress=self.progress,
        )
        self._settle(posterior, scaling, targets)
        self.selection_ = _marked(table, setting).columns()

    def _settle(self, posterior: Posterior, scaling: InputScaling, targets: TargetScaling) -> None:
        """What fitting leaves behind, and what loading restores."""
        self.posterior_, self.architecture_ = posterior, posterior.architecture
        self.noise_var_, self.report_ = posterior.noise_var, posterior.report
        self._input_scaling, self._target_scaling = scaling, targets

    @property
    def relevance_(self) -> Array:
        """How strongly each input, once scaled, moves the network, relative to the strongest: the
        variance of the weights that leave it."""
        check_is_fitted(self)
        out: Array = self._relevance / max(self._relevance.max(), np.finfo(float).tiny)
        return out

    def save(self, path: Any, *, factor: bool = True, notes: Any = None) -> None:
        """Write the fitted model to one file; `nngp.load` reads it.

        Parameters
        ----------
        path : path
        factor : bool
            Keep the Cholesky factor (4 n² bytes): then predictions are the same to the bit, at
            once. Without it the file holds little more than the data, and loading factors anew.
        notes : dict, optional
            Anything that JSON can hold, to be kept with the model.
        """
        from nngp.predictors.saved import save

        check_is_fitted(self)
        save(self, path, factor=factor, notes=notes or {})

    def _choose(
        self, X: Array, Y: Array, own_spread: Array | None, classes: bool
    ) -> tuple[Setting, Table]:
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        candidates, size = self._candidates(), int(self.selection_size)
        learn = self._learns_relevance(X, classes)
        if self.selection is None or len(X) < ENOUGH:
            return candidates[0].setting(STARTS[0]), Table()
        if self.selection == "grid":
            return grid_search(
                X, Y, candidates, size, self.engine, self.budget, rng, self.progress, classes
            )
        slow = any(c.activation.closed_form is None for c in candidates)
        if slow and self.input_scaling != "unit":
            size = min(size, SLOW_SIZE)
        where = self.selection, self.engine, self.budget, rng
        search = Search(X, Y, *where, own_spread, self.progress)
        return search.run(candidates, size, learn), search.table

    def _candidates(self) -> list[Candidate]:
        """The kinds of network that may be chosen; the first is the default."""
        given = {
            name: None if _is_auto(getattr(self, name)) else getattr(self, name)
            for name in ("weight_var", "bias_var", "noise_var")
        }
        depths: tuple[Any, ...] = (self.depth,)
        names: tuple[Any, ...] = (self.activation,)
        if _is_auto(self.depth):
            depths = GRID_DEPTHS if self.selection == "grid" else DEPTHS
            depths = (DEFAULT_DEPTH, *(d for d in depths if d != DEFAULT_DEPTH))
        if _is_auto(self.activation):
            names = ACTIVATIONS
        out = [Candidate(as_activation(name), depth, **given) for name in names for depth in depths]
        for candidate in out:
            candidate.setting(STARTS[0])  # refuses what cannot be
        return out

    def _learns_relevance(self, X: Array, classes: bool) -> bool:
        possible = self.input_scaling != "unit" and self.selection in ("evidence", "loo")
        if isinstance(self.relevance, bool | np.bool_):
            if self.relevance and not possible:
                raise ValueError(
                    "relevance=True needs another input_scaling than 'unit' and selection "
                    "'evidence' or 'loo'; pass relevance='auto' otherwise"
                )
            return bool(self.relevance)
        # The evidence of one-hot targets counts every class as data of its own: too sure of itself.
        return _is_auto(self.relevance) and possible and not classes and 1 < X.shape[1] <= len(X)

    def _check_parameters(self, d: int) -> None:
        check_choice("input_scaling", self.input_scaling, INPUT_SCALINGS)
        check_choice("target_scaling", self.target_scaling, TARGET_SCALINGS)
        check_choice("selection", self.selection, SELECTIONS)
        for name, smallest in (("selection_size", ENOUGH), ("budget", 1)):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, Integral) or value < smallest):
                raise ValueError(
                    f"{name} must be a whole number of at least {smallest}, got {value!r}"
                )
        for name in ("depth", "activation", "weight_var", "bias_var", "noise_var"):
            value = getattr(self, name)
            if isinstance(value, str) and value != "auto" and name != "activation":
                raise ValueError(f"{name} must be a number or 'auto', got {value!r}")
        if _is_auto(self.depth) and any(
            np.ndim(getattr(self, name)) > 0 for name in ("weight_var", "bias_var")
        ):
            raise ValueError(
                "variances given layer by layer need a depth; pass depth=number of hidden layers"
            )
        if not _is_auto(self.noise_var) and not (
            isinstance(self.noise_var, Real) and np.isfinite(self.noise_var) and self.noise_var >= 0
        ):
            raise ValueError(f"noise_var must be a number >= 0 or 'auto', got {self.noise_var!r}")
        self._check_relevance(d)

    def _check_relevance(self, d: int) -> None:
        if _is_auto(self.relevance) or isinstance(self.relevance, bool | np.bool_):
            return
        try:
            values = np.asarray(self.relevance, dtype=float)
        except (TypeError, ValueError):
            values = np.empty(0)
        if values.shape != (d,) or not np.isfinite(values).all() or (values < 0).any():
            raise ValueError(
                f"relevance must be 'auto', True, False or {d} numbers >= 0 (one for each input), "
                f"got {self.relevance!r}"
            )

    def _scaled(self, X: Any) -> Array:
        """Test inputs, checked, on the training inputs' scale."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        return self._input_scaling(X)


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _marked(table: Table, setting: Setting) -> Table:
    """With the row of the chosen setting marked."""
    for row in table.rows:
        row["chosen"] = (
            row["weight_var"] == setting.architecture.weight_var
            and row["bias_var"] == setting.architecture.bias_var
            and row["noise_var"] == setting.noise_var
            and row["depth"] == setting.architecture.depth
        )
    return table
