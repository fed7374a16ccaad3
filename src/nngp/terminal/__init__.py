"""The command `nngp`: tables in, predictions with their uncertainty out, no Python needed.

`app` declares the commands and `options` their command lines. The work of a command is in a module
named like it (`evaluate` and `inspect` are in `predict`). These share `output` (messages, tables,
JSON, exit codes), `words` (of messages), `forecast` (of a fit), `tables` and `delimited` (files,
and text with separators), `target` and `scores` (answers, and predictions compared with them),
`rows` (their weights and noise), `summary` (what a fit found), `parsing`, `engines` and `handover`
(options as values, engines and parameters of an estimator).
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
