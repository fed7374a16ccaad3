"""The data of a scope on an engine, a sweep for each training size."""

from functools import cached_property

from nngp.linsolve import choose_engine
from nngp.posterior import Sweep
from nngp.reproduce.datasets import Split, split
from nngp.reproduce.scope import Scope

MANY = 24_576  # training points: two such sweeps may not fit side by side


class Sweeps:
    """Made when they are first asked for, and kept: strips of all sizes take turns."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._known: dict[int, Sweep] = {}

    def of(self, train: int) -> Sweep:
        """Of a training size."""
        if train not in self._known:
            if train > MANY:
                self.close()
            self._known[train] = self._made(train)
        return self._known[train]

    def device(self, train: int) -> str:
        """Where that sweep is: cpu, or what kind of GPU."""
        engine = choose_engine(self.scope.engine, train)
        return str(getattr(getattr(engine, "device", None), "device_kind", engine.name))

    def close(self) -> None:
        """Let go of the data."""
        self._known.clear()

    @cached_property
    def _all(self) -> Split:
        """With the largest training set, which holds the others."""
        return split(self.scope.dataset, max(self.scope.sizes), data=self.scope.data)

    def _made(self, train: int) -> Sweep:
        data = self._all.first(train)
        return Sweep(
            data.X,
            data.targets(data.labels),
            data.X_val,
            data.targets(data.labels_val),
            data.X_test,
            data.targets(data.labels_test),
            engine=self.scope.engine,
        )
