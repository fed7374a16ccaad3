"""The explorer in a real browser: its numbers are the library's, and every control works by mouse,
touch and keyboard."""

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import nngp
from nngp import regimes
from nngp.errors import ConstantKernelWarning

BUILDER = Path(__file__).parents[2] / "docs" / "_ext" / "explorer.py"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ANGLES = np.arange(181)
ONE_MINUS_COS = 2 * np.sin(np.radians(ANGLES) / 2) ** 2
CIRCLE = np.arange(-180, 181)
AGREES = 1e-6  # relative to K(0)

# Shallow and deep, all phases, closed forms and tables, the corners of the sliders
NETWORKS = [
    (100, "relu", 2.0, 0.0),
    (100, "relu", 5.0, 2.0),
    (100, "leaky_relu", 0.05, 0.0),
    (0, "abs", 1.3, 0.2),
    (100, "erf", 2.45, 0.0),
    (50, "gelu", 2.1, 0.03),
    (12, "sin", 4.6, 0.0),
    (7, "cos", 3.0, 0.5),
    (20, "gaussian", 5.0, 0.01),
    (3, "sign", 1.0, 0.4),
    (12, "tanh", 5.0, 2.0),
    (20, "tanh", 1.0, 0.0),
    (4, "sigmoid", 5.0, 0.5),
    (3, "silu", 5.0, 1.0),
    (3, "softplus", 0.6, 0.0),
    (3, "elu", 3.0, 0.1),
]


@pytest.fixture(scope="module")
def builder():
    spec = importlib.util.spec_from_file_location("explorer", BUILDER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def address(builder, tmp_path_factory):
    return builder.build(tmp_path_factory.mktemp("site") / "explorer.html").as_uri()


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright, which drives the browser, is not installed"
    )
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"there is no browser to draw the page; looked for {', '.join(BROWSERS)}")
    with playwright.sync_playwright() as run:
        browser = run.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def open_page(browser, address):
    """Open the explorer; anything on the console, and any request beyond the file, is a failure."""
    faults = []

    def opened(fragment="", **options):
        context = browser.new_context(**options)
        page = context.new_page()
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: faults.append(request.url) if foreign(request) else None)
        page.goto(f"{address}#{fragment}")
        return page

    def foreign(request):
        return not request.url.startswith((address, "data:"))

    yield opened
    assert faults == []


@pytest.fixture(scope="module")
def shared_page(open_page):
    return open_page(viewport={"width": 1280, "height": 900})


@pytest.fixture
def page(shared_page):
    show(shared_page, 10, "tanh", 1.6, 0.1, noise=0.001, seed=1, stretch=0, points=[])
    shared_page.evaluate("scrollTo(0, 0)")
    settle(shared_page)
    return shared_page


def settle(page):
    """Wait for the frame in which the page shows its new state."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def show(page, depth, activation, weight, bias, **more):
    """Set a network; what is computed for it. Infinite numbers come as they are."""
    state = dict(activation=activation, depth=depth, weight=weight, bias=bias, **more)
    page.evaluate("state => explorer.set(state)", state)
    return page.evaluate("explorer.values()")


def path_of(page, name):
    return page.get_attribute(f"#{name}", "d")


def state_of(page):
    settle(page)
    return page.evaluate("explorer.state")


def test_the_page_is_one_small_file(builder, tmp_path):
    path = builder.build(tmp_path / "explorer.html")
    assert path.stat().st_size < 400_000


def test_a_table_that_differs_from_the_library_stops_the_build(builder, tmp_path, monkeypatch):
    tables = json.loads(builder.TABLES.read_text(encoding="utf-8"))
    tables["elu_even"]["coefs"][0][0] += 1000  # 1e-8
    monkeypatch.setattr(builder, "TABLES", tmp_path / "tables.json")
    builder.TABLES.write_text(json.dumps(tables), encoding="utf-8")
    with pytest.raises(ValueError, match=r"differs from the library by 1.*write it again"):
        builder.build(tmp_path / "explorer.html")


def test_kernels_are_those_of_the_library(page):
    for network in NETWORKS:
        curve = nngp.curves.compile_curve(nngp.Architecture(*network), tol=1e-9)
        found = show(page, *network)
        assert found["variance"] == pytest.approx(curve.variance, rel=AGREES), network
        off = np.abs(np.array(found["deficit"]) - curve.deficit(one_minus=ONE_MINUS_COS))
        assert off.max() < AGREES * curve.variance, network


def test_what_a_deep_network_still_tells_apart_keeps_its_digits(page):
    curve = nngp.curves.compile_curve(nngp.Architecture(100, "erf", 0.8, 0.4))
    found = np.array(show(page, 100, "erf", 0.8, 0.4)["deficit"])
    expected = curve.deficit(one_minus=ONE_MINUS_COS)
    assert expected.max() < 1e-20 * curve.variance
    np.testing.assert_allclose(found[1:], expected[1:], rtol=AGREES)


FIXED_POINTS = [
    ("relu", 1.5, 0.5),
    ("relu", 2.0, 0.0),
    ("relu", 2.5, 0.1),
    ("relu", 1.0, 0.0),
    ("erf", 4.0, 0.05),
    ("erf", 1.0, 0.3),
    ("gelu", 2.1, 0.02),
    ("gaussian", 5.0, 0.01),
    ("sign", 2.0, 0.1),
    ("tanh", 3.0, 0.1),
    ("tanh", 1.0, 0.0),
    ("tanh", 1.0, 0.5),
]


def test_fixed_points_are_those_of_the_library(page):
    for activation, weight, bias in FIXED_POINTS:
        at = activation, weight, bias
        values = show(page, 3, activation, weight, bias)
        found, scale = values["regime"], regimes.depth_scale(*at)
        assert found["variance"] == pytest.approx(regimes.variance_fixed_point(*at), rel=AGREES)
        assert found["correlation"] == pytest.approx(
            regimes.correlation_fixed_point(*at), abs=AGREES
        )
        assert found["chi"] == pytest.approx(regimes.chi(*at), rel=AGREES)
        assert found["depthScale"] == pytest.approx(scale.xi_c, rel=AGREES)
        assert found["varianceScale"] == pytest.approx(scale.xi_q, rel=AGREES)
        assert found["phase"] == regimes.phase(*at) == page.text_content("#phase")


def test_the_critical_line_is_that_of_the_library(page):
    for activation in ("tanh", "erf", "relu", "gelu"):
        for bias in (0.0, 0.01, 1.5):
            expected = regimes.critical_line(activation, bias)
            found = show(page, 1, activation, 1.0, bias)["critical"]
            assert found == pytest.approx(expected, rel=AGREES), (activation, bias)


@pytest.mark.parametrize(
    ("network", "noise"),
    [((3, "relu", 2.0, 0.1), 1e-3), ((4, "tanh", 3.0, 0.1), 1e-6), ((30, "erf", 1.4, 0.1), 0.1)],
)
def test_the_code_on_the_page_makes_the_same_posterior(page, network, noise):
    points = [[-120, -0.8], [-45, 0.9], [30, 0.4], [33, 0.6], [180, 1.0]]
    found = show(page, *network, noise=noise, points=points)
    names = {}
    exec(page.text_content("#code"), names)
    turns = np.radians(CIRCLE)
    inputs = np.sqrt(2) * np.column_stack([np.cos(turns), np.sin(turns)])
    mean, variance = names["posterior"].predict(inputs)
    prior = names["curve"].variance
    assert names["net"] == nngp.Architecture(*network)
    np.testing.assert_allclose(found["mean"], mean, rtol=0, atol=AGREES)
    np.testing.assert_allclose(found["posteriorVariance"], variance, rtol=0, atol=AGREES * prior)


def test_the_page_says_when_noise_covers_the_kernel(page):
    show(page, 60, "erf", 1.0, 0.3, noise=0.1, points=[[0, 1.0], [90, 0.0]])
    assert "covers all" in page.text_content("#fit-words")
    with pytest.warns(ConstantKernelWarning):
        exec(page.text_content("#code"), {})
    show(page, 2, "erf", 1.0, 0.3)
    assert page.text_content("#fit-words") == ""


def test_draws_have_the_covariance_of_the_kernel(page):
    found = show(page, 3, "gelu", 2.0, 0.2)
    cosines = np.cos(np.outer(np.radians(ANGLES), np.arange(181)))
    kernel = found["variance"] - np.array(found["deficit"])
    np.testing.assert_allclose(cosines @ found["spectrum"], kernel, atol=1e-9 * found["variance"])


def test_draws_change_with_the_network_but_not_their_random_numbers(page):
    def draws():
        return page.eval_on_selector_all("#prior .draw", "all => all.map(e => e.getAttribute('d'))")

    show(page, 3, "erf", 2.0, 0.1)
    before = draws()
    show(page, 3, "erf", 2.5, 0.1)
    moved = draws()
    show(page, 3, "erf", 2.0, 0.1)
    assert len(set(before)) == 5
    assert moved != before
    assert draws() == before
    page.click("#redraw")
    settle(page)
    assert not set(draws()) & set(before)


@pytest.mark.parametrize("slider", ["depth", "weight", "bias"])
def test_sliders_move_the_curves_by_keyboard(page, slider):
    before, curve, where = state_of(page), path_of(page, "kernel-curve"), page.url
    page.focus(f"#{slider}")
    page.keyboard.press("ArrowRight")
    after = state_of(page)
    assert after[slider] > before[slider]
    assert path_of(page, "kernel-curve") != curve
    assert float(page.input_value(f"#{slider}")) == after[slider]
    assert float(page.text_content(f"#{slider}-out")) == after[slider]
    assert page.url != where


def test_sliders_move_the_curves_by_mouse(page):
    curve, box = path_of(page, "map-curve"), page.locator("#weight").bounding_box()
    page.mouse.click(box["x"] + 0.8 * box["width"], box["y"] + box["height"] / 2)
    assert 3.5 < state_of(page)["weight"] < 4.5
    assert path_of(page, "map-curve") != curve
    assert page.text_content("#phase") == "chaotic"
    assert page.locator("#fixed-point").count() == 1


def test_another_activation_has_another_critical_line(page):
    line = path_of(page, "critical-line")
    page.select_option("#activation", "relu")
    settle(page)
    assert path_of(page, "critical-line") != line


def test_the_network_moves_in_the_phase_diagram(page):
    box = page.locator("#network").bounding_box()
    page.mouse.move(box["x"] + 8, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + 100, box["y"] - 60, steps=3)
    page.mouse.up()
    dragged = state_of(page)
    assert dragged["weight"] > 2
    assert dragged["bias"] > 0.3
    page.focus("#phases")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowUp")
    pressed = state_of(page)
    assert pressed["weight"] == pytest.approx(dragged["weight"] - 0.05)
    assert pressed["bias"] == pytest.approx(dragged["bias"] + 0.05)


def test_a_button_leads_to_the_critical_line(page):
    page.click("#to-line")
    assert state_of(page)["weight"] == pytest.approx(regimes.critical_line("tanh", 0.1), rel=1e-8)
    assert page.text_content("#phase") == "critical"


def test_an_example_is_a_network_on_the_critical_line(page):
    page.click("text=on the edge")
    assert state_of(page)["depth"] == 30
    assert page.text_content("#phase") == "critical"
    assert page.get_attribute("text=on the edge", "aria-pressed") == "true"


def at_point(page, degree, value):
    """Where a point of the posterior's plot is on the screen."""
    box = page.locator("#posterior").bounding_box()
    left, right, top, bottom = 46, 12, 12, 40  # margins, as in draw.js
    x = box["x"] + left + (degree + 180) / 360 * (box["width"] - left - right)
    y = box["y"] + top + (3 - value) / 6 * (box["height"] - top - bottom)
    return x, y


def test_a_click_adds_a_point_and_the_posterior_passes_through_it(page):
    page.evaluate("explorer.set({noise: 1e-6})")
    page.locator("#posterior").scroll_into_view_if_needed()
    before = path_of(page, "posterior-mean")
    page.mouse.click(*at_point(page, 40, 1.5))
    ((degree, value),) = state_of(page)["points"]
    assert abs(degree - 40) <= 1
    assert abs(value - 1.5) < 0.05
    assert path_of(page, "posterior-mean") != before
    found = page.evaluate("explorer.values()")
    assert found["mean"][degree + 180] == pytest.approx(value, abs=1e-4)
    assert found["posteriorVariance"][degree + 180] < 1e-5

    page.mouse.move(*at_point(page, degree, value))
    page.mouse.down()
    page.mouse.move(*at_point(page, 0, -1), steps=3)
    page.mouse.up()
    ((degree, value),) = state_of(page)["points"]
    assert abs(degree) <= 1
    assert abs(value + 1) < 0.05

    page.mouse.click(*at_point(page, degree, value))
    assert state_of(page)["points"] == []


def test_points_by_keyboard(page):
    page.focus("#posterior")
    settle(page)
    assert page.locator("#cursor").count() == 1
    for key in ("ArrowRight", "ArrowRight", "Shift+ArrowLeft", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    assert state_of(page)["points"] == [[9, 0.25]]
    page.keyboard.press("Enter")
    assert state_of(page)["points"] == []
    for key in ("Enter", "ArrowLeft", "ArrowLeft", "Enter", "Delete"):
        page.keyboard.press(key)
    assert state_of(page)["points"] == [[9, 0.25]]
    page.click("#clear")
    assert state_of(page)["points"] == []


def test_an_address_holds_the_network(page, open_page):
    points = [[-30, 0.5], [60, -1.25]]
    values = show(page, 7, "sin", 2.34, 0.56, noise=0.01, seed=4, points=points)
    again = open_page(page.url.split("#")[1])
    assert again.evaluate("explorer.state") == page.evaluate("explorer.state")
    assert again.evaluate("explorer.values()")["mean"] == values["mean"]
    again.context.close()


def go_to(page, fragment, meanwhile=""):
    """Give an open page another address; wait until it shows it."""
    page.evaluate(
        """([fragment, meanwhile]) => new Promise((shown) => {
            addEventListener("hashchange", () => requestAnimationFrame(shown), { once: true });
            location.hash = fragment;
            eval(meanwhile);
        })""",
        [fragment, meanwhile],
    )


def test_what_an_address_cannot_mean_is_left_out(page):
    go_to(page, "activation=nothing&depth=-4&weight=x&points=a:b,7")
    state = state_of(page)
    assert (state["activation"], state["depth"], state["points"]) == ("tanh", 0, [])


def test_an_address_counts_though_the_page_is_drawn_before_it_is_told(page):
    go_to(page, "activation=sin&depth=4", meanwhile="explorer.set({ bias: 0.7 })")
    state = state_of(page)
    assert (state["activation"], state["depth"], state["bias"]) == ("sin", 4, 0.7)
    assert "activation=sin&depth=4" in page.url


def test_a_phone_in_the_dark(open_page, page):
    phone = open_page(viewport={"width": 390, "height": 844}, has_touch=True, color_scheme="dark")
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    for name in ("phases", "kernel", "map", "prior", "posterior"):
        box = phone.locator(f"#{name}").bounding_box()
        assert box["x"] >= 0
        assert 250 < box["width"] <= 390
    background = "getComputedStyle(document.body).backgroundColor"
    assert phone.evaluate(background) != page.evaluate(background)
    phone.locator("#posterior").scroll_into_view_if_needed()
    count = len(state_of(phone)["points"])
    phone.touchscreen.tap(*at_point(phone, 75, 2.5))
    assert len(state_of(phone)["points"]) == count + 1
    phone.locator("#phases").scroll_into_view_if_needed()
    box = phone.locator("#phases").bounding_box()
    phone.touchscreen.tap(box["x"] + 0.7 * box["width"], box["y"] + 0.5 * box["height"])
    assert state_of(phone)["weight"] > 2.5
    phone.context.close()
