"""Kernels of convolutional networks by brute force: the covariance of every position of every image
with every position of every other, four indices a pair, straight from the definition.

Takes the parts of `nngp.Chain` and images (n, height, width, channels); knows nothing of planes,
offsets or strips. Slow: for images of some dozen pixels.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np


class Full(NamedTuple):
    """K and Θ of (image, row, column, image, row, column)."""

    K: Any
    T: Any


def brute_force(parts: Sequence[Any], images: Any) -> tuple[Any, Any]:
    """K and Θ of all pairs of images."""
    n, channels = len(images), images.shape[-1]
    K = np.einsum("ihwc,jklc->ihwjkl", images, images) / channels
    state = _through(parts, Full(K, np.zeros_like(K)))
    assert state.K.shape == (n, n)
    return state.K, state.T


def _through(parts: Sequence[Any], state: Full) -> Full:
    for part in parts:
        state = _part(part, state)
    return state


def _part(part: Any, state: Full) -> Full:
    K, T = state
    match type(part).__name__:
        case "Image":
            return state
        case "Conv":
            steps = part.stride
            K = part.bias_var + part.weight_var * _patches(K, part.window, steps, part.padding)
            return Full(K, K + part.weight_var * _patches(T, part.window, steps, part.padding))
        case "Dense":
            K = part.bias_var + part.weight_var * K
            return Full(K, K + part.weight_var * T)
        case "Act":
            value, slope = _duals(part.activation.name, K)
            return Full(value, slope * T)
        case "LayerNorm":
            q = _variances(K)
            scale = np.sqrt(np.multiply.outer(q, q))
            return Full(K / scale, T / scale)
        case "Dropout":
            return Full(*(_masked(one, part.keep) for one in state))
        case "AvgPool":
            return Full(*(_pooled(one, part.window, part.stride) for one in state))
        case "GlobalAvgPool":
            return Full(*(one.mean(axis=(1, 2, 4, 5)) for one in state))
        case "Flatten":
            return Full(*(np.einsum("ihwjhw->ij", one) / np.prod(one.shape[1:3]) for one in state))
        case "Chain":
            return _through(part.parts, state)
        case "Repeat":
            return _through([part.part] * part.times, state)
        case "Residual":
            inner = _through(part.parts, state)
            return Full(K + inner.K, T + inner.T)
        case "Sum":
            found = [_through([one], state) for one in part.branches]
            return Full(sum(one.K for one in found), sum(one.T for one in found))
        case "Product":
            a, b = (_through([one], state) for one in part.branches)
            return Full(a.K * b.K, a.T * b.K + a.K * b.T)
        case "Concat":
            found = [_through([one], state) for one in part.branches]
            shares = part.shares
            return Full(
                sum(p * one.K for p, one in zip(shares, found, strict=True)),
                sum(p * one.T for p, one in zip(shares, found, strict=True)),
            )
    raise TypeError(type(part).__name__)


def _padding(size: int, window: int, stride: int, padding: str) -> tuple[int, int]:
    """Windows, and positions before the image that the first one covers."""
    if padding == "valid":
        return (size - window) // stride + 1, 0
    out = -(-size // stride)
    return out, max((out - 1) * stride + window - size, 0) // 2


def _patches(K: Any, window: Any, stride: Any, padding: str) -> Any:
    """The mean over the steps of a window that both inputs make together."""
    n, H, W = K.shape[:3]
    h, top = _padding(H, window[0], stride[0], padding)
    w, left = _padding(W, window[1], stride[1], padding)
    out = np.zeros((n, h, w, n, h, w))

    def place(position: int, size: int) -> int | None:
        if padding == "circular":
            return position % size
        return position if 0 <= position < size else None

    for y, x, v, u in product(range(h), range(w), range(h), range(w)):
        for dy, dx in product(range(window[0]), range(window[1])):
            at = (
                place(y * stride[0] - top + dy, H),
                place(x * stride[1] - left + dx, W),
                place(v * stride[0] - top + dy, H),
                place(u * stride[1] - left + dx, W),
            )
            if None not in at:
                out[:, y, x, :, v, u] += K[:, at[0], at[1], :, at[2], at[3]]
    return out / (window[0] * window[1])


def _pooled(K: Any, window: Any, stride: Any) -> Any:
    """Means over windows of one input and, on their own, over windows of the other."""
    n, H, W = K.shape[:3]
    h, w = ((size - k) // s + 1 for size, k, s in zip((H, W), window, stride, strict=True))
    out = np.zeros((n, h, w, n, h, w))
    for y, x, v, u in product(range(h), range(w), range(h), range(w)):
        rows = slice(y * stride[0], y * stride[0] + window[0])
        columns = slice(x * stride[1], x * stride[1] + window[1])
        others = slice(v * stride[0], v * stride[0] + window[0])
        across = slice(u * stride[1], u * stride[1] + window[1])
        out[:, y, x, :, v, u] = K[:, rows, columns, :, others, across].mean(axis=(1, 2, 4, 5))
    return out


def _variances(K: Any) -> Any:
    """K of every position of every image with itself."""
    return np.einsum("ihwihw->ihw", K) if K.ndim == 6 else np.diagonal(K)


def _masked(K: Any, keep: float) -> Any:
    out = K.copy()
    size = int(np.sqrt(K.size))
    flat = out.reshape(size, size)
    flat[np.diag_indices(size)] /= keep
    return out


def _duals(name: str, K: Any) -> tuple[Any, Any]:
    q = _variances(K)
    scale = np.sqrt(np.multiply.outer(q, q))
    c = np.clip(np.divide(K, scale, out=np.zeros_like(K), where=scale > 0), -1, 1)
    c = np.where(np.abs(c) > 1 - 1e-14, np.sign(c), c)
    angle = np.pi - np.arccos(c)
    match name:
        case "relu":
            root = np.sqrt((1 - c) * (1 + c))
            return scale * (root + angle * c) / (2 * np.pi), angle / (2 * np.pi)
        case "erf":
            one, both = 1 + 2 * q, np.multiply.outer(1 + 2 * q, 1 + 2 * q)
            assert np.all(one > 0)
            return (2 / np.pi) * np.arcsin(2 * K / np.sqrt(both)), (4 / np.pi) / np.sqrt(
                both - 4 * K**2
            )
        case "identity":
            return K, np.ones_like(K)
    raise ValueError(name)
