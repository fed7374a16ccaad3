"""Code on the site's pages is run by the build, so none of it is a block that nobody runs."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(
    path
    for path in DOCS.rglob("*.md")
    if not {"_build", "data"} & set(path.relative_to(DOCS).parts)
)
RUN_BY_TESTS = {"guides/cluster.md"}  # tests/cluster/test_deployment.py


def fences(text):
    """The first line of each block, from the outermost fence."""
    found, closing = [], None
    for line in text.splitlines():
        mark = re.match(r"\s*(`{3,}|:{3,})(.*)", line)
        if mark and closing is None:
            found.append(mark[2].strip())
            closing = mark[1]
        elif mark and mark[1] == closing and not mark[2].strip():
            closing = None
    return found


def test_fences_are_seen():
    text = "```python\nx\n```\n````{grid} 2\n```{card}\n```\n````\n```text\ny\n```"
    assert fences(text) == ["python", "{grid} 2", "text"]


def test_code_is_run_by_the_build():
    for page in PAGES:
        text = page.read_text("utf-8")
        kinds = fences(text)
        name = page.relative_to(DOCS).as_posix()
        if name not in RUN_BY_TESTS:
            assert not [kind for kind in kinds if re.match(r"(python|py|bash|sh|console)\b", kind)]
            assert not re.search(r"^ {4}(nngp|pip|make|\$|python|from|import) ", text, re.M)
        cells = any(kind.startswith("{code-cell}") for kind in kinds)
        assert cells == ("file_format: mystnb" in text)


def test_tutorials_begin_with_a_title_and_a_paragraph():
    """Both are on its card in the gallery."""
    for page in sorted((DOCS / "tutorials").glob("*.py")):
        text = page.read_text("utf-8")
        assert re.search(r"^# %% \[markdown\]\n# # .+\n(#\n)?# \S", text, re.M)
        assert page.stem in (DOCS / "tutorials" / "index.md").read_text("utf-8").split()


def test_the_readme_is_one_screen():
    assert len((DOCS.parent / "README.md").read_text("utf-8").splitlines()) <= 120
