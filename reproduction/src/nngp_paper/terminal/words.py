"""Words of the command line: options in place of Python's parameters. The messages of the packages
are for those who call them from Python; these turn them."""

import re

OPTIONS = "activation|depth|engine"
GIVEN = re.compile(rf"\b({OPTIONS})=(?:'([^']*)'|([\w.+-]+))")  # engine='cpu'
NAMED = re.compile(rf"\b({OPTIONS})(?= must be)\b")
CLUSTER = "; a cluster is nngp.DaskEngine(address)"


def in_command_words(sentence: str) -> str:
    """A message as the command says it.

    >>> in_command_words("there is no GPU; use engine='cpu'")
    'there is no GPU; use --engine cpu'
    """
    sentence = sentence.replace(CLUSTER, "; a cluster is --cluster ADDRESS")
    sentence = GIVEN.sub(lambda found: f"--{found[1]} {found[2] or found[3]}", sentence)
    return NAMED.sub(lambda found: f"--{found[0]}", sentence)
