"""The command `nngp`: tables in, predictions with their uncertainty out, no Python needed.

`app` declares the commands and `options` their command lines. `fit`, `predict` (with `evaluate` and
`inspect`), `networks` (`kernel` and `phase`) and `demo` do their work. These share `output`
(messages, tables, JSON, exit codes), `tables` and `delimited` (files, and text with separators),
`target` and `scores` (answers, and predictions compared with them), and `estimator_options`
(options as engines and parameters of an estimator, and the forecast of a fit).
"""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from nngp.terminal.app import app
    except ModuleNotFoundError as missing:
        print(
            f"the command line needs the package {missing.name}; install it with: "
            "pip install 'nngp[cli]'",
            file=sys.stderr,
        )
        sys.exit(4)  # as `output.RESOURCES`, which needs these packages itself
    app()
