"""The nonlinearity phi: the named ones, and any Python callable.

Takes a name, a callable or an `Activation`; gives an `Activation` that checks its own output. An
activation whose Gaussian expectations are known carries the key of its closed form, so that a
user's function that happens to be called "relu" is never taken for the built-in one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import Any, TypeAlias

import numpy as np
from scipy import special

from nngp._arrays import Array, Floats, Namespace
from nngp.errors import ActivationError

LEAST_PADDED = 1024  # fewer numbers take no less time
RESERVED = ("weight_var", "bias_var", "noise_var", "relevance", "x")  # names of other derivatives
MOST_POWER = 30  # of a polynomial: moments of higher powers soon leave float64
Function = Callable[..., Floats]
KernelMap = Callable[[Floats, Floats, Floats], Floats]  # of cov, var1, var2
ClosedFormKey = tuple[Any, ...]  # name of a closed form, and its parameters
Spec: TypeAlias = str | list[Any]  # a name, or a constructor and its arguments; JSON can hold it


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
    params : mapping of str to float, optional
        Parameters that fn takes by name behind x. They are hyper-parameters of every network with
        this activation: `Posterior.evidence_gradient` has their derivatives, the estimators learn
        them, `nngp.jax_kernel` takes them as arguments. The kernel must be smooth in them.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> ramp = nngp.Activation(lambda x: np.clip(x, 0, 2), name="ramp", kinks=(0, 2))
    >>> round(float(nngp.curves.layer_covariance(ramp, 1.0, 1.0, 0.5)), 6)
    0.282327
    """

    fn: Function
    name: str = ""
    kinks: tuple[float, ...] = ()
    features: tuple[float, ...] = ()
    params: Mapping[str, float] = field(default_factory=dict)
    closed_form: ClosedFormKey | None = field(default=None, init=False, repr=False)
    spec: Spec | None = field(default=None, init=False, repr=False, compare=False)

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
        object.__setattr__(self, "params", _as_params(self.params))

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        if self.spec is not None:
            return from_spec, (self.spec,)
        if isinstance(self.fn, KernelMapOnly):
            return Activation.from_dual, (self.fn.dual, self.fn.slope, self.name)
        return Activation, (self.fn, self.name, self.kinks, self.features, dict(self.params))

    def with_params(self, **values: float) -> "Activation":
        """The same activation at other values of some of its parameters.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> wave = nngp.Activation(lambda x, w: np.sin(w * x), params={"w": 1.0})
        >>> wave.with_params(w=2.0).params
        {'w': 2.0}
        """
        for name in values:
            if name not in self.params:
                known = f"it has {', '.join(self.params)}" if self.params else "it has none"
                raise ValueError(f"activation '{self.name}' has no parameter '{name}'; {known}")
        return replace(self, params={**self.params, **values}) if values else self

    def apply(self, x: Floats) -> Floats:
        """phi(x) as fn computes it, unchecked, at the values of the parameters.

        Examples
        --------
        >>> import nngp
        >>> nngp.Activation(lambda x, w: w * x, params={"w": 2.0}).apply(3.0)
        6.0
        """
        return self.fn(x, **self.params)

    @classmethod
    def from_dual(
        cls, f: KernelMap, slope: KernelMap | None = None, name: str = ""
    ) -> "Activation":
        """Define a layer by its kernel map f(cov, var1, var2) = E[phi(u) phi(v)], without phi.

        Parameters
        ----------
        f : callable
            Maps the covariance of u and v and their variances to that of phi(u) and phi(v). It is
            called with NumPy arrays that broadcast, or with JAX arrays where a kernel is computed
            by JAX. It must be the kernel map of some function: a power series in the correlation
            with non-negative coefficients. Otherwise kernels are not positive definite.
        slope : callable, optional
            The derivative of f in cov, E[phi'(u) phi'(v)], with the same arguments. Gradients and
            the tangent kernel need it; with it kernels of nearly equal inputs are more accurate.
        name : str, optional
            Name in messages; that of f by default.

        Notes
        -----
        Derivatives in the variances are taken numerically (about 1e-11). Networks of finite width
        cannot be drawn, and models cannot be saved: both need phi.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> rbf = nngp.Activation.from_dual(lambda cov, q1, q2: np.exp(cov - 0.5 * (q1 + q2)))
        >>> net = nngp.Architecture(1, rbf, weight_var=1.0, bias_var=0.0)
        >>> nngp.kernel(net, [[1.0, 1.0], [1.0, -1.0]]).round(6).tolist()
        [[1.0, 0.367879], [0.367879, 1.0]]
        """
        for what, given in (("f", f), ("slope", slope)):
            if not (callable(given) or (what == "slope" and given is None)):
                raise TypeError(
                    f"{what} must be a function of (cov, var1, var2), got {type(given).__name__}"
                )
        out = cls(KernelMapOnly(f, slope), name or getattr(f, "__name__", "kernel map"))
        return _known(out, ("dual", f, slope))

    @classmethod
    def scaled(
        cls,
        activation: "ActivationLike",
        a: float = 1.0,
        b: float = 1.0,
        c: float = 0.0,
        d: float = 0.0,
    ) -> "Activation":
        """The activation a φ(b x + c) + d of another one, φ.

        Its kernel is a closed form wherever that of φ is, at any a and b. A shift c keeps the
        closed form of sin, cos, gaussian, exp and polynomials, an offset d that of odd functions
        (erf, sin, sign) and polynomials; other shifts and offsets are integrated numerically.

        Examples
        --------
        >>> import nngp
        >>> steep = nngp.Activation.scaled("erf", b=30.0)
        >>> round(float(nngp.curves.layer_covariance(steep, 1.0, 1.0, 0.5)), 6)
        0.333129
        """
        numbers = tuple(float(x) for x in (a, b, c, d))
        if not np.isfinite(numbers).all():
            raise ValueError(f"a, b, c and d of a scaled activation must be finite, got {numbers}")
        return _scaled(as_activation(activation), *numbers)

    @classmethod
    def polynomial(cls, coefficients: Sequence[float]) -> "Activation":
        """The activation Σ coefficients[k] x^k, with its closed form.

        Examples
        --------
        >>> import nngp
        >>> quartic = nngp.Activation.polynomial([0, 0, 0, 0, 1])
        >>> round(float(nngp.curves.layer_covariance(quartic, 1.0, 1.0, 1.0)), 9)
        105.0
        """
        numbers = np.atleast_1d(np.asarray(coefficients, dtype=float))
        if numbers.ndim != 1 or not len(numbers) or not np.isfinite(numbers).all():
            raise ValueError("the coefficients of a polynomial must be a list of finite numbers")
        if len(numbers) > 1 + MOST_POWER:
            raise ValueError(f"a polynomial has a degree of at most {MOST_POWER} here")
        return _polynomial(tuple(numbers.tolist()))

    @classmethod
    def rbf(cls, gamma: float = 1.0) -> "Activation":
        """The activation sqrt(2) sin(sqrt(2 gamma) x + π/4), whose kernel is exp(-gamma E[(u-v)²]).

        Examples
        --------
        >>> import nngp
        >>> round(float(nngp.curves.layer_covariance(nngp.Activation.rbf(0.5), 1.0, 1.0, 0.5)), 6)
        0.606531
        """
        if not gamma > 0:
            raise ValueError(f"gamma must be positive, got {gamma}")
        return cls.scaled("sin", a=np.sqrt(2.0), b=np.sqrt(2.0 * gamma), c=0.25 * np.pi)

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
            out = _in_double_precision(self, x) if _returns_jax(self) else self.apply(x)
            if np.iscomplexobj(out):
                raise TypeError("it returned complex numbers")
            return np.asarray(out, dtype=np.float64)
        except (TypeError, ValueError, AttributeError) as cause:
            raise ActivationError(
                f"activation '{self.name}' failed on a float64 array ({cause}); it must take an "
                "array and return a real array of the same shape"
            ) from cause


class FrozenDict(dict[str, float]):
    """A dictionary that is never changed, so that it has a hash."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))

    def __setitem__(self, name: str, value: float) -> None:
        raise TypeError("the parameters of an activation are fixed; use with_params")


def _as_params(params: Mapping[str, float]) -> FrozenDict:
    try:
        out = FrozenDict({name: float(value) for name, value in params.items()})
    except (TypeError, ValueError, AttributeError):
        raise TypeError(
            f"params must be a dictionary of names and numbers, got {params!r}"
        ) from None
    for name, value in out.items():
        if not isinstance(name, str) or not name.isidentifier() or name in RESERVED:
            raise ValueError(
                f"{name!r} cannot be the name of a parameter; take a Python name that is not one "
                f"of {', '.join(RESERVED)}"
            )
        if not np.isfinite(value):
            raise ValueError(f"the parameter '{name}' must be a finite number, got {value}")
    return out


def _as_points(kind: str, points: Iterable[float] | float) -> tuple[float, ...]:
    values = tuple(sorted({float(x) for x in np.atleast_1d(np.asarray(points, dtype=float))}))
    if not np.isfinite(values).all():
        raise ValueError(f"{kind} must be finite numbers, got {values}")
    return values


@lru_cache(maxsize=256)
def _returns_jax(phi: Activation) -> bool:
    """Whether a function returns JAX arrays for NumPy arrays."""
    return type(phi.apply(np.zeros(1))).__module__.split(".")[0] in ("jax", "jaxlib")


def _in_double_precision(phi: Activation, x: Array) -> Array:
    """Evaluate a JAX function in 64-bit mode, without which it would round to float32.

    JAX compiles every operation again for each new shape (tens of milliseconds each), so x is
    padded with zeros to a power of two: few shapes serve all calls.
    """
    import jax

    flat = np.ravel(x)
    size = max(LEAST_PADDED, 1 << max(flat.size - 1, 0).bit_length())
    with jax.enable_x64(True):
        out = np.asarray(phi.apply(jax.numpy.asarray(np.pad(flat, (0, size - flat.size)))))
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
    "identity": (lambda x: x, (), ("polynomial", (0.0, 1.0))),
    "square": (lambda x: x**2, (), ("polynomial", (0.0, 0.0, 1.0))),
    "cube": (lambda x: x**3, (), ("polynomial", (0.0, 0.0, 0.0, 1.0))),
    "relu": (lambda x: _rectified(x, 1), (0.0,), ("leaky_relu", 0.0, 1.0)),
    "relu2": (lambda x: _rectified(x, 2), (0.0,), ("rectified_power", 2)),
    "relu3": (lambda x: _rectified(x, 3), (0.0,), ("rectified_power", 3)),
    "abs": (lambda x: _namespace(x).abs(x), (0.0,), ("leaky_relu", -1.0, 1.0)),
    "step": (lambda x: _namespace(x).heaviside(x, 0.5), (0.0,), ("sign", 0.5, 0.5)),
    "sign": (lambda x: _namespace(x).sign(x), (0.0,), ("sign", 0.0, 1.0)),
    "erf": (lambda x: _special(x).erf(x), (), ("erf",)),
    "gelu": (lambda x: x * _special(x).ndtr(x), (), ("gelu",)),
    "sin": (lambda x: _namespace(x).sin(x), (), ("sin",)),
    "cos": (lambda x: _namespace(x).cos(x), (), ("cos",)),
    "gaussian": (lambda x: _namespace(x).exp(-(x**2)), (), ("gaussian",)),
    "exp": (lambda x: _namespace(x).exp(x), (), ("exp",)),
}


@cache  # without a limit: two of the same slopes are equal only if they are one
def two_slopes(below: float, above: float) -> Activation:
    """Leaky ReLU, of slope `below` where negative and `above` where positive."""

    def fn(x: Floats) -> Floats:
        return _namespace(x).where(x > 0, above * x, below * x)

    slopes = [below] if above == 1.0 else [below, above]
    name = f"leaky_relu({', '.join(f'{x:g}' for x in slopes)})"
    key = "leaky_relu", below, above
    return _known(Activation(fn, name, (0.0,)), key, ["leaky_relu", *slopes])


@cache
def leaky_step(below: float, above: float) -> Activation:
    """The derivative of leaky ReLU: `above` where positive, `below` where negative."""

    def fn(x: Floats) -> Floats:
        xp = _namespace(x)
        return 0.5 * (above + below) + 0.5 * (above - below) * xp.sign(x)

    name = f"leaky_step({below:g}, {above:g})"
    key = "sign", 0.5 * (above + below), 0.5 * (above - below)
    return _known(Activation(fn, name, (0.0,)), key)


@dataclass(frozen=True)
class Scaled:
    """The function a φ(b x + c) + d."""

    activation: Activation
    a: float
    b: float
    c: float
    d: float

    def __call__(self, x: Floats) -> Floats:
        return self.a * self.activation.apply(self.b * x + self.c) + self.d


def _scaled(phi: Activation, a: float, b: float, c: float, d: float) -> Activation:
    if phi.params:
        raise ValueError("the function of an activation with parameters must be scaled inside")
    if (a, b, c, d) == (1.0, 1.0, 0.0, 0.0):
        return phi
    if isinstance(phi.fn, KernelMapOnly):
        raise ValueError("a layer known by its kernel map cannot be scaled; scale the map itself")
    if isinstance(phi.fn, Scaled):
        own = phi.fn
        line = own.b * b, own.b * c + own.c
        return _scaled(own.activation, a * own.a, *line, a * own.d + d)
    if phi.closed_form is not None and phi.closed_form[0] == "polynomial":
        base = np.polynomial.Polynomial(phi.closed_form[1])
        shifted = a * base(np.polynomial.Polynomial([c, b])) + d
        return _polynomial(tuple(shifted.coef.tolist()))
    places = [(x - c) / b if b else np.inf for x in (*phi.kinks, *phi.features)]
    points = tuple(x for x in places if np.isfinite(x))
    kinks = points[: len(phi.kinks)] if b else ()
    shift = f" + {c:g}" if c else ""
    inner = f"{b:g}x{shift}" if b != 1.0 else f"x{shift}"
    name = f"{'' if a == 1 else f'{a:g} '}{phi.name}({inner}){f' + {d:g}' if d else ''}"
    out = Activation(Scaled(phi, a, b, c, d), name, kinks, points[len(phi.kinks) :])
    spec = None if phi.spec is None else ["scaled", phi.spec, a, b, c, d]
    return _known(out, _scaled_key(phi.closed_form, a, b, c, d), spec)


SHIFTED = ("sin", "cos", "gaussian", "exp")  # closed forms that a shift keeps
ODD = ("erf", "sin", "sign")  # activations whose mean is zero: an offset is a separate term


def _scaled_key(
    key: ClosedFormKey | None, a: float, b: float, c: float, d: float
) -> ClosedFormKey | None:
    """The key of a φ(b x + c) + d from that of φ; None if no closed form is known."""
    if key is None or b == 0.0 or (c and key[0] not in SHIFTED):
        return None
    if d and (key[0] not in ODD or (key[0] == "sign" and key[1]) or (key[0] == "sin" and c)):
        return None
    return "scaled", key, a, b, c, d


@cache
def _polynomial(coefficients: tuple[float, ...]) -> Activation:
    def fn(x: Floats) -> Floats:
        total = coefficients[-1] + 0.0 * x
        for coefficient in coefficients[-2::-1]:
            total = total * x + coefficient
        return total

    name = f"polynomial({', '.join(f'{x:g}' for x in coefficients)})"
    return _known(
        Activation(fn, name), ("polynomial", coefficients), ["polynomial", [*coefficients]]
    )


@dataclass(frozen=True)
class KernelMapOnly:
    """Stands for the function of an activation that is known by its kernel map."""

    dual: KernelMap
    slope: KernelMap | None

    def __call__(self, x: Floats) -> Floats:
        raise ActivationError(
            "this activation is known by its kernel map alone, so the function itself cannot be "
            "evaluated and no network of finite width drawn; give nngp.Activation the function"
        )


def _known(
    activation: Activation, closed_form: ClosedFormKey | None, spec: Spec | None = None
) -> Activation:
    """Give an activation the key of its closed form, and what it is written down as."""
    object.__setattr__(activation, "closed_form", closed_form)
    object.__setattr__(activation, "spec", spec)
    return activation


def _build() -> dict[str, Activation]:
    table = {
        name: _known(Activation(fn, name, kinks), key, name)
        for name, (fn, kinks, key) in (_NUMERIC | _CLOSED).items()
    }
    return table | {"leaky_relu": two_slopes(0.01, 1.0)}


ALIASES = {"linear": "identity", "swish": "silu", "heaviside": "step", "logistic": "sigmoid"}


def activation_names() -> tuple[str, ...]:
    """Names that `Architecture(activation=...)` accepts, in alphabetical order.

    Examples
    --------
    >>> import nngp
    >>> "relu" in nngp.activations.names()
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
    """Describe an activation by its name, or a constructor and its arguments, for `from_spec`."""
    if activation.spec is not None:
        return activation.spec
    if isinstance(activation.fn, KernelMapOnly):
        raise ValueError(
            f"activation '{activation.name}' is known by its kernel map, which cannot be written "
            "down; save the program that defines it"
        )
    raise ValueError(
        f"activation '{activation.name}' is a Python function, which cannot be written down; use "
        "one of nngp.activations.names()"
    )


def from_spec(spec: Spec) -> Activation:
    """Construct the activation that `spec_of` described. Raises ValueError for anything else."""
    if isinstance(spec, str):
        return as_activation(spec)
    if not isinstance(spec, list) or len(spec) < 2 or not isinstance(spec[0], str):
        raise ValueError(f"{spec!r} describes no activation")
    name, *arguments = spec
    if name == "scaled" and len(arguments) == 5:
        return Activation.scaled(from_spec(arguments[0]), *_numbers(spec, arguments[1:]))
    if name == "polynomial" and len(arguments) == 1 and isinstance(arguments[0], list):
        return Activation.polynomial(_numbers(spec, arguments[0]))
    if name == "leaky_relu" and len(arguments) <= 2:
        below, above = (*_numbers(spec, arguments), 1.0)[:2]
        return two_slopes(below, above)
    raise ValueError(f"{spec!r} describes no activation")


def _numbers(spec: Spec, values: list[Any]) -> list[float]:
    for value in values:
        if type(value) not in (int, float):
            raise ValueError(f"the activation {spec!r} needs finite numbers, got {value!r}")
    return values


_NAMED = _build()
