"""Measure how many small faults in the library its tests notice.

    python scripts/mutants.py --out mutants.json      # draw mutants, run the tests on them
    python scripts/mutants.py --again mutants.json    # the same mutants, the tests of today

A mutant is the library with one place changed: a comparison, a constant, a sign, an index, or a
statement deleted. The places are drawn with a seed, equally many in each stage, and each mutant is
run against the tests and the docstrings of its own stage until the first failure. A mutant that no
test notices survives; not every survivor is a fault of the tests, as some changes have no effect on
any result (a tolerance that is never reached, a buffer that is larger than it needs to be).

The record holds the mutants, so that another version of the tests can face the same ones; those
whose line has changed since are left out of the comparison.
"""

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from queue import SimpleQueue
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STAGES = (
    "architecture", "covariance", "curve", "gram", "linsolve", "posterior", "frames", "predictive",
    "selection", "estimators", "regimes",
)  # fmt: skip
COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
SIGNS = {"+": "-", "-": "+"}
OPERATORS = re.compile(r"<=|>=|==|!=|<|>|\+|-")


@dataclass(frozen=True)
class Mutant:
    """One changed place of a file: `old` at this line and column becomes `new`."""

    kind: str
    path: str
    line: int
    column: int
    old: str
    new: str
    text: str  # the whole line

    @property
    def tests(self) -> tuple[str, ...]:
        """Where the tests of its stage are; those of clusters have a folder of their own."""
        stage = Path(self.path).parts[2]
        cluster = "/cluster/" in self.path or "/dask/" in self.path
        return (f"tests/{stage}", f"src/nngp/{stage}", *(["tests/cluster"] if cluster else []))

    @property
    def is_there(self) -> bool:
        """Whether the line is still what it was when the mutant was drawn."""
        path = ROOT / self.path
        lines = path.read_text().splitlines() if path.exists() else []
        return self.line <= len(lines) and lines[self.line - 1] == self.text

    def applied_to(self, source: str) -> str:
        lines = source.splitlines(keepends=True)
        at = sum(map(len, lines[: self.line - 1])) + self.column
        return source[:at] + self.new + source[at + len(self.old) :]


class Places(ast.NodeVisitor):
    """Every place of one file that can be mutated."""

    def __init__(self, path: str, source: str) -> None:
        self.path, self.source, self.found = path, source, list[Mutant]()
        self.lines = source.splitlines(keepends=True)
        self.visit(ast.parse(source))

    def generic_visit(self, node: ast.AST) -> None:
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue  # no test can tell
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    self.visit(child)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) != "TYPE_CHECKING":
            self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        self._operator("comparison", node.left, node.comparators[0], COMPARISONS)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, (ast.Add, ast.Sub)):
            self._operator("sign", node.left, node.right, SIGNS)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.slice, ast.Constant) and type(node.slice.value) is int:
            self._constant("index", node.slice, node.slice.value + 1)
            self.visit(node.value)
        else:
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if type(node.value) is int:
            self._constant("constant", node, node.value + 1)
        elif type(node.value) is float:
            self._constant("constant", node, 2 * node.value or 1.0)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._delete(node)
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._delete(node)
        self.generic_visit(node)

    def _text(self, node: ast.expr | ast.stmt) -> str:
        return ast.get_source_segment(self.source, node) or ""

    def _column(self, line: int, offset: int) -> int:
        """Characters before a place: ast counts bytes, and formulas are not ASCII."""
        return len(self.lines[line - 1].encode()[:offset].decode())

    def _add(self, kind: str, line: int, column: int, old: str, new: str) -> None:
        text = self.lines[line - 1].rstrip("\n")
        self.found.append(Mutant(kind, self.path, line, column, old, new, text))

    def _operator(self, kind: str, left: ast.expr, right: ast.expr, swaps: dict[str, str]) -> None:
        if left.end_lineno != right.lineno or left.end_col_offset is None:
            return
        start = self._column(right.lineno, left.end_col_offset)
        end = self._column(right.lineno, right.col_offset)
        between = OPERATORS.search(self.lines[right.lineno - 1][start:end])
        if between and between[0] in swaps:
            old = between[0]
            self._add(kind, right.lineno, start + between.start(), old, swaps[old])

    def _constant(self, kind: str, node: ast.Constant, new: float) -> None:
        column = self._column(node.lineno, node.col_offset)
        self._add(kind, node.lineno, column, self._text(node), repr(new))

    def _delete(self, node: ast.stmt) -> None:
        column = self._column(node.lineno, node.col_offset)
        self._add("deleted", node.lineno, column, self._text(node), "pass")


def draw(count: int, seed: int) -> list[Mutant]:
    """Draw places, a kind first and then one of that kind, stage by stage in turn."""
    rng = random.Random(seed)
    drawn = list[Mutant]()
    for i, stage in enumerate(STAGES):
        places = dict[str, list[Mutant]]()
        for path in sorted((ROOT / "src" / "nngp" / stage).rglob("*.py")):
            name, source = path.relative_to(ROOT).as_posix(), path.read_text()
            for mutant in Places(name, source).found:
                places.setdefault(mutant.kind, []).append(mutant)
        for _ in range(len(range(i, count, len(STAGES)))):
            kind = rng.choice(sorted(places))
            drawn.append(places[kind].pop(rng.randrange(len(places[kind]))))
            places = {kind: left for kind, left in places.items() if left}
    return drawn


class Suite:
    """Copies of the library and its tests, one for each test run at the same time."""

    def __init__(self, scratch: Path, jobs: int) -> None:
        self.jobs = jobs
        self.copies = SimpleQueue[Path]()
        for i in range(jobs):
            copy = scratch / str(i)
            copy.mkdir()
            for name in ("src", "tests", "scripts"):
                shutil.copytree(ROOT / name, copy / name)
            shutil.copy(ROOT / "pyproject.toml", copy)
            self.copies.put(copy)
        self.failing = dict[tuple[str, ...], list[str]]()
        self.seconds = dict[tuple[str, ...], float]()

    def run_unchanged(self, tests: tuple[str, ...]) -> None:
        """Find the tests that fail anyway (for want of a package, say), and how long all take."""
        begun = time.perf_counter()
        words = ["-rfE", "--continue-on-collection-errors", "-n", str(self.jobs)]
        code, printed = self._pytest(tests, words)
        if code not in (
            0,
            1,
        ):  # pytest's codes for tests that ran; else every mutant would be killed
            raise RuntimeError(
                f"the tests {tests} do not run (pytest ended with {code}):\n{printed}"
            )
        self.seconds[tests] = self.jobs * (time.perf_counter() - begun)
        self.failing[tests] = re.findall(r"^(?:FAILED|ERROR) (\S+)", printed, re.MULTILINE)

    def notices(self, mutant: Mutant) -> bool:
        """Whether a test fails, or the tests run far longer than they should."""
        failing = self.failing[mutant.tests]
        words = [f"--{'deselect' if '::' in name else 'ignore'}={name}" for name in failing]
        limit = 60 + 4 * self.seconds[mutant.tests]
        return self._pytest(mutant.tests, ["-x", *words], mutant, limit)[0] != 0

    def _pytest(
        self,
        tests: tuple[str, ...],
        words: list[str],
        mutant: Mutant | None = None,
        limit: float | None = None,
    ) -> tuple[int, str]:
        """Exit code and output of the tests, in a copy that nobody else uses."""
        copy = self.copies.get()
        if mutant:
            source = (ROOT / mutant.path).read_text()
            (copy / mutant.path).write_text(mutant.applied_to(source))
        options = ["-p", "no:cacheprovider", "--color=no", *words, *tests]
        path = os.pathsep.join([str(copy / "src"), os.environ.get("PYTHONPATH", "")])
        settings = {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
        settings |= {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *options],
                cwd=copy,
                env=os.environ | settings,
                timeout=limit,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
            return done.returncode, done.stdout
        except subprocess.TimeoutExpired:
            return 1, "too long"
        finally:
            if mutant:
                (copy / mutant.path).write_text(source)
            self.copies.put(copy)


def recorded(path: Path) -> dict[Mutant, bool]:
    """The mutants of a record and whether the tests noticed them: one that this program wrote, or
    benchmarks/results/mutants.json, which has two such columns."""
    found = {}
    for row in json.loads(path.read_text())["mutants"]:
        place = row.get("mutant", row)
        mutant = Mutant(**{field.name: place[field.name] for field in fields(Mutant)})
        found[mutant] = row["killed_after" if "killed_after" in row else "killed"]
    return found


def report(mutant: Mutant, killed: bool) -> None:
    change = f"{mutant.old.splitlines()[0]} -> {mutant.new}"
    word = "killed  " if killed else "survived"
    print(f"{word} {mutant.path}:{mutant.line}: {change}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="test runs at the same time")
    parser.add_argument("--again", type=Path, help="a record whose mutants are run again")
    parser.add_argument("--out", type=Path, help="write the record to this JSON file")
    options = parser.parse_args()
    earlier = dict[Mutant, bool]()
    if options.again:
        earlier = recorded(options.again)
    drawn = list(earlier) or draw(options.count, options.seed)
    mutants = [mutant for mutant in drawn if mutant.is_there]
    rows = list[dict[str, Any]]()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        suite = Suite(Path(folder), options.jobs)
        for tests in sorted({mutant.tests for mutant in mutants}):
            suite.run_unchanged(tests)
            failing = suite.failing[tests]
            print(f"{tests}: {len(failing)} fail without a mutant {failing[:4]}", flush=True)
        mutants.sort(key=lambda mutant: -suite.seconds[mutant.tests])  # no long one at the end
        runs = {pool.submit(suite.notices, mutant): mutant for mutant in mutants}
        for run in as_completed(runs):
            mutant, noticed = runs[run], run.result()
            report(mutant, noticed)
            rows.append({"mutant": asdict(mutant), "killed": noticed})
            if options.out:
                options.out.write_text(json.dumps({"mutants": rows}, indent=1) + "\n")
    print(f"{sum(row['killed'] for row in rows)} of {len(rows)} mutants killed")
    if earlier:
        gone = len(earlier) - len(mutants)
        before = sum(earlier[mutant] for mutant in mutants)
        print(f"{before} of these by the earlier tests; the lines of {gone} others have changed")


if __name__ == "__main__":
    main()
