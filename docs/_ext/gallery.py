"""The directive `gallery`: a hidden toctree, shown as cards with a picture from each page.

The picture is the first that the page's code drew, or that of the cell tagged "thumbnail". The text
is the page's first paragraph.
"""

import posixpath
from html import escape
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.directives.other import TocTree
from sphinx.environment import BuildEnvironment


class GalleryNode(nodes.General, nodes.Element):
    """Where the cards go; it knows the pages."""


class Gallery(TocTree):
    def run(self) -> list[nodes.Node]:
        self.options["hidden"] = True
        tree = super().run()
        pages = [
            page
            for toctree in tree[0].findall(addnodes.toctree)
            for page in toctree["includefiles"]
        ]
        return [*tree, GalleryNode(pages=pages)]


def thumbnail(env: BuildEnvironment, page: str) -> str | None:
    """Name of the picture of a page, in the folder `_images` of the site."""
    doctree = env.get_doctree(page)
    cells = doctree.findall(nodes.container)
    tagged = [cell for cell in cells if "tag_thumbnail" in cell["classes"]]
    images = [image for part in (*tagged, doctree) for image in part.findall(nodes.image)]
    names = [env.images.get(image["uri"]) for image in images]
    return next((name[-1] for name in names if name), None)


def card(env: BuildEnvironment, page: str, link: str, root: str) -> str:
    title = env.titles[page].astext()
    doctree = env.get_doctree(page)
    paragraph = next(iter(doctree.findall(nodes.paragraph)), None)
    text = paragraph.astext() if paragraph is not None else ""
    picture = thumbnail(env, page)
    image = (
        f'<img loading="lazy" alt="" src="{escape(posixpath.join(root, "_images", picture))}">'
        if picture
        else ""
    )
    return (
        f'<a class="card" href="{escape(link)}"><div class="card-picture">{image}</div>'
        f"<strong>{escape(title)}</strong><p>{escape(text)}</p></a>"
    )


def resolve(app: Sphinx, doctree: nodes.document, page: str) -> None:
    for node in list(doctree.findall(GalleryNode)):
        links = [(target, app.builder.get_relative_uri(page, target)) for target in node["pages"]]
        root = "../" * page.count("/")
        cards = "\n".join(card(app.env, target, link, root) for target, link in links)
        node.replace_self(nodes.raw("", f'<div class="cards">\n{cards}\n</div>', format="html"))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_node(GalleryNode)
    app.add_directive("gallery", Gallery)
    app.connect("doctree-resolved", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
