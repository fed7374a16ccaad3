"""Sweeps over networks on the data of a scope, one for each training size."""

from functools import cache
from importlib.util import find_spec

from nngp import Sweep
from nngp.linsolve import Engine, choose_engine
from nngp_paper.datasets import Split, split
from nngp_paper.scope import Scope

FEW = 3000  # training points whose kernels take longer to look up than to factor
MANY = 24_576  # training points: two such sweeps may not fit side by side


class Sweeps:
    """A sweep for each training size, made on first use and kept, as sizes take turns."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._known: dict[tuple[int, bool], Sweep] = {}
        self._data = cache(self._read)

    def of(self, train: int, relative_noise: bool = False) -> Sweep:
        """The sweep of a training size."""
        name = train, relative_noise
        if name not in self._known:
            if train > MANY:
                self._known.clear()
            self._known[name] = self._made(train, relative_noise)
        return self._known[name]

    def device(self, train: int) -> str:
        """The device of that sweep: cpu, or the kind of GPU."""
        engine = engine_for(self.scope, train)
        return str(getattr(getattr(engine, "device", None), "device_kind", engine.name))

    def close(self) -> None:
        """Release the data; they are read again if a sweep is needed."""
        self._known.clear()
        self._data.cache_clear()

    def _read(self) -> Split:
        """The split with the largest training set, which holds the others."""
        return split(self.scope.dataset, max(self.scope.sizes), data=self.scope.data)

    def _made(self, train: int, relative_noise: bool) -> Sweep:
        data = self._data().first(train)
        return Sweep(
            data.X,
            data.targets(data.labels),
            data.X_val,
            data.targets(data.labels_val),
            data.X_test,
            data.targets(data.labels_test),
            relative_noise=relative_noise,
            engine=engine_for(self.scope, train),
        )


def engine_for(scope: Scope, train: int) -> Engine:
    """The engine for a training size. Without a GPU, small sets are done by JAX on the CPU if it is
    installed: look-ups take longest there, and JAX compiles them into one loop."""
    engine = choose_engine(scope.engine, train)
    if engine.name == "gpu" or train > FEW or find_spec("jax") is None:
        return engine
    import jax

    from nngp.linsolve.engines.gpu import GpuEngine

    return GpuEngine(jax.devices("cpu")[0])
