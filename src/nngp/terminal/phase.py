"""`nngp phase`: an activation to a figure of signal propagation, and its numbers."""

from dataclasses import fields
from pathlib import Path

from nngp._files import replaced
from nngp.plots.phases import Phases, phases
from nngp.plots.phases_figure import draw_phases
from nngp.terminal.options import PhaseOptions
from nngp.terminal.output import print_result, usage_errors
from nngp.terminal.parsing import network
from nngp.terminal.tables import TABLES, check_writable, picture_file, write_table

DEFAULTS = {one.name: one.default for one in fields(PhaseOptions)}


def phase(options: PhaseOptions) -> None:
    """Draw the figure, write its diagram as a table, and print the networks in it."""
    activation, weight_var = options.activation or options.name, options.weight_var
    net = network(1, activation, 1.0 if weight_var is None else weight_var, options.bias_var)
    picture = picture_file(options.output, _file_name(options, activation), options.as_json)
    if options.table is not None:
        check_writable(options.table, TABLES, create=True)
    with usage_errors():  # all it takes is options
        data = phases(net.activation, weight_var, options.bias_var)
    _write(data, picture, options.table)
    files = {"picture": picture, "table": options.table}
    named = {kind: path for kind, path in files.items() if path is not None}
    print_result(f"signal propagation, {activation}", named | _facts(data), options.as_json)


def _file_name(options: PhaseOptions, activation: str) -> str:
    """A name for the picture that says what it shows: other networks have another one."""
    given = {"w": "weight_var", "b": "bias_var"}
    values = {letter: getattr(options, name) for letter, name in given.items()}
    words = [f"{k}{v:g}" for k, v in values.items() if v != DEFAULTS[given[k]]]
    return "-".join(["phase", activation, *words]) + ".svg"


def _write(data: Phases, picture: Path | None, table: Path | None) -> None:
    """Write the files that are wanted; the picture only if the table could be written as well."""
    if picture is None:
        if table is not None:
            write_table(data.diagram.columns(), table)
        return
    with replaced(picture) as part:
        draw_phases(data, part)
        _write(data, None, table)


def _facts(data: Phases) -> dict[str, object]:
    """The networks of the figure; depth scales are in layers."""
    networks = [
        {
            "weight_var": net.weight_var,
            "bias_var": net.bias_var,
            "phase": net.phase,
            "variance": net.variance,
            "correlation": net.correlation,
            "chi": net.chi,
            "xi_q": net.depth_scales[0],
            "xi_c": net.depth_scales[1],
        }
        for net in data.networks
    ]
    return {
        "activation": data.diagram.activation,
        "critical weight_var": data.critical_weight_var,
        "networks": networks,
    }
