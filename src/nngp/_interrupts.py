"""Ctrl-C while the command `nngp` is still being imported: one sentence instead of a traceback.

Python imports the package before any code of the command runs, and some packages turn an
interruption of their import into other errors. So in the process of the command, and nowhere else,
an interruption ends it at once; `raise_interrupts` gives it back to the command when work begins.
"""

import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130  # exit code


def _is_command() -> bool:
    name = sys.argv[0] if sys.argv else ""
    asked = sys.orig_argv[1:]
    module = name == "-m" and "-m" in asked and asked[asked.index("-m") + 1 :][:1] == ["nngp"]
    return module or os.path.splitext(os.path.basename(name))[0] == "nngp"


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"error: interrupted; nothing was written\n")
    os._exit(INTERRUPTED)


def raise_interrupts() -> None:
    """From now on an interruption is a KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _end)
