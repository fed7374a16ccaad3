"""The command `nngp-paper`: the paper's tables and figures, without Python.

`app` declares the commands and `options` their command lines. The work of a command is in a module
named like it (`gap` is in `finite`). These share `output` (messages, tables, JSON, exit codes),
`words` (of messages), `files` (where results go), `parsing` (options as values), and `request`
(what `reproduce` is to do).
"""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from nngp_paper.terminal.app import app
    except KeyboardInterrupt:
        print("error: interrupted; nothing was written", file=sys.stderr)
        sys.exit(130)  # as `output.INTERRUPTED`
    app()
