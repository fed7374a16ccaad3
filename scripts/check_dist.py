"""Check the wheel and the sdist, each installed into an empty environment.

    python -m build && python scripts/check_dist.py dist

Looked at are the files in both, their metadata, and what a stranger does next: the README's
examples with the required packages alone, the command `nngp` without its extra (which says what is
missing) and with it, `pip check`. Both must install the same files. Exit code 1 with a sentence at
the first fault.
"""

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
NAME = "nngp"
LARGEST_WHEEL, LARGEST_SDIST = 2_000_000, 8_000_000  # bytes
IN_WHEEL = {".py", ".typed", ".csv", ".css", ".js", ".html", ".json"}
IN_SDIST = [
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "CITATION.cff",
    "SECURITY.md",
    "Makefile",
    "PKG-INFO",
    "src/nngp/__init__.py",
    "src/nngp/py.typed",
    "tests/conftest.py",
    "docs/conf.py",
    "scripts/check_dist.py",
]
NOT_IN_SDIST = re.compile(
    r"(^|/)(_build|__pycache__|\.venv|\.bounds|\.git|\.[a-z_]+_cache|\.hypothesis|demo|dist|shared"
    r"|generated|jupyter_execute)/|\.(pyc|db|db\.gz|whl|npz|nngp)$"
)
NEEDS_CLI = 4  # exit code of the command without its extra


class ReleaseError(Exception):
    """Something is wrong with what would be released."""


def expect(condition: object, sentence: str) -> None:
    if not condition:
        raise ReleaseError(sentence)


def source_version() -> str:
    """The version that the source states."""
    text = (ROOT / "src" / NAME / "__init__.py").read_text()
    (version,) = re.findall(r'^__version__ = "(.+)"$', text, flags=re.M)
    return version


def check_wheel(path: Path, version: str) -> None:
    """Check the wheel's files and metadata."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        metadata = archive.read(f"{NAME}-{version}.dist-info/METADATA").decode()
    info = f"{NAME}-{version}.dist-info/"
    strange = [
        name
        for name in names
        if not name.startswith((f"{NAME}/", info))
        or (name.startswith(f"{NAME}/") and PurePosixPath(name).suffix not in IN_WHEEL)
    ]
    expect(not strange, f"{path.name} holds what is no part of the package: {strange[:5]}")
    expect(f"{NAME}/py.typed" in names, f"{path.name} has no py.typed")
    expect(f"{info}licenses/LICENSE" in names, f"{path.name} has no licence")
    ours = {str(PurePosixPath(p.relative_to(ROOT / "src"))) for p in ROOT.glob("src/**/*.py")}
    expect(ours <= set(names), f"{path.name} lacks {sorted(ours - set(names))[:5]}")
    for line in (f"Name: {NAME}", f"Version: {version}", "License-Expression: Apache-2.0"):
        expect(f"\n{line}\n" in metadata, f"the metadata of {path.name} have no line {line!r}")
    expect(path.stat().st_size < LARGEST_WHEEL, f"{path.name} has become very large")
    print(f"{path.name}: {len(names)} files, {path.stat().st_size / 1e3:.0f} kB")


def check_sdist(path: Path, version: str) -> None:
    """Check the sdist's files."""
    with tarfile.open(path) as archive:
        members = archive.getmembers()
    prefix = f"{NAME}-{version}/"
    expect(all(m.name.startswith(prefix) for m in members), f"{path.name} has several folders")
    expect(all(m.isreg() or m.isdir() for m in members), f"{path.name} holds links")
    names = {member.name.removeprefix(prefix) for member in members}
    missing = sorted(set(IN_SDIST) - names)
    expect(not missing, f"{path.name} lacks {missing}")
    litter = sorted(name for name in names if NOT_IN_SDIST.search(name))
    expect(not litter, f"{path.name} holds what a build or a run left: {litter[:5]}")
    expect(path.stat().st_size < LARGEST_SDIST, f"{path.name} has become very large")
    print(f"{path.name}: {len(names)} files, {path.stat().st_size / 1e6:.1f} MB")


def run(command: list[str | Path], folder: Path, code: int = 0) -> str:
    """Run a command without this checkout in reach; returns what it printed."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "NNGP_DATA")
    env = {key: value for key, value in os.environ.items() if key not in hidden}
    done = subprocess.run(
        command, cwd=folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    shown = " ".join(str(part) for part in command[:4])
    expect(
        done.returncode == code,
        f"{shown} ... ended with code {done.returncode}, expected {code}:\n{done.stdout[-2000:]}",
    )
    return done.stdout


def installed_files(package: Path, version: str) -> set[str]:
    """Install a file into an empty environment, use it there, and list what was installed."""
    with tempfile.TemporaryDirectory(prefix="nngp-dist-") as name:
        folder = Path(name)
        empty, env = folder / "empty", folder / "env"
        empty.mkdir()
        run([sys.executable, "-m", "venv", env], empty)
        python, nngp = env / "bin" / "python", env / "bin" / "nngp"
        pip: list[str | Path] = [python, "-m", "pip", "--disable-pip-version-check"]
        install = [*pip, "install", "-q", "--no-compile"]

        run([*install, package], empty)
        question = f"import {NAME}; print({NAME}.__version__, {NAME}.__file__)"
        found, file = run([python, "-c", question], empty).split()
        expect(found == version, f"{package.name} installs version {found}, not {version}")
        expect(env.resolve() in Path(file).resolve().parents, f"{file} was imported instead")
        expect((Path(file).parent / "py.typed").exists(), f"{package.name} installs no py.typed")
        examples: list[str | Path] = [
            python,
            ROOT / "scripts" / "readme_examples.py",
            ROOT / "README.md",
        ]
        print(f"{package.name}: {run(examples, empty).strip()}")
        hint = run([nngp, "--help"], empty, NEEDS_CLI)
        expect("pip install 'nngp[cli]'" in hint, f"without its extra the command says: {hint}")

        run([*install, f"{package}[cli]"], empty)
        expect("Usage" in run([nngp, "--help"], empty), "nngp --help shows no usage")
        said = run([nngp, "--version"], empty).split()
        expect(said == [NAME, version], f"nngp --version says {said}")
        run([*pip, "check"], empty)
        print(f"{package.name}: command, version, py.typed and pip check: as they should be")
        shown = run([*pip, "show", "--files", NAME], empty).partition("Files:")[2].split()
        return {line for line in shown if line.startswith(f"{NAME}/") and ".pyc" not in line}


def only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    expect(len(found) == 1, f"{folder} holds {len(found)} files {pattern}; `make dist` writes one")
    return found[0].resolve()


def main() -> None:
    folder, version = Path(sys.argv[1]), source_version()
    try:
        wheel = only(folder, f"{NAME}-*.whl")
        sdist = only(folder, f"{NAME}-*.tar.gz")
        check_wheel(wheel, version)
        check_sdist(sdist, version)
        of_wheel = installed_files(wheel, version)
        of_sdist = installed_files(sdist, version)
        differing = sorted(of_wheel ^ of_sdist)
        expect(not differing, f"wheel and sdist install different files: {differing[:5]}")
    except ReleaseError as fault:
        sys.exit(str(fault))
    print(f"{NAME} {version}: both install the same {len(of_wheel)} files")


if __name__ == "__main__":
    main()
