"""The tile functions on the CPU: BLAS and LAPACK in place, with Python's lock released.

SciPy's Python wrappers hold the lock while they compute, so two threads would take turns, and
copy any array that is not contiguous. Its C interface (`scipy.linalg.cython_blas`) has neither
fault. All matrices are C-ordered with any row stride; BLAS, which counts by columns, sees their
transposes, hence the swapped letters below.
"""

import ctypes
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import LowLevelCallable
from scipy.linalg import cython_blas, cython_lapack

from nngp.linsolve.engine import NotPositiveDefiniteError

Array = NDArray[np.float64]


@cache
def _routine(name: str, arguments: int) -> Callable[..., None]:
    module = cython_lapack if name == "dpotrf" else cython_blas
    capsule = LowLevelCallable.from_cython(module, name).function
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


_ONE, _MINUS_ONE = ctypes.c_double(1.0), ctypes.c_double(-1.0)


def _stride(matrix: Array) -> Any:
    if matrix.strides[1] != 8 and matrix.shape[1] > 1:
        raise ValueError("tiles must be C-ordered float64")
    return _int(max(matrix.strides[0] // 8, matrix.shape[1], 1))


def update(C: Array, A: Array, B: Array, *, transposed: bool = True) -> Array:
    """C - A Bᵀ in place (or C - A B)."""
    rows, columns = C.shape
    _routine("dgemm", 13)(
        _letter(b"T" if transposed else b"N"),
        _letter(b"N"),
        _int(columns),
        _int(rows),
        _int(A.shape[1]),
        ctypes.byref(_MINUS_ONE),
        B.ctypes.data,
        _stride(B),
        A.ctypes.data,
        _stride(A),
        ctypes.byref(_ONE),
        C.ctypes.data,
        _stride(C),
    )
    return C


def update_lower(C: Array, A: Array) -> Array:
    """The lower triangle of C - A Aᵀ, in place; half the work."""
    _routine("dsyrk", 10)(
        _letter(b"U"),
        _letter(b"T"),
        _int(len(C)),
        _int(A.shape[1]),
        ctypes.byref(_MINUS_ONE),
        A.ctypes.data,
        _stride(A),
        ctypes.byref(_ONE),
        C.ctypes.data,
        _stride(C),
    )
    return C


def trsm(L: Array, C: Array, *, transposed: bool = True) -> Array:
    """C L⁻ᵀ in place (or C L⁻¹)."""
    _routine("dtrsm", 11)(
        _letter(b"L"),
        _letter(b"U"),
        _letter(b"T" if transposed else b"N"),
        _letter(b"N"),
        _int(len(L)),
        _int(len(C)),
        ctypes.byref(_ONE),
        L.ctypes.data,
        _stride(L),
        C.ctypes.data,
        _stride(C),
    )
    return C


def potrf(C: Array) -> Array:
    """The lower Cholesky factor of C, in place, zeros above the diagonal."""
    info = ctypes.c_int(0)
    _routine("dpotrf", 5)(
        _letter(b"U"), _int(len(C)), C.ctypes.data, _stride(C), ctypes.byref(info)
    )
    if info.value != 0 or not np.isfinite(np.diagonal(C)).all():
        raise NotPositiveDefiniteError("a pivot of the Cholesky factorisation is not positive")
    np.copyto(C, 0.0, where=_above(len(C)))
    return C


@lru_cache(maxsize=8)
def _above(size: int) -> NDArray[np.bool_]:
    return np.triu(np.ones((size, size), dtype=bool), 1)
