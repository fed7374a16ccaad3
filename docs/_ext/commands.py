"""The directive `commands`: every command of `nngp`, or of the package that it names, from the
program itself.

Each becomes a section with its help, its usage, its arguments and its options with their defaults.
Names and help are those of the command tree that typer makes, kinds of values those of the fields
in the module `options` beside the program.
"""

import re
from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import typer
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import nested_parse_with_titles

INDENT = " " * 3
KINDS = {bool: "", int: "N", float: "NUMBER", str: "TEXT", Path: "PATH"}
SPECIAL = re.compile(r"[\\*`|_]")
CODE = re.compile(r"(--[a-z][\w-]*|\w+://[\w:]+|NNGP_\w+)")  # as they are, not as prose


class Commands(SphinxDirective):
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        package = self.arguments[0] if self.arguments else "nngp"
        place = nodes.section(document=self.state.document)
        mark = "-" if package == "nngp" else "~"
        source = StringList(list(text(package, mark)), source=f"{package}.terminal.app")
        nested_parse_with_titles(self.state, source, place)
        return place.children


def text(package: str = "nngp", mark: str = "-") -> Iterator[str]:
    """All commands of a package, in the order of the program's help; `mark` underlines titles."""
    program = import_module(f"{package}.terminal.app")
    commands = typer.main.get_command(program.app).commands  # type: ignore[attr-defined]
    for name, command in commands.items():
        kinds = {field.name: field.type for field in fields(program.COMMANDS[name].options)}
        yield from section(f"{package.replace('_', '-')} {name}", command, kinds, mark)


def section(words: str, command: Any, kinds: dict[str, Any], mark: str) -> Iterator[str]:
    own = [one for one in command.params if one.name in kinds]
    arguments = [one for one in own if one.param_type_name == "argument"]
    yield from (words, mark * len(words), "")
    yield from (prose(line.strip()) for line in (command.help or "").splitlines())
    usage = [argument_name(one) for one in arguments]
    usage = [
        name if one.required else f"[{name}]" for name, one in zip(usage, arguments, strict=True)
    ]
    example = (command.epilog or "").removeprefix("Example: ")
    yield from (
        "",
        ".. code-block:: text",
        "",
        f"{INDENT}{words} [OPTIONS] {' '.join(usage)}".rstrip(),
    )
    yield from (f"{INDENT}{example}", "", f".. program:: {words}", "")
    for one in (*arguments, *(one for one in own if one not in arguments)):
        yield from entry(one, kinds[one.name])


def prose(words: str) -> str:
    parts = CODE.split(words)
    return "".join(
        f"``{part}``" if i % 2 else SPECIAL.sub(r"\\\g<0>", part) for i, part in enumerate(parts)
    )


def argument_name(argument: Any) -> str:
    name = (argument.metavar or argument.name).upper().strip("[].")
    return f"{name}..." if argument.nargs == -1 else name


def entry(parameter: Any, kind: Any) -> Iterator[str]:
    """An argument or an option: its names, its help, its default."""
    default = parameter.default
    if parameter.param_type_name == "argument":
        names = [argument_name(parameter)]
    else:
        word = parameter.metavar or value_words(kind)
        names = [f"{name} {word}".rstrip() for name in parameter.opts + parameter.secondary_opts]
    yield from (f".. option:: {', '.join(names)}", "")
    facts = [prose((parameter.help or "").strip())]
    if parameter.required:
        facts.append("Required.")
    elif getattr(parameter, "multiple", False):
        facts.append("May be given several times.")
    elif default is not None and default is not False and default != "":
        word = parameter.opts[0] if default is True else getattr(default, "value", default)
        facts.append(f"Default: ``{word}``.")
    yield from (INDENT + " ".join(facts), "")


def value_words(kind: Any) -> str:
    """A word for the values of an option; the values themselves if they are few."""
    kinds = [part for part in get_args(kind) if part is not type(None)] or [kind]
    if isinstance(kinds[0], type) and issubclass(kinds[0], Enum):
        return "|".join(one.value for one in kinds[0])
    return KINDS.get(kinds[0], "TEXT")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
