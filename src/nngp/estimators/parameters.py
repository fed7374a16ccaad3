"""Parameters of an estimator: their checks, and the model selection that they describe."""

import math
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from nngp._arrays import Array
from nngp._numbers import check_unmasked, whole_number
from nngp._progress import Callback
from nngp.architecture import Activation, Architecture, Network, as_activation
from nngp.architecture.invariances import Family
from nngp.architecture.invariances.images import square_shape
from nngp.architecture.invariances.invariant import as_families
from nngp.frames.scaling import INPUT_SCALINGS
from nngp.frames.whitening import LARGEST_STRENGTH, LEAST_STRENGTH
from nngp.gram import check_network
from nngp.images import flips
from nngp.linsolve import CG, Engine
from nngp.posterior.setup import check_solver, kernels_of
from nngp.selection.families import with_shape
from nngp.selection.problem import (
    EFFORTS,
    MAPS,
    MIN_POINTS,
    STARTS,
    Candidate,
    averaged,
)

ActivationLike = str | Activation | Callable[[Array], Array]
VarianceLike = float | str | Sequence[float]
InvarianceLike = str | Family | Callable[[Array], Array] | Sequence[Any] | None
Seed = int | np.random.RandomState | None
SELECTIONS = ("evidence", "loo", None)
VARIANCES = ("weight_var", "bias_var", "noise_var")
DEPTHS, ACTIVATIONS = (1, 2, 3), ("relu", "erf")  # tried for "auto"
DEFAULT_DEPTH = 2  # where nothing is chosen: selection=None, or too few points


class NNGPParameters(BaseEstimator):
    """Constructor arguments of both estimators, described in `NNGPRegressor`."""

    def __init__(
        self,
        *,
        depth: float | str = "auto",
        activation: ActivationLike = "auto",
        weight_var: VarianceLike = "auto",
        bias_var: VarianceLike = "auto",
        noise_var: float | str = "auto",
        network: Network | None = None,
        relevance: str | bool | ArrayLike = "auto",
        input_scaling: str = "auto",
        whitening: float | str = "auto",
        invariance: InvarianceLike = None,
        image_shape: Sequence[int] | None = None,
        column_maps: str = "auto",
        networks: int = 1,
        effort: str = "normal",
        selection: str | None = "evidence",
        selection_size: int = 2000,
        budget: int | None = None,
        solver: str | CG = "auto",
        engine: str | Engine = "auto",
        random_state: Seed = 0,
        progress: Callback | bool | None = None,
    ) -> None:
        self.depth = depth
        self.activation = activation
        self.weight_var = weight_var
        self.bias_var = bias_var
        self.noise_var = noise_var
        self.network = network
        self.relevance = relevance
        self.input_scaling = input_scaling
        self.whitening = whitening
        self.invariance = invariance
        self.image_shape = image_shape
        self.column_maps = column_maps
        self.networks = networks
        self.effort = effort
        self.selection = selection
        self.selection_size = selection_size
        self.budget = budget
        self.solver = solver
        self.engine = engine
        self.random_state = random_state
        self.progress = progress

    def _check_parameters(self, d: int) -> None:
        """Raise ValueError for a value that cannot be used with d inputs."""
        check_choice("input_scaling", self.input_scaling, INPUT_SCALINGS)
        check_choice("selection", self.selection, SELECTIONS)
        check_choice("column_maps", self.column_maps, MAPS)
        check_choice("effort", self.effort, EFFORTS)
        whole_number("networks", self.networks, 1)
        check_solver(self.solver)
        whole_number("selection_size", self.selection_size, MIN_POINTS)
        if self.budget is not None:
            whole_number("budget", self.budget, 1)
        seed = self.random_state
        if isinstance(seed, Integral) and not 0 <= seed < 2**32:
            raise ValueError(f"random_state must be from 0 to 2**32 - 1, got {seed}")
        for name in ("depth", *VARIANCES):
            value = getattr(self, name)
            if isinstance(value, str) and value != "auto":
                raise ValueError(f"{name} must be a number or 'auto', got {value!r}")
        if is_auto(self.depth) and np.ndim(self.weight_var) + np.ndim(self.bias_var) > 0:
            raise ValueError(
                "variances given layer by layer need a depth; pass depth=number of hidden layers"
            )
        if not is_auto(self.noise_var) and not (
            isinstance(self.noise_var, Real) and 0 <= self.noise_var < math.inf
        ):
            raise ValueError(f"noise_var must be a number >= 0 or 'auto', got {self.noise_var!r}")
        if self.network is not None:
            self._check_network()
        self._check_whitening()
        if self.invariance is not None:
            self._check_invariance(d)
        if self._relevance_is_given:
            self._check_relevance(d)

    def _check_network(self) -> None:
        if not isinstance(self.network, Network):
            raise TypeError(
                "network must be an nngp.Architecture or another network, or None, got "
                f"{type(self.network).__name__}"
            )
        check_network(self.network)
        for name in ("depth", "activation", "weight_var", "bias_var"):
            if not is_auto(getattr(self, name)):
                raise ValueError(f"{name} is part of the network; leave it at 'auto'")

    def _check_whitening(self) -> None:
        if self.input_scaling == "whiten" and self._relevance_is_given:
            raise ValueError(
                "input_scaling='whiten' mixes the columns, so none has a relevance; leave "
                "relevance at 'auto', or use 'standardize'"
            )
        if is_auto(self.whitening):
            return
        strength = float(self.whitening) if isinstance(self.whitening, Real) else 0.0
        if isinstance(self.whitening, bool) or not LEAST_STRENGTH <= strength <= LARGEST_STRENGTH:
            raise ValueError(
                f"whitening must be 'auto' or a number from {LEAST_STRENGTH:g} to "
                f"{LARGEST_STRENGTH:g}, got {self.whitening!r}"
            )
        if self.input_scaling != "whiten":
            raise ValueError(
                f"whitening={self.whitening} is the strength of input_scaling='whiten', and "
                f"input_scaling is {self.input_scaling!r}; pass input_scaling='whiten'"
            )

    def _check_invariance(self, d: int) -> None:
        if self.input_scaling in ("standardize", "sphere"):
            raise ValueError(
                f"input_scaling={self.input_scaling!r} gives each column a scale of its own, which "
                "transformations that move columns undo; use 'unit', 'whiten' or 'none' with an "
                "invariance"
            )
        if self._relevance_is_given:
            raise ValueError(
                "relevance gives each column a scale of its own, which transformations that move "
                "columns undo; leave it at 'auto' with an invariance"
            )
        if self.network is not None and self.network.base is not self.network:
            raise ValueError(
                "the network is invariant already; pass its own network, or leave out invariance"
            )
        if is_auto(self.invariance):
            self._check_chosen_invariance(d)
        else:
            averaged(Architecture(1), self._families(d)).products(d)

    def _check_chosen_invariance(self, d: int) -> None:
        shape = self._image_shape(d)
        if shape is None:
            raise ValueError(
                f"invariance='auto' is chosen for images, and {d} columns are no square image; "
                "pass image_shape=(height, width) or (height, width, channels)"
            )
        if math.prod(shape) != d:
            raise ValueError(
                f"images of image_shape={shape} have {math.prod(shape)} numbers, and X has {d} "
                "columns"
            )
        infinite = not isinstance(self.depth, str) and self.depth == math.inf
        if self.selection not in ("evidence", "loo") or self.network is not None or infinite:
            raise ValueError(
                "invariance='auto' is chosen by evidence with a network of finite depth; use "
                "selection='evidence' without network=, or pass families such as "
                "nngp.images.flips(shape)"
            )

    def _image_shape(self, d: int) -> tuple[int, ...] | None:
        """The shape of a row as an image: as it was given, or square."""
        if self.image_shape is None:
            return square_shape(d)
        try:
            shape = tuple(self.image_shape)
            flips(shape)  # raises for what is no shape
        except (TypeError, ValueError) as cause:
            raise ValueError(f"image_shape: {cause}") from None
        return tuple(int(size) for size in shape)

    def _families(self, d: int) -> tuple[Family, ...]:
        """The families of transformations that were given."""
        if self.invariance is None or is_auto(self.invariance):
            return ()
        if isinstance(self.invariance, str):
            raise ValueError(
                "invariance must be None, 'auto', or families of transformations such as "
                f"nngp.images.flips(), got {self.invariance!r}"
            )
        shape = None if self.image_shape is None else self._image_shape(d)
        return with_shape(as_families(self.invariance), shape)

    def _check_relevance(self, d: int) -> None:
        check_unmasked(self.relevance, "relevance")
        try:
            values = np.asarray(self.relevance, dtype=float)
        except (TypeError, ValueError):
            values = np.empty(0)
        if values.shape != (d,) or not np.isfinite(values).all() or (values < 0).any():
            raise ValueError(
                f"relevance must be 'auto', True, False or {d} numbers >= 0 (one for each input), "
                f"got {self.relevance!r}"
            )

    def _candidates(self) -> list[Candidate]:
        """Networks that may be chosen; the first is the default."""
        depths: list[Any] = [self.depth]
        if is_auto(self.depth):
            depths = sorted(DEPTHS, key=lambda depth: depth != DEFAULT_DEPTH)
        names = ACTIVATIONS if is_auto(self.activation) else [self.activation]
        given = {name: _fixed(getattr(self, name)) for name in VARIANCES}
        out = [Candidate(as_activation(name), depth, **given) for name in names for depth in depths]
        for candidate in out:
            candidate.starting_at(STARTS[0])  # raises for an impossible network
        return out

    @property
    def _search_engine(self) -> str | Engine:
        """Engine for the model search: subsets are small, so a cluster is used only for the final
        fit."""
        return self.engine if kernels_of(self.engine).is_local else "auto"

    @property
    def _relevance_is_given(self) -> bool:
        """Whether the user passed one relevance per input."""
        return not is_auto(self.relevance) and not isinstance(self.relevance, bool | np.bool_)

    def _input_scaling_kind(self, candidates: list[Candidate]) -> str:
        """Resolve input_scaling="auto": the sphere where pairs of unequal norm would be slow or
        have no kernel."""
        given = self.network
        if self.input_scaling == "auto" and (
            self.invariance is not None or (given is not None and given.base is not given)
        ):
            return "unit"  # columns that change places share one scale
        if given is not None:
            needs_sphere = given.is_infinite or any(
                phi.closed_form is None for phi in given.activations
            )
        else:
            needs_sphere = any(
                c.is_infinite or c.activation.closed_form is None for c in candidates
            )
        return "sphere" if self.input_scaling == "auto" and needs_sphere else self.input_scaling

    def _learns_relevance(self, shape: tuple[int, int], scaling: str) -> bool:
        """Whether one relevance per input is to be found, for (n, d) inputs scaled that way."""
        n, d = shape
        possible = (
            scaling not in ("unit", "sphere", "whiten")
            and self.selection in ("evidence", "loo")
            and self.network is None
            and self.invariance is None
        )
        if isinstance(self.relevance, bool | np.bool_):
            if self.relevance and not possible:
                raise ValueError(
                    "relevance=True needs inputs off the sphere (input_scaling 'standardize' or "
                    "'none'; 'auto' with a closed form and finite depth), selection 'evidence' or "
                    "'loo', no invariance and no network=; pass relevance='auto' otherwise"
                )
            return bool(self.relevance)
        return is_auto(self.relevance) and possible and 1 < d <= n


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Raise ValueError unless `value` is one of the choices."""
    if not any(value is choice or value == choice for choice in choices):
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}")


def is_auto(value: object) -> bool:
    return isinstance(value, str) and value == "auto"


def _fixed(value: Any) -> Any:
    """Convert a variance to what a candidate holds: None if free, a tuple if one per layer."""
    if is_auto(value):
        return None
    if isinstance(value, Real):
        return float(value)  # of NumPy's types, too, or a fraction
    return tuple(np.asarray(value).tolist()) if np.ndim(value) else value
