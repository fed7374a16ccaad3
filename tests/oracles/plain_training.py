"""Adam on a network of one hidden tanh layer, full batches, in NumPy: written out by hand."""

import numpy as np


def gradient(layers, X, Y, loss, decay):
    (w, b), (v, c) = layers
    h = np.tanh(X @ w + b)
    out = h @ v + c
    if loss == "mse":
        d_out = 2 * (out - Y) / Y.size
    else:
        p = np.exp(out - out.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        d_out = (p - (Y > 0)) / len(Y)
    d_z = (d_out @ v.T) * (1 - h**2)
    return [(X.T @ d_z + decay * w, d_z.sum(axis=0)), (h.T @ d_out + decay * v, d_out.sum(axis=0))]


def adam(layers, X, Y, loss, rate, decay, steps):
    flat = [part.copy() for layer in layers for part in layer]
    first, second = [0 * p for p in flat], [0 * p for p in flat]
    for t in range(1, steps + 1):
        slopes = gradient([tuple(flat[:2]), tuple(flat[2:])], X, Y, loss, decay)
        for i, g in enumerate(part for layer in slopes for part in layer):
            first[i] = 0.9 * first[i] + 0.1 * g
            second[i] = 0.999 * second[i] + 0.001 * g**2
            step = (first[i] / (1 - 0.9**t)) / (np.sqrt(second[i] / (1 - 0.999**t)) + 1e-8)
            flat[i] = flat[i] - rate * step
    return flat


def sgd(layers, X, Y, loss, rate, decay, steps):
    flat = [part.copy() for layer in layers for part in layer]
    for _ in range(steps):
        slopes = gradient([tuple(flat[:2]), tuple(flat[2:])], X, Y, loss, decay)
        flat = [p - rate * g for p, g in zip(flat, (g for s in slopes for g in s), strict=True)]
    return flat
