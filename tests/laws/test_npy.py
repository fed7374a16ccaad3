"""The reader of .npy files agrees with NumPy, refuses objects, and is safe with threads."""

import gc
import io
import itertools
import re
import sys
import tempfile
import threading
import time

import numpy as np
import pytest
from numpy.lib import format as npy

from nngp import _npy
from nngp._archive import open_stored

DTYPES = ["?", "i1", "u1", "<i2", ">i4", "<i8", ">u2", "<u8", "<f2", "<f4", ">f4", "<f8", ">f8"]
OTHERS = ["<U1", "<U7", ">U3", "S1", "S12", "<M8[D]", ">m8[ns]"]
SHAPES = [(), (0,), (1,), (7,), (3, 4), (0, 5), (5, 0, 2), (2, 3, 4), (1, 1, 1, 6)]
HEAD = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }"


def sample(dtype, shape, order="C"):
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 11
    return np.asarray(values.astype(dtype), order=order)


def npy_bytes(array, version=None):
    file = io.BytesIO()
    npy.write_array(file, array, version=version)
    return file.getvalue()


def with_header(text, data=b"", version=1):
    """A .npy file with any header."""
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    return npy.magic(version, 0) + length + text.encode() + data


def read(data):
    """The array of a file with these bytes."""
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        file.write(data)
        file.flush()
        return np.array(_npy.open_memmap(file.name), order="K")


def assert_same(read, expected):
    assert read.dtype == expected.dtype
    assert read.shape == expected.shape
    assert read.flags.c_contiguous == expected.flags.c_contiguous
    assert read.flags.f_contiguous == expected.flags.f_contiguous
    assert np.array_equal(read, expected)


def test_it_agrees_with_numpy(tmp_path):
    """Every type in every shape, and each in one of the orders and versions of the format."""
    layouts = itertools.cycle(itertools.product("CF", [(1, 0), (2, 0), (3, 0)]))
    for dtype, shape in itertools.product([*DTYPES, *OTHERS], SHAPES):
        order, version = next(layouts)
        data = npy_bytes(sample(dtype, shape, order), version)
        path = tmp_path / "a.npy"
        path.write_bytes(data)
        mapped = _npy.open_memmap(path)
        assert isinstance(mapped, np.memmap)
        assert not mapped.flags.writeable
        assert_same(mapped, np.load(path, mmap_mode="r", allow_pickle=False))


OTHER_HEADERS = [
    HEAD.replace(", }", "}"),
    HEAD.replace(": ", ":").replace(", ", ","),
    HEAD.replace("'<f8'", "'=f8'"),
    HEAD + 30 * " " + "\n",
    HEAD.replace("(3, 4)", "(12,)"),
]


def test_headers_of_other_writers():
    for header in OTHER_HEADERS:
        data = with_header(header, np.arange(12.0).tobytes())
        assert_same(read(data), np.load(io.BytesIO(data)))


BAD_HEADERS = [
    HEAD.replace("'<f8'", "'|O'"),
    HEAD.replace("'<f8'", "[('a', '<f8')]"),
    HEAD.replace("'<f8'", "'<c16'"),
    HEAD.replace("'<f8'", "'<M4[ns]'"),
    HEAD.replace("'<f8'", "'|V8'"),
    HEAD.replace("'<f8'", "'<U0'"),
    HEAD.replace("(3, 4)", "(-3, 4)"),
    HEAD.replace("(3, 4)", "(3L, 4L)"),
    HEAD.replace("(3, 4)", "(12)"),
    HEAD.replace("(3, 4)", "(3, 4"),
    HEAD.replace("(3, 4)", f"({'9' * 5000},)"),
    HEAD.replace("False", "0"),
    HEAD.replace("'shape'", "'size'"),
    "{" + HEAD,
    HEAD + "; import os",
    "",
]


def test_other_headers_are_refused():
    for header in BAD_HEADERS:
        with pytest.raises(
            ValueError, match=r"^its .npy header .* does not describe an array of real"
        ):
            read(with_header(header, bytes(96)))


def test_types_that_numpy_does_not_have_are_refused():
    for descr in ("<f3", "<i16", "<b7", "<U999999999", "<M8[x]"):
        with pytest.raises(ValueError, match=f"^NumPy has no data type '{re.escape(descr)}'$"):
            read(with_header(HEAD.replace("<f8", descr), bytes(96)))


def test_a_file_that_is_cut_short_is_refused_wherever_it_ends(tmp_path):
    for version in (1, 2, 3):
        whole = npy_bytes(sample("<f8", (3, 4)), (version, 0))
        for length in range(len(whole)):
            with pytest.raises(ValueError, match="cut short"):
                read(whole[:length])
        (tmp_path / "a.npy").write_bytes(whole[:-1])
        with pytest.raises(ValueError, match=r"float64 \(3, 4\) has 96 bytes, but 95 are there"):
            _npy.open_memmap(tmp_path / "a.npy")


def test_nothing_is_allocated_for_a_shape_that_the_file_cannot_have():
    for shape in ("(4000000000000000000,)", "(3000000000, 3000000000, 3)"):
        data = with_header(HEAD.replace("(3, 4)", shape), bytes(96))
        with pytest.raises(
            ValueError, match=r"it is cut short: an array float64 .* but 96 are there"
        ):
            read(data)


def test_other_files_are_refused():
    with pytest.raises(ValueError, match=r"it is no \.npy file"):
        read(b"PK\3\4 something else")
    with pytest.raises(ValueError, match=r"it has \.npy format 4\.0, and 1\.0 to 3\.0 can be read"):
        read(b"\x93NUMPY\4\0" + bytes(100))
    with pytest.raises(ValueError, match=r"header is longer than 10000 bytes, with 10001$"):
        read(with_header(HEAD.ljust(10001)))


def errors_of_threads(read, *, rounds):
    """Errors of four threads that read at once, while the collector runs at every allocation and
    lets other threads run: `ast` fails only then."""
    errors = []

    def work():
        for _ in range(rounds):
            if errors:
                return
            try:
                read()
            except BaseException as error:
                errors.append(error)

    def switch(*_):
        time.sleep(0)

    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    threads = [threading.Thread(target=work) for _ in range(4)]
    try:
        sys.setswitchinterval(1e-6)
        gc.callbacks.append(switch)
        gc.set_threshold(1)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(switch)
    return errors


def reads(tmp_path):
    """Readers of one small array, by every way that the package has."""
    array = np.arange(12.0).reshape(3, 4)
    data, path = npy_bytes(array), tmp_path / "a.npy"
    path.write_bytes(data)
    np.savez(tmp_path / "a.npz", a=array)

    def stored():
        with open_stored(tmp_path / "a.npz") as archive:
            archive.read_array("a.npy", (3, 4), "float64")

    return {
        "memmap": lambda: _npy.open_memmap(path),
        "stored": stored,
    }


def test_many_threads_at_once(tmp_path):
    for way in ("memmap", "stored"):
        assert errors_of_threads(reads(tmp_path)[way], rounds=150) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="later versions of Python are safe")
def test_numpys_own_reader_fails_with_threads():
    """So the test above would notice a reader that uses `ast`."""
    file = io.BytesIO()
    np.savez(file, a=np.arange(12.0))
    data = file.getvalue()

    def load():
        with np.load(io.BytesIO(data)) as archive:
            return archive["a"]

    errors, until = [], time.monotonic() + 300
    while not errors and time.monotonic() < until:  # which takes longer on a machine that is busy
        errors = errors_of_threads(load, rounds=6000)
    assert any("recursion depth mismatch" in str(error) for error in errors)
