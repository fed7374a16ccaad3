"""Run the Python examples of the README, and compare what they print with what they promise.

    python scripts/readme_examples.py README.md

The blocks are one program, as a reader would type them. A line `print(...)  # text` promises that
text. Nothing but the package is needed, so an environment that has only the wheel can run this.
"""

import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

DATA = Path("docs", "data", "concrete.csv")  # that the examples read


def blocks(text: str) -> list[str]:
    """The Python blocks of a page."""
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def promises(code: str) -> list[str]:
    """The lines that a block says it prints."""
    return re.findall(r"print\(.*\)  # (.*)", code)


@contextmanager
def checkout(root: Path) -> Iterator[Path]:
    """A temporary folder as the working directory, with the data of a checkout."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, DATA)
        path.parent.mkdir(parents=True)
        shutil.copy(root / DATA, path)
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


def run(text: str) -> dict[str, Any]:
    """Run all blocks; returns their variables. Raises ValueError if one prints something else."""
    namespace: dict[str, Any] = {"__name__": "readme"}
    codes = blocks(text)
    if not codes:
        raise ValueError("there is no Python block")
    for number, code in enumerate(codes, 1):
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, f"block {number}", "exec"), namespace)
        lines = printed.getvalue().splitlines()
        if lines != promises(code):
            raise ValueError(f"block {number} promises {promises(code)} and prints {lines}")
    return namespace


if __name__ == "__main__":
    file = Path(sys.argv[1])
    page = file.read_text("utf-8")
    with checkout(file.resolve().parent):
        run(page)
    print(f"{len(blocks(page))} blocks of {file.name} print what they promise")
