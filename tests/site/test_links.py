"""The checker of links finds each kind of dead link, and nothing in a site that is whole."""

import subprocess
import sys
from pathlib import Path

import pytest
from check_links import check

SCRIPT = Path(__file__).parents[2] / "scripts" / "check_links.py"
WHOLE = {
    "index.html": '<link rel="stylesheet" href="style.css?v=1"><h1 id="grüße">a</h1>'
    '<a href="#gr%C3%BC%C3%9Fe">b</a><a href="#">c</a><a href="sub/">d</a>'
    '<a href="sub/page.html#here">e</a><img srcset="a.svg 1x, a.svg 2x" src="a.svg">'
    '<a href="https://example.org/x">f</a><a href="mailto:a@example.org">g</a>'
    "<script>const text = \"<a href='no-link.html'>\";</script>",
    "sub/index.html": '<a href="../index.html">up</a><p style="background: url(../a.svg)"></p>',
    "sub/page.html": '<a name="here"></a><style>p { background: url("../a.svg") }</style>',
    "style.css": "/* url(gone.png) */ p { background: url('a.svg'), url(data:image/gif;base64,A) }",
    "a.svg": '<svg><defs><g id="g"/></defs><use href="#g"/></svg>',
}
BROKEN = {
    '<a href="gone.html">': "leads to no file",
    '<a href="gone.html#here">': "leads to no file",
    '<a href="#nowhere">': "leads to no element",
    '<a href="sub/page.html#nowhere">': "leads to no element",
    '<a href="../outside.html">': "leads out of the site",
    '<a href="/index.html">': "server's root",
    '<a href="file:///index.html">': "the scheme 'file'",
    '<img src="gone.png">': "leads to no file",
    '<img srcset="a.svg 1x, gone.png 2x">': "leads to no file",
    "<style>p { background: url(gone.png) }</style>": "leads to no file",
    '<p style="background: url(gone.png)">': "leads to no file",
    '<object data="gone.svg">': "leads to no file",
    '<svg><use href="#gone"/></svg>': "leads to no element",
}


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "site"
    (folder / "sub").mkdir(parents=True)
    for name, text in WHOLE.items():
        (folder / name).write_text(text, encoding="utf-8")
    (tmp_path / "outside.html").touch()
    return folder


def test_a_whole_site(site):
    report = check(site)
    assert report.dead == []
    assert report.hosts == {"example.org": 1}
    assert (report.pages, report.checked) == (5, 13)


def test_a_dead_link(site):
    for code in BROKEN:
        (site / "new.html").write_text(f"<p>\n{code}", encoding="utf-8")
        (dead,) = check(site).dead
        assert dead.startswith("new.html:2: ")
        assert BROKEN[code] in dead


def test_a_dead_link_in_a_style_sheet(site):
    (site / "style.css").write_text("p {}\n\np { background: url(gone.png) }")
    (dead,) = check(site).dead
    assert dead == "style.css:3: 'gone.png' leads to no file"


def test_the_command_has_an_exit_code(site):
    command = [sys.executable, SCRIPT, site]
    whole = subprocess.run(command, capture_output=True, text=True)
    assert (whole.returncode, "13 links in 5 files, 0 dead" in whole.stdout) == (0, True)
    (site / "a.svg").unlink()
    broken = subprocess.run(command, capture_output=True, text=True)
    assert broken.returncode == 1
    assert "index.html:1: 'a.svg' leads to no file" in broken.stdout
    empty = subprocess.run([*command[:2], site.parent / "x"], capture_output=True, text=True)
    assert (empty.returncode, "build the site first" in empty.stderr) == (1, True)
