"""Published stores: the finished runs, compressed with gzip to a sixth of the size."""

import gzip
import shutil
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from nngp_paper.errors import RunStoreError
from nngp_paper.files import replaced
from nngp_paper.runs.store import RunStore

BLOCK = 1 << 20  # bytes
LARGEST_RATIO = 200  # of the sizes of a store and of its file


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The file of a store: `path` itself, or a temporary copy of one that ends in .gz.

    Examples
    --------
    >>> import os, tempfile
    >>> from nngp_paper.runs import RunStore, pack, unpacked
    >>> store = RunStore(os.path.join(tempfile.mkdtemp(), "runs.db"))
    >>> (key,) = store.declare("width", [{"width": 64}])
    >>> done = store.finish(key, {"loss": 0.5}, seconds=1.0)
    >>> store.close()
    >>> published = store.path.with_suffix(".db.gz")
    >>> pack([store.path], published)
    1
    >>> with unpacked(published) as path, RunStore(path, create=False) as copy:
    ...     copy.get(key).result
    {'loss': 0.5}
    """
    if path.suffix != ".gz":
        yield path
        return
    with TemporaryDirectory() as folder:
        copy = Path(folder) / path.stem
        try:
            with gzip.open(path, "rb") as packed, copy.open("wb") as file:
                _copy(packed, file, LARGEST_RATIO * path.stat().st_size + BLOCK)
        except FileNotFoundError:
            raise FileNotFoundError(f"there is no store {path}") from None
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise RunStoreError(
                f"{path} is damaged, or not packed with gzip ({error}); get it again"
            ) from None
        try:
            yield copy
        except RunStoreError as error:  # the user knows the file, not the copy
            raise RunStoreError(str(error).replace(str(copy), str(path))) from None


def _copy(packed: gzip.GzipFile, file: IO[bytes], most: int) -> None:
    """Copy what is packed, up to so many bytes: more is no store, but a trap for the disk."""
    while block := packed.read(BLOCK):
        most -= len(block)
        if most < 0:
            raise EOFError("it holds more than a store of its size can")
        file.write(block)


@contextmanager
def merged(stores: Sequence[Path]) -> Iterator[RunStore]:
    """One store, packed or not; of several the finished runs, in a temporary store.

    Examples
    --------
    >>> import os, tempfile
    >>> from pathlib import Path
    >>> from nngp_paper.runs import RunStore, merged
    >>> paths = [Path(tempfile.mkdtemp(), "runs.db") for _ in range(2)]
    >>> for width, path in enumerate(paths):
    ...     with RunStore(path) as store:
    ...         (key,) = store.declare("width", [{"width": width}])
    ...         done = store.finish(key, {"loss": 0.5}, seconds=1.0)
    >>> with merged(paths) as store:
    ...     len(store.runs())
    2
    """
    if len(stores) == 1:
        with unpacked(stores[0]) as file, RunStore(file, create=False) as store:
            yield store
        return
    with TemporaryDirectory() as folder, RunStore(Path(folder) / "runs.db") as store:
        _merge(stores, store)
        yield store


def _merge(stores: Sequence[Path], target: RunStore) -> None:
    for path in stores:
        with unpacked(path) as file:
            target.merge(file)


def pack(stores: Sequence[Path], target: Path) -> int:
    """Write the finished runs of some stores to one compressed file; returns how many.

    Examples
    --------
    >>> import os, tempfile
    >>> from nngp_paper.runs import RunStore, pack
    >>> store = RunStore(os.path.join(tempfile.mkdtemp(), "runs.db"))
    >>> (key,) = store.declare("width", [{"width": 64}])
    >>> done = store.finish(key, {"loss": 0.5}, seconds=1.0)
    >>> store.close()
    >>> pack([store.path], store.path.with_suffix(".db.gz"))
    1
    """
    with TemporaryDirectory() as folder:
        together = Path(folder) / "runs.db"
        with RunStore(together) as store:
            _merge(stores, store)
            done = store.counts()["done"]
        with (
            replaced(target) as part,
            part.open("wb") as raw,
            gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed,  # without name and time
            together.open("rb") as file,
        ):
            shutil.copyfileobj(file, packed)
    return done
