"""Stage 10, the command `nngp`: tables in, predictions with their doubt out, no Python needed.

`app` has the commands, `tables` reads and writes files, `columns` turns mixed columns into numbers
the way scikit-learn's transformers do, and `speech` is how the commands talk: to people on a
terminal, to programs as JSON.
"""

import sys


def main() -> None:
    """The entry point of the command line."""
    try:
        from nngp.terminal.app import app
    except ModuleNotFoundError as missing:
        sys.exit(
            f"the command line needs the package {missing.name}; install it with: "
            "pip install 'nngp[cli]'"
        )
    app()
