"""Run the tests with each Python and at both ends of the dependency bounds.

    python scripts/bounds.py [--python 3.11 ...] [--end lowest ...] [--quick] [--out FILE]
                             [-- pytest arguments]

"lowest" pins every package of the extra `test` (which has all the others in it, but not `docs`) to
its lower bound in pyproject.toml for that Python; what these packages need themselves is the newest
that fits. "highest" is the newest of everything. Environments are kept in the ignored folder
.bounds, one for each pair, and repaired when the bounds change. A Python is looked for on PATH and
among the versions of pyenv; where there is none, a sentence says so, and the others are tested.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".bounds"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
ENDS = ("lowest", "highest")
EXTRA = "test"
# The site and the benchmarks are developers' tools, whose packages have bounds of their own.
IGNORED = ("--ignore", "tests/site", "--ignore", "tests/benchmarks")
ALWAYS = ("-n", "2", "--dist", "worksteal", *IGNORED)
# Old packages with new ones below them: what one deprecates in the other is no news at that end.
AT_END = {"lowest": ("-W", "ignore::DeprecationWarning"), "highest": ()}
# Something with each package that has a bound.
QUICK = (
    "tests/architecture",
    "tests/cluster/test_sources.py",
    "tests/finite/test_network.py",
    "tests/laws/test_npy.py",
    "tests/laws/test_package.py",
    "tests/laws/test_readme.py",
    "tests/laws/test_release.py",
    "tests/linsolve/test_cholesky.py",
    "tests/plots/test_style.py",
    "tests/frames/test_columns.py",
    "tests/estimators/test_saved.py",
    "tests/terminal/test_command.py",
)


@dataclass(frozen=True)
class Outcome:
    """One run of the tests: with which versions, what pytest said, how long it took."""

    python: str
    end: str
    passed: bool
    summary: str
    seconds: int
    versions: dict[str, str]


def requirements(project: dict[str, Any], extras: Iterable[str]) -> Iterator[Requirement]:
    """Requirements of the project with these extras; an extra may name others of the project."""
    lists = [project["dependencies"]]
    lists += [project["optional-dependencies"][name] for name in extras]
    for text in (text for one in lists for text in one):
        requirement = Requirement(text)
        if canonicalize_name(requirement.name) == canonicalize_name(project["name"]):
            yield from requirements(project, sorted(requirement.extras))
        else:
            yield requirement


def lower_bounds(project: dict[str, Any], extras: Iterable[str], python: str) -> dict[str, str]:
    """The lowest version of each package that these extras allow for a version of Python."""
    found: dict[str, Version] = {}
    for requirement in requirements(project, extras):
        marker = requirement.marker
        if marker and not marker.evaluate({"python_version": python, "extra": ""}):
            continue
        lowest = [Version(s.version) for s in requirement.specifier if s.operator in (">=", "==")]
        if not lowest:
            raise SystemExit(f"pyproject.toml: {requirement} has no lower bound; give it one")
        name = canonicalize_name(requirement.name)
        found[name] = max([*lowest, *([found[name]] if name in found else [])])
    return {name: str(version) for name, version in sorted(found.items())}


def find_python(version: str) -> str | None:
    """Path of an interpreter of this version that can make environments."""
    candidates = [shutil.which(f"python{version}")]
    root = os.environ.get("PYENV_ROOT") or _output(["pyenv", "root"])
    if root:
        folders = Path(root, "versions").glob(f"{version}.*")
        releases = [f for f in folders if f.name.rpartition(".")[2].isdecimal()]
        newest = sorted(releases, key=lambda f: Version(f.name), reverse=True)
        candidates += [str(folder / "bin" / "python") for folder in newest]
    question = "import ensurepip, venv, sys; print('%d.%d' % sys.version_info[:2])"
    for path in filter(None, candidates):
        if _output([path, "-c", question]) == version:
            return path
    return None


def _output(command: list[str]) -> str:
    """What a command prints, or nothing if it fails or is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def make_environment(python: str, folder: Path, pins: dict[str, str]) -> Path:
    """Create or repair an environment with the package in it; returns its interpreter."""
    wanted, stamp = json.dumps(pins), folder / "pins.json"
    inside = folder / "bin" / "python"
    if stamp.exists() and stamp.read_text() != wanted:
        shutil.rmtree(folder)
    if stamp.exists() and pins:  # nothing newer is wanted
        return inside
    if not inside.exists():
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
    install = [str(inside), "-m", "pip", "install", "-q", "--no-compile"]
    install.append("--disable-pip-version-check")
    if not pins:
        install += ["--upgrade", "--upgrade-strategy", "eager"]
    install += ["-e", f"{ROOT}[{EXTRA}]", *(f"{name}=={version}" for name, version in pins.items())]
    subprocess.run(install, check=True)
    subprocess.run([str(inside), "-m", "pip", "check", "-q"], check=True)
    stamp.write_text(wanted)
    return inside


def versions_in(python: Path, names: Iterable[str]) -> dict[str, str]:
    """Installed versions of these packages."""
    listed = json.loads(_output([str(python), "-m", "pip", "list", "--format", "json"]))
    have = {str(canonicalize_name(one["name"])): one["version"] for one in listed}
    return {name: have[name] for name in names}


def run_tests(python: Path, folder: Path, arguments: list[str]) -> tuple[bool, str]:
    """Run pytest; returns whether it passed, and its last line."""
    command = [str(python), "-m", "pytest", "-o", f"cache_dir={folder / 'pytest_cache'}"]
    settings = {"OPENBLAS_NUM_THREADS": "1", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with subprocess.Popen(
        [*command, *arguments],
        cwd=ROOT,
        env={**clean, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        assert running.stdout is not None
        last = ""
        for line in running.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    return running.returncode == 0, last.strip("= ")


def test_one(project: dict[str, Any], version: str, end: str, arguments: list[str]) -> Outcome:
    """Run the tests with one Python and one end of the bounds."""
    path = find_python(version)
    assert path is not None
    bounds = lower_bounds(project, [EXTRA], version)
    folder = FOLDER / f"{version}-{end}"
    print(f"\n{version}, {end}: an environment in {folder.relative_to(ROOT)}", flush=True)
    try:
        python = make_environment(path, folder, bounds if end == "lowest" else {})
    except subprocess.CalledProcessError as failed:
        command = " ".join(map(str, failed.cmd[1:4]))
        return Outcome(version, end, False, f"{command} failed", 0, {})
    began = time.perf_counter()
    passed, summary = run_tests(python, folder, [*AT_END[end], *arguments])
    seconds = round(time.perf_counter() - began)
    return Outcome(version, end, passed, summary, seconds, versions_in(python, bounds))


def table(outcomes: list[Outcome]) -> str:
    """One column for each run, one row for each package."""
    names = sorted({name for one in outcomes for name in one.versions})
    rows = [["", *(f"{one.python} {one.end}" for one in outcomes)]]
    rows += [[name, *(one.versions.get(name, "-") for one in outcomes)] for name in names]
    rows.append(["tests", *("pass" if one.passed else "FAIL" for one in outcomes)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join([*lines, "", *(f"{o.python} {o.end}: {o.summary}" for o in outcomes)])


def write_record(path: Path, outcomes: list[Outcome], tests: str) -> None:
    """Put outcomes into a record; those of other pairs that it has already are kept."""
    runs = {}
    if path.exists():
        runs = {(run["python"], run["end"]): run for run in json.loads(path.read_text())["runs"]}
    for one in outcomes:
        runs[one.python, one.end] = {
            **asdict(one),
            "tests": tests,
            "date": date.today().isoformat(),
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        }
    record = {
        "command": "python scripts/bounds.py --out FILE",
        "runs": [runs[k] for k in sorted(runs)],
    }
    path.write_text(json.dumps(record, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", nargs="+", choices=PYTHONS, default=PYTHONS)
    parser.add_argument("--end", nargs="+", choices=ENDS, default=ENDS)
    parser.add_argument("--quick", action="store_true", help="a minute of tests for each pair")
    parser.add_argument("--out", type=Path, help="write a record of the outcomes (JSON)")
    parser.add_argument("pytest", nargs="*", help="arguments of pytest, after --")
    given = parser.parse_args()

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    arguments = [*ALWAYS, *(QUICK if given.quick else ()), *given.pytest]
    outcomes = []
    for version in given.python:
        if find_python(version) is None:
            print(f"Python {version} is neither on PATH nor in pyenv: not tested.")
            continue
        outcomes += [test_one(project, version, end, arguments) for end in given.end]
    if not outcomes:
        sys.exit("no Python was found, so nothing was tested")
    print("\n" + table(outcomes))
    if given.out:
        tests = ["quick"] * given.quick + given.pytest
        write_record(given.out, outcomes, " ".join(tests) or "default")
    sys.exit(0 if all(one.passed for one in outcomes) else 1)


if __name__ == "__main__":
    main()
