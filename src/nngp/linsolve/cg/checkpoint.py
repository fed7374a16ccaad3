"""The state of conjugate gradients in a file, so that an interrupted solve goes on where it was.

One file for each problem in a folder, replaced as a whole every so many seconds and when the solve
is interrupted, and removed once it is done. It carries the key of its problem; one that is damaged
is passed over with a warning.
"""

import time
import warnings
from contextlib import suppress
from typing import Any

import numpy as np

from nngp._files import replaced, usable_folder
from nngp._tensors import open_tensors, write_tensors
from nngp.errors import CheckpointWarning
from nngp.linsolve.cg.gradients import CGState


class Checkpoint:
    """The file of one problem in `folder`, written every `every` seconds."""

    def __init__(self, folder: Any, key: str, every: float) -> None:
        self.path = usable_folder(folder, "checkpoint") / f"nngp-cg-{key[:12]}.safetensors"
        self.key, self.every = key, every
        self._last = time.monotonic()
        self._state: CGState | None = None

    def read(self, shape: tuple[int, int]) -> CGState | None:
        """The state that was written for this problem, if there is one."""
        if not self.path.exists():
            return None
        try:
            return self._read(shape)
        except (ValueError, OSError):
            pass
        warnings.warn(
            f"the checkpoint {self.path} is damaged, so the solve begins again and will replace it",
            CheckpointWarning,
            stacklevel=2,
        )
        return None

    def _read(self, shape: tuple[int, int]) -> CGState:
        """The state in the file. Raises ValueError if it is not one of this problem."""
        file = open_tensors(self.path)
        shapes = {"x": shape, "r": shape, "p": shape, "rz": shape[:1]}
        found = {name: array.shape for name, array in file.arrays.items()}
        if file.facts.get("key") != self.key or found != shapes:
            raise ValueError("it is that of another problem")
        x, r, p, rz = (np.array(file.arrays[name].read(), dtype=float) for name in shapes)
        if not all(np.isfinite(array).all() for array in (x, r, p, rz)):
            raise ValueError("it is not finite")
        return CGState(x, r, p, rz, int(file.facts.get("count", "")))

    def note(self, state: CGState) -> None:
        """Remember a state; write it down if the last one is old enough."""
        self._state = state
        if time.monotonic() - self._last < self.every:
            return
        try:
            self.write()
        except OSError as error:  # a full disk is no reason to give up what is in memory
            self.every = float("inf")
            warnings.warn(
                f"the checkpoint {self.path} cannot be written ({error}), and is not tried again",
                CheckpointWarning,
                stacklevel=2,
            )

    def write(self) -> None:
        """The state that was last noted."""
        state = self._state
        if state is None:
            return
        arrays = {"x": state.x, "r": state.r, "p": state.p, "rz": state.rz}
        with replaced(self.path) as part:
            write_tensors(part, {"key": self.key, "count": str(state.iteration)}, arrays)
        self._last = time.monotonic()

    def remove(self) -> None:
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
