"""Words of the command line: options in place of Python's parameters. The library's messages are
for those who call it from Python; these turn them."""

import re

from nngp.terminal.options import FitOptions, handed_parameters

# Parameters of an estimator, and the fields of the options that set them.
FIELDS = {handed.name: field for field, handed in handed_parameters(FitOptions).items()}
OPTIONS = (*FIELDS, "engine")
GIVEN = re.compile(rf"\b({'|'.join(OPTIONS)})=(?:'([^']*)'|([\w.+-]+))")  # solver='cg'
# noise_var anywhere; words such as depth where a sentence says what their values must be
LONG = "|".join(name for name in OPTIONS if "_" in name)
NAMED = re.compile(rf"\b({LONG}|(?:{'|'.join(OPTIONS)})(?= must be))\b")
OTHERS = {  # no options: what to say, or not to say, in their place
    "pass a file from save()": "pass a file that nngp fit wrote",
    "was the model saved there?": "nngp fit writes one",
    "; a cluster is nngp.DaskEngine(address)": "; a cluster is --cluster ADDRESS",
    " (free, or the memory= asked for)": "",
    ", or relative_noise=True": "",
    "nngp.normalize on both": "--input-scaling unit",
    "math.inf": "inf",
    " or nngp.CG(...)": "",
    "points would fit": "rows would fit",
    "convert the column to numbers": "name it by --decimal . or --decimal ,",
}


def in_command_words(sentence: str) -> str:
    """A message of the library as the command says it.

    >>> in_command_words("needs a factor; condition with solver='cholesky' and noise_var > 0")
    'needs a factor; condition with --solver cholesky and --noise-var > 0'
    """
    for python, ours in OTHERS.items():
        sentence = sentence.replace(python, ours)
    sentence = GIVEN.sub(lambda found: f"{_option(found[1])} {found[2] or found[3]}", sentence)
    return NAMED.sub(lambda found: _option(found[0]), sentence)


def option_named(field: str) -> str:
    """The option that a field of the options is."""
    return f"--{field.replace('_', '-')}"


def _option(parameter: str) -> str:
    return option_named(FIELDS.get(parameter, parameter))
