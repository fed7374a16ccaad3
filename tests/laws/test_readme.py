"""The README's examples run, and print what they say they print."""

import re
from pathlib import Path

import readme_examples

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_examples():
    import nngp

    with readme_examples.checkout(ROOT):
        assert len(readme_examples.blocks(README)) == 2
        names = readme_examples.run(README)
        assert names["K"].shape == names["theta"].shape == (1797, 1797)
        same = nngp.load("concrete.nngp").predict(names["X_test"])
        assert (same == names["model"].predict(names["X_test"])).all()


def test_the_number_of_activations_is_right():
    import nngp

    (count,) = re.findall(r"(\d+) activations by name", README)
    assert int(count) == len(nngp.activations.names())


def test_every_file_that_is_linked_is_there():
    linked = re.findall(r"\]\(([^)#:]+)\)", README)
    assert len(linked) > 5
    assert [name for name in linked if not (ROOT / name).exists()] == []
