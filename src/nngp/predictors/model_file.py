"""File of a fitted model: a zip archive without code.

`header.json` holds a format version and all plain values; each array is an uncompressed `.npy`
member. The archive has a checksum for each member, so damage is noticed. A file is written beside
its path and then moved there.
"""

import json
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from nngp import _npy
from nngp._files import DAMAGED, replaced
from nngp.architecture import Activation, from_spec, spec_of
from nngp.errors import ModelFileError
from nngp.linsolve import CG

FORMAT, VERSION = "nngp-model", 3
HEADER = "header.json"
UNREADABLE = (*DAMAGED, OSError)  # errors that reading a damaged archive can raise
NOT_FINITE = ("inf", "-inf", "nan")  # JSON has no such numbers


def write_model(
    path: str | os.PathLike[str],
    header: Mapping[str, object],
    arrays: Iterable[tuple[str, NDArray[Any]]],
) -> None:
    """Write a model; an older file of that name stays until the new one is complete."""
    text = json.dumps({"format": FORMAT, "version": VERSION, **header}, indent=1, allow_nan=False)
    with replaced(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(HEADER, text)
        for name, array in arrays:
            _put(archive, name, array)


def _put(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        npy.write_array(member, np.ascontiguousarray(array), allow_pickle=False)


class ModelFile:
    """A model file that is open for reading; its errors are ModelFileErrors."""

    def __init__(self, path: str | os.PathLike[str], archive: zipfile.ZipFile) -> None:
        self.path, self._archive = path, archive
        self.header = self._read_header()

    def read(self, name: str) -> NDArray[Any]:
        """Read one array."""
        with self.reporting_damage(*UNREADABLE):
            return _npy.read_member(self._archive, f"{name}.npy")

    @contextmanager
    def reporting_damage(self, *kinds: type[Exception]) -> Iterator[None]:
        """Convert errors of these kinds, which only a damaged file can cause."""
        try:
            yield
        except ModelFileError:
            raise
        except kinds as cause:
            raise ModelFileError(
                f"{self.path} is damaged ({cause}); get a fresh copy or fit the model again"
            ) from cause

    def _read_header(self) -> dict[str, Any]:
        try:
            header = json.loads(self._archive.read(HEADER))
            known, version = header["format"] == FORMAT, header.get("version")
        except UNREADABLE:
            known = False
        if not known:
            raise ModelFileError(f"{self.path} is not a saved nngp model; pass a file from save()")
        if version != VERSION:
            older = isinstance(version, int) and version < VERSION
            raise ModelFileError(
                f"{self.path} has format {version} and this version of nngp reads format "
                f"{VERSION}; {'fit the model again and save it' if older else 'upgrade nngp'}"
            )
        return dict(header)


@contextmanager
def open_model(path: str | os.PathLike[str]) -> Iterator[ModelFile]:
    """Open a saved model and check its header."""
    with _open_archive(path) as archive:
        yield ModelFile(path, archive)


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the plain values of a saved model, without its arrays."""
    with open_model(path) as file:
        return file.header


def _open_archive(path: str | os.PathLike[str]) -> zipfile.ZipFile:
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"there is no file {path}; was the model saved there?")
    if file.is_dir():
        raise ModelFileError(f"{path} is a folder, not a saved model")
    try:
        return zipfile.ZipFile(file)
    except (zipfile.BadZipFile, NotImplementedError):  # the latter for an impossible zip version
        with file.open("rb") as start:
            begins = start.read(2) == b"PK"
        problem = "is truncated or damaged" if begins else "is not a saved nngp model"
        remedy = "get a fresh copy or fit the model again" if begins else "pass a file from save()"
        raise ModelFileError(f"{path} {problem}; {remedy}") from None


def as_json(value: object) -> Any:
    """Convert a parameter or result to what JSON can hold."""
    if isinstance(value, Activation):
        return {"activation": spec_of(value)}
    if isinstance(value, CG):
        return {"cg": asdict(replace(value, checkpoint=None))}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [as_json(part) for part in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    if value is None or isinstance(value, str | bool | int | float):
        return value
    kind = "is a Python function, which" if callable(value) else "is no plain value and"
    raise ValueError(f"the parameter {value!r} {kind} cannot be written to a file")


def from_json(value: Any) -> Any:
    """Convert back what `as_json` returned; tuples and arrays stay lists."""
    if isinstance(value, dict):
        return CG(**value["cg"]) if "cg" in value else from_spec(value["activation"])
    if isinstance(value, list):
        return [from_json(part) for part in value]
    return float(value) if isinstance(value, str) and value in NOT_FINITE else value
