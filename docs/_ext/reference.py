"""Pages of the reference: how docstrings are set.

Attributes in a docstring are a list, not entries of their own: those that are properties have an
entry already. A signature that is wider than the page has one parameter a line. |x| in a docstring
is an absolute value, not a name for something else. Quotes stay straight: most are around values,
which readers copy. A sentence goes on after "eq. 5". Warnings are linked, as errors are; sizes such
as n, and words such as path, are not.
"""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.ext import autosummary

LITERAL = re.compile(r"``.*?``|`.*?`")
WARNING = re.compile(r"\*\*(\w+Warning)\*\*")
ABBREVIATIONS = ("eq.", "eqs.", "sec.", "app.")


def set_docstrings(app: Sphinx, config: Config) -> None:
    config.napoleon_custom_sections = [("Attributes", "params_style")]
    config.maximum_signature_line_length = 80
    config.smartquotes_action = "D"  # dashes only
    known = autosummary.WELL_KNOWN_ABBREVIATIONS
    autosummary.WELL_KNOWN_ABBREVIATIONS = (*known, *ABBREVIATIONS)  # type: ignore[assignment]


def mend(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Escape the bars of absolute values, in prose only, and link warnings."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            prose, quoted = LITERAL.split(line), LITERAL.findall(line)
            parts = [part.replace("|", r"\|") for part in prose]
            line = "".join(a + b for a, b in zip(parts, [*quoted, ""], strict=True))
            home = "nngp_paper.errors" if name.startswith("nngp_paper") else "nngp.errors"
            lines[i] = WARNING.sub(rf":py:exc:`~{home}.\1`", line)


def unlink_words(app: Sphinx, doctree: nodes.document) -> None:
    """Types of parameters are looked up by their last word, and so are the words around them."""
    for link in list(doctree.findall(addnodes.pending_xref)):
        target = link.get("reftarget", "")
        if link.get("refspecific") and re.fullmatch(r"[a-z_]+", target):
            link.replace_self(link.children)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("config-inited", set_docstrings)
    app.connect("autodoc-process-docstring", mend, priority=900)  # after napoleon
    app.connect("doctree-read", unlink_words)
    app.add_css_file("reference.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
