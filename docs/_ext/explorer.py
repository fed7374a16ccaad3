"""The explorer: one self-contained page, assembled from the files of docs/explorer.

`build(path)` writes the page; the site's build calls it, and so do the tests. Activations without a
closed form need tables (`explorer/tables.json`). They are Chebyshev coefficients of one layer's
deficits, computed by the library:

    python docs/_ext/explorer.py    # some minutes; only after a change of the library or of FITS

Every build compares them with the library at points between the nodes, and fails if they differ by
more than `TOLERANCE`.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import nngp
from nngp.covariance.pair import Pair

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SOURCES = Path(__file__).parents[1] / "explorer"
SCRIPTS = ("kernels.js", "regimes.js", "gp.js", "draw.js", "panels.js", "app.js")
TABLES = SOURCES / "tables.json"
UNIT = 1e-11  # coefficients are written as multiples of it
TOLERANCE = 2e-9  # of a table, relative to the largest value
Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Fit:
    """A function of one parity to tabulate, up to the variance `to`."""

    fn: Callable[[Array], Array]
    to: float
    size: str  # growth with q that is divided out; SIZES in kernels.js has the same
    points: tuple[int, int]  # in the variance, in 1 - c
    power: float = 1.0  # beyond the table: the distance from the limit falls like q^-power
    second_size: str | None = None  # of E[phi²], for an even function
    kinks: tuple[float, ...] = ()


def _elu_even(x: Array) -> Array:
    return 0.5 * (np.abs(x) + np.expm1(-np.abs(x)))


def _elu_odd(x: Array) -> Array:
    return 0.5 * np.sign(x) * (np.abs(x) - np.expm1(-np.abs(x)))


def _log_cosh_half(x: Array) -> Array:
    size = np.abs(x)
    near = np.log1p(2 * np.sinh(0.25 * np.minimum(size, 4.0)) ** 2)
    return np.where(size < 4, near, 0.5 * size + np.log1p(np.exp(-size)) - np.log(2))


# silu and softplus are x/2 plus even functions (softplus less its value at 0); sigmoid is tanh in
# other units.
FITS = {
    "tanh": Fit(np.tanh, 7.0, "line", (32, 24)),
    "silu_even": Fit(
        lambda x: 0.5 * x * np.tanh(0.5 * x), 1e6, "parabola", (44, 40), second_size="parabola"
    ),
    "softplus_even": Fit(_log_cosh_half, 1e8, "parabola", (44, 44), 0.5, "parabola"),
    "elu_even": Fit(_elu_even, 1e8, "parabola", (44, 44), 0.5, "parabola", (0.0,)),
    "elu_odd": Fit(_elu_odd, 1e8, "line", (44, 24), 0.5, None, (0.0,)),
}
SIZES: dict[str, Callable[[Array], Array]] = {
    "line": lambda q: q,
    "parabola": lambda q: q / (1 + q) * q,
}


def build(path: Path) -> Path:
    """Write the page to `path`, with everything it needs inside."""
    tables = json.loads(TABLES.read_text(encoding="utf-8"))
    check(tables)
    parts = {
        "STYLE": _read("style.css"),
        "TABLES": _compact(tables),
        "SCRIPT": "\n".join(_read(name) for name in SCRIPTS),
        "VERSION": nngp.__version__,
    }
    page = _read("page.html")
    for name, text in parts.items():
        page = page.replace(f"/*{name}*/", text)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _read(name: str) -> str:
    return (SOURCES / name).read_text(encoding="utf-8")


def check(tables: dict[str, Any]) -> float:
    """Compare the tables with the library between their nodes; return the largest error."""
    places = [(name, fit, x) for name, fit in FITS.items() for x in (0.05, 0.31, 0.63)]
    worst = max(_error(name, fit, tables[name], x) for name, fit, x in places)
    if not worst <= TOLERANCE:
        raise ValueError(
            f"docs/explorer/tables.json differs from the library by {worst:.1e}; write it again "
            "with: python docs/_ext/explorer.py"
        )
    return worst


def _error(name: str, fit: Fit, table: dict[str, Any], x: float) -> float:
    """Error of a table at one variance, by the covariance of one layer, which is soon computed."""
    q, y = _variance(fit, x), np.array([0.5, 0.8, 1.0])
    m = _one_minus_corr(q, y)
    F = nngp.curves.layer_covariance(_activation(name, fit), q, q, np.append(1 - m, 1.0))
    errors = _read_table(table, x, y) - (F[-1] - F[:-1]) / m / SIZES[fit.size](q)
    if fit.second_size:
        second = F[-1] / SIZES[fit.second_size](q)
        errors = np.append(errors, _series(table["second"], x) - second)
    return float(np.abs(errors).max())


def _series(coefs: list[int], x: float | Array) -> Any:
    return UNIT * np.polynomial.chebyshev.chebval(2 * np.asarray(x) - 1, coefs)


def _read_table(table: dict[str, Any], x: float, y: Array) -> Array:
    rows = [float(_series(row, x)) for row in table["coefs"]]
    return np.polynomial.chebyshev.chebval(2 * y - 1, rows)


def write_tables() -> None:
    """Fit all tables from the library."""
    tables = {name: _fit(name, fit) for name, fit in FITS.items()}
    lines = [f'"{name}":{_compact(table)}' for name, table in tables.items()]
    TABLES.write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")
    print(f"largest error between nodes: {check(tables):.1e}")


def _fit(name: str, fit: Fit) -> dict[str, Any]:
    xs, ys = (_nodes(n) for n in fit.points)
    values = [_values(name, fit, _variance(fit, x), ys) for x in xs]
    by_x, by_y = (_to_coefficients(n) for n in fit.points)
    coefs = by_y @ np.array([deficit for deficit, _ in values]).T @ by_x.T  # (y, x)
    out = {"to": fit.to, "size": fit.size, "power": fit.power, "unit": UNIT}
    out["coefs"] = _trimmed([_whole(row) for row in coefs])
    if fit.second_size:
        out["second"] = _whole(by_x @ np.array([second for _, second in values]))
        out["second_size"] = fit.second_size
    print(name, sum(map(len, out["coefs"])), "coefficients", flush=True)
    return out


def _variance(fit: Fit, x: float) -> float:
    return float(np.sinh(x * np.arcsinh(np.sqrt(fit.to))) ** 2)


def _one_minus_corr(q: float, y: Array) -> Array:
    """m, from y = asinh(sqrt(m q)) / asinh(sqrt q)."""
    return np.minimum(np.sinh(y * np.arcsinh(np.sqrt(q))) ** 2 / q, 1.0)


def _activation(name: str, fit: Fit) -> nngp.Activation:
    return nngp.Activation(fit.fn, name=name, kinks=fit.kinks)


def _values(name: str, fit: Fit, q: float, y: Array) -> tuple[Array, float]:
    """deficit / (m size) at the points y, and E[phi²] / size."""
    phi, m = _activation(name, fit), _one_minus_corr(q, y)
    deficit = np.array([Pair(phi, q, q, False, float(each)).deficit(0.0)[0] for each in m])
    second = float(nngp.curves.layer_covariance(phi, q, q, 1.0))
    return deficit / m / SIZES[fit.size](q), second / SIZES[fit.second_size or fit.size](q)


def _nodes(n: int) -> Array:
    """Chebyshev points on [0, 1]."""
    return 0.5 + 0.5 * np.cos(np.pi * (np.arange(n) + 0.5) / n)


def _to_coefficients(n: int) -> Array:
    """The matrix that takes values at the nodes to Chebyshev coefficients."""
    out = 2 / n * np.cos(np.pi * np.outer(np.arange(n), np.arange(n) + 0.5) / n)
    out[0] /= 2
    return out


def _whole(coefs: Array) -> list[int]:
    return _trimmed([round(float(c) / UNIT) if abs(c) > 3 * UNIT else 0 for c in coefs])


def _trimmed(items: list[Any]) -> list[Any]:
    """Without what is zero or empty at the end."""
    while items and not items[-1]:
        items = items[:-1]
    return items


def setup(app: "Sphinx") -> dict[str, Any]:
    """Write the page beside the one that shows it."""

    def finish(app: "Sphinx", exception: Exception | None) -> None:
        if exception is None and app.builder.format == "html":
            build(Path(app.outdir) / "explorer" / "explorer.html")

    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    sys.exit(write_tables())
