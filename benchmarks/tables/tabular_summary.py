"""Tables of the benchmark, as Markdown, from the records of the CSV files.

Published numbers to beat: the best RMSE and the best log likelihood that papers with these splits
report (not always of one method); wine's are without twins.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from tabular_panel import Panel, Record, panel

OURS = "nngp"
PUBLISHED: dict[str, tuple[float | None, float]] = {
    "boston": (2.57, -2.34),
    "concrete": (4.15, -2.83),
    "energy": (0.354, -0.34),
    "kin8nm": (0.07, 1.38),
    "naval": (None, 7.77),
    "power": (3.19, -2.60),
    "protein": (3.85, -2.58),
    "wine_red": (0.556, -0.80),
    "yacht": (0.26, 0.13),
}
# fmt: off
LARGER = {
    "annealing", "audiology-std", "chess-krvk", "conn-bench-vowel-deterding", "hayes-roth",
    "hill-valley", "horse-colic", "image-segmentation", "letter", "magic", "monks-1", "monks-2",
    "monks-3", "mushroom", "nursery", "optical", "page-blocks", "pendigits", "ringnorm",
    "soybean", "spect", "spectf", "statlog-landsat", "thyroid", "twonorm", "wall-following",
}
# fmt: on
GROUPS = {
    "uci": "9 sets of the literature",
    "uci_more": "31 sets, at most 2,000 training rows",
    "small": "90 small sets",
    "larger": "26 other sets, at most 5,000 training rows",
}
REGRESSION = ("rmse", "log_likelihood", "crps", "coverage", "width")
CLASSIFICATION = ("accuracy", "log_loss", "log_loss_mixed", "calibration")
RANKED = ("rmse", "log_likelihood", "crps", "accuracy", "log_loss", "log_loss_mixed")


def summary(records: dict[str, list[Record]]) -> str:
    """All tables."""
    parts = ["# Published numbers and ours", published_table(records["regression"])]
    for name, group, measures in groups(records):
        parts.append(f"# {GROUPS[name]}")
        panels = [panel(group, measure) for measure in measures]
        parts += [overview(panels), paired_table(group, measures)]
        parts += [per_set(p) for p in panels]
    parts += ["# Median seconds of a fit, by machine", seconds_table(records)]
    return "\n\n".join(part for part in parts if part)


def groups(records: dict[str, list[Record]]) -> Iterable[tuple[str, list[Record], Sequence[str]]]:
    """Records that are averaged together, with their measures."""
    regression, classes = records["regression"], records["classification"]
    for name in ("uci", "uci_more"):
        yield name, [r for r in regression if r["collection"] == name], REGRESSION
    yield "small", [r for r in classes if r["set"] not in LARGER], CLASSIFICATION
    yield "larger", [r for r in classes if r["set"] in LARGER], CLASSIFICATION


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float | None, digits: int = 3) -> str:
    """A number with so many digits; a dash for none."""
    if value is None:
        return "–"
    return "failed" if np.isnan(value) else f"{value:.{digits}g}"


def overview(panels: list[Panel]) -> str:
    """A row for each method: average ranks, and means of measures that have a common scale."""
    shown = [p for p in panels if p.sets]
    if not shown:
        return ""
    columns: list[tuple[str, dict[str, float]]] = []
    for p in shown:
        title = f"{p.measure} ({len(p.sets)} sets)"
        if p.measure in RANKED:
            columns.append((f"rank in {title}", p.ranks()))
        if p.measure not in ("rmse", "crps", "log_likelihood"):
            columns.append((f"mean {title}", p.means()))
    methods = list(dict.fromkeys(m for p in shown for m in p.methods))
    head = ["", *(title for title, _ in columns)]
    rows = [[m, *(number(values.get(m)) for _, values in columns)] for m in methods]
    absent = sorted({m for p in shown for m in p.left_out})
    note = f"\n\nToo few runs to compare: {', '.join(absent)}." if absent else ""
    return table(head, rows) + note


def paired_table(records: list[Record], measures: Sequence[str]) -> str:
    """Sets won, drawn and lost against each method, with Wilcoxon's p-value.

    Each pair is compared on the splits that both have, whatever the other methods have done.
    """
    others = sorted({r["method"] for r in records if r["method"] != OURS})
    rows = []
    for measure in (m for m in measures if m in RANKED):
        for other in others:
            p = panel([r for r in records if r["method"] in (OURS, other)], measure)
            if len(p.methods) == 2:
                won, drawn, lost, chance = p.paired(OURS, other)
                rows.append([measure, other, f"{won}–{drawn}–{lost}", number(chance, 2)])
    return (
        table(["measure", "nngp against", "won–drawn–lost", "p (Wilcoxon)"], rows) if rows else ""
    )


def per_set(p: Panel) -> str:
    """All values of a panel."""
    rows = [
        [name.partition("/")[2], *(number(v, 4) for v in values)]
        for name, values in zip(p.sets, p.values, strict=True)
    ]
    return table([p.measure, *p.methods], rows) if rows else ""


def published_table(regression: list[Record]) -> str:
    """Published numbers beside those of nngp on all its splits; then nngp and the best other method
    on the splits that all methods have done."""
    rows = []
    for name, published in PUBLISHED.items():
        records = [r for r in regression if (r["collection"], r["set"]) == ("uci", name)]
        twins = name == "wine_red"
        rows.append(_published_row(name, (None, None) if twins else published, records, ""))
        if twins:
            rows.append(
                _published_row(f"{name} without twins", published, records, "without_twins.")
            )
    head = ["set", "splits"]
    for measure in ("RMSE", "log likelihood"):
        head += [f"{measure}: published", "nngp", "shared splits: nngp", "best other"]
    return table([*head, "95% interval of nngp covers"], rows)


def _published_row(
    name: str, published: tuple[float | None, ...], records: list[Record], prefix: str
) -> list[str]:
    own = [record for record in records if record["method"] == OURS]
    row = [name, str(len(own))]
    for best, measure in zip(published, ("rmse", "log_likelihood"), strict=True):
        ours = panel(own, prefix + measure).only().get(OURS)
        row += [number(best), number(ours), *_cells(panel(records, prefix + measure))]
    return [*row, number(panel(own, f"{prefix}coverage").only().get(OURS))]


def _cells(p: Panel) -> tuple[str, str]:
    """Of a panel of one set: nngp's value, and that of the best other method with its name."""
    found = p.only()
    others = {m: v for m, v in found.items() if not m.startswith(OURS) and not np.isnan(v)}
    if not others:
        return number(found.get(OURS)), "–"
    pick = max if p.measure.endswith("log_likelihood") else min
    best = pick(others, key=lambda m: others[m])
    return number(found.get(OURS)), f"{number(others[best])} ({best})"


def seconds_table(records: dict[str, list[Record]]) -> str:
    """Median seconds of a fit. Each machine had other work beside, so these are no comparison."""
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for task, listed in records.items():
        for record in listed:
            if "fit_seconds" in record:
                found[task, record["method"], record["machine"]].append(record["fit_seconds"])
    rows: list[list[Any]] = [
        [*key, str(len(values)), number(float(np.median(values)), 2)]
        for key, values in sorted(found.items())
    ]
    return table(["task", "method", "machine", "runs", "seconds"], rows)
