"""The site's page on tables, recomputed from the CSV files between two marks."""

from pathlib import Path

from tabular_panel import Record, panel
from tabular_summary import GROUPS, groups, number, overview, published_table

BEGIN = "<!-- made by `python benchmarks/tabular.py page`: begin -->"
END = "<!-- made by `python benchmarks/tabular.py page`: end -->"
SHOWN = ("rmse", "log_likelihood", "coverage", "accuracy", "log_loss", "calibration")


def rewrite(path: Path, records: dict[str, list[Record]]) -> None:
    """Replace what is between the marks of a file."""
    text = path.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise SystemExit(f"{path} must have the line {BEGIN!r} and after it {END!r}, once each")
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    path.write_text(f"{before}{BEGIN}\n{section(records)}\n{END}{after}", encoding="utf-8")


def section(records: dict[str, list[Record]]) -> str:
    """The section: published numbers, then average ranks and means for each group of sets."""
    parts = [
        "The nine sets of the literature, with their splits (means over splits; published: the "
        "best RMSE and the best log likelihood of papers with these splits; shared are the splits "
        "that all methods have done):",
        published_table(records["regression"]),
    ]
    for name, group, measures in groups(records):
        panels = [panel(group, measure) for measure in measures if measure in SHOWN]
        text = overview(panels)
        if text:
            splits = sum(1 for record in group if record["method"] == panels[0].methods[0])
            parts += [f"{GROUPS[name]} ({number(splits, 6)} splits in all), rank 1 is best:", text]
    return "\n\n".join(parts)
