"""The kernel of equal-norm inputs as a function of their cosine, with its derivatives."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import TINY, Array, Mask
from nngp._numbers import as_reals
from nngp.architecture import Network
from nngp.curve import octaves
from nngp.curve.deficits import after, output_state, propagate
from nngp.curve.limit import in_proportion
from nngp.curve.octaves import Octaves, Profile


class AngularCurve:
    """The kernel of a network as a function of the cosine between two inputs.

    Attributes
    ----------
    variance : float
        K^L(x, x), the value at cosine 1.
    scale : float
        K^L(1) - K^L(0), the part of the variance that depends on the input.
    offset : float
        K^L(0) / scale, the part that all inputs share relative to the other. Infinite at infinite
        depth, where the curve is the limit of (K^L - K^L(0)) / scale.
    error : float
        Largest error of the curve relative to `variance`, measured at points between the
        nodes, plus the rounding of the recursion.
    deficit_error : float
        Largest error of a deficit relative to itself (for cosines below 0, to `scale`).
    network, input_var
        The arguments of `compile_curve`.

    Examples
    --------
    >>> import nngp
    >>> curve = nngp.curves.compile_curve(nngp.Architecture(10, "relu", 1.6, 0.1))
    >>> bool(curve(1.0) == curve.variance), bool(curve.error < 1e-12)
    (True, True)
    """

    def __init__(
        self,
        network: Network,
        input_var: float,
        variance: float,
        deficits: Octaves,
        error: float,
        deficit_error: float,
        offset: float | None = None,
        layers: int | None = None,
    ) -> None:
        self.network, self.input_var = network, input_var
        self.variance, self.error, self.deficit_error = variance, error, deficit_error
        self.profile = Profile(variance, deficits)
        self.scale = float(deficits(np.array(False), np.array(1.0)))
        shared = max(variance - self.scale, 0.0)
        self.offset = offset if offset is not None else shared / max(self.scale, TINY)
        self._layers = layers  # that were composed, at infinite depth

    @property
    def jump(self) -> float:
        """K(x, x) less the covariance of two inputs that are equal: positive behind dropout."""
        return self.profile.deficit.ends[0]

    def __call__(
        self, corr: ArrayLike | None = None, *, one_minus: ArrayLike | None = None
    ) -> Array:
        """K^L at cosines `corr`, or at 1 - `one_minus`, which is exact near 1."""
        return self.variance - self.deficit(corr, one_minus=one_minus)

    def deficit(
        self, corr: ArrayLike | None = None, *, one_minus: ArrayLike | None = None
    ) -> Array:
        """K^L(1) - K^L(c), to relative precision for c >= 0.

        Examples
        --------
        >>> import nngp
        >>> curve = nngp.curves.compile_curve(nngp.Architecture(3, "tanh", 1.2, 0.1))
        >>> nearby = curve.deficit(one_minus=1e-20)  # the cosine itself would round to 1
        >>> bool(0 < nearby < 1e-19), float(curve.variance - curve(1 - 1e-20))
        (True, 0.0)
        """
        return self.profile.deficit(*_signed(corr, one_minus))

    def derivative(
        self, corr: ArrayLike | None = None, *, one_minus: ArrayLike | None = None
    ) -> Array:
        """dK^L/dc.

        Examples
        --------
        >>> import nngp
        >>> curve = nngp.curves.compile_curve(nngp.Architecture(0, weight_var=2.0))  # 2 c
        >>> round(float(curve.derivative(0.3)), 12)
        2.0
        """
        return self.slope(*_signed(corr, one_minus))

    @property
    def slope(self) -> Octaves:
        """dK^L/dc as a function of the sign of c and 1 - |c|."""
        return self._shared.slope

    def sensitivity(
        self,
        corr: ArrayLike | None = None,
        *,
        one_minus: ArrayLike | None = None,
        per_layer: bool = False,
    ) -> dict[str, Array]:
        """dK^L/d weight_var and dK^L/d bias_var at the given cosines.

        With `per_layer` each has a leading axis of depth + 1, for the variances of each layer;
        otherwise all layers move together.

        Examples
        --------
        Of K(1) = weight_var² / 2 + bias_var (1 + weight_var / 2):

        >>> import nngp
        >>> curve = nngp.curves.compile_curve(nngp.Architecture(1, "relu", 2.0, 0.0))
        >>> {name: round(float(slope), 6) for name, slope in curve.sensitivity(1.0).items()}
        {'weight_var': 2.0, 'bias_var': 2.0}
        """
        signed, out = _signed(corr, one_minus), {}
        for name, profiles in self.sensitivities(per_layer=per_layer).items():
            rows = [profile.at_signed(*signed) for profile in profiles]
            out[name] = np.stack(rows) if per_layer else rows[0]
        return out

    def sensitivities(self, *, per_layer: bool) -> dict[str, list[Profile]]:
        """The functions behind `sensitivity`, one for each parameter."""
        tables = self._per_layer if per_layer else self._shared
        return {"weight_var": tables.weight_var, "bias_var": tables.bias_var}

    @property
    def in_input_var(self) -> Profile:
        """dK^L/d(input_var) at a fixed cosine: of finite depth."""
        return self._shared.input_var

    @cached_property
    def _shared(self) -> "_TangentTables":
        return self._tangent_tables(per_layer=False)

    @cached_property
    def _per_layer(self) -> "_TangentTables":
        return self._tangent_tables(per_layer=True)

    def _tangent_tables(self, per_layer: bool) -> "_TangentTables":
        negative, m = octaves.nodes(self.profile.deficit.coefs.shape[1])
        negative, m = np.append(negative, False), np.append(m, 1.0)
        where = self.network, self.input_var, negative, m
        if self._layers is not None:
            if per_layer:
                _ = self.network.weight_vars  # raises ValueError
            state = after(propagate(*where, derivatives=True), self._layers)
            rates = in_proportion(state, self.offset)
        else:
            rates = output_state(*where, per_layer=per_layer).rates
        parameters = len(rates.variance) // 2
        functions = [
            Profile(float(at_one), octaves.from_values(row[:-1]))
            for at_one, row in zip(rates.variance, rates.deficit, strict=True)
        ]
        slope = octaves.from_values(rates.slope[:-1])
        weights, biases = functions[:parameters], functions[parameters:-1]
        return _TangentTables(slope, weights, biases, functions[-1])

    def __repr__(self) -> str:
        return (
            f"AngularCurve({self.network!r}, input_var={self.input_var:g}, "
            f"variance={self.variance:.6g}, error={self.error:.1e})"
        )


class _TangentTables(NamedTuple):
    """dK/dc, and dK in each weight_var, in each bias_var and in the variance of the inputs."""

    slope: Octaves
    weight_var: list[Profile]
    bias_var: list[Profile]
    input_var: Profile


def _signed(corr: ArrayLike | None, one_minus: ArrayLike | None) -> tuple[Mask, Array]:
    """The sign of the correlation and 1 - |c|, from the cosine or from one minus it."""
    if (corr is None) == (one_minus is None):
        raise ValueError("give either the cosines or one_minus=, not both")
    if corr is not None:
        c = as_reals(corr, "corr")
        if not np.all(np.abs(c) <= 1 + 1e-9):
            raise ValueError("cosines must lie in [-1, 1] and not be NaN")
        return c < 0, np.maximum(1 - np.abs(c), 0.0)
    assert one_minus is not None
    e = as_reals(one_minus, "one_minus")
    if not np.all((e >= -1e-9) & (e <= 2 + 1e-9)):
        raise ValueError("one_minus must lie in [0, 2] and not be NaN")
    return e > 1, np.clip(np.where(e > 1, 2 - e, e), 0.0, 1.0)
