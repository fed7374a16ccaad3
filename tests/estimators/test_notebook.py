"""What a notebook shows: networks as drawings, facts about posteriors, reports and estimators."""

from html.parser import HTMLParser

import numpy as np
import pytest

import nngp

X = np.linspace(-3, 3, 20)[:, None]
BLOCK = nngp.Residual(nngp.LayerNorm(), nngp.Act("relu"), nngp.Dense(1.0))


class Balanced(HTMLParser):
    """Text of a piece of HTML; fails where tags are not closed in order."""

    def __init__(self, html):
        super().__init__()
        self.open, self.text = [], ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += f" {data}"


@pytest.mark.parametrize(
    "network",
    [
        nngp.Architecture(3, "tanh", 1.6, 0.1),
        nngp.Chain(nngp.Dense(2.0), nngp.Repeat(BLOCK, 50), nngp.Dense(1.0)),
        nngp.NTK(nngp.Architecture(2, "relu")),
    ],
)
def test_a_network_is_drawn_with_the_steps_of_its_text(network):
    drawn = Balanced(network._repr_html_()).text.split()
    words = str(network).replace("└", "").replace("├", "").replace("│", "").split()
    for word in ("↓", "identity"):
        drawn, words = [[w for w in part if w != word] for part in (drawn, words)]
    assert {word.strip(",") for word in drawn} == {word.strip(",") for word in words}


def test_names_are_escaped():
    odd = nngp.Activation(np.tanh, name="<b>tanh</b>")
    html = nngp.Architecture(1, odd)._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;tanh" in html


def test_a_posterior_and_its_report():
    posterior = nngp.condition(nngp.Architecture(2, "erf", 4.0, 0.5), X, X[:, 0], noise_var=1e-3)
    shown = Balanced(posterior._repr_html_()).text
    assert "20 points, 1 inputs, 1 output(s)" in shown
    assert f"{posterior.log_evidence:.4g}" in shown
    facts = Balanced(posterior.report._repr_html_()).text
    assert all(name in facts for name in posterior.report.as_dict())


def test_an_estimator_shows_its_choices_once_fitted():
    model = nngp.NNGPRegressor(selection=None, noise_var=1e-3)
    assert "log evidence" not in model._repr_mimebundle_()["text/html"]
    model.fit(X, X[:, 0])
    shown = Balanced(model._repr_mimebundle_()["text/html"]).text
    for words in ("20 rows, 1 inputs", "log evidence", f"{model.log_evidence_:.4g}", "0.001"):
        assert words in shown
