"""Eq. 5, 8 and 9 of the paper as plain NumPy, for ReLU networks; nothing of nngp is used."""

import numpy as np


def kernel(X1, X2, depth, w, b):
    d = X1.shape[1]
    w, b = np.broadcast_to(w, depth + 1), np.broadcast_to(b, depth + 1)
    cov = b[0] + w[0] * (X1 @ X2.T) / d
    q1, q2 = b[0] + w[0] * (X1**2).sum(1) / d, b[0] + w[0] * (X2**2).sum(1) / d
    for layer in range(1, depth + 1):
        size = np.sqrt(np.outer(q1, q2))
        theta = np.arccos(np.clip(cov / size, -1, 1))
        mixed = np.sin(theta) + (np.pi - theta) * np.cos(theta)
        cov = b[layer] + w[layer] / (2 * np.pi) * size * mixed
        q1, q2 = b[layer] + w[layer] * q1 / 2, b[layer] + w[layer] * q2 / 2
    return cov


def posterior(X, Y, Xs, depth, w, b, noise):
    """Mean, covariance and log evidence."""
    K = kernel(X, X, depth, w, b) + noise * np.eye(len(X))
    cross = kernel(Xs, X, depth, w, b)
    mean = cross @ np.linalg.solve(K, Y)
    covariance = kernel(Xs, Xs, depth, w, b) - cross @ np.linalg.solve(K, cross.T)
    fit = np.sum(Y * np.linalg.solve(K, Y))
    outputs = Y.shape[1]
    constant = outputs * (np.linalg.slogdet(K)[1] + len(X) * np.log(2 * np.pi))
    return mean, covariance, -0.5 * (fit + constant)
