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
from nngp.posterior.resources import check_solver, kernels_of
from nngp.predictors.scaling import (
    INPUT_SCALINGS,
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
SLOW_BUDGET = 20  # networks tried where the activation has kinks and no closed form


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
        solver: Any = "auto",
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
        self.solver = solver
        self.engine = engine
        self.random_state = random_state
        self.progress = progress

    def _fit_process(self, X: Array, Y: Array, targets: TargetScaling, *, classes: bool) -> None:
        """Scale, choose a network, condition it on everything."""
        self._check_parameters(X.shape[1])
        candidates = self._candidates()
        kind = self._kind_of_scaling(candidates)
        scaling = InputScaling.learn(X, kind)
        own_spread = scaling.own_spread if kind == "auto" else None
        relevance = np.where(scaling.factor > 0, 1.0, 0.0)
        if self._relevance_is_given:
            relevance, own_spread = np.asarray(self.relevance, dtype=float), None
            scaling = scaling.stretched(relevance)
        scaled, answers = scaling(X), targets(Y)
        learn = self._learns_relevance(X, classes, kind)
        if learn:  # relevances will say what the spreads would, and better
            own_spread = None
        setting, table = self._choose(scaled, answers, candidates, own_spread, learn, classes)
        if setting.relevance is not None:
            relevance = relevance * setting.relevance
            scaling = scaling.stretched(setting.relevance)
            scaled = scaling(X)
        posterior = condition(
            setting.architecture,
            scaled,
            answers,
            noise_var=setting.noise_var,
            solver=self.solver,
            engine=self.engine,
            progress=self.progress,
        )
        self._settle(posterior, scaling, targets, relevance)
        table.mark(setting)
        self.selection_ = table.columns()

    def _settle(
        self,
        posterior: Posterior,
        scaling: InputScaling,
        targets: TargetScaling,
        relevance: Array,
    ) -> None:
        """What fitting leaves behind, and what loading restores."""
        self.posterior_, self.architecture_ = posterior, posterior.architecture
        self.noise_var_, self.report_ = posterior.noise_var, posterior.report
        self._input_scaling, self._target_scaling = scaling, targets
        self._relevance = relevance

    @property
    def _engine_for_few(self) -> Any:
        """For some thousand points, which a cluster is not worth: it has only the last word."""
        return self.engine if kernels_of(self.engine).is_local else "auto"

    @property
    def _relevance_is_given(self) -> bool:
        return not _is_auto(self.relevance) and not isinstance(self.relevance, bool | np.bool_)

    @property
    def relevance_(self) -> Array:
        """How strongly each input, once scaled, moves the network, relative to the strongest: the
        variance of the weights that leave it."""
        check_is_fitted(self, "posterior_")
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
            What conjugate gradients solved has none, and loads at once all the same.
        notes : dict, optional
            Anything that JSON can hold, to be kept with the model.
        """
        from nngp.predictors.saved import save

        check_is_fitted(self, "posterior_")
        save(self, path, factor=factor, notes=notes or {})

    def _kind_of_scaling(self, candidates: list[Candidate]) -> str:
        """As asked; "auto" takes the sphere where pairs of unequal norm would be slow, or have no
        kernel."""
        best_on_sphere = any(c.is_infinite or c.activation.closed_form is None for c in candidates)
        return "sphere" if self.input_scaling == "auto" and best_on_sphere else self.input_scaling

    def _choose(
        self,
        X: Array,
        Y: Array,
        candidates: list[Candidate],
        own_spread: Array | None,
        relevance: bool,
        classes: bool,
    ) -> tuple[Setting, Table]:
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        size, where = int(self.selection_size), (self._engine_for_few, self.budget, rng)
        if self.selection is None or len(X) < ENOUGH:
            return candidates[0].setting(STARTS[0]), Table()
        if self.selection == "grid":
            return grid_search(X, Y, candidates, size, *where, self.progress, classes)
        if any(c.activation.closed_form is None and c.activation.kinks for c in candidates):
            where = (self._engine_for_few, self.budget or SLOW_BUDGET, rng)  # a second each
        search = Search(X, Y, self.selection, *where, own_spread, self.progress)
        return search.run(candidates, size, relevance), search.table

    def _candidates(self) -> list[Candidate]:
        """The kinds of network that may be chosen; the first is the default."""
        names_of = ("weight_var", "bias_var", "noise_var")
        given: dict[str, Any] = {name: _hashable(getattr(self, name)) for name in names_of}
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

    def _learns_relevance(self, X: Array, classes: bool, scaling: str) -> bool:
        possible = scaling not in ("unit", "sphere") and self.selection in ("evidence", "loo")
        if isinstance(self.relevance, bool | np.bool_):
            if self.relevance and not possible:
                raise ValueError(
                    "relevance=True needs inputs off the sphere (input_scaling 'standardize' or "
                    "'none'; 'auto' with a closed form and finite depth) and selection 'evidence' "
                    "or 'loo'; pass relevance='auto' otherwise"
                )
            return bool(self.relevance)
        # The evidence of one-hot targets counts every class as data of its own: too sure of itself.
        return _is_auto(self.relevance) and possible and not classes and 1 < X.shape[1] <= len(X)

    def _check_parameters(self, d: int) -> None:
        check_choice("input_scaling", self.input_scaling, INPUT_SCALINGS)
        check_choice("selection", self.selection, SELECTIONS)
        check_solver(self.solver)
        for name, smallest in (("selection_size", ENOUGH), ("budget", 1)):
            value = getattr(self, name)
            if value is None and name == "budget":
                continue
            if not isinstance(value, Integral) or isinstance(value, bool) or value < smallest:
                raise ValueError(
                    f"{name} must be a whole number of at least {smallest}, got {value!r}"
                )
        for name in ("depth", "weight_var", "bias_var", "noise_var"):
            value = getattr(self, name)
            if isinstance(value, str) and value != "auto":
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
        if not self._relevance_is_given:
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
        check_is_fitted(self, "posterior_")
        X = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        return self._input_scaling(X)


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _hashable(value: Any) -> Any:
    """A variance as a candidate holds it: None if free, a tuple if there is one a layer."""
    if _is_auto(value):
        return None
    return tuple(np.asarray(value).tolist()) if np.ndim(value) else value
