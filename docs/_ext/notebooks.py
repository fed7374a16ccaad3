"""Tutorials as notebooks to download: each page of the folder `tutorials` has a link to one.

The source of a tutorial is a Python file with cells (jupytext's percent format). The notebook has
its code and text without outputs, and a first cell that says where the data are.
"""

from pathlib import Path
from typing import Any

import jupytext
import nbformat
from docutils import nodes
from sphinx.application import Sphinx

FOLDER = "tutorials"
DATA_NOTE = (
    "This notebook reads files of the folder `docs/data` of the nngp repository as `../data/...`; "
    "put it into `docs/tutorials`, or change the path."
)


def notebook_of(source: Path) -> Any:
    """The notebook of a tutorial, with a note about its data if it reads any."""
    notebook = jupytext.read(source, fmt="py:percent")
    if "../data/" in source.read_text("utf-8"):
        notebook.cells.insert(0, nbformat.v4.new_markdown_cell(DATA_NOTE, id="data-note"))
    return notebook


def write_notebooks(app: Sphinx, error: Exception | None) -> None:
    """Write all notebooks beside the pages, once these are built."""
    if error is not None or app.builder.name != "html":
        return
    target = Path(app.outdir, FOLDER)
    for source in sorted(Path(app.srcdir, FOLDER).glob("*.py")):
        target.mkdir(exist_ok=True)
        jupytext.write(notebook_of(source), target / f"{source.stem}.ipynb")


def link_notebook(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Put the link below the title of a tutorial."""
    folder, _, name = page.rpartition("/")
    if folder == FOLDER and name != "index" and "body" in context:
        link = (
            f'</h1><p class="download-notebook"><a href="{name}.ipynb" download>'
            "Download as a notebook</a></p>"
        )
        context["body"] = context["body"].replace("</h1>", link, 1)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", link_notebook)
    app.connect("build-finished", write_notebooks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
