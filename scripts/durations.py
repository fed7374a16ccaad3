"""Write down how long the tests of each tier take, and which take longest.

    make test-all                    # leaves a report of each tier in .pytest_cache
    python scripts/durations.py      # writes tests/durations.md from them

Seconds are those of setting a test up, running it and tearing it down, as pytest measured them;
what a fixture of a module or a session takes is counted with the first test that needs it.
"""

import argparse
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
TIERS = ("default", "slow", "reproduction", "reproduction-slow")  # the reports of `make test-all`


@dataclass(frozen=True)
class Case:
    tier: str
    test: str
    seconds: float
    skipped: bool


def cases_of(report: Path) -> list[Case]:
    """The cases of a tier's report in JUnit's XML, which has modules as dotted names."""
    root = "reproduction/" if report.stem.startswith("reproduction") else ""
    found = []
    for case in ElementTree.parse(report).iter("testcase"):
        place, name = case.get("classname", ""), case.get("name", "")
        test = f"{root}{place.replace('.', '/')}.py::{name}"
        seconds, skipped = float(case.get("time", 0)), case.find("skipped") is not None
        found.append(Case(report.stem, test, seconds, skipped))
    return found


def page(cases: list[Case], longest: int) -> str:
    """The record in Markdown: a line for each tier, then one for each of the longest tests."""
    lines = [
        f"# The {longest} longest tests",
        "",
        "Written by `python scripts/durations.py` from the reports of `make test-all`, which runs",
        f"two processes, on {os.cpu_count()} cores ({platform.machine()}) with Python "
        f"{platform.python_version()}. Seconds are",
        "of single tests, setting up and tearing down included.",
        "",
        "| tier | tests | of these skipped | seconds, all together |",
        "|---|--:|--:|--:|",
    ]
    for tier in dict.fromkeys(case.tier for case in cases):
        own = [case for case in cases if case.tier == tier]
        skipped, seconds = sum(case.skipped for case in own), sum(case.seconds for case in own)
        lines.append(f"| {tier} | {len(own)} | {skipped} | {seconds:.0f} |")
    lines += ["", "| seconds | tier | test |", "|--:|---|---|"]
    for case in sorted(cases, key=lambda case: -case.seconds)[:longest]:
        test = case.test.replace("|", r"\|")
        lines.append(f"| {case.seconds:.2f} | {case.tier} | `{test}` |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reports", nargs="*", type=Path, help="JUnit XML, one for each tier")
    parser.add_argument("--longest", type=int, default=100)
    parser.add_argument("--out", type=Path, default=ROOT / "tests" / "durations.md")
    options = parser.parse_args()
    reports = options.reports or [ROOT / ".pytest_cache" / f"{tier}.xml" for tier in TIERS]
    cases = [case for report in reports for case in cases_of(report)]
    options.out.write_text(page(cases, options.longest))
    print(f"{len(cases)} tests, written to {options.out}")


if __name__ == "__main__":
    main()
