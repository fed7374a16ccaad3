"""The reader of .npy files agrees with NumPy, refuses objects, and is safe with threads."""

import gc
import io
import itertools
import sys
import tempfile
import threading
import time

import numpy as np
import pytest
from numpy.lib import format as npy

from nngp._files import open_npy

DTYPES = ["?", "i1", "u1", "<i2", ">i4", "<i8", ">u2", "<u8", "<f2", "<f4", ">f4", "<f8", ">f8"]
SHAPES = [(), (1,), (7,), (3, 4), (2, 3, 4), (1, 1, 1, 6)]
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
        return np.array(open_npy(file.name), order="K")


def assert_same(read, expected):
    assert read.dtype == expected.dtype
    assert read.shape == expected.shape
    assert read.flags.c_contiguous == expected.flags.c_contiguous
    assert read.flags.f_contiguous == expected.flags.f_contiguous
    assert np.array_equal(read, expected)


def test_it_agrees_with_numpy(tmp_path):
    """Every type in every shape, and each in one of the orders and versions of the format."""
    layouts = itertools.cycle(itertools.product("CF", [(1, 0), (2, 0), (3, 0)]))
    for dtype, shape in itertools.product(DTYPES, SHAPES):
        order, version = next(layouts)
        data = npy_bytes(sample(dtype, shape, order), version)
        path = tmp_path / "a.npy"
        path.write_bytes(data)
        mapped = open_npy(path)
        assert isinstance(mapped, np.memmap)
        assert not mapped.flags.writeable
        assert_same(mapped, np.load(path, mmap_mode="r", allow_pickle=False))


BAD_HEADERS = [
    HEAD.replace("'<f8'", "'|O'"),
    HEAD.replace("'<f8'", "'<f3'"),
    HEAD.replace("(3, 4)", "(-3, 4)"),
    HEAD.replace("(3, 4)", "(12)"),
    HEAD.replace("(3, 4)", "(3, 4"),
    HEAD.replace("(3, 4)", "(4000000000000000000,)"),
    HEAD.replace("(3, 4)", f"({'9' * 30},)"),
    HEAD.replace("False", "0"),
    HEAD.replace("'shape'", "'size'"),
    "{" + HEAD,
    HEAD + "; import os",
    "",
]


def test_other_headers_are_refused():
    for header in BAD_HEADERS:
        with pytest.raises(ValueError, match=r"it is no \.npy file"):
            read(with_header(header, bytes(96)))


def test_other_files_are_refused():
    whole = npy_bytes(sample("<f8", (3, 4)))
    for data in (
        b"PK\3\4 something else",
        b"",
        whole[:-1],
        whole[:40],
        b"\x93NUMPY\4\0" + bytes(100),
    ):
        with pytest.raises(ValueError, match=r"it is no \.npy file"):
            read(data)


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


@pytest.mark.parametrize("rounds", [100, pytest.param(1500, marks=pytest.mark.slow)])
def test_many_threads_at_once(tmp_path, rounds):
    path = tmp_path / "a.npy"
    path.write_bytes(npy_bytes(np.arange(12.0).reshape(3, 4)))
    assert errors_of_threads(lambda: open_npy(path), rounds=rounds) == []


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
