"""Sweeps over networks on the data of a scope, one for each training size."""

from functools import cache

from nngp_paper.datasets import Split, split
from nngp_paper.engines import device_name
from nngp_paper.scope import Scope
from nngp_paper.sweep import Sweep

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
        return device_name(self.scope.engine, train)

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
            engine=self.scope.engine,
        )
