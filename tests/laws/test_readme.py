"""The README's examples run, and print what they say they print."""

import re
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")


def test_the_examples(capsys, tmp_path, monkeypatch):
    import nngp

    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) == 2
    namespace: dict = {}
    for code in blocks:
        exec(code, namespace)
        promised = re.findall(r"print\(.*\)  # (.*)", code)
        assert capsys.readouterr().out.splitlines() == promised
    assert namespace["K"].shape == (1797, 1797)
    assert set(namespace["gradient"]) == {"weight_var", "bias_var", "noise_var"}
    same = nngp.load("diabetes.nngp").predict(namespace["Xs"])
    assert (same == namespace["model"].predict(namespace["Xs"])).all()


def test_the_number_of_activations_is_right():
    import nngp

    (count,) = re.findall(r"(\d+) activations by name", README)
    assert int(count) == len(nngp.activation_names())


def test_every_file_that_is_linked_is_there():
    root = Path(__file__).parents[2]
    linked = re.findall(r"\]\(([^)#:]+)\)", README)
    assert len(linked) > 5
    assert [name for name in linked if not (root / name).exists()] == []
