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

from nngp_paper.terminal import options
from nngp_paper.terminal.output import INTERRUPTED, USAGE, exit_codes, exit_with_usage

NOTHING_WRITTEN = "interrupted; nothing was written"
TRIALS_KEPT = "interrupted; finished trials are in the store, and the next call goes on"
RUNS_KEPT = "interrupted; finished runs are in the store, and the next call goes on"


@dataclass(frozen=True)
class Command:
    """A command: its options, the module of `nngp_paper.terminal` that does its work in a function
    of its name, its words in an example, and its message when it is interrupted."""

    options: type
    module: str
    example: str
    interrupted: str = NOTHING_WRITTEN


COMMANDS = {
    "runs": Command(
        options.RunsOptions, "runs", "runs.db --where activation=relu --sort val_accuracy"
    ),
    "finite": Command(
        options.FiniteOptions,
        "finite",
        "--dataset digits --width 64,512 --depth 2 --trials 20",
        TRIALS_KEPT,
    ),
    "gap": Command(
        options.GapOptions,
        "finite",
        "--dataset digits --width 16,64,256 --trials 20",
        TRIALS_KEPT,
    ),
    "reproduce": Command(
        options.ReproduceOptions, "reproduce", "all --dataset digits --budget 20m", RUNS_KEPT
    ),
    "report": Command(options.ReportOptions, "report", "runs.db -o report.html"),
    "datasets": Command(options.DatasetsOptions, "datasets", "--data DIR"),
}


def _function(name: str, command: Command) -> Callable[..., None]:
    """The function that typer reads a command from: its parameters are the fields of the options,
    its docstring is theirs."""

    def call(**values: object) -> None:
        with exit_codes(command.interrupted):
            work = getattr(import_module(f"nngp_paper.terminal.{command.module}"), name)
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
            exit_with_usage(
                error.format_message(), context.command_path if context else "nngp-paper"
            )
        sys.exit(code or 0)


app = typer.Typer(
    name="nngp-paper",
    cls=Program,
    help="Deep Neural Networks as Gaussian Processes: its tables and figures, reproduced.\n\n"
    "Exit codes: 0 done, 2 wrong usage, 3 a file or its values cannot be used, 4 something is "
    "missing (memory, a GPU, a cluster, a package), 130 interrupted.",
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode="rich",
)
for _name, _command in COMMANDS.items():
    _example = f"Example: nngp-paper {_name} {_command.example}"
    app.command(_name, epilog=_example)(_function(_name, _command))


def _version(wanted: bool) -> None:
    if wanted:
        from nngp_paper import __version__

        print(f"nngp-paper {__version__}")
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
