"""Many networks over one data set: the inner products are computed once.

Then a network costs one look-up and one factorisation, in buffers that are used again. This is
what the paper's grids over depth, weight and bias variance are made of (sec. 3, appendix D).
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import groupby

from numpy.typing import ArrayLike

from nngp._machine import single_threaded_blas
from nngp.architecture import Network
from nngp.covariance import LookupTable
from nngp.gram import Inputs, check_network, common_var
from nngp.linsolve import Engine
from nngp.posterior.noise import as_noise
from nngp.posterior.resources import find_engine, kernels_of
from nngp.posterior.sweep_in_tiles import TiledSweep
from nngp.posterior.sweep_scores import LabelledInputs, SweepData, SweepMethod, SweepResult
from nngp.posterior.targets import as_targets


class Sweep:
    """Validation scores of many networks on one data set.

    Parameters
    ----------
    X, Y : array_like, (n, d) and (n,) or (n, outputs)
    X_val, Y_val : array_like
        Where the scores are taken.
    X_test, Y_test : array_like, optional
        Where scores are taken as well.
    noise_var, relative_noise
        As in `nngp.condition`: the start of the ladder.
    engine, memory
        As in `nngp.condition`.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> X = np.linspace(-1, 1, 30)[:, None]
    >>> sweep = nngp.Sweep(X[::2], np.sin(X[::2, 0]), X[1::2], np.sin(X[1::2, 0]))
    >>> nets = [nngp.Architecture(depth, "erf") for depth in (1, 2, 3)]
    >>> all(result.mse < 1e-3 for result in sweep.run(nets))
    True
    """

    def __init__(
        self,
        X: ArrayLike,
        Y: ArrayLike,
        X_val: ArrayLike,
        Y_val: ArrayLike,
        X_test: ArrayLike | None = None,
        Y_test: ArrayLike | None = None,
        *,
        noise_var: float = 1e-10,
        relative_noise: bool = False,
        engine: str | Engine = "auto",
        memory: int | None = None,
    ) -> None:
        if (X_test is None) != (Y_test is None):
            raise ValueError("X_test and Y_test go together; give both or neither")
        if not kernels_of(engine).is_local:
            raise TypeError(
                "a sweep computes on one machine; use engine='auto', and on a cluster one sweep "
                "for each of several parts of the networks"
            )
        inputs = Inputs.kept(X)
        train = LabelledInputs(inputs, as_targets(Y, len(inputs))[0])
        scored = [_labelled(X_val, Y_val, "val", train)]
        if X_test is not None and Y_test is not None:
            scored.append(_labelled(X_test, Y_test, "test", train))
        others = sum(len(points.inputs) for points in scored)
        chosen, expected = find_engine(
            engine,
            inputs,
            train.targets.shape[1],
            memory,
            beside=lambda n: tiled_bytes(n, others),
        )
        data = SweepData(chosen, train, scored, as_noise(noise_var), relative_noise)
        self._data, self._in_one_piece = data, _in_one_piece(data, expected.available)

    @cached_property
    def _in_tiles(self) -> TiledSweep:
        return TiledSweep(self._data)

    @single_threaded_blas()
    def run(
        self, architectures: Iterable[Network], *, table: LookupTable | None = None
    ) -> Iterator[SweepResult]:
        """The results, one network after the other, as they come. On a GPU, data up to some ten
        thousand points have a few networks in hand before the first result is given.

        With `table`, kernels are taken from this table of the paper's instead of being computed
        exactly; the networks have its activation, and all inputs share one norm.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = np.linspace(-1, 1, 30)[:, None]
        >>> y = np.sin(X[:, 0])
        >>> sweep = nngp.Sweep(X[::2], y[::2], X[1::2], y[1::2], noise_var=1e-6)
        >>> nets = [nngp.Architecture(2, "erf", weight_var) for weight_var in (0.5, 1.0, 2.0)]
        >>> [round(result.log_evidence) for result in sweep.run(nets)]
        [54, 51, 38]
        """
        if isinstance(architectures, Network):
            raise TypeError("run takes many networks; pass [architecture] for one")
        self._data.train.inputs.check_unchanged()
        nets = _checked(architectures)
        if table is not None or self._in_one_piece is None:
            yield from self._in_tiles.run(nets, table)
            return
        for in_tiles, some in groupby(nets, key=_needs_tiles):
            method = self._in_tiles if in_tiles else self._in_one_piece
            yield from method.run(some)


def _needs_tiles(network: Network) -> bool:
    """Behind dropout equal inputs differ from one input with itself, and an average over
    transformations has products of its own: one square of gaps knows neither."""
    return network.has_masks or network.base is not network


def _checked(architectures: Iterable[Network]) -> Iterator[Network]:
    for architecture in architectures:
        check_network(architecture)
        yield architecture


def _labelled(X: ArrayLike, Y: ArrayLike, name: str, train: LabelledInputs) -> LabelledInputs:
    inputs = Inputs.kept(X, f"X_{name}")
    features = train.inputs.X.shape[1]
    if features != inputs.X.shape[1]:
        raise ValueError(f"X has {features} features and X_{name} {inputs.X.shape[1]}")
    targets, _ = as_targets(Y, len(inputs), f"Y_{name}")
    if train.targets.shape[1] != targets.shape[1]:
        raise ValueError(f"Y and Y_{name} must have the same number of outputs")
    return LabelledInputs(inputs, targets)


def tiled_bytes(n: int, others: int) -> int:
    """Cosines that a sweep in tiles holds beside a factor: n training points, and others."""
    return 4 * n * (n + 2 * others)


def one_piece_bytes(n: int, others: int) -> int:
    """All that a sweep in one piece holds: gaps, kernels, and the factor with its copies."""
    return 8 * (5 * n * n + 3 * n * others)


def sweep_bytes(engine: Engine, n: int, others: int) -> int:
    """Bytes that a sweep over inputs of one norm holds beside one factor in tiles."""
    return (one_piece_bytes if n <= engine.largest_whole_matrix else tiled_bytes)(n, others)


def _in_one_piece(data: SweepData, available: int | None) -> SweepMethod | None:
    """One program for some networks, where norms are equal and a device has room for the square."""
    n, others = len(data.train.inputs), [points.inputs for points in data.scored]
    input_var = common_var(data.train.inputs, *others)
    if n > data.engine.largest_whole_matrix or input_var is None:
        return None
    if available is not None and one_piece_bytes(n, sum(map(len, others))) > available:
        return None
    from nngp.posterior.sweep_in_one_piece import OnePieceSweep  # needs JAX

    sweep = OnePieceSweep(data, input_var)
    return sweep if sweep.suits else None
