"""Checks of files and folders for results, before any work."""

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryFile

from nngp_paper.plots.style import need_matplotlib
from nngp_paper.terminal.output import UsageError, print_message

PICTURES = (".svg", ".png", ".pdf")


def check_writable(path: Path, kinds: Iterable[str] = (), create: bool = False) -> None:
    """Raise UsageError where a result could not be written, before any work. With `create`, a
    file is created in the folder: permissions do not say all (to root, or in /proc)."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder; give a file name")
    if not path.parent.is_dir():
        raise UsageError(f"the folder {path.parent} does not exist; create it first")
    if kinds and path.suffix.lower() not in kinds:
        raise UsageError(f"{path}: the name must end in {', '.join(kinds)}")
    if create:
        check_folder(path.parent)


def default_output(asked: Path | None, name: str) -> Path:
    """The file that was asked for, or else one of this name; a message says so if that replaces
    another file, which nobody asked for."""
    if asked is not None:
        return asked
    path = Path(name)
    if path.is_file():
        print_message(f"{path} is there already and will be replaced; -o names another file")
    return path


def picture_file(asked: Path | None, name: str, as_json: bool) -> Path | None:
    """Where a picture goes, checked before any work: what was asked for, or `name`, which says
    what the picture shows. None with --json: a program that wants numbers asked for no picture."""
    if asked is None and as_json:
        return None
    need_matplotlib()
    path = default_output(asked, name)
    check_writable(path, PICTURES, create=True)
    return path


def check_folder(folder: Path) -> None:
    """Raise UsageError unless a file can be created in the folder."""
    try:
        TemporaryFile(dir=folder).close()
    except OSError as error:
        raise UsageError(
            f"nothing can be written to {folder} ({error.strerror}); use another folder"
        ) from None


def create_folder(folder: Path) -> None:
    """Create a folder for figures and tables; UsageError where that cannot be."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; name a folder for figures and tables")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"the folder {folder} cannot be created ({error.strerror}); use another"
        ) from None
    check_folder(folder)


def check_not_input(output: Path, inputs: Iterable[Path], kind: str = "input") -> None:
    """Raise UsageError where the output would replace an input."""
    if output.exists() and any(path.exists() and output.samefile(path) for path in inputs):
        raise UsageError(f"the output {output} is the {kind}; choose another name")
