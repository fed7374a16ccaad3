"""The page as a whole: sound HTML, complete, of its own, and honest about what is missing."""

import re
from html.parser import HTMLParser

import pytest

from nngp_paper.errors import NothingMeasuredError
from nngp_paper.parts import PARTS
from nngp_paper.report import scopes_of, write_report
from nngp_paper.runs import RunStore

VOID = {"img", "meta"}


class Outline(HTMLParser):
    """Elements and their attributes, the text of each, and whether they nest."""

    def __init__(self, text):
        super().__init__()
        self.open, self.found, self.words = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, name, attributes):
        self.found.append((name, dict(attributes)))
        if name not in VOID:
            self.open.append(name)

    def handle_startendtag(self, name, attributes):
        self.found.append((name, dict(attributes)))

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        self.words.append(data)

    def all(self, *names):
        return [attributes for name, attributes in self.found if name in names]


@pytest.fixture(scope="module")
def text(page):
    return page.read_text("utf-8")


@pytest.fixture(scope="module")
def outline(text):
    return Outline(text)


def test_it_is_one_sound_document(text, outline):
    assert text.startswith("<!DOCTYPE html>\n<html")
    assert outline.all("html")[0]["lang"] == "en"
    assert outline.all("meta")[1]["content"].startswith("width=device-width")
    assert [len(outline.all(name)) for name in ("h1", "main", "header", "nav", "footer")] == [1] * 5


def test_ids_are_unique_and_links_lead_somewhere(outline):
    ids = [attributes["id"] for _, attributes in outline.found if attributes.get("id")]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for attributes in outline.all("a")]
    assert len(links) == 2 * len(PARTS) + 2
    assert {link[1:] for link in links} <= set(ids)
    assert all(link.startswith("#") for link in links)


def test_nothing_is_fetched(text, outline):
    assert outline.all("script", "link", "iframe", "object", "form") == []
    assert "@import" not in text
    assert not re.findall(r'(?:src|srcset|data|poster)="(?!data:)[^"]*"', text)
    assert not re.findall(r"url\((?!#)", text)
    assert {a.get("xlink:href", "#")[0] for a in outline.all("use", "image")} <= {"#", "d"}


def test_every_part_is_there(outline):
    sections = [attributes["id"] for attributes in outline.all("section")]
    assert sections == ["summary", *(part.name for part in PARTS), "how"]
    figures = outline.all("figure")
    assert len(figures) == 1 + 12 + 1  # the opening, all of MNIST's, and digits' figure 3
    assert len(outline.all("figcaption")) == len(figures)
    pictures = [a for a in outline.all("svg", "img") if a.get("role") == "img" or a.get("alt")]
    narrow = [
        attributes for attributes in outline.all("div") if attributes.get("class") == "narrow"
    ]
    assert len(pictures) == len(figures) + len(narrow)
    assert len(narrow) == len(figures)


def test_what_is_missing_is_said(text, outline):
    assert text.count('class="missing"') == 10  # digits: tables, figures 1, 2, 4, 8 to 10, two more
    assert "missing: the gap on digits needs networks" in text
    assert "/runs.db" not in text


def test_goals_are_judged(outline):
    words = " ".join(outline.words)
    assert "Goals set beforehand: 4 met." in words
    assert words.index("Claims of the paper:") < words.index("Goals of this reproduction")


def test_every_claim_has_a_verdict(text, outline):
    """In the summary and at the head of its part, with the same words."""
    words = " ".join(outline.words)
    table = re.search(r'<table class="claims">.*?</table>', text, re.DOTALL)[0]
    assert table.count('<th scope="row">') == len(PARTS)
    in_summary = re.findall(r'short">[^<]*?(supported|partly|not supported|not measured)<', table)
    in_parts = re.findall(r'<p class="verdict">', text)
    assert len(in_summary) == len(in_parts) == 25  # three are not about data, eleven are about two
    counted = re.search(r"Claims of the paper: ([^.]*)\.", words)[1]
    # three of those 25 are of parts that go beyond the paper
    assert sum(int(part.split()[0]) for part in counted.split(", ")) == 21
    assert words.index("Claims of the paper") < words.index("Where numbers differ")


def test_it_begins_with_five_sentences_and_a_picture(text):
    start = text.index('<ol class="opening">')
    sentences = re.findall(r"<li>(.*?)</li>", text[start : text.index("</ol>", start)])
    assert len(sentences) == 4  # of the authors' table there are no maps here
    assert start < text.index("<figure>") < text.index("<h2>Contents</h2>")


def test_tables_compare_with_the_paper(text):
    assert "Where numbers differ" in text
    rows = re.findall(r'<tr><th scope="row">1,000</th>.*?</tr>', text)
    assert len(rows) == 4  # relu and tanh, in both tables
    relu = re.sub(r"<[^>]+>", "|", rows[0])
    shown = [cell for cell in relu.split("|") if cell]
    assert shown == [
        *("1,000", "relu"),
        *("92.52", "2-5000-3.19-0.00"),  # the paper, finite
        *("96.40", "2-64-1.00-0.10"),
        *("92.79", "20-1.45-0.28"),  # the paper, infinite
        *("92.69", "▼ −0.10"),
        *("92.99", "▲ +0.20"),
        *("98.00 ± 0.14", "▲ +5.21", "3-2.55-1.00"),  # sqrt(0.98 0.02 / 10,000)
        *("85.00", "3-0.10-2.00"),
        "18",
    ]


def test_how_it_was_done(outline):
    words = " ".join(outline.words)
    for said in ("1,000, 10,000", "3 weight variances from 0.1 to 5", "48 s", "numpy"):
        assert said in words


def test_an_empty_store_has_no_report(tmp_path):
    with (
        RunStore(tmp_path / "runs.db") as store,
        pytest.raises(NothingMeasuredError, match="has no finished runs on any data set"),
    ):
        write_report(store, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_one_data_set_of_several(paper_store, tmp_path, monkeypatch):
    monkeypatch.setattr("nngp_paper.report.sections.both_widths", lambda *drawn: "picture")
    with RunStore(paper_store) as store:
        digits = scopes_of(store)[1]
        shown = write_report(store, tmp_path / "page.html", [digits])
    assert len(shown) == len(PARTS)
    assert {one.scope.dataset for one in shown} == {"digits"}
    alone = (tmp_path / "page.html").read_text("utf-8")
    assert "mnist-" not in alone
    assert "Where numbers differ" not in alone  # the paper has none of digits
