"""The index of the paper's equations: where each is computed, and which test holds it."""

from dataclasses import dataclass

from nngp_paper.report.html import Html, table


@dataclass(frozen=True)
class Entry:
    """An equation or rule of the paper, its file in the repository, and its test."""

    place: str
    says: str
    file: str
    test: str


EQUATIONS = (
    Entry(
        "eq. 1 to 3",
        "a network with Gaussian weights",
        "src/nngp/finite/network.py",
        "tests/finite/test_network.py",
    ),
    Entry(
        "eq. 4, 5",
        "the kernel's recursion over layers",
        "src/nngp/architecture/walk.py",
        "tests/gram/test_kernel.py",
    ),
    Entry(
        "eq. 5, F",
        "E[φ(u)φ(v)] of one layer",
        "src/nngp/covariance/closed_form.py",
        "tests/covariance/test_closed_form.py",
    ),
    Entry(
        "eq. 6",
        "the kernel of the inputs",
        "src/nngp/architecture/walk.py",
        "tests/gram/test_kernel.py",
    ),
    Entry(
        "eq. 7 to 9",
        "posterior mean and variance",
        "src/nngp/posterior/posterior.py",
        "tests/posterior/test_posterior.py",
    ),
    Entry(
        "eq. 10, footnote 2",
        "the look-up table, and the one for correlation 1",
        "src/nngp/covariance/lookup.py",
        "tests/covariance/test_lookup.py",
    ),
    Entry(
        "sec. 3.2",
        "phases, critical line, depth scales",
        "src/nngp/regimes/diagram.py",
        "tests/regimes/test_fixed_points.py",
    ),
    Entry(
        "eq. 11 (app. B)",
        "the arccosine kernel",
        "src/nngp/covariance/homogeneous_forms.py",
        "tests/covariance/test_closed_form.py",
    ),
    Entry(
        "eq. 12 to 19 (app. C)",
        "kernels of finite layers, and their limit",
        "src/nngp/finite/width_convergence.py",
        "tests/finite/test_width_convergence.py",
    ),
    Entry(
        "app. D",
        "splits, ranges, and the ladder of the noise",
        "reproduction/src/nngp_paper/sweep.py",
        "reproduction/tests/paper/test_sweep.py",
    ),
    Entry(
        "app. D, footnote 3",
        "random search with Adam or plain descent",
        "reproduction/src/nngp_paper/finite/random_search.py",
        "reproduction/tests/finite/test_random_search.py",
    ),
)


TESTS = {  # of the parts, in reproduction/tests/paper
    **dict.fromkeys(("table1", "table2"), "test_paper_tables.py"),
    "fig1": "test_fig01_performance.py",
    "fig2": "test_fig02_gap.py",
    **dict.fromkeys(("fig3", "fig8"), "test_uncertainty.py"),
    **dict.fromkeys(("fig4", "fig9"), "test_heat_maps.py"),
    "fig5": "test_fig05_prior.py",
    "fig6": "test_fig06_angular.py",
    "fig7": "test_fig07_graphical_model.py",
    "fig10": "test_fig10_best.py",
    "width": "test_width_part.py",
    "invariance": "test_invariance_part.py",
}


def equations() -> Html:
    """The index as a table. Equations have no verdict of their own: their tests hold them."""
    rows = [(one.place, one.says, one.file, one.test) for one in EQUATIONS]
    heads = ("the paper", "what", "file", "test")
    return table(heads, rows, "Equations of the paper.", "Equations", "index")
