"""`nngp phase`: an activation to a figure of signal propagation, and its numbers."""

from nngp._files import replaced
from nngp.plots import need_matplotlib
from nngp.plots.phases import Phases, phases
from nngp.plots.phases_figure import draw_phases
from nngp.terminal.options import PhaseOptions
from nngp.terminal.output import print_result, usage_errors
from nngp.terminal.parsing import network
from nngp.terminal.tables import PICTURES, TABLES, check_writable, write_table


def phase(options: PhaseOptions) -> None:
    """Draw the figure, write its diagram as a table, and print the networks in it."""
    activation, weight_var = options.activation or options.name, options.weight_var
    check_writable(options.output, PICTURES, create=True)
    if options.table is not None:
        check_writable(options.table, TABLES, create=True)
    net = network(1, activation, 1.0 if weight_var is None else weight_var, options.bias_var)
    need_matplotlib()
    with usage_errors():  # all it takes is options
        data = phases(net.activation, weight_var, options.bias_var)
    with replaced(options.output) as part:
        draw_phases(data, part)
        if options.table is not None:
            write_table(data.diagram.columns(), options.table)
    files = {"picture": options.output}
    if options.table is not None:
        files["table"] = options.table
    print_result(f"signal propagation, {activation}", files | _facts(data), options.as_json)


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
