"""The tile functions on the CPU: BLAS and LAPACK in place, with Python's lock released.

SciPy's Python wrappers hold the lock while they compute, so two threads would take turns, and
copy any array that is not contiguous. Its C interface (`scipy.linalg.cython_blas`) has neither
fault. All matrices are C-ordered with any row stride; BLAS, which counts by columns, sees their
transposes, hence the swapped letters below. The tiles of one call are all float64 or all float32.

A pointer carries no shape: BLAS would read and write whatever lies behind an array that is too
small. So every array is checked here, for its type, shape and strides, before its address is taken.
"""

import ctypes
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import LowLevelCallable
from scipy.linalg import cython_blas, cython_lapack

from nngp._arrays import Mask
from nngp.errors import NotPositiveDefiniteError

Array = NDArray[Any]
MAX_C_INT = 2**31 - 1  # rows, columns and strides are C integers
PRECISIONS = {"float64": ("d", ctypes.c_double), "float32": ("s", ctypes.c_float)}


@cache
def _routine(name: str, precision: str, arguments: int) -> Callable[..., None]:
    module = cython_lapack if name in ("potrf", "potri") else cython_blas
    capsule = LowLevelCallable.from_cython(module, PRECISIONS[precision][0] + name).function
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = (
        ctypes.c_char_p,
        [ctypes.py_object],
    )
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(address)


def _int(value: int) -> Any:
    return ctypes.byref(ctypes.c_int(value))


def _letter(value: bytes) -> Any:
    return ctypes.byref(ctypes.c_char(value))


def _number(value: float, precision: str) -> Any:
    return ctypes.byref(PRECISIONS[precision][1](value))


def _precision(*matrices: Array) -> str:
    names = {matrix.dtype.name for matrix in matrices}
    if len(names) > 1 or not names <= set(PRECISIONS):
        raise ValueError(f"tiles must be all float64 or all float32, got {sorted(names)}")
    return names.pop()


def _shape(matrix: Array) -> tuple[int, int]:
    if matrix.ndim != 2:
        raise ValueError(f"a tile must be a matrix, got an array of the shape {matrix.shape}")
    return matrix.shape[0], matrix.shape[1]


def _matrix(matrix: Array, shape: tuple[int, int], *, written: bool = False) -> tuple[Any, Any]:
    """Address and row stride for BLAS. Raises ValueError unless the array has this shape, rows that
    are contiguous and do not overlap, and the byte order of this machine."""
    if matrix.shape != shape:
        raise ValueError(f"a tile has the shape {matrix.shape}, expected {shape}")
    size, (rows, columns), flags = matrix.itemsize, shape, matrix.flags
    if not matrix.dtype.isnative or not flags.aligned or (written and not flags.writeable):
        raise ValueError("tiles must be aligned, writeable, and of this machine's byte order")
    between, within = matrix.strides
    several = rows > 1 and columns > 0
    if (rows and columns > 1 and within != size) or (several and between % size):
        raise ValueError("tiles must be C-ordered")
    stride = between // size if several else columns
    if stride < columns:
        raise ValueError("tiles must be C-ordered, with rows that do not overlap")
    if max(rows, stride) > MAX_C_INT:
        raise ValueError(f"a tile may have {MAX_C_INT} rows and columns, got {rows} x {stride}")
    return matrix.ctypes.data, _int(max(stride, 1))


def update(C: Array, A: Array, B: Array, *, transposed: bool = True) -> Array:
    """C - A Bᵀ in place (or C - A B)."""
    precision, (rows, columns), (_, inner) = _precision(C, A, B), _shape(C), _shape(A)
    _routine("gemm", precision, 13)(
        _letter(b"T" if transposed else b"N"),
        _letter(b"N"),
        _int(columns),
        _int(rows),
        _int(inner),
        _number(-1.0, precision),
        *_matrix(B, (columns, inner) if transposed else (inner, columns)),
        *_matrix(A, (rows, inner)),
        _number(1.0, precision),
        *_matrix(C, (rows, columns), written=True),
    )
    return C


def update_lower(C: Array, A: Array) -> Array:
    """The lower triangle of C - A Aᵀ, in place; half the work."""
    precision, (rows, inner) = _precision(C, A), _shape(A)
    _routine("syrk", precision, 10)(
        _letter(b"U"),
        _letter(b"T"),
        _int(rows),
        _int(inner),
        _number(-1.0, precision),
        *_matrix(A, (rows, inner)),
        _number(1.0, precision),
        *_matrix(C, (rows, rows), written=True),
    )
    return C


def trsm(L: Array, C: Array, *, transposed: bool = True) -> Array:
    """C L⁻ᵀ in place (or C L⁻¹)."""
    precision, (rows, columns) = _precision(L, C), _shape(C)
    _routine("trsm", precision, 11)(
        _letter(b"L"),
        _letter(b"U"),
        _letter(b"T" if transposed else b"N"),
        _letter(b"N"),
        _int(columns),
        _int(rows),
        _number(1.0, precision),
        *_matrix(L, (columns, columns)),
        *_matrix(C, (rows, columns), written=True),
    )
    return C


def potrf(C: Array, *, clean: bool = True) -> Array:
    """The lower Cholesky factor of C, in place; with `clean`, zeros above the diagonal."""
    info, (size, _) = ctypes.c_int(0), _shape(C)
    _routine("potrf", _precision(C), 5)(
        _letter(b"U"), _int(size), *_matrix(C, (size, size), written=True), ctypes.byref(info)
    )
    if info.value != 0 or not np.isfinite(np.diagonal(C)).all():
        raise NotPositiveDefiniteError("a pivot of the Cholesky factorisation is not positive")
    if clean:
        np.copyto(C, 0.0, where=_above(len(C)))
    return C


def potri(L: Array) -> Array:
    """The lower triangle of (L Lᵀ)⁻¹, in place of that of L."""
    info, (size, _) = ctypes.c_int(0), _shape(L)
    _routine("potri", _precision(L), 5)(
        _letter(b"U"), _int(size), *_matrix(L, (size, size), written=True), ctypes.byref(info)
    )
    if info.value != 0:
        raise NotPositiveDefiniteError("a pivot of the Cholesky factorisation is zero")
    return L


@lru_cache(maxsize=8)
def _above(size: int) -> Mask:
    return np.triu(np.ones((size, size), dtype=bool), 1)
