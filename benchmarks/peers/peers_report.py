"""Tables and pictures from the record alone; nothing is measured here."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import peers_exact
from peers_plan import LABELS, LEARN, LIBRARIES, NNGP, SCIPY, TANGENTS, TORCH

Record = dict[str, Any]
COLOURS = {NNGP: "#1f5fa8", TANGENTS: "#d9622b", TORCH: "#3b8f5a", LEARN: "#8a4fa3"}
COLOURS[SCIPY] = "#5b6770"
NONE = "–"
STYLE = Path(__file__).parents[2] / "docs" / "_static" / "matplotlibrc"


def tables(record: Record, exact: dict[str, Any]) -> str:
    """All tables, each under its title."""
    parts = {
        "Where and when": conditions(record),
        "Kernel matrix": kernel_table(record),
        "Kernel matrix against depth": depth_table(record),
        "Inputs of different norms": norms_table(record),
        "Error of the kernel": accuracy_table(record, exact),
        "Inference": inference_table(record),
        "Behaviour": behaviour_table(record),
        "Import": import_table(record),
    }
    return "\n\n".join(f"### {title}\n{table}" for title, table in parts.items())


def readme_times(record: Record) -> tuple[str, ...]:
    """The times that the README names: of a deep kernel, with this library and neural-tangents."""
    words = {"activation": "relu", "depth": 50}
    n = sizes(record, "kernel", library=TANGENTS, **words)[-1]
    return tuple(
        later(one(record, "kernel", library=peer, n=n, **words)) for peer in (NNGP, TANGENTS)
    )


def later(result: Record | None) -> str:
    return times(result).split(" (")[0]


def conditions(record: Record) -> str:
    machine = record["machine"]
    words = [
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"{machine['system']}, Python {machine['python']}; float64; `{record['command']}`, "
        f"{record['date']}."
    ]
    versions = {k: v for r in record["results"] for k, v in r.get("versions", {}).items()}
    words.append("Versions: " + ", ".join(f"{k} {v}" for k, v in sorted(versions.items())) + ".")
    words += [f"Not measured: {k} ({v})." for k, v in record.get("skipped", {}).items()]
    return " ".join(words)


def find(record: Record, what: str, **wanted: Any) -> list[Record]:
    """Results of one kind whose task, network or library have the wanted values."""
    found = []
    for result in record["results"]:
        values = {"norms": "equal", "relative": False, "outputs": None}
        values |= {**result["task"], **result["task"]["net"], "library": result["library"]}
        if values["what"] == what and all(values.get(k) == v for k, v in wanted.items()):
            found.append(result)
    return found


def one(record: Record, what: str, **wanted: Any) -> Record | None:
    found = find(record, what, **wanted)
    return found[-1] if found else None


def sizes(record: Record, what: str, **wanted: Any) -> list[int]:
    return sorted({r["task"]["n"] for r in find(record, what, **wanted)})


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines)


def seconds(value: float) -> str:
    if value < 0.0095:
        return f"{1000 * value:.1f} ms"
    if value < 0.95:
        return f"{1000 * value:.2g} ms" if value < 0.0995 else f"{value:.2f} s"
    return f"{value:.1f} s" if value < 99.5 else f"{value:.0f} s"


def times(result: Record | None) -> str:
    """Steady seconds, and those of the first call in brackets."""
    if result is None or "cannot" in result:
        return NONE
    if "failed" in result:
        return str(result["failed"])
    return f"{seconds(result['steady'])} ({seconds(result['first'])})"


def gib(result: Record | None) -> str:
    if result is None or "peak_bytes" not in result:
        return NONE
    size = result["peak_bytes"] / 2**30
    return f"{size:.2f} GiB" if size < 9.95 else f"{size:.0f} GiB"


def kernel_table(record: Record) -> str:
    """Seconds of a later call, of the first call in brackets, and memory."""
    asked = [
        ("relu", d, n)
        for d in (3, 10, 50)
        for n in sizes(record, "kernel", activation="relu", depth=d)[-1:]
    ]
    for name in ("erf", "tanh"):
        asked += [(name, 3, n) for n in sizes(record, "kernel", activation=name)]
    rows = []
    for name, depth, n in asked:
        row = [f"{name}, depth {depth}, n = {n:,}"]
        for library in (NNGP, TANGENTS, TORCH):
            found = one(record, "kernel", library=library, activation=name, depth=depth, n=n)
            row.append(times(found) + ("" if times(found) == NONE else f", {gib(found)}"))
        rows.append(row)
    for n in sizes(record, "kernel", activation="product")[-1:]:
        found = one(record, "kernel", activation="product", n=n)
        rows.append([f"one bare product X Xᵀ, n = {n:,}", times(found), NONE, NONE])
    return markdown(["", *(LABELS[name] for name in (NNGP, TANGENTS, TORCH))], rows)


def depth_table(record: Record) -> str:
    n = _middle(record)
    depths = sorted(
        {r["task"]["net"]["depth"] for r in find(record, "kernel", n=n, activation="relu")}
    )
    rows = []
    for library in (NNGP, TANGENTS, TORCH):
        found = [
            one(record, "kernel", library=library, activation="relu", depth=d, n=n, norms="equal")
            for d in depths
        ]
        rows.append([LABELS[library], *(times(r) for r in found)])
    return markdown([f"relu, n = {n:,}", *(f"depth {d}" for d in depths)], rows)


def _middle(record: Record) -> int:
    """The n at which most depths were measured."""
    ns = [r["task"]["n"] for r in find(record, "kernel", activation="relu", norms="equal")]
    return max(set(ns), key=ns.count)


def norms_table(record: Record) -> str:
    found = find(record, "kernel", norms="different")
    keys = sorted({(r["task"]["net"]["depth"], r["task"]["n"]) for r in found})
    rows = []
    for depth, n in keys:
        wanted = {"activation": "relu", "depth": depth, "n": n}
        row = [f"relu, depth {depth}, n = {n:,}"]
        for library in (NNGP, TANGENTS, TORCH):
            result = one(record, "kernel", library=library, norms="different", **wanted)
            row.append(times(result))
        rows.append(row)
    return markdown(["norms differ", *(LABELS[name] for name in (NNGP, TANGENTS, TORCH))], rows)


def accuracy_table(record: Record, exact: dict[str, Any]) -> str:
    """Largest error of an entry over K(x, x); of 1 - K(x, x')/K(x, x) over itself."""
    rows = []
    for name, right in exact.items():
        activation, depth, weight_var, bias_var = name.split()
        wanted = {"activation": activation, "depth": int(depth), "weight_var": float(weight_var)}
        row = [f"{activation}, depth {depth}, weight variance {weight_var}, bias {bias_var}"]
        for library in (NNGP, TANGENTS, TORCH):
            found = one(record, "accuracy", library=library, **wanted)
            if found is None or "row" not in found:
                row.append(NONE)
                continue
            errors = peers_exact.errors(right, found)
            row.append(f"{errors['entry']:.0e}; {share(errors['deficit'])}")
        rows.append(row)
    return markdown(["network", *(LABELS[name] for name in (NNGP, TANGENTS, TORCH))], rows)


def share(error: float) -> str:
    return f"{error:.0e}" if error < 0.5 else "all lost"


def inference_table(record: Record) -> str:
    """Seconds of a later call (of the first), and memory, by n and number of outputs."""
    rows = []
    for library in LIBRARIES:
        for outputs in (10, 1):
            ns = sizes(record, "inference", library=library, outputs=outputs)
            if not ns:
                continue
            words = f"{LABELS[library]}, {outputs} output{'s' if outputs > 1 else ''}"
            row = [words]
            for n in sizes(record, "inference"):
                found = one(record, "inference", library=library, outputs=outputs, n=n)
                row.append(times(found) + ("" if times(found) == NONE else f", {gib(found)}"))
            rows.append(row)
    return markdown(["", *(f"n = {n:,}" for n in sizes(record, "inference"))], rows)


def agreement(record: Record) -> dict[str, float]:
    """Largest difference of means and variances from SciPy by hand, at the shown test points."""
    import numpy as np

    worst: dict[str, float] = {}
    for right in find(record, "inference", library=SCIPY):
        for library in (NNGP, TANGENTS, TORCH):
            found = one(record, "inference", library=library, n=right["task"]["n"], outputs=10)
            if found is None or "mean" not in found:
                continue
            gaps = [np.abs(np.subtract(found[k], right[k])).max() for k in ("mean", "variance")]
            worst[library] = max(worst.get(library, 0.0), *map(float, gaps))
    return worst


def behaviour_table(record: Record) -> str:
    asked: list[tuple[str, str, dict[str, Any]]] = []
    depths = sorted({r["task"]["net"]["depth"] for r in find(record, "depth")})
    for depth in depths:
        words = f"test accuracy at depth {depth}, ordered phase, noise 1e-10"
        asked.append((words, "depth", {"depth": depth, "relative": False}))
    for depth in depths[-1:]:
        words = f"the same at depth {depth}, noise relative to the kernel's scale"
        asked.append((words, "depth", {"depth": depth, "relative": True}))
    for noise in (0.0, 1e-10):
        words = f"duplicates among the rows, noise {noise:g}"
        asked.append((words, "duplicates", {"noise_var": noise}))
    asked.append(("singular matrix (linear model, n > d + 1), noise 0", "singular", {}))
    rows = [
        [words, *(behaviour(one(record, what, library=name, **wanted)) for name in LIBRARIES)]
        for words, what, wanted in asked
    ]
    return markdown(["", *LABELS.values()], rows)


def behaviour(result: Record | None) -> str:
    """In words: numbers with their error or accuracy, NaN, an error; what was said."""
    if result is None or "cannot" in result:
        return NONE
    if "failed" in result:
        return str(result["failed"])
    warned = sorted({line.split(":")[0] for line in result.get("warnings", [])})
    voice = f", {' and '.join(warned)}" if warned else ", silent"
    if result["outcome"] == "error":
        return f"raises {result['message'].split(':')[0]}"
    if result["outcome"] == "NaN":
        return f"NaN{voice}"
    words = f"error {result['error']:.0e}" if "error" in result else f"{result['accuracy']:.3f}"
    used, asked = result.get("noise_used"), result["task"].get("noise_var")
    raised = used is not None and asked is not None and used > 1.01 * max(asked, 1e-300)
    if raised and not result["task"].get("relative"):
        words += f" with noise {used:.0e}"
    if result.get("negative_variances"):
        words += f", {result['negative_variances']} variances below 0"
    return words + voice


def import_table(record: Record) -> str:
    import statistics

    rows = []
    for library in LIBRARIES:
        found = [
            r["import"] for r in record["results"] if r["library"] == library and "import" in r
        ]
        if found:
            rows.append([LABELS[library], seconds(statistics.median(found))])
    return markdown(["", "import"], rows)


def draw(record: Record, path: Path) -> None:
    """The picture of the README: kernel against depth, and inference against n."""
    import matplotlib.pyplot as plt

    with plt.rc_context(fname=STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(7, 3))
        draw_depth(record, axes[0])
        draw_inference(record, axes[1])
        figure.savefig(path, dpi=160)
        plt.close(figure)


def draw_depth(record: Record, axes: Any, n: int | None = None) -> None:
    n = n or _middle(record)
    lines = {}
    for library in (NNGP, TANGENTS, TORCH):
        found = find(record, "kernel", library=library, activation="relu", n=n, norms="equal")
        lines[library] = [(r["task"]["net"]["depth"], r["steady"]) for r in found if "steady" in r]
    draw_lines(axes, lines, {TORCH: "BoTorch"})
    axes.set(title=f"Kernel, relu, n = {n:,}", xlabel="depth", ylabel="seconds")
    product = one(record, "kernel", activation="product", n=n)
    if product is not None and "steady" in product:
        axes.axhline(product["steady"], color="#5b6770", lw=1, ls=":")
        axes.annotate(
            "product X Xᵀ",
            (axes.get_xlim()[1], product["steady"]),
            (0, -3),
            textcoords="offset points",
            ha="right",
            va="top",
            color="#5b6770",
            fontsize=8,
        )


def draw_growth(record: Record, axes: Any) -> None:
    lines = {}
    for library in (NNGP, TANGENTS, TORCH):
        found = find(record, "kernel", library=library, activation="relu", depth=3, norms="equal")
        lines[library] = [(r["task"]["n"], r["steady"]) for r in found if "steady" in r]
    found = find(record, "kernel", activation="product")
    lines[SCIPY] = [(r["task"]["n"], r["steady"]) for r in found if "steady" in r]
    draw_lines(axes, lines, {TORCH: "BoTorch", SCIPY: "product X Xᵀ"})
    axes.set(title="Kernel, relu, depth 3", xlabel="n", ylabel="seconds")


def draw_inference(record: Record, axes: Any, memory: bool = False) -> None:
    """Ten outputs; GPyTorch also with one, where it has nothing else."""
    lines = {}
    for library in LIBRARIES:
        outputs = 1 if library == TORCH else 10
        found = find(record, "inference", library=library, outputs=outputs)
        name = "peak_bytes" if memory else "steady"
        unit = 2**30 if memory else 1
        lines[library] = [(r["task"]["n"], r[name] / unit) for r in found if name in r]
    short = {TORCH: "GPyTorch, 1 output", LEARN: "scikit-learn (RBF)"}
    draw_lines(axes, lines, short)
    title = "Memory of inference" if memory else "Inference, 10 outputs"
    axes.set(title=title, xlabel="n", ylabel="GiB" if memory else "seconds")


def draw_lines(
    axes: Any, lines: dict[str, list[tuple[int, float]]], short: dict[str, str] | None = None
) -> None:
    """Lines in logarithmic axes, each named at its right end; names do not overlap."""
    names = {**LABELS, **(short or {})}
    ends = []
    for library, points in lines.items():
        if not points:
            continue
        x, y = zip(*sorted(points), strict=True)
        axes.plot(x, y, "o-", color=COLOURS[library], lw=2.2 if library == NNGP else 1.4, ms=3.5)
        ends.append((y[-1], x[-1], library))
    axes.set(xscale="log", yscale="log")
    if not ends:
        return
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * 1.3)
    ticks = sorted({x for points in lines.values() for x, _ in points})
    if len(ticks) > 6:
        ticks = ticks[::2]
    axes.set_xticks(ticks, [f"{x:,}" for x in ticks])
    axes.minorticks_off()
    axes.margins(x=0.05)
    _name_ends(axes, sorted(ends), names)


def _name_ends(axes: Any, ends: list[tuple[float, int, str]], names: dict[str, str]) -> None:
    """Names beside the axes, at least a line apart."""
    import numpy as np

    low, high = np.log(axes.get_ylim())
    places: list[float] = []
    for y, _, _ in ends:
        above = places[-1] + 0.085 if places else 0.0
        places.append(max((np.log(y) - low) / (high - low), above))
    down = max(places[-1] - 1.0, 0.0)
    for place, (_, _, library) in zip(places, ends, strict=True):
        axes.annotate(
            names[library],
            (1.02, place - down),
            xycoords="axes fraction",
            color=COLOURS[library],
            fontsize=8,
            va="center",
            annotation_clip=False,
        )
