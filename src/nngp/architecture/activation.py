"""The nonlinearity phi: the named ones, and any Python callable.

Takes a name, a callable or an `Activation`; gives an `Activation` that checks its own output. A
named activation carries the key of its closed form, so that a user's function that happens to be
called "relu" is never taken for the built-in one.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import Any, TypeAlias

import numpy as np
from scipy import special

from nngp._arrays import Array, Floats, Namespace
from nngp.errors import ActivationError

LEAST_PADDED = 1024  # fewer numbers take no less time
Function = Callable[[Floats], Floats]
ClosedFormKey = tuple[str, float]  # name of a closed form, and its parameter
Origin = tuple[Callable[..., "Activation"], tuple[Any, ...]]  # a constructor and its arguments
Spec: TypeAlias = str | list[Any]  # a name, or a name and its parameter; JSON can hold it


@dataclass(frozen=True)
class Activation:
    """A nonlinearity phi, applied elementwise.

    Parameters
    ----------
    fn : callable
        Maps a NumPy (or JAX) array to an array of the same shape. It must be pure: results are
        cached, with the callable as their key.
    name : str, optional
        Name in messages; the callable's own by default.
    kinks : iterable of float, optional
        Points at which phi or a derivative of it jumps. Undeclared kinks are searched for;
        declaring them is faster and more accurate.
    features : iterable of float, optional
        Points around which phi has structure of any width, such as the centre of a narrow bump.
        Structure around 0 is always found. Elsewhere a bump narrower than some 1e-4 of the range
        of the pre-activations can be missed unless it is declared here.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> ramp = nngp.Activation(lambda x: np.clip(x, 0, 2), name="ramp", kinks=(0, 2))
    >>> round(float(nngp.layer_covariance(ramp, 1.0, 1.0, 0.5)), 6)
    0.282327
    """

    fn: Function
    name: str = ""
    kinks: tuple[float, ...] = ()
    features: tuple[float, ...] = ()
    closed_form: ClosedFormKey | None = field(default=None, init=False, repr=False)
    _origin: Origin | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise TypeError(f"an activation needs a callable, got {type(self.fn).__name__}")
        try:
            hash(self.fn)
        except TypeError:
            raise TypeError(
                f"the callable of an activation must be hashable, {type(self.fn).__name__} is "
                "not; wrap it in a function"
            ) from None
        if not self.name:
            object.__setattr__(self, "name", getattr(self.fn, "__name__", "activation"))
        object.__setattr__(self, "kinks", _as_points("kinks", self.kinks))
        object.__setattr__(self, "features", _as_points("features", self.features))

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return self._origin or (Activation, (self.fn, self.name, self.kinks, self.features))

    def __call__(self, x: Array) -> Array:
        """Evaluate phi(x) in float64; raise ActivationError on a wrong shape or NaN."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
            out = self._apply(x)
        if out.shape != np.shape(x):
            raise ActivationError(
                f"activation '{self.name}' turned an array of shape {np.shape(x)} into one of "
                f"shape {out.shape}; it must act elementwise on arrays"
            )
        if np.isnan(out).any():
            where = np.asarray(x).ravel()[int(np.argmax(np.isnan(out).ravel()))]
            raise ActivationError(
                f"activation '{self.name}' returned NaN at {where:.6g}; it must be defined on "
                "the whole real line"
            )
        return out

    def _apply(self, x: Array) -> Array:
        try:
            out = _in_double_precision(self.fn, x) if _returns_jax(self.fn) else self.fn(x)
            if np.iscomplexobj(out):
                raise TypeError("it returned complex numbers")
            return np.asarray(out, dtype=np.float64)
        except (TypeError, ValueError, AttributeError) as cause:
            raise ActivationError(
                f"activation '{self.name}' failed on a float64 array ({cause}); it must take an "
                "array and return a real array of the same shape"
            ) from cause


def _as_points(kind: str, points: Iterable[float] | float) -> tuple[float, ...]:
    values = tuple(sorted({float(x) for x in np.atleast_1d(np.asarray(points, dtype=float))}))
    if not np.isfinite(values).all():
        raise ValueError(f"{kind} must be finite numbers, got {values}")
    return values


@lru_cache(maxsize=256)
def _returns_jax(fn: Function) -> bool:
    """Whether a function returns JAX arrays for NumPy arrays."""
    return type(fn(np.zeros(1))).__module__.split(".")[0] in ("jax", "jaxlib")


def _in_double_precision(fn: Function, x: Array) -> Array:
    """Evaluate a JAX function in 64-bit mode, without which it would round to float32.

    JAX compiles every operation again for each new shape (tens of milliseconds each), so x is
    padded with zeros to a power of two: few shapes serve all calls.
    """
    import jax

    flat = np.ravel(x)
    size = max(LEAST_PADDED, 1 << max(flat.size - 1, 0).bit_length())
    with jax.enable_x64(True):
        out = np.asarray(fn(jax.numpy.asarray(np.pad(flat, (0, size - flat.size)))))
    return out[: flat.size].reshape(np.shape(x)) if out.shape == (size,) else out


def _namespace(x: Floats) -> Namespace:
    if isinstance(x, np.ndarray | np.generic | float | int):
        return np
    import jax.numpy as jnp

    return jnp


def _special(x: Floats) -> Namespace:
    if _namespace(x) is np:
        return special
    import jax.scipy.special as jsp

    return jsp


def _elu(x: Floats, alpha: float, scale: float) -> Floats:
    xp = _namespace(x)
    return scale * xp.where(x > 0, x, alpha * xp.expm1(xp.minimum(x, 0.0)))


def _rectified(x: Floats, power: int) -> Floats:
    return _namespace(x).maximum(x, 0.0) ** power


SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805

# name -> (function, kinks, key and parameter of the closed form)
_Row = tuple[Function, tuple[float, ...], ClosedFormKey | None]

_NUMERIC: dict[str, _Row] = {
    "tanh": (lambda x: _namespace(x).tanh(x), (), None),
    "sigmoid": (lambda x: _special(x).expit(x), (), None),
    "silu": (lambda x: x * _special(x).expit(x), (), None),
    "softplus": (lambda x: _namespace(x).logaddexp(x, 0.0), (), None),
    "elu": (lambda x: _elu(x, 1.0, 1.0), (0.0,), None),
    "selu": (lambda x: _elu(x, SELU_ALPHA, SELU_SCALE), (0.0,), None),
    "hard_tanh": (lambda x: _namespace(x).clip(x, -1.0, 1.0), (-1.0, 1.0), None),
    "relu6": (lambda x: _namespace(x).clip(x, 0.0, 6.0), (0.0, 6.0), None),
}

_CLOSED: dict[str, _Row] = {
    "identity": (lambda x: x, (), ("monomial", 1)),
    "square": (lambda x: x**2, (), ("monomial", 2)),
    "cube": (lambda x: x**3, (), ("monomial", 3)),
    "relu": (lambda x: _rectified(x, 1), (0.0,), ("leaky_relu", 0.0)),
    "relu2": (lambda x: _rectified(x, 2), (0.0,), ("rectified_power", 2)),
    "relu3": (lambda x: _rectified(x, 3), (0.0,), ("rectified_power", 3)),
    "abs": (lambda x: _namespace(x).abs(x), (0.0,), ("leaky_relu", -1.0)),
    "step": (lambda x: _namespace(x).heaviside(x, 0.5), (0.0,), ("step", 0.0)),
    "sign": (lambda x: _namespace(x).sign(x), (0.0,), ("sign", 0.0)),
    "erf": (lambda x: _special(x).erf(x), (), ("erf", 0.0)),
    "gelu": (lambda x: x * _special(x).ndtr(x), (), ("gelu", 0.0)),
    "sin": (lambda x: _namespace(x).sin(x), (), ("sin", 0.0)),
    "cos": (lambda x: _namespace(x).cos(x), (), ("cos", 0.0)),
    "gaussian": (lambda x: _namespace(x).exp(-(x**2)), (), ("gaussian", 0.0)),
}


def leaky_relu(slope: float = 0.01) -> Activation:
    """Leaky ReLU: x where positive, slope·x where negative.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> nngp.leaky_relu(0.25)(np.array([-2.0, 3.0])).tolist()
    [-0.5, 3.0]
    """
    slope = float(slope)
    if not np.isfinite(slope):
        raise ValueError(f"the slope of leaky_relu must be a finite number, got {slope}")
    return _leaky_relu(slope)


@cache  # without a limit: two of one slope are equal only if they are one
def _leaky_relu(slope: float) -> Activation:
    def fn(x: Floats) -> Floats:
        return _namespace(x).where(x > 0, x, slope * x)

    name = f"leaky_relu({slope:g})"
    return _known(Activation(fn, name, (0.0,)), ("leaky_relu", slope), (leaky_relu, (slope,)))


@cache
def leaky_step(slope: float) -> Activation:
    """The derivative of leaky ReLU: 1 where positive, slope where negative."""

    def fn(x: Floats) -> Floats:
        xp = _namespace(x)
        return 0.5 * (1 + slope) + 0.5 * (1 - slope) * xp.sign(x)

    name = f"leaky_step({slope:g})"
    return _known(Activation(fn, name, (0.0,)), ("leaky_step", slope), (leaky_step, (slope,)))


def _known(activation: Activation, closed_form: ClosedFormKey | None, origin: Origin) -> Activation:
    """Give a built-in activation the key of its closed form, and let it be pickled by name."""
    object.__setattr__(activation, "closed_form", closed_form)
    object.__setattr__(activation, "_origin", origin)
    return activation


def _build() -> dict[str, Activation]:
    table = {
        name: _known(Activation(fn, name, kinks), key, (as_activation, (name,)))
        for name, (fn, kinks, key) in (_NUMERIC | _CLOSED).items()
    }
    return table | {"leaky_relu": leaky_relu()}


ALIASES = {"linear": "identity", "swish": "silu", "heaviside": "step", "logistic": "sigmoid"}


def activation_names() -> tuple[str, ...]:
    """Names that `Architecture(activation=...)` accepts, in alphabetical order.

    Examples
    --------
    >>> import nngp
    >>> "relu" in nngp.activation_names()
    True
    """
    return tuple(sorted(_NAMED))


ActivationLike = str | Function | Activation


def as_activation(activation: ActivationLike) -> Activation:
    """Convert a name, a callable or an `Activation` to an `Activation`."""
    if isinstance(activation, Activation):
        return activation
    if isinstance(activation, str):
        name = activation.lower().replace("-", "_")
        name = ALIASES.get(name, name)
        if name in _NAMED:
            return _NAMED[name]
        near = get_close_matches(name, list(_NAMED) + list(ALIASES), n=3) or activation_names()
        raise ValueError(f"unknown activation '{activation}'; did you mean: {', '.join(near)}?")
    if callable(activation):
        return Activation(activation)
    raise TypeError(
        "activation must be a name, a callable or an nngp.Activation, "
        f"got {type(activation).__name__}"
    )


def spec_of(activation: Activation) -> Spec:
    """Describe a built-in activation by its name, or its name and parameter, for `from_spec`."""
    if activation._origin is not None:
        function, arguments = activation._origin
        return ["leaky_relu", *arguments] if function is leaky_relu else arguments[0]
    raise ValueError(
        f"activation '{activation.name}' is a Python function, which cannot be written down; use "
        "one of nngp.activation_names()"
    )


def from_spec(spec: Spec) -> Activation:
    """Construct the activation that `spec_of` described. Raises ValueError for anything else."""
    if isinstance(spec, str):
        return as_activation(spec)
    if not isinstance(spec, list) or len(spec) != 2 or spec[0] != "leaky_relu":
        raise ValueError(f"{spec!r} describes no activation")
    if type(spec[1]) not in (int, float):
        raise ValueError(f"the slope of leaky_relu must be a finite number, got {spec[1]!r}")
    return leaky_relu(spec[1])


_NAMED = _build()
