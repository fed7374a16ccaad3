"""`nngp kernel` and `nngp phase`: the commands about a network that need no model."""

from dataclasses import fields
from pathlib import Path

import numpy as np

from nngp._arrays import Array
from nngp._files import replaced
from nngp.architecture import Network, tangent_of
from nngp.frames import InputTable, learn_numbers
from nngp.frames.table import IN_WORDS
from nngp.gram import kernel as kernel_matrix, normalize, plan_kernel
from nngp.plots.phases import Phases, phases
from nngp.plots.phases_figure import draw_phases
from nngp.terminal.estimator_options import network, network_file, number
from nngp.terminal.options import KernelOptions, PhaseOptions
from nngp.terminal.output import DataError, UsageError, option_named, print_result, usage_errors
from nngp.terminal.scores import network_facts
from nngp.terminal.tables import (
    TABLES,
    check_not_input,
    check_writable,
    picture_file,
    read_table,
    write_table,
)

# The options that describe a chain of equal layers.
CHAIN_OPTIONS = ("depth", "activation", "weight_var", "bias_var")


def kernel(options: KernelOptions) -> None:
    """Write the kernel matrix of a table, and print how it was computed."""
    net = _network(options)
    output, as_json = options.output, options.as_json
    if output is not None:
        check_writable(output, (".npy", *TABLES), create=True)
        check_not_input(output, [options.table])
    X = _numbers(read_table(options.table, options))
    X = normalize(X) if options.normalize else X
    K, plan = kernel_matrix(net, X), plan_kernel(net, X)
    if output is not None or not as_json:
        _write(K, output)
    if output is not None or as_json:
        facts = {
            **network_facts(net),
            "points": len(K),
            "method": plan.method,
            "reason": plan.reason,
            "smallest": float(K.min()),
            "largest": float(K.max()),
        }
        print_result(f"kernel of {options.table}", facts, as_json=as_json)


def _network(options: KernelOptions) -> Network:
    """The network that the options describe, or that their file does."""
    if options.network is None:
        depth = number("--depth", options.depth, whole=True)
        found: Network = network(depth, options.activation, options.weight_var, options.bias_var)
    else:
        defaults = {one.name: one.default for one in fields(options)}
        for name in CHAIN_OPTIONS:
            if getattr(options, name) != defaults[name]:
                extra = option_named(name)
                raise UsageError(f"--network describes the whole network; remove {extra}")
        found = network_file(options.network)
    with usage_errors():
        return tangent_of(found) if options.ntk else found


def _numbers(table: InputTable) -> Array:
    """The columns as numbers; DataError where one holds anything else, or lacks a value."""
    out = []
    for column in table.columns:
        encoding = learn_numbers(column, table.decimal)
        if encoding is None:
            raise DataError(f"column '{column.name}' holds {IN_WORDS[column.kind]}, not numbers")
        values = encoding.read(column)
        if np.isnan(values).any():
            raise DataError(f"column '{column.name}' lacks values; fill or remove those rows")
        out.append(values)
    return np.column_stack(out)


def _write(K: Array, output: Path | None) -> None:
    if output is not None and output.suffix == ".npy":
        with replaced(output) as part:
            np.save(part, K)
    else:
        write_table({f"k{j}": K[:, j] for j in range(len(K))}, output)


PHASE_DEFAULTS = {one.name: one.default for one in fields(PhaseOptions)}


def phase(options: PhaseOptions) -> None:
    """Draw the figure, write its diagram as a table, and print the networks in it."""
    activation, weight_var = options.activation or options.name, options.weight_var
    net = network(1, activation, 1.0 if weight_var is None else weight_var, options.bias_var)
    picture = picture_file(options.output, _file_name(options, activation), options.as_json)
    if options.table is not None:
        check_writable(options.table, TABLES, create=True)
    with usage_errors():  # its arguments are options only
        data = phases(net.activation, weight_var, options.bias_var, name=activation)
    _write_phases(data, picture, options.table)
    files = {"picture": picture, "table": options.table}
    named = {kind: path for kind, path in files.items() if path is not None}
    print_result(
        f"signal propagation, {activation}", named | _phase_facts(data), as_json=options.as_json
    )


def _file_name(options: PhaseOptions, activation: str) -> str:
    """A name for the picture that says what it shows: other networks have another one."""
    given = {"w": "weight_var", "b": "bias_var"}
    values = {letter: getattr(options, name) for letter, name in given.items()}
    words = [f"{k}{v:g}" for k, v in values.items() if v != PHASE_DEFAULTS[given[k]]]
    return "-".join(["phase", activation, *words]) + ".svg"


def _write_phases(data: Phases, picture: Path | None, table: Path | None) -> None:
    """Write the files that are wanted; the picture only if the table could be written as well."""
    if picture is None:
        if table is not None:
            write_table(data.diagram.columns(), table)
        return
    with replaced(picture) as part:
        draw_phases(data, part)
        _write_phases(data, None, table)


def _phase_facts(data: Phases) -> dict[str, object]:
    """The networks of the figure; depth scales are in layers."""
    networks = [
        {
            "weight_var": net.weight_var,
            "bias_var": net.bias_var,
            "phase": net.phase,
            "variance": net.variance,
            "correlation": net.correlation,
            "chi": net.chi,
            "depth_scale_variance": net.depth_scales[0],
            "depth_scale_correlation": net.depth_scales[1],
        }
        for net in data.networks
    ]
    return {
        "activation": data.name,
        "critical_weight_var": data.critical_weight_var,
        "networks": networks,
    }
