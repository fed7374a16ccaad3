"""The pieces of the page: elements, pictures, signs, facts and sentences."""

import re
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from paper_runs import BEST, UNCERTAINTY

from nngp_paper.part import PartResult, read_parts
from nngp_paper.parts import PARTS, parts_named
from nngp_paper.report.facts import efforts, scopes_of, short_title, versions
from nngp_paper.report.html import Html, element, joined, table
from nngp_paper.report.sections import _times
from nngp_paper.report.tables import _count, accuracies, difference, verdict
from nngp_paper.runs import RunStore
from nngp_paper.scope import Scope


def test_texts_are_escaped_and_html_is_not():
    assert element("p", "a < b & c", Html("<b>d</b>")) == "<p>a &lt; b &amp; c<b>d</b></p>"
    assert joined("<", element("i", 1)) == "&lt;<i>1</i>"


def test_attributes():
    assert (
        element("div", class_="x", aria_label='say "a"', id=None, hidden=True, open=False)
        == '<div class="x" aria-label="say &quot;a&quot;" hidden></div>'
    )
    assert element("meta", name="viewport") == '<meta name="viewport">'


def test_differences_have_sign_arrow_and_colour():
    assert difference(0.126) == '<span class="good">▲ +0.13</span>'
    assert difference(-1.0) == '<span class="bad">▼ −1.00</span>'
    assert difference(-0.001) == '<span class="none">= 0.00</span>'
    assert difference(None) is None


def test_verdicts_are_words_with_a_sign():
    assert verdict("met") == '<span class="good short">✓ met</span>'
    assert verdict("missed") == '<span class="bad short">✗ missed</span>'
    assert verdict("not measured") == '<span class="none short">not measured</span>'


def test_tables_have_heads_and_a_name():
    root = ElementTree.fromstring(table(("a", "b"), [("x", 1), ("y", 2)], "What", "name"))
    assert root.attrib == {
        **{"class": "scroll", "role": "region", "aria-label": "name", "tabindex": "0"}
    }
    assert [cell.attrib["scope"] for cell in root.iter("th")] == ["col", "col", "row", "row"]
    assert [cell.text for cell in root.iter("td")] == ["1", "2"]
    assert root.find("table/caption").text == "What"


def test_a_choice_says_of_how_many_it_was_not_made():
    assert re.findall(r">([^<]+)<", _count(1200, None, 1200)) == ["1,200"]
    assert re.findall(r">([^<]+)<", _count(1200, None, 3600)) == ["1,200", "of 3,600"]
    lines = ["40", "of 500 candidates", "of 3,600"]
    assert re.findall(r">([^<]+)<", _count(40, 500, 3600)) == lines
    assert _count(0, None, 3600) is None


@pytest.fixture
def figure():
    plt = pytest.importorskip("matplotlib.pyplot")
    drawn, axes = plt.subplots(figsize=(3, 2))
    axes.plot([0, 1], [0, 1], marker="o", clip_on=True)
    axes.fill_between([0, 1], [0, 1], hatch="//")
    return drawn


def test_a_picture_is_svg_with_ids_of_its_own(figure):
    import matplotlib.pyplot as plt

    from nngp_paper.report.pictures import inline

    text = inline(figure, "fig4-mnist", 'words & "more"')
    assert not plt.fignum_exists(figure.number)
    root = ElementTree.fromstring(text)
    ids = [node.attrib["id"] for node in root.iter() if "id" in node.attrib]
    assert len(ids) == len(set(ids)) > 5
    used = re.findall(r'(?:url\(#|href="#)([^")]+)', text)
    assert len(used) > 5
    assert set(used) == set(ids)
    assert root.attrib["role"] == "img"
    assert "viewBox" in root.attrib
    assert not {"width", "height"} & set(root.attrib)
    assert root.attrib["style"] == "max-width: 389px"  # 1.8 times 3 inches of 72 points
    assert root[0].tag.endswith("title")
    assert root[0].text == 'words & "more"'
    assert not re.search("<\\?xml|<!DOCTYPE|<metadata", text)


def test_ids_are_kept_once_if_something_refers_to_them():
    from nngp_paper.report.pictures import _renamed

    text = _renamed('<a id="x"/><b id="y"/><c id="x"/><use href="#x"/><d clip="url(#x)"/>', "fig1")
    name = re.fullmatch(
        r'<a id="(\w+-\w+)"/><b/><c/><use href="#(\w+-\w+)"/><d clip="url\(#(.*)\)"/>', text
    )
    assert name is not None
    assert len(set(name.groups())) == 1
    assert name[1] not in _renamed('<a id="x"/><use href="#x"/>', "fig2")


def test_places_have_hundredths_of_a_point():
    from nngp_paper.report.pictures import _shortened

    found = _shortened('<path d="M 1.2345 7\nL 0.5 -3.999"/>\n  <g transform="scale(0.015625)"/>')
    assert found == '<path d="M 1.23 7 L 0.5 -3.99"/><g transform="scale(0.015625)"/>'


def test_a_picture_is_the_same_each_time():
    plt = pytest.importorskip("matplotlib.pyplot")
    from nngp_paper.report.pictures import inline

    texts = []
    for _ in range(2):
        drawn, axes = plt.subplots()
        axes.plot([0, 1], marker="o")
        texts.append(inline(drawn, "a", "b"))
    assert texts[0] == texts[1]


def test_a_heavy_picture_is_png(figure, monkeypatch):
    from nngp_paper.report import pictures

    monkeypatch.setattr(pictures, "HEAVIEST", 1000)
    text = pictures.inline(figure, "a", "say <b>")
    assert text.startswith('<img src="data:image/png;base64,iVBOR')
    assert text.endswith('alt="say &lt;b&gt;">')


def test_scopes_are_what_the_runs_are_about(paper_store):
    with RunStore(paper_store) as store:
        mnist, digits = scopes_of(store)
    assert mnist == Scope("mnist", (1000, 10_000), (3, 50), ("relu", "tanh"), 3)
    assert (digits.dataset, digits.sizes, digits.activations) == ("digits", (100,), ("relu",))
    assert digits.grid == 30
    assert short_title("cifar10") == "CIFAR-10"


def test_training_sets_with_validation_images_are_not_the_papers(tmp_path):
    with RunStore(tmp_path / "runs.db") as store:
        configs = [{"dataset": "mnist", "train": n} for n in (100, 50_000, 60_000)]
        for key in store.declare("invariance", configs):
            store.finish(key, {}, seconds=1.0)
        (mnist,) = scopes_of(store)
        (key,) = store.declare("invariance", [{"dataset": "cifar10", "train": 50_000}])
        store.finish(key, {}, seconds=1.0)
        assert scopes_of(store)[1].sizes == (50_000,)  # there are no others
    assert mnist.sizes == (100, 50_000)


def test_efforts_count_and_add_up(paper_store):
    with RunStore(paper_store) as store:
        found = {(one.experiment, one.dataset): one for one in efforts(store)}
        known = versions(store)
    grid = found["grid", "mnist"]
    assert (grid.done, grid.failed, grid.left, grid.seconds) == (24, 0, 0, 48.0)
    assert grid.devices == ("cpu",)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", grid.first)
    assert grid.first <= grid.last
    failed = found["grid", "digits"]
    assert (failed.done, failed.failed, failed.left, failed.first) == (0, 1, 0, "")
    assert found["angular", None].done == 1
    assert len(known["python"]) == 1


@pytest.fixture(scope="module")
def findings(paper_store):
    pytest.importorskip("jax")
    with RunStore(paper_store) as store:
        shown = read_parts(PARTS, store, scopes_of(store)[0])
    return {one.part.name: one.finding for one in shown}


def test_every_part_has_a_finding(findings):
    assert set(findings) == {part.name for part in PARTS}
    assert not any(text.startswith("Missing") for text in findings.values())
    assert all(text.endswith(".") for text in findings.values())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        # published: 0.9279, 0.9266 with 1,000 points, 0.9765, 0.9773 with 10,000
        ("table1", "4 of 4 measured rows reach the paper's accuracy"),
        ("table2", "from +0.27 points (10,000 tanh) to +5.34 points (1,000 tanh), +2.79 points"),
        ("fig1", "relu with 1,000 points: infinite 98.00% and finite 96.40%"),
        (
            "fig1",
            "Error rate: in the mean 4.20 (width 16), 1.80 (width 64) times that of the "
            "infinite network, and nearer to it at the largest width than at the smallest in 2 of "
            "2 cases",
        ),
        ("fig2", "tanh: smallest gap 0.084 at width 16 and 0.036 at width 64; 4 of 4 networks"),
        ("fig3", "Correlation over bins with 10,000 points: relu 0.950; tanh 0.950."),
        ("fig4", "50 layers: relu 90.00% at (0.10, 1.00) (critical there: 2.00); tanh"),
        ("fig5", "2 draws of a relu network of depth 10, weight variance 1.8"),
        ("fig6", "differ by at most 1.00% of the variance"),
        ("fig7", "Slopes by layer: −0.500 ± "),
        ("fig8", "with 1,000 points: relu 0.950"),
        ("fig9", "10,000 training points and 3, 50 layers: relu 98.00%, 90.00%; tanh"),
        ("fig10", "on a grid from 0.1 to 5, from the left: relu "),
        ("invariance", "accuracy 80.00% plain and 90.00% with shifts 1, log loss 0.400 and 0.200"),
        ("width", "distance to the process falls as width^(−1.000 ± 0.005) and"),
    ],
)
def test_findings_have_their_numbers(findings, name, said):
    assert said in findings[name]
    assert BEST == 0.98
    assert UNCERTAINTY["correlation"] == 0.95


def points(**values):
    return tuple(SimpleNamespace(at=int(at[1:]), accuracy=value) for at, value in values.items())


def told(name, **data):
    part = parts_named([name])[0]
    return PartResult(part, Scope("digits", (100,)), SimpleNamespace(**data)).finding


def test_widths_are_compared_on_the_largest_set_that_both_have():
    curve = SimpleNamespace(
        activation="relu",
        infinite=points(_100=0.1, _200=0.2, _300=0.3),
        finite=points(_100=0.4, _200=0.5),
    )
    said = "relu with 200 points: infinite 20.00% and finite 50.00%."
    assert told("fig1", curves=[curve], widths=[]) == said
    curve.finite = ()
    assert told("fig1", curves=[curve], widths=[]) == "relu with 300 points: infinite 30.00%."
    curve.finite = points(_900=0.9)
    assert "no training set on which both" in told("fig1", curves=[curve], widths=[])


def test_distances_from_the_line_are_medians():
    """The line is weight_var = 1 + bias_var, given from its end."""
    line = SimpleNamespace(
        line_bias_vars=np.array([2.0, 0.0]), line_weight_vars=np.array([3.0, 1.0])
    )
    nets = [
        SimpleNamespace(weight_var=w, bias_var=b) for w, b in ((1.0, 0.0), (1.9, 0.5), (9.0, 1))
    ]
    shared = {"activations": ("relu",), "merged": {}, "weight_range": (0.1, 5.0)}
    data = {"chosen": {("relu", "exact kernel"): nets}, **shared}
    assert told("fig10", theories={"relu": line}, **data).endswith("from the left: relu 0.40.")
    assert told("fig10", theories={}, **data) == "The critical line has not been computed."


def test_maps_without_a_line_say_so():
    net = SimpleNamespace(test_accuracy=0.9, weight_var=1.0, bias_var=0.5)
    data = {
        **{"train": 100, "depths": (3,), "activations": ("relu",)},
        "maps": {("relu", 3): SimpleNamespace(best=net)},
    }
    for name in ("fig4", "fig9"):
        assert told(name, theories={}, **data).endswith("The critical line has not been computed.")
        line = SimpleNamespace(line_weight_vars=())
        assert "not been computed" not in told(name, theories={"relu": line}, **data)


def test_runs_that_failed_or_are_left_are_counted_where_there_are_any(tmp_path):
    with RunStore(tmp_path / "runs.db") as store:
        keys = store.declare("grid", [{"dataset": "digits", "i": i} for i in range(3)])
        store.finish(keys[0], {}, seconds=1.0)
        assert _heads(store)[2:5] == ["runs", "left", "time"]
        store.fail(keys[1], "why", 1.0)
        assert _heads(store)[2:6] == ["runs", "failed", "left", "time"]
        store.finish(keys[2], {}, seconds=1.0)
        assert _heads(store)[2:5] == ["runs", "failed", "time"]


def _heads(store):
    return re.findall(r'<th scope="col">(.*?)</th>', _times(store))


def test_numbers_stand_in_the_order_of_sizes():
    curves = [
        SimpleNamespace(activation=name, train=train, correlation=r, ratio=10 * r)
        for name, train, r in (("relu", 2000, 0.2), ("relu", 100, 0.1), ("tanh", 2000, 0.3))
    ]
    said = "Correlation over bins with 100, 2,000 points: relu 0.100, 0.200; tanh –, 0.300. "
    ratios = "Predicted over realised error with 100, 2,000 points: relu 1.00, 2.00; tanh –, 3.00."
    assert told("fig3", curves=curves) == said + ratios


def test_columns_without_numbers_are_left_out(paper_store):
    part = parts_named(["table2"])[0]
    with RunStore(paper_store) as store:
        (shown,) = read_parts([part], store, scopes_of(store)[0])
    bare = dict.fromkeys(("paper", "paper_finite", "finite", "lookup", "exact"))
    text = accuracies([replace(row, **bare) for row in shown.data.rows], "name")
    heads = re.findall(r'<th scope="col">(.*?)</th>', text)
    assert heads == ["points", "activation", "by validation", "by evidence", "networks"]


def test_a_table_without_published_rows_tells_its_best():
    class Chosen:
        test_accuracy = 0.9

    class Row:
        train, activation, difference, chosen = 100, "relu", None, Chosen

    class Table:
        rows = (Row,)

    part = parts_named(["table1"])[0]
    said = PartResult(part, Scope("digits", (100,)), Table).finding
    assert "The best is relu with 100 training points, 90.00%." in said
    Row.chosen = None
    assert PartResult(part, Scope("digits", (100,)), Table).finding == "No grid has been begun."
    assert PartResult(part, Scope("digits", (100,)), problem="why").finding == "Missing: why."
