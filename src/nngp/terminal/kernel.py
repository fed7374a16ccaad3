"""`nngp kernel`: a table of numbers to its kernel matrix."""

from dataclasses import fields
from pathlib import Path

import numpy as np

from nngp._arrays import Array
from nngp._files import replaced
from nngp.architecture import Architecture, Network, tangent_of
from nngp.frames import InputTable, learn_numbers
from nngp.frames.table import IN_WORDS
from nngp.gram import kernel as kernel_matrix, normalize, plan_kernel
from nngp.terminal.options import KernelOptions
from nngp.terminal.output import DataError, UsageError, print_result, usage_errors
from nngp.terminal.parsing import network, network_file, number
from nngp.terminal.tables import TABLES, check_not_input, check_writable, read_table, write_table

PLAIN = ("depth", "activation", "weight_var", "bias_var")  # options of a chain of equal layers


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
            **_named(net),
            "points": len(K),
            "method": plan.method,
            "reason": plan.reason,
            "smallest": float(K.min()),
            "largest": float(K.max()),
        }
        print_result(f"kernel of {options.table}", facts, as_json)


def _network(options: KernelOptions) -> Network:
    """The network that the options describe, or that their file does."""
    if options.network is None:
        depth = number("--depth", options.depth, whole=True)
        found: Network = network(depth, options.activation, options.weight_var, options.bias_var)
    else:
        defaults = {one.name: one.default for one in fields(options)}
        for name in PLAIN:
            if getattr(options, name) != defaults[name]:
                words = f"--{name.replace('_', '-')}"
                raise UsageError(f"--network describes the whole network; leave {words} out")
        found = network_file(options.network)
    with usage_errors():
        return tangent_of(found) if options.ntk else found


def _named(net: Network) -> dict[str, object]:
    return net.as_dict() if isinstance(net, Architecture) else {"network": repr(net)}


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
