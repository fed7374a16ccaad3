"""The tile functions on the CPU: BLAS and LAPACK in place, with Python's lock released.

SciPy's Python wrappers hold the lock while they compute, so two threads would take turns, and
copy any array that is not contiguous. Its C interface (`scipy.linalg.cython_blas`) has neither
fault. All matrices are C-ordered with any row stride; BLAS, which counts by columns, sees their
transposes, hence the swapped letters below. The tiles of one call are all float64 or all float32.
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
PRECISIONS = {"float64": ("d", ctypes.c_double), "float32": ("s", ctypes.c_float)}


@cache
def _routine(name: str, precision: str, arguments: int) -> Callable[..., None]:
    module = cython_lapack if name == "potrf" else cython_blas
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


def _stride(matrix: Array) -> Any:
    size = matrix.itemsize
    if matrix.strides[1] != size and matrix.shape[1] > 1:
        raise ValueError("tiles must be C-ordered")
    return _int(max(matrix.strides[0] // size, matrix.shape[1], 1))


def update(C: Array, A: Array, B: Array, *, transposed: bool = True) -> Array:
    """C - A Bᵀ in place (or C - A B)."""
    precision, (rows, columns) = _precision(C, A, B), C.shape
    _routine("gemm", precision, 13)(
        _letter(b"T" if transposed else b"N"),
        _letter(b"N"),
        _int(columns),
        _int(rows),
        _int(A.shape[1]),
        _number(-1.0, precision),
        B.ctypes.data,
        _stride(B),
        A.ctypes.data,
        _stride(A),
        _number(1.0, precision),
        C.ctypes.data,
        _stride(C),
    )
    return C


def update_lower(C: Array, A: Array) -> Array:
    """The lower triangle of C - A Aᵀ, in place; half the work."""
    precision = _precision(C, A)
    _routine("syrk", precision, 10)(
        _letter(b"U"),
        _letter(b"T"),
        _int(len(C)),
        _int(A.shape[1]),
        _number(-1.0, precision),
        A.ctypes.data,
        _stride(A),
        _number(1.0, precision),
        C.ctypes.data,
        _stride(C),
    )
    return C


def trsm(L: Array, C: Array, *, transposed: bool = True) -> Array:
    """C L⁻ᵀ in place (or C L⁻¹)."""
    precision = _precision(L, C)
    _routine("trsm", precision, 11)(
        _letter(b"L"),
        _letter(b"U"),
        _letter(b"T" if transposed else b"N"),
        _letter(b"N"),
        _int(len(L)),
        _int(len(C)),
        _number(1.0, precision),
        L.ctypes.data,
        _stride(L),
        C.ctypes.data,
        _stride(C),
    )
    return C


def potrf(C: Array) -> Array:
    """The lower Cholesky factor of C, in place, zeros above the diagonal."""
    info = ctypes.c_int(0)
    _routine("potrf", _precision(C), 5)(
        _letter(b"U"), _int(len(C)), C.ctypes.data, _stride(C), ctypes.byref(info)
    )
    if info.value != 0 or not np.isfinite(np.diagonal(C)).all():
        raise NotPositiveDefiniteError("a pivot of the Cholesky factorisation is not positive")
    np.copyto(C, 0.0, where=_above(len(C)))
    return C


@lru_cache(maxsize=8)
def _above(size: int) -> Mask:
    return np.triu(np.ones((size, size), dtype=bool), 1)
