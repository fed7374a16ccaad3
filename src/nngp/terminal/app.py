"""The commands. Their options are dataclasses in `options`; the work of each is a function of
these, in a module that is loaded when the command is called: so that `--help` answers at once."""

import sys
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from importlib import import_module
from inspect import Parameter, Signature, get_annotations
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from nngp._interrupts import raise_interrupts
from nngp.terminal import options
from nngp.terminal.output import INTERRUPTED, USAGE, exit_codes, exit_with_usage

NOTHING_WRITTEN = "interrupted; nothing was written"


@dataclass(frozen=True)
class Command:
    """A command: its options, the module of `nngp.terminal` that does its work in a function of
    its name, and its words in an example."""

    options: type
    module: str
    example: str


COMMANDS = {
    "fit": Command(options.FitOptions, "fit", "houses.csv --target price -o houses.nngp"),
    "predict": Command(options.PredictOptions, "predict", "houses.nngp new.csv -o prices.csv"),
    "evaluate": Command(options.EvaluateOptions, "predict", "houses.nngp test.csv"),
    "plot": Command(options.PlotOptions, "predict", "houses.nngp test.csv -o houses.png"),
    "inspect": Command(options.InspectOptions, "predict", "houses.nngp"),
    "kernel": Command(
        options.KernelOptions, "networks", "points.csv --depth 3 --activation relu -o K.npy"
    ),
    "phase": Command(options.PhaseOptions, "networks", "tanh --out phase.svg"),
    "demo": Command(options.DemoOptions, "demo", "--folder demo"),
}


def _function(name: str, command: Command) -> Callable[..., None]:
    """A function for typer: its parameters are the fields of the options, its docstring theirs."""

    def call(**values: object) -> None:
        with exit_codes(NOTHING_WRITTEN):
            work = getattr(import_module(f"nngp.terminal.{command.module}"), name)
            raise_interrupts()
            work(command.options(**values))

    call.__doc__ = command.options.__doc__
    call.__signature__ = Signature(_parameters(command.options))  # type: ignore[attr-defined]
    return call


def _parameters(kind: type) -> list[Parameter]:
    """The fields of a dataclass in the order of `options`, as parameters that typer can read."""
    order: dict[str, None] = {}
    for each in kind.__mro__:
        for name in get_annotations(each):
            order.pop(name, None)
            order[name] = None
    known = {field.name: field for field in fields(kind)}
    out = []
    for name in order:
        field = known[name]
        default = Parameter.empty if field.default is MISSING else field.default
        hint = Annotated[field.type, field.metadata["typer"]]  # type: ignore[name-defined]
        out.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint))
    return out


class Program(TyperGroup):
    """All commands. A command line that cannot be read gives one sentence, as other faults do."""

    def main(self, *args: Any, **more: Any) -> Any:
        """Run a command and exit; errors of the parser, which have `format_message`, in a
        sentence."""
        try:
            code = super().main(*args, **{**more, "standalone_mode": False})
        except typer.Abort:
            sys.exit(INTERRUPTED)
        except Exception as error:
            if not hasattr(error, "format_message"):
                raise
            context = getattr(error, "ctx", None)
            exit_with_usage(error.format_message(), context.command_path if context else "nngp")
        sys.exit(code or 0)


app = typer.Typer(
    name="nngp",
    cls=Program,
    help="Neural network Gaussian processes: fit a table, predict with calibrated uncertainty.\n\n"
    "Exit codes: 0 done, 2 wrong usage, 3 a file or its values cannot be used, 4 something is "
    "missing (memory, a GPU, a cluster, a package), 130 interrupted.",
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode="rich",
)
for _name, _command in COMMANDS.items():
    _example = f"Example: nngp {_name} {_command.example}"
    app.command(_name, epilog=_example)(_function(_name, _command))


def _version(wanted: bool) -> None:
    if wanted:
        from nngp import __version__

        print(f"nngp {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(USAGE)
