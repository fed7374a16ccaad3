"""Check every internal link of a built site.

    python scripts/check_links.py docs/_build/html

Read are all pages below the folder: `href`, `src`, `srcset`, `poster` and `data` of every element,
and `url(...)` of style sheets. A link must lead to a file in the folder, and one with a fragment to
an element of that page with that id. Links to other hosts are counted by host and not followed.
Exit code 1 if a link leads nowhere.
"""

import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ATTRIBUTES = ("href", "src", "poster", "data")
ELSEWHERE = ("http", "https")
NOT_FOLLOWED = ("data", "javascript", "mailto")
STYLE_URL = re.compile(r"""url\(\s*['"]?([^'")]+)['"]?\s*\)""")
STYLE_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


@dataclass
class Page:
    """Ids and links of one file, each link with its line."""

    ids: set[str] = field(default_factory=set)
    links: list[tuple[int, str]] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        line = self.getpos()[0]
        self.page.ids |= {given["id"]} if given.get("id") else set()
        if tag == "a" and given.get("name"):
            self.page.ids.add(given["name"])
        for name in ATTRIBUTES:
            if name in given and not (name == "data" and tag != "object"):
                self.page.links.append((line, given[name].strip()))
        for part in given.get("srcset", "").split(","):
            if part.split():
                self.page.links.append((line, part.split()[0]))
        self._add_style(given.get("style", ""), line)
        self._in_style = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self._in_style = self._in_style and tag != "style"

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self._add_style(data, self.getpos()[0])

    def _add_style(self, text: str, line: int) -> None:
        self.page.links += [(line, url) for url in STYLE_URL.findall(STYLE_COMMENT.sub("", text))]


@dataclass
class Report:
    """What was found: dead links, as sentences; links to other hosts; how many were checked."""

    dead: list[str]
    hosts: Counter[str]
    pages: int
    checked: int


def check(root: Path) -> Report:
    """Check all pages and style sheets below a folder."""
    root = root.resolve()
    pages = {path: _read(path) for path in sorted(root.rglob("*")) if _is_read(path)}
    report = Report([], Counter(), len(pages), 0)
    for path, page in pages.items():
        for line, link in page.links:
            where = f"{path.relative_to(root)}:{line}"
            url = urlsplit(link)
            if url.scheme in ELSEWHERE or url.netloc:
                report.hosts[url.netloc] += 1
            elif url.scheme in NOT_FOLLOWED:
                continue
            else:
                report.checked += 1
                wrong = _fault(root, pages, path, link)
                if wrong:
                    report.dead.append(f"{where}: {link!r} {wrong}")
    return report


def _is_read(path: Path) -> bool:
    return path.is_file() and path.suffix in (".html", ".css", ".svg")


def _read(path: Path) -> Page:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".css":
        bare = STYLE_COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)
        links = [(bare[: m.start()].count("\n") + 1, m[1]) for m in STYLE_URL.finditer(bare)]
        return Page(links=links)
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return reader.page


def _fault(root: Path, pages: dict[Path, Page], path: Path, link: str) -> str:
    """What is wrong with an internal link, or nothing."""
    url = urlsplit(link)
    if url.scheme:
        return f"has the scheme {url.scheme!r}, which a site has no use for"
    target = path
    if url.path:
        if url.path.startswith("/"):
            return "begins at the server's root, and the site may lie in a folder"
        target = (path.parent / unquote(url.path)).resolve()
    if not target.is_relative_to(root):
        return "leads out of the site"
    if target.is_dir():
        target = target / "index.html"
    if not target.is_file():
        return "leads to no file"
    fragment = unquote(url.fragment)
    if fragment and fragment != "top" and target in pages and target.suffix != ".css":
        return "" if fragment in pages[target].ids else "leads to no element of that page"
    return ""


def main() -> None:
    root = Path(sys.argv[1])
    if not list(root.glob("*.html")):
        sys.exit(f"{root} holds no pages; build the site first")
    report = check(root)
    for sentence in report.dead:
        print(sentence)
    hosts = ", ".join(f"{host} ({count})" for host, count in report.hosts.most_common())
    print(f"{report.checked} links in {report.pages} files, {len(report.dead)} dead")
    print(f"not followed: {hosts or 'no links to other hosts'}")
    sys.exit(1 if report.dead else 0)


if __name__ == "__main__":
    main()
