"""Formulas as MathML, which browsers draw themselves: no script, nothing to load from elsewhere.

The converter is docutils' own. A formula that it cannot read is a warning, and so an error.
"""

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


def convert(node: nodes.Element, block: bool) -> str:
    try:
        return tex2mathml(node.astext(), as_block=block)
    except MathError as error:
        logger.warning("formula %r: %s", node.astext(), error, location=node)
        return node.astext()


def visit_inline(translator: Any, node: nodes.Element) -> None:
    translator.body.append(convert(node, block=False))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.Element) -> None:
    translator.body.append(f'<div class="math">{convert(node, block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
