"""Versions of the packages that do the runs, and the commit of the code where it is known.

The commit is that of the checkout in which this package lies (its folder is
`reproduction/src/nngp_paper`). A copy without `.git`, on another machine, say, is told by the
variable NNGP_COMMIT. An installed package has its version and no commit.
"""

import os
import platform
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

PACKAGES = ("nngp", "numpy", "scipy", "sklearn", "jax", "jaxlib", "optax")
CODE = ("src", "reproduction/src")  # what may change between a commit and a run


def current_versions() -> dict[str, str]:
    """Versions of Python and of the packages that are loaded, and the commit."""
    loaded = {name: sys.modules[name] for name in PACKAGES if name in sys.modules}
    found = {name: str(module.__version__) for name, module in loaded.items()}
    commit = current_commit()
    known = {"python": platform.python_version(), **found}
    return known if commit is None else {**known, "commit": commit}


@lru_cache(maxsize=1)
def current_commit() -> str | None:
    """The commit of the code as it was at the first call in this process, with "-dirty" at its end
    if the code differed from it; None where it is not known."""
    told = os.environ.get("NNGP_COMMIT", "").strip()
    return told or commit_of(Path(__file__).parents[4])


def commit_of(folder: Path) -> str | None:
    """The commit of the checkout in this folder; None if there is none, or no git."""
    if not (folder / ".git").exists():
        return None
    try:
        head = _git(folder, "rev-parse", "HEAD")
        changed = _git(folder, "status", "--porcelain", "--untracked-files=normal", "--", *CODE)
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{head}-dirty" if changed else head


def _git(folder: Path, *words: str) -> str:
    command = ["git", "--no-optional-locks", "-C", str(folder), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()
