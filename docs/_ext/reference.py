"""Pages of the reference: how docstrings are set.

Attributes in a docstring are a list, not entries of their own: those that are properties have an
entry already. A signature that is wider than the page has one parameter a line. |x| in a docstring
is an absolute value, not a name for something else. Quotes stay straight: most are around values,
which readers copy.
"""

import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

LITERAL = re.compile(r"``.*?``|`.*?`")


def set_docstrings(app: Sphinx, config: Config) -> None:
    config.napoleon_custom_sections = [("Attributes", "params_style")]
    config.maximum_signature_line_length = 80
    config.smartquotes = False


def keep_bars(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Escape the bars of absolute values, in prose only."""
    for i, line in enumerate(lines):
        if "|" in line and not line.lstrip().startswith((">>>", "...")):
            prose, quoted = LITERAL.split(line), LITERAL.findall(line)
            parts = [part.replace("|", r"\|") for part in prose]
            lines[i] = "".join(a + b for a, b in zip(parts, [*quoted, ""], strict=True))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("config-inited", set_docstrings)
    app.connect("autodoc-process-docstring", keep_bars)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
