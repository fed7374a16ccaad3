"""File of a fitted model: a zip archive without code.

Each array is an uncompressed `.npy` member; `header.json`, the last member, holds a format version,
all plain values and the checksum of every array. Every byte that is used is checked: members by
their checksums, arrays by their shapes and types before they are allocated, values by their ranges.
A file is written beside its path, read again, and then moved there.
"""

import json
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from numbers import Real
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from nngp._archive import StoredArchive
from nngp._fields import Fields, parse_json
from nngp._files import replaced
from nngp.architecture import Activation, Network, from_spec, network_from_dict, spec_of
from nngp.architecture.invariances import Family
from nngp.architecture.invariances.saved import family_from_dict
from nngp.errors import ModelFileError
from nngp.linsolve import CG

FORMAT, VERSION = "nngp-model", 6
HEADER = "header.json"
LARGEST_HEADER = 16_000_000  # bytes
NOT_FINITE = ("inf", "-inf", "nan")  # JSON has no such numbers
DTYPES = re.compile(r"[<|][biuf]\d|<U[1-9]\d{0,5}")  # of class labels


def write_model(
    path: str | os.PathLike[str],
    header: Mapping[str, object],
    arrays: Iterable[tuple[str, NDArray[Any]]],
    check: Callable[["ModelFile"], object],
) -> None:
    """Write a model; an older file of that name stays until the new one is complete, and `check`
    has read it. ValueError if that fails."""
    with replaced(path) as part:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive:
            for name, array in arrays:
                _put(archive, name, array)
            sums = {info.filename.removesuffix(".npy"): info.CRC for info in archive.infolist()}
            values = {"format": FORMAT, "version": VERSION, **header, "checksums": sums}
            text = json.dumps(values, indent=1, allow_nan=False).encode()
            if len(text) > LARGEST_HEADER:
                raise ValueError(
                    f"the notes and plain values of this model take {len(text) / 1e6:.0f} MB, and "
                    f"{LARGEST_HEADER / 1e6:.0f} MB can be saved; shorten the notes"
                )
            archive.writestr(HEADER, text)
        try:
            with open_model(part) as file:
                check(file)
        except ModelFileError as error:
            cause = str(error).removeprefix(f"{part} is damaged ").rpartition("; ")[0]
            raise ValueError(f"{path} was not written: it could not be loaded {cause}") from None


def _put(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        npy.write_array(member, np.ascontiguousarray(array), allow_pickle=False)


class ModelFile:
    """A model file that is open for reading; what is wrong with it is a ModelFileError."""

    def __init__(self, path: str | os.PathLike[str], archive: StoredArchive) -> None:
        self.path, self._archive = path, archive
        self.header = Fields(self._read_header(), "its header", self.damaged)
        self._unread = set(archive.members) - {HEADER}

    def read(self, name: str, shape: tuple[int, ...], dtype: str = "float64") -> NDArray[Any]:
        """Read one array, which must have this shape and type, and be finite."""
        member, sums = f"{name}.npy", self.header.fields("checksums")
        known = self._archive.members.get(member)
        if known is None or known.crc != sums[name]:
            raise self.damaged(f"its array {name} is missing, or another one")
        try:
            array = self._archive.read_array(member, shape, dtype)
        except ValueError as cause:
            raise self.damaged(str(cause)) from None
        self._unread.discard(member)
        if array.dtype.kind == "f" and not _is_finite(array):
            raise self.damaged(f"its array {name} holds NaN or infinity")
        return array

    def read_labels(self, name: str, count: int, dtype: str) -> NDArray[Any]:
        """Read numbers or texts, all different and in ascending order."""
        if not DTYPES.fullmatch(dtype):
            raise self.damaged(f"its array {name} is said to hold {dtype[:20]!r}")
        labels = self.read(name, (count,), dtype)
        if not (labels[1:] > labels[:-1]).all():
            raise self.damaged(f"its array {name} is not in ascending order")
        return labels

    def check_complete(self) -> None:
        """Raise ModelFileError if the file has a member that was not read."""
        if self._unread:
            raise self.damaged(f"its member {min(self._unread)[:60]!r} is not part of a model")

    def damaged(self, cause: str) -> ModelFileError:
        """The error about something that is wrong with the file."""
        return ModelFileError(
            f"{self.path} is damaged ({cause}); get a fresh copy or fit the model again"
        )

    @contextmanager
    def reporting_damage(self) -> Iterator[None]:
        """Convert errors of checking plain values; nothing may be computed in the block."""
        try:
            yield
        except ModelFileError:
            raise
        except (TypeError, ValueError, KeyError, ArithmeticError) as cause:
            raise self.damaged(str(cause)) from None

    def _read_header(self) -> dict[str, Any]:
        if HEADER not in self._archive.members:
            _refuse(self.path)
        try:
            text = self._archive.read(HEADER, LARGEST_HEADER)
            header = parse_json(text)
        except ValueError as cause:
            raise self.damaged(str(cause)) from None
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            _refuse(self.path)
        self._check_version(header.get("version"))
        return header

    def _check_version(self, version: object) -> None:
        if isinstance(version, bool) or not isinstance(version, int):
            raise self.damaged("its header has no format version")
        if version != VERSION:
            remedy = "fit the model again and save it" if version < VERSION else "upgrade nngp"
            raise ModelFileError(
                f"{self.path} has format {str(version)[:20]} and this version of nngp reads "
                f"format {VERSION}; {remedy}"
            )


def _is_finite(array: NDArray[Any]) -> bool:
    """Whether all numbers are; a sum is finite only then, and needs no array of flags."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(array.sum()) or np.isfinite(array).all())


@contextmanager
def open_model(path: str | os.PathLike[str]) -> Iterator[ModelFile]:
    """Open a saved model and check its header."""
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"there is no file {path}; was the model saved there?")
    if file.is_dir():
        raise ModelFileError(f"{path} is a folder, not a saved model")
    with file.open("rb") as opened:
        yield ModelFile(path, _archive(path, opened))


def _archive(path: str | os.PathLike[str], file: Any) -> StoredArchive:
    if file.read(2) != b"PK":
        _refuse(path)
    try:
        return StoredArchive(file)
    except ValueError as cause:
        raise ModelFileError(
            f"{path} is truncated or damaged ({cause}); get a fresh copy or fit the model again"
        ) from None


def _refuse(path: str | os.PathLike[str]) -> NoReturn:
    raise ModelFileError(f"{path} is not a saved nngp model; pass a file from save()")


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the plain values of a saved model, without its arrays."""
    with open_model(path) as file:
        header = file.header
        header.text("kind")
        header.fields("notes")
        fitted = header.fields("fitted")
        if fitted["log_evidence"] is not None:
            fitted.number("log_evidence")
        best = header.fields("networks").fields("0")
        best.number("noise_var", 0)
        posterior = best.fields("posterior")
        posterior.fields("architecture")
        posterior.flag("factor")
        return header.values


def as_json(value: object) -> Any:
    """Convert a parameter or result to what JSON can hold."""
    if isinstance(value, Activation):
        return {"activation": spec_of(value)}
    if isinstance(value, Network):
        return {"network": value.as_dict()}
    if isinstance(value, Family):
        return {"family": value.as_dict()}
    if isinstance(value, CG):
        return {"cg": asdict(replace(value, checkpoint=None))}
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if isinstance(value, Mapping):  # JSON has texts for keys only
        return {"pairs": [[as_json(key), as_json(part)] for key, part in value.items()]}
    if isinstance(value, tuple | list):
        return [as_json(part) for part in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Real):  # a fraction
        return float(value)
    kind = "is a Python function, which" if callable(value) else "is no plain value and"
    raise ValueError(f"the parameter {value!r} {kind} cannot be written to a file")


def from_json(value: Any) -> Any:
    """Convert back what `as_json` returned; tuples and arrays stay lists. Raises ValueError,
    TypeError or KeyError for anything else."""
    if isinstance(value, dict) and "pairs" in value:
        return {from_json(key): from_json(part) for key, part in value["pairs"]}
    if isinstance(value, dict) and "network" in value:
        return network_from_dict(value["network"])
    if isinstance(value, dict) and "family" in value:
        return family_from_dict(value["family"])
    if isinstance(value, dict):
        return CG(**value["cg"]) if "cg" in value else from_spec(value["activation"])
    if isinstance(value, list):
        return [from_json(part) for part in value]
    return float(value) if isinstance(value, str) and value in NOT_FINITE else value
