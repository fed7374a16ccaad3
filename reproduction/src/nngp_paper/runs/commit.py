"""The commit of the code that does the runs, where it is known.

It is that of the checkout in which this package lies (its folder is `reproduction/src/nngp_paper`).
A copy without `.git`, on another machine, say, is told by the variable NNGP_COMMIT. An installed
package has its version and no commit.
"""

import os
import subprocess
from functools import lru_cache
from pathlib import Path

VARIABLE = "NNGP_COMMIT"
PATIENCE = 10.0  # seconds
CHANGED = "-dirty"  # as in `git describe`
CODE = ("src", "reproduction/src")
STATUS = ("status", "--porcelain=v2", "--branch", "--untracked-files=normal", "--", *CODE)


@lru_cache(maxsize=1)
def current_commit() -> str | None:
    """The commit of the code as it was at the first call in this process, with "-dirty" at its end
    if the code differed from it; None where it is not known."""
    told = os.environ.get(VARIABLE, "").strip()
    return told or commit_of(Path(__file__).parents[4])


def commit_of(folder: Path) -> str | None:
    """The commit of the checkout in this folder; None if there is none, or no git."""
    if not (folder / ".git").exists():
        return None
    command = ["git", "--no-optional-locks", "-C", str(folder), *STATUS]
    try:
        said = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=True, errors="replace"
        ).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return None
    ids = [line.removeprefix("# branch.oid ") for line in said if line.startswith("# branch.oid ")]
    if not ids or not ids[0].isalnum():  # "(initial)" where nothing was committed yet
        return None
    changed = any(not line.startswith("#") for line in said)
    return ids[0] + CHANGED * changed
