"""Options of conjugate gradients."""

import os
from dataclasses import dataclass
from numbers import Real

from nngp._numbers import whole_number

PRECONDITIONERS = ("auto", "nystrom", "single")


@dataclass(frozen=True)
class CG:
    """Conjugate gradients in place of a Cholesky factor: `nngp.condition(..., solver=nngp.CG())`.

    Parameters
    ----------
    tolerance : float
        Of the residual of each right-hand side, relative to it; computed anew at the end, and an
        error if it is missed.
    preconditioner : {"auto", "nystrom", "single"}
        Some points stand for all (`rank` of them), or a Cholesky factor in float32, which takes
        half of the memory of the real one. "auto" takes what is likely to be faster, and points if
        `rank` says how many.
    rank : int, optional
        Points of the "nystrom" preconditioner; by default from a balance of the work they cost and
        save, and the memory there is. Less is taken if memory allows no more.
    max_iterations : int
    checkpoint : path, optional
        A folder where the state is kept, so that the same call goes on after an interruption. The
        file is removed when the solve is done.
    checkpoint_seconds : float
        How often it is written.
    seed : int
        Of the choice of points.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> net = nngp.Architecture(2, "erf", 4.0, 0.5)
    >>> found = nngp.condition(net, X, np.sin(3 * X[:, 0]), noise_var=1e-4, solver=nngp.CG(rank=20))
    >>> found.report.solver, found.report.residual <= 1e-8
    ('cg', True)
    """

    tolerance: float = 1e-8
    preconditioner: str = "auto"
    rank: int | None = None
    max_iterations: int = 1000
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_seconds: float = 60.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.tolerance, Real) or not 0 < self.tolerance < 1:
            raise ValueError(f"tolerance must lie between 0 and 1, got {self.tolerance!r}")
        if self.preconditioner not in PRECONDITIONERS:
            raise ValueError(
                f"preconditioner must be one of {', '.join(PRECONDITIONERS)}, "
                f"got {self.preconditioner!r}"
            )
        if self.preconditioner == "single" and self.rank is not None:
            raise ValueError("a rank is that of preconditioner='nystrom'; 'single' has none")
        for name, value in (("rank", self.rank), ("max_iterations", self.max_iterations)):
            if value is None and name == "rank":
                continue
            whole_number(name, value)
        if not isinstance(self.checkpoint_seconds, Real) or not self.checkpoint_seconds >= 0:
            raise ValueError(
                f"checkpoint_seconds must be a number of seconds, got {self.checkpoint_seconds!r}"
            )
        if not isinstance(self.checkpoint, str | os.PathLike | None) or self.checkpoint == "":
            raise ValueError(f"checkpoint must be the path of a folder, got {self.checkpoint!r}")
        whole_number("seed", self.seed, least=0)
        for name, kind in (("tolerance", float), ("checkpoint_seconds", float), ("rank", int),
                           ("max_iterations", int), ("seed", int)):  # fmt: skip
            if getattr(self, name) is not None:  # Python's own numbers, whatever was passed
                object.__setattr__(self, name, kind(getattr(self, name)))
