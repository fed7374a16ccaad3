"""A layer that its user defines by its kernel map f(cov, var1, var2) = E[phi(u) phi(v)].

Nothing but f and, if given, its derivative in cov is known. So

- derivatives in the variances come from an interpolant in log q, in which every such f is analytic
  at fixed correlation;
- deficits F(1) - F(1 - m) would cancel near correlation 1. Given the slope F' they are integrals of
  it, of positive terms: q ∫_0^m F'(1 - x) dx. They are sampled at m that are not tiny and
  interpolated in sqrt(m), as `fitted_layer` does. Without a slope the samples are differences.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np

from nngp import _chebyshev
from nngp._arrays import EPS, TINY, Array, Floats, Mask, Namespace
from nngp._chebyshev import Piecewise
from nngp.architecture.activation import KernelMap
from nngp.covariance.fitted_layer import by_sign
from nngp.covariance.form import ClosedForm, Parity, scale
from nngp.covariance.hermite import plain_gauss
from nngp.errors import ActivationError

HALF_WIDTH, POINTS = 0.35, 16  # of the interpolant in log q: errors near 1e-14
PANELS = (1, 2, 4, 8, 16, 32, 64)  # of the integral of the slope, tried in turn
CONVERGED = 4e-15  # relative change from one to the next
TOLERANCE, NARROWEST = 1e-13, 1 / 64  # of deficits; narrower panels would resolve rounding
TERMS = 16  # of the polynomial for differences
PROBES = np.array([0.15, 0.4, 0.75])


def kernel_map_form(f: KernelMap, slope: KernelMap | None) -> ClosedForm:
    """The expectations of a kernel map."""
    value_of, slope_of = _checked(f), None if slope is None else _checked(slope)
    if slope_of is not None:
        _check_slope(f, value_of, slope_of)

    def covariance(xp: Namespace, q1: Floats, q2: Floats, c: Floats) -> Floats:
        return c * xp.where(q1 == q2, q1, scale(xp, q1, q2))  # exactly q at correlation 1

    def value(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        return value_of(xp, covariance(xp, q1, q2, c), q1, q2)

    def slope_value(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        if slope_of is None:
            raise without_slope(_name(f))
        return slope_of(xp, covariance(xp, q1, q2, c), q1, q2)

    def radial(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        return 2 * _log_derivative(lambda t: value(xp, q1 * t, q2, c))

    def deficit(q: float, m: Array) -> Array:
        return kernel_map_layer(f, slope, float(q)).deficit(np.zeros(m.shape, bool), m)

    def deficit_in_var(q: float, m: Array) -> Array:
        return kernel_map_layer(f, slope, float(q)).deficit_in_var(np.zeros(m.shape, bool), m)

    return ClosedForm(value, slope_value, radial, deficit, deficit_in_var, loss=lambda var: 16.0)


def without_slope(name: str) -> ActivationError:
    """The error for what needs the slope of a kernel map that has none."""
    return ActivationError(
        f"activation '{name}' is known by its kernel map without its slope, which gradients and "
        "the tangent kernel need; pass slope to nngp.Activation.from_dual"
    )


def _name(f: KernelMap) -> str:
    return getattr(f, "__name__", "kernel map")


@cache
def _rule() -> tuple[Array, Array]:
    """Factors of q and weights whose sum is the derivative in log q."""
    t = _chebyshev.points(POINTS)
    basis = _chebyshev.coefficients(np.eye(POINTS))
    weights = _chebyshev.evaluate(_chebyshev.differentiate(basis), np.zeros(POINTS))
    return np.exp(HALF_WIDTH * t), weights / HALF_WIDTH


def _log_derivative(function: Callable[[float], Any]) -> Any:
    """d/dt of function(exp(t)) at t = 0."""
    factors, weights = _rule()
    return sum(
        weight * function(factor)
        for factor, weight in zip(factors.tolist(), weights.tolist(), strict=True)
    )


def _checked(f: KernelMap) -> Callable[[Namespace, Floats, Floats, Floats], Floats]:
    """A map that broadcasts and is checked, over NumPy in float64; over JAX it is called as is."""

    def called(xp: Namespace, *arguments: Floats) -> Floats:
        if xp is not np:
            return f(*arguments) + 0.0 * (arguments[1] + arguments[2])
        arrays = tuple(np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in arguments)))
        try:
            with np.errstate(all="ignore"):
                out = np.asarray(_in_float64(f, arrays), dtype=np.float64)
        except (TypeError, ValueError, AttributeError) as cause:
            raise ActivationError(
                f"kernel map '{_name(f)}' failed on float64 arrays ({cause}); it must take cov, "
                "var1 and var2 and return an array of their shape"
            ) from cause
        if out.shape != arrays[0].shape:
            raise ActivationError(
                f"kernel map '{_name(f)}' turned arrays of shape {arrays[0].shape} into one of "
                f"shape {out.shape}; it must return a number for each pair"
            )
        if np.isnan(out).any():
            at = [float(a.ravel()[int(np.argmax(np.isnan(out).ravel()))]) for a in arrays]
            raise ActivationError(
                f"kernel map '{_name(f)}' returned NaN at cov={at[0]:.6g}, var1={at[1]:.6g}, "
                f"var2={at[2]:.6g}; clip cov / sqrt(var1 var2) to [-1, 1], and mind variances of 0"
            )
        return out

    return called


def _in_float64(f: KernelMap, arrays: tuple[Array, ...]) -> Any:
    if not _returns_jax(f):
        return f(*arrays)
    import jax

    with jax.enable_x64(True):
        return np.asarray(f(*(jax.numpy.asarray(a) for a in arrays)))


@lru_cache(maxsize=256)
def _returns_jax(f: KernelMap) -> bool:
    found = f(*(np.array([x]) for x in (0.5, 1.0, 1.0)))
    return type(found).__module__.split(".")[0] in ("jax", "jaxlib")


def _check_slope(f: KernelMap, value: Any, slope: Any) -> None:
    """Raise ActivationError unless slope is the derivative of f in cov at a few places."""
    c, one = np.concatenate([-PROBES, PROBES]), np.ones(2 * len(PROBES))
    found = _log_derivative(lambda t: value(np, c + 0.5 * np.log(t), one, one)) / 0.5
    given = slope(np, c, one, one)
    if np.abs(found - given).max() > 1e-4 * np.abs(found).max():
        at = int(np.argmax(np.abs(found - given)))
        raise ActivationError(
            f"slope of kernel map '{_name(f)}' is not its derivative in cov: at cov={c[at]:.3g}, "
            f"var1=var2=1 it is {given[at]:.6g}, and the derivative {found[at]:.6g}"
        )


@lru_cache(maxsize=512)
def kernel_map_layer(f: KernelMap, slope: KernelMap | None, var: float) -> "KernelMapLayer":
    """The layer of a kernel map at variance `var`; the last 512 are cached."""
    return KernelMapLayer(f, slope, var)


@dataclass(frozen=True)
class KernelMapLayer:
    """A kernel map at one variance: the `Layer` that curves are made of."""

    f: KernelMap
    slope_map: KernelMap | None
    var: float

    def _value(self, c: Array, var: float | None = None) -> Array:
        q = self.var if var is None else var
        out: Array = _checked(self.f)(np, c * q, q, q)
        return out

    @cached_property
    def second_moment(self) -> float:
        return float(self._value(np.ones(())))

    @cached_property
    def radial_moment(self) -> float:
        return float(_log_derivative(lambda t: self._value(np.ones(()), self.var * t)))

    @cached_property
    def parity(self) -> Parity:
        plus, minus, size = self._value(PROBES), self._value(-PROBES), 16 * EPS * self.second_moment
        if np.abs(plus + minus).max() <= size:
            return "odd"
        return "even" if np.abs(plus - minus).max() <= size else "none"

    @cached_property
    def stretch(self) -> float:
        spread = lambda t: np.diff(self._value(np.arange(2.0), self.var * t))  # noqa: E731
        return float((_log_derivative(spread) / np.maximum(spread(1.0), TINY))[0])

    @cached_property
    def _order(self) -> int:
        """The power of sqrt(m) that the deficit starts with: 1 where phi jumps, otherwise 2."""
        near, further = self.second_moment - self._value(1 - np.array([1e-6, 4e-6]))
        return 1 if further < 3 * near else 2

    @cached_property
    def _fit(self) -> tuple[Piecewise, float]:
        """The deficit over sqrt(m)^order as a function of sqrt(m), and its relative error."""
        if self.slope_map is not None and self._order == 2:  # otherwise it is infinite at m = 0
            return _chebyshev.fit(self._integrated, 0.0, 1.0, tol=TOLERANCE, narrowest=NARROWEST)
        sample, noise = self._divided()
        fitted, error = _chebyshev.fit(
            sample, 0.0, 1.0, tol=max(TOLERANCE, noise), narrowest=NARROWEST
        )
        return fitted, error + noise

    def _differences(self, root: Array) -> Array:
        return self.second_moment - self._value(1 - root**2)

    def _divided(self) -> tuple[Callable[[Array], Array], float]:
        """Differences over sqrt(m)^order, and the relative noise. Where m is small they have few
        digits, so there the quotient is a polynomial, by least squares on the interval that leaves
        the least noise at 0."""
        _, width, coefs, noise = min(
            (self._least_squares(width) for width in (1.0, 0.5, 0.25, 0.125)),
            key=lambda found: found[0],
        )

        def quotient(root: Array) -> Array:
            near = np.polynomial.chebyshev.chebval(2 * root / width - 1, coefs)
            far = self._differences(root) / root**self._order
            return np.where(root < 0.75 * width, near, far)

        return quotient, noise

    def _least_squares(self, width: float) -> tuple[float, float, Array, float]:
        """The noise, the width, the polynomial on sqrt(m) <= width and its relative noise at 0."""
        t = _chebyshev.points(2 * TERMS)
        root = 0.5 * width * (1 + t)
        powers = np.polynomial.chebyshev.chebvander(t, TERMS - 1)
        inverse = np.linalg.pinv(powers * root[:, None] ** self._order)
        wanted = self._differences(root)
        coefs = inverse @ wanted
        rest = np.abs(powers @ coefs * root**self._order - wanted).max()
        first = (-1.0) ** np.arange(TERMS)  # the polynomials at sqrt(m) = 0
        noise = float(np.linalg.norm(first @ inverse) * max(rest, EPS * self.second_moment))
        return noise, width, coefs, noise / max(abs(float(first @ coefs)), TINY)

    def _integrated(self, root: Array) -> Array:
        """q ∫_0^m F'(1 - x) dx / m, as an integral over sqrt(x/m)."""
        slope, q = _checked(self.slope_map), self.var  # type: ignore[arg-type]
        left, size = np.arange(len(root)), np.zeros_like(root)
        for panels in PANELS:
            t, weight = plain_gauss(np.linspace(0.0, 1.0, panels + 1))
            inner = slope(np, q * (1 - (root[left, None] * t) ** 2), q, q)
            found = (inner * (2 * t * weight)).sum(axis=1)
            change, size[left] = np.abs(found - size[left]), found
            left = left[change > CONVERGED * np.abs(found)]
            if not len(left):
                break
        return q * size

    @property
    def error(self) -> float:
        return self._fit[1] + 16 * EPS

    @property
    def surplus_error(self) -> float:
        even = max(float(self.surplus(np.zeros(1))[0]), EPS**2 * self.second_moment, TINY)
        return self.error + 4 * EPS * self.second_moment / even

    def deficit(self, negative: Mask, m: Array) -> Array:
        def near(m: Array) -> Array:
            return self._fit[0](np.sqrt(m)) * np.sqrt(m) ** self._order

        return by_sign(negative, m, near, lambda m: self.second_moment - self._value(m - 1))

    def surplus(self, m: Array) -> Array:
        return self.second_moment + self._value(m - 1)

    def slope(self, negative: Mask, m: Array) -> Array:
        if self.slope_map is None:
            raise without_slope(_name(self.f))
        least = EPS if self._order == 1 else 0.0  # where phi jumps it is infinite at ±1
        c = np.where(negative, m - 1, 1 - m).clip(least - 1, 1 - least)
        out: Array = _checked(self.slope_map)(np, c * self.var, self.var, self.var)
        return out

    def deficit_in_var(self, negative: Mask, m: Array) -> Array:
        def at(t: float) -> Array:
            layer = kernel_map_layer(self.f, self.slope_map, self.var * t)
            return layer.deficit(negative, m)

        return np.asarray(_log_derivative(at) / self.var)
