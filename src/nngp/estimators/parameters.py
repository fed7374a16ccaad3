"""Parameters of the estimators: one table of defaults, checks, documentation and options.

Each field of the dataclasses below is a parameter: of the constructor, of the class's docstring,
and of `nngp fit` if it has an `Option`. scikit-learn is not imported here, so that the command can
read the table and answer `--help` at once.
"""

# ruff: noqa: RUF009 (`parameter` gives fields, not defaults)

import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

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
from nngp.predictive.class_balance import ClassWeight, check_class_weight
from nngp.predictive.targets import TARGET_SCALINGS, TARGET_TRANSFORMS
from nngp.selection import EFFORTS, MAPS, MIN_POINTS
from nngp.selection.families import with_shape
from nngp.selection.problem import STARTS, Candidate, averaged

ActivationLike = str | Activation | Callable[[Array], Array]
VarianceLike = float | str | Sequence[float]
InvarianceLike = str | Family | Callable[[Array], Array] | Sequence[Any] | None
Seed = int | np.random.RandomState | None
SELECTIONS = ("evidence", "loo", None)
NOISES = ("constant", "heteroscedastic")
LIKELIHOODS = ("auto", "regression", "dirichlet", "softmax")
VARIANCES = ("weight_var", "bias_var", "noise_var")
DEPTHS, ACTIVATIONS = (1, 2, 3), ("relu", "erf")  # tried for "auto"
DEFAULT_DEPTH = 2  # where nothing is chosen: selection=None, or too few points
BASIC = (  # parameters that most users need; all others are called advanced
    "effort",
    "depth",
    "activation",
    "network",
    "noise",
    "likelihood",
    "class_weight",
    "invariance",
    "image_shape",
    "engine",
    "random_state",
    "progress",
)
Documented = TypeVar("Documented", bound=type)
Check = Callable[[str, Any], object]


class Option(NamedTuple):
    """The option of `nngp fit` that sets a parameter: its help, and what its text is: a word, or a
    number (whole or not) beside words. `words` are texts that stand for other values."""

    help: str
    number: Literal["", "any", "whole"] = ""
    words: tuple[tuple[str, object], ...] = ()
    name: str = ""  # that of the parameter if empty
    type: Any = str
    panel: str = "Network"  # of the command's help


class Parameter(NamedTuple):
    """A parameter in the table: its type in words, its description, its check, its option."""

    kind: str
    text: str
    check: Check | None
    option: Option | None


def parameter(
    default: object,
    kind: str,
    text: str,
    check: Check | None = None,
    option: Option | None = None,
) -> Any:
    """A field of the table."""
    return field(default=default, metadata={"parameter": Parameter(kind, text, check, option)})


def parameters_of(kind: type) -> dict[str, Parameter]:
    """The table of an estimator, by name."""
    return {one.name: one.metadata["parameter"] for one in fields(kind)}


def documented(kind: Documented) -> Documented:
    """Put the table in place of `{parameters}` in a class's docstring: what most users need first,
    then a section of advanced parameters."""
    table = parameters_of(kind)
    basic = [name for name in BASIC if name in table]
    title = "Other Parameters"  # the name of that section in numpydoc
    heading = ["", title, "-" * len(title)]
    lines = [*_described(table, basic), *heading]
    lines += _described(table, [name for name in table if name not in basic])
    text = textwrap.indent("\n".join(lines), "    ").lstrip()
    kind.__doc__ = (kind.__doc__ or "").replace("{parameters}", text)
    return kind


def _described(table: Mapping[str, Parameter], names: Sequence[str]) -> Iterator[str]:
    for name in names:
        yield f"{name} : {table[name].kind}"
        yield from textwrap.wrap(
            table[name].text, 92, initial_indent="    ", subsequent_indent="    "
        )


def one_of(*choices: object) -> Check:
    """Check that a value is one of the choices."""

    def check(name: str, value: object) -> None:
        if not any(value is choice or value == choice for choice in choices):
            listed = ", ".join(repr(choice) for choice in choices)
            raise ValueError(f"{name} must be one of {listed}, got {value!r}")

    return check


def at_least(least: int) -> Check:
    """Check that a value is a whole number of that size."""
    return lambda name, value: whole_number(name, value, least)


def _count_or_none(name: str, value: object) -> None:
    if value is not None:
        whole_number(name, value, 1)


def _number_or_auto(name: str, value: object) -> None:
    if isinstance(value, str) and value != "auto":
        raise ValueError(f"{name} must be a number or 'auto', got {value!r}")


def _noise_or_auto(name: str, value: object) -> None:
    _number_or_auto(name, value)
    if not is_auto(value) and not (isinstance(value, Real) and 0 <= float(value) < math.inf):
        raise ValueError(f"{name} must be a number >= 0 or 'auto', got {value!r}")


def _seed(name: str, value: object) -> None:
    if isinstance(value, Integral) and not 0 <= int(value) < 2**32:
        raise ValueError(f"{name} must be from 0 to 2**32 - 1, got {value}")


SEARCH, MACHINE = "Search for the network", "Machine"  # panels of the command's help
VARIANCE_OPTION = Option("A number, or auto.", "any")
NONE = (("none", None),)


@dataclass(kw_only=True, eq=False, repr=False)
class CommonParameters:
    """Parameters of both estimators, and the model selection that they describe."""

    depth: float | str = parameter(
        "auto",
        'int, math.inf or "auto"',
        'Number of hidden layers. "auto" tries 1, 2 and 3.',
        _number_or_auto,
        Option("Hidden layers, inf, or auto.", "whole"),
    )
    activation: ActivationLike = parameter(
        "auto",
        'str, callable, Activation or "auto"',
        '"auto" tries "relu" and "erf".',
        option=Option("relu, erf, tanh, ... or auto."),
    )
    weight_var: VarianceLike = parameter(
        "auto",
        'float, sequence of depth + 1 floats, or "auto"',
        'Prior variance of the weights, times fan-in. "auto" finds one for each layer.',
        _number_or_auto,
        VARIANCE_OPTION,
    )
    bias_var: VarianceLike = parameter(
        "auto",
        'float, sequence of depth + 1 floats, or "auto"',
        'Prior variance of the biases. "auto" finds one for each layer.',
        _number_or_auto,
        VARIANCE_OPTION,
    )
    noise_var: float | str = parameter(
        "auto",
        'float or "auto"',
        'Variance of the observation noise, in units of the scaled targets. "auto" finds it; of '
        "targets that were rounded it is not below what rounding leaves (spacing²/12), unless "
        "held-out rows show that they were not.",
        _noise_or_auto,
        VARIANCE_OPTION,
    )
    network: Network | None = parameter(
        None,
        "Network, optional",
        "A network of any shape (`nngp.Chain`, ..., or an `nngp.NTK`) instead of a choice; only "
        "the noise is found. Depth, activation and variances are then its own, and columns get "
        "neither relevances nor maps.",
    )
    relevance: str | bool | ArrayLike = parameter(
        "auto",
        '"auto", bool or array of d floats',
        'Whether each input gets a weight variance of its own; "auto" does so if d <= n, with '
        'selection "evidence" or "loo" and inputs that are not on a sphere. A classifier learns '
        "them by leave-one-out and keeps them only if they predict held-out rows better: one-hot "
        "targets make the evidence too sure of itself.",
    )
    input_scaling: str = parameter(
        "auto",
        '{"auto", "standardize", "sphere", "unit", "whiten", "none"}',
        '"standardize" brings columns to mean 0 and deviation 1; "sphere" does the same, adds a '
        'constant input and brings rows to equal norm; "unit" brings rows to equal norm, as in the '
        'paper; "whiten" makes columns uncorrelated, as `whitening` says, and then rows of one '
        'norm, which helps with images; "none" leaves the inputs as they are. "auto" '
        "standardizes, and restores the columns' own spreads if that is better, as it is for "
        'pixels; for an activation without a closed form it takes "sphere", where all '
        "activations are fast.",
        one_of(*INPUT_SCALINGS),
        Option("auto, standardize, sphere, unit, whiten or none."),
    )
    whitening: float | str = parameter(
        "auto",
        'float or "auto"',
        'Strength of the regularisation with `input_scaling="whiten"`: what is added to the '
        'eigenvalues of the covariance of the training inputs, over their mean. "auto" takes the '
        "best of 1, 0.3, 0.1, 0.03 and 0.01 by evidence, and 0.1 with selection None. A row that "
        "equals the mean of the training inputs has no direction, and is an error.",
        option=Option("Regularisation of whiten: a number, or auto.", "any"),
    )
    invariance: InvarianceLike = parameter(
        None,
        'None, "auto", family of transformations, or a sequence of them',
        "Average the network over transformations of images (`nngp.images`) or of columns "
        '(`nngp.symmetries`), so that all functions of the prior are invariant. "auto" adds '
        "flips, quarter turns, orders of colours and shifts by 1, 2 and 3 pixels as long as the "
        "evidence rises clearly and held-out rows are predicted better. Columns that change "
        'places share one scale, so `input_scaling="auto"` is "unit", and there are neither '
        "relevances nor maps. Whitened rows are transformed after they were whitened. Each "
        "transformation multiplies the cost of the kernel: `nngp.Invariant(...).products(d)` "
        "says how often.",
    )
    image_shape: Sequence[int] | None = parameter(
        None,
        "tuple of int, optional",
        "Of a row as an image: (height, width), (height, width, channels) or (channels, height, "
        "width). Without it a row is a square image of one channel.",
    )
    column_maps: str = parameter(
        "auto",
        '{"auto", "identity"}',
        '"auto" lets each column of numbers have a monotone map, chosen by evidence: the '
        "identity, a power of Yeo and Johnson, the logarithm, or ranks. A column with wild "
        'values has a bounded one. "identity" leaves columns as they are.',
        one_of(*MAPS),
        Option("Transforms of skewed columns: auto, or identity for none."),
    )
    n_networks: int = parameter(
        1,
        "int",
        "How many networks are kept at most. Several are mixed with weights that predict "
        "held-out rows best (stacking). With few rows networks that need less data join them.",
        at_least(1),
        Option("Largest number of networks to keep and average.", type=int, panel=SEARCH),
    )
    effort: str = parameter(
        "normal",
        '{"fast", "normal", "thorough"}',
        "How long to search.",
        one_of(*EFFORTS),
        Option("fast, normal or thorough.", panel=SEARCH),
    )
    selection: str | None = parameter(
        "evidence",
        '{"evidence", "loo", None}',
        'Criterion for what is "auto": marginal likelihood; leave-one-out density; or none (a '
        "ReLU network of depth 2, noise 0.1).",
        one_of(*SELECTIONS),
        Option("Criterion: evidence, loo or none.", words=NONE, panel=SEARCH),
    )
    selection_size: int = parameter(
        2000,
        "int",
        "Largest number of points used for the choice; the final fit uses all points. The noise "
        "alone is found with twice as many (as many with a `network`), or with 27.5% of all "
        "where that is more, 16,000 at most.",
        at_least(MIN_POINTS),
    )
    budget: int | None = parameter(
        None,
        "int, optional",
        "Largest number of networks computed for the choice; 20 by default for an activation "
        "that has kinks or parameters and no closed form, some hundreds otherwise.",
        _count_or_none,
        Option("Largest number of networks to try.", type=int | None, panel=SEARCH),
    )
    solver: str | CG = parameter(
        "auto",
        '{"auto", "cholesky", "cg"} or CG',
        "Solver of the final system; see `nngp.condition`.",
        lambda _, value: check_solver(value),
        Option("cholesky, cg, or auto: cg where no factor fits.", panel=MACHINE),
    )
    engine: str | Engine = parameter(
        "auto",
        '{"auto", "cpu", "gpu"} or engine',
        "Where to compute; see `nngp.condition`. With a `DaskEngine` the network is chosen on "
        "this machine and conditioned on the cluster.",
    )
    random_state: Seed = parameter(
        0,
        "int, RandomState or None",
        "Seed for the points that are used for the choice.",
        _seed,
        Option("Random seed.", name="seed", type=int, panel=SEARCH),
    )
    progress: Callback | bool | None = parameter(
        None, "callable or bool, optional", "As in `nngp.condition`; one bar shows the whole fit."
    )

    def _check_parameters(self, d: int) -> None:
        """Raise ValueError for a value that cannot be used with d inputs."""
        for name, one in parameters_of(type(self)).items():
            if one.check is not None:
                one.check(name, getattr(self, name))
        if is_auto(self.depth) and np.ndim(self.weight_var) + np.ndim(self.bias_var) > 0:
            raise ValueError(
                "variances given layer by layer need a depth; pass depth=number of hidden layers"
            )
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


@dataclass(kw_only=True, eq=False, repr=False)
class RegressorParameters(CommonParameters):
    """Parameters of `NNGPRegressor`."""

    noise: str = parameter(
        "constant",
        '{"constant", "heteroscedastic"}',
        '"heteroscedastic" lets the noise depend on the inputs, by a second process for its '
        "logarithm, if held-out rows are predicted better that way.",
        one_of(*NOISES),
        Option("constant, or heteroscedastic: noise that depends on the row."),
    )
    target_scaling: str = parameter(
        "standardize",
        '{"standardize", "none"}',
        '"standardize" brings each output to mean 0 and deviation 1.',
        one_of(*TARGET_SCALINGS),
    )
    target_transform: str = parameter(
        "auto",
        '{"auto", "identity", "log", "yeo-johnson"}',
        'Monotone transform of the targets. "auto" compares them by evidence up to 20,000 rows, '
        "and conditions predictions on positive targets where all were positive; it is "
        '"identity" with more rows, solver "cg", or selection None, which compares nothing. '
        "Means, deviations, intervals, densities and samples are of the targets in their own "
        "units.",
        one_of(*TARGET_TRANSFORMS),
        Option("auto, identity, log or yeo-johnson."),
    )
    calibrate: str | bool = parameter(
        "auto",
        '"auto" or bool',
        'Whether held-out rows decide how wide predictions are, as a mixture of widths. "auto" '
        "does so where the noise is learned. False: the posterior as it is.",
        one_of("auto", True, False),
    )


@dataclass(kw_only=True, eq=False, repr=False)
class ClassifierParameters(CommonParameters):
    """Parameters of `NNGPClassifier`."""

    likelihood: str = parameter(
        "auto",
        '{"auto", "regression", "dirichlet", "softmax"}',
        '"regression" regresses on one-hot targets, and a class has the probability that its '
        'output is the largest. "dirichlet" regresses each class on logarithms of Dirichlet '
        "parameters with one of two noise levels a row (Milios et al. 2018), and averages the "
        'softmax; it holds a matrix of n² numbers on this machine. "softmax" has the likelihood of '
        "that name and approximates the posterior by a Gaussian (Laplace); it holds such a matrix "
        'for every class, and is tried only where it is asked for. "auto" takes the one of the '
        "first two with the smaller leave-one-out log loss up to 4000 points, and "
        '"regression" beyond.',
        one_of(*LIKELIHOODS),
        Option("For classes: auto, regression, dirichlet or softmax."),
    )
    class_weight: ClassWeight = parameter(
        None,
        'None, "balanced" or dict',
        "Weights of the classes' rows: one each, such that all classes have the same total, or by "
        "label (one where a label is missing).",
        lambda _, value: check_class_weight(value),
        Option("none, or balanced: rare classes count more.", words=NONE),
    )


def is_auto(value: object) -> bool:
    return isinstance(value, str) and value == "auto"


def _fixed(value: Any) -> Any:
    """Convert a variance to what a candidate holds: None if free, a tuple if one per layer."""
    if is_auto(value):
        return None
    if isinstance(value, Real):
        return float(value)  # of NumPy's types, too, or a fraction
    return tuple(np.asarray(value).tolist()) if np.ndim(value) else value
