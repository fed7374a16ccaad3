"""The README's example runs, and prints what it says it prints."""

import re
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_example(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    namespace: dict = {}
    exec(code, namespace)
    assert capsys.readouterr().out.strip() == "(1797, 1797) 0.628849 True"
    assert namespace["error"] < 1e-12


def test_the_number_of_activations_is_right():
    import nngp

    (count,) = re.findall(r"(\d+) activations by name", README)
    assert int(count) == len(nngp.activation_names())
