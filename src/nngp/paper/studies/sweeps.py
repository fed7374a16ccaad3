"""The data of a scope on an engine, a sweep for each training size."""

from functools import cache
from importlib.util import find_spec

from nngp.datasets import Split, split
from nngp.linsolve import Engine, choose_engine
from nngp.paper.scope import Scope
from nngp.posterior import Sweep

FEW = 3000  # training points whose kernels take longer to look up than to factor
MANY = 24_576  # training points: two such sweeps may not fit side by side


class Sweeps:
    """Made when they are first asked for, and kept: strips of all sizes take turns."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._known: dict[int, Sweep] = {}
        self._data = cache(self._read)

    def of(self, train: int) -> Sweep:
        """Of a training size."""
        if train not in self._known:
            if train > MANY:
                self._known.clear()
            self._known[train] = self._made(train)
        return self._known[train]

    def device(self, train: int) -> str:
        """Where that sweep is: cpu, or what kind of GPU."""
        engine = self._engine(train)
        return str(getattr(getattr(engine, "device", None), "device_kind", engine.name))

    def close(self) -> None:
        """Let go of the data; they are read again if more is asked for."""
        self._known.clear()
        self._data.cache_clear()

    def _read(self) -> Split:
        """With the largest training set, which holds the others."""
        return split(self.scope.dataset, max(self.scope.sizes), data=self.scope.data)

    def _made(self, train: int) -> Sweep:
        data = self._data().first(train)
        return Sweep(
            data.X,
            data.targets(data.labels),
            data.X_val,
            data.targets(data.labels_val),
            data.X_test,
            data.targets(data.labels_test),
            engine=self._engine(train),
        )

    def _engine(self, train: int) -> Engine:
        """Where there is no GPU, small sets are done by JAX on the CPU if it is installed: what
        takes long there are the look-ups, and JAX compiles them into one loop."""
        engine = choose_engine(self.scope.engine, train)
        if engine.name == "gpu" or train > FEW or find_spec("jax") is None:
            return engine
        import jax

        from nngp.linsolve.engines.gpu import GpuEngine

        return GpuEngine(jax.devices("cpu")[0])
