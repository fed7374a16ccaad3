"""Many networks over one data set: the inner products are computed once.

Then a network costs one look-up and one factorisation, in buffers that are used again. This is
what the paper's grids over depth, weight and bias variance are made of (sec. 3, appendix D).
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from nngp.architecture import Architecture
from nngp.covariance import LookupTable
from nngp.gram import Inputs, check_architecture
from nngp.gram.inputs import common_var
from nngp.linsolve import Engine
from nngp.posterior.resources import find_engine
from nngp.posterior.sweep_result import Points, SweepResult
from nngp.posterior.sweep_tiled import TiledSweep
from nngp.posterior.targets import as_noise, as_targets

if TYPE_CHECKING:
    from nngp.posterior.sweep_queued import QueuedSweep


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
        if not isinstance(engine, str) and engine.where == "cluster":
            raise TypeError(
                "a sweep computes on one machine; use engine='auto', and on a cluster one sweep "
                "for each of several parts of the networks"
            )
        inputs = Inputs.kept(X)
        points = Points(inputs, as_targets(Y, len(inputs))[0])
        asked = [_points(X_val, Y_val, "val", points)]
        if X_test is not None and Y_test is not None:
            asked.append(_points(X_test, Y_test, "test", points))
        m = sum(len(other.inputs) for other in asked)
        noise = as_noise(noise_var), relative_noise
        chosen, expected = find_engine(
            engine,
            inputs,
            points.targets.shape[1],
            memory,
            beside=lambda n: 4 * n * (n + 2 * m),  # the cosines
        )
        self._inputs = inputs
        self._queued = _queued(chosen, points, asked, noise, expected.available)
        self._parts = chosen, *points, asked, noise

    @cached_property
    def _tiled(self) -> TiledSweep:
        return TiledSweep(*self._parts)

    def run(
        self, architectures: Iterable[Architecture], *, table: LookupTable | None = None
    ) -> Iterator[SweepResult]:
        """The results, one network after the other, as they come. On a GPU, data up to some ten
        thousand points have a few networks in hand before the first result is given.

        With `table`, kernels are taken from this table of the paper's instead of being computed
        exactly; the networks have its activation, and all inputs share one norm.
        """
        if isinstance(architectures, Architecture):
            raise TypeError("run takes many networks; pass [architecture] for one")
        self._inputs.check_unchanged()
        nets = _checked(architectures)
        if table is not None or self._queued is None:
            yield from self._tiled.run(nets, table)
        else:
            yield from self._queued.run(nets)


def _checked(architectures: Iterable[Architecture]) -> Iterator[Architecture]:
    for architecture in architectures:
        check_architecture(architecture)
        yield architecture


def _points(X: ArrayLike, Y: ArrayLike, name: str, train: Points) -> Points:
    inputs = Inputs.kept(X, f"X_{name}")
    features = train.inputs.X.shape[1]
    if features != inputs.X.shape[1]:
        raise ValueError(f"X has {features} features and X_{name} {inputs.X.shape[1]}")
    targets, _ = as_targets(Y, len(inputs), f"Y_{name}")
    if train.targets.shape[1] != targets.shape[1]:
        raise ValueError(f"Y and Y_{name} must have the same number of outputs")
    return Points(inputs, targets)


def _queued(
    engine: Engine,
    train: Points,
    asked: Sequence[Points],
    noise: tuple[float, bool],
    available: int | None,
) -> "QueuedSweep | None":
    """One program a network, where norms are equal and a device has room for the square."""
    n, m = len(train.inputs), sum(len(other.inputs) for other in asked)
    input_var = common_var(train.inputs, *(other.inputs for other in asked))
    if n > engine.whole_size or input_var is None:
        return None
    from nngp.posterior.sweep_queued import QueuedSweep

    if available is not None and QueuedSweep.bytes(n, m) > available:
        return None
    sweep = QueuedSweep(engine, *train, asked, noise, input_var)
    return sweep if sweep.suits else None
