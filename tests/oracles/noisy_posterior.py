"""Posteriors of ReLU networks whose rows have noise of their own, in mpmath with 50 digits: K is
formed whole, for inputs of any norms, and inverted. Nothing of nngp is used."""

import mpmath as mp
import numpy as np

DIGITS = 50


def kernel(X1, X2, depth, w, b):
    """K between rows, and K(x, x) of the first ones."""
    left, right = ([[mp.mpf(float(v)) for v in x] for x in X] for X in (X1, X2))
    d = len(left[0])
    q1, q2 = ([b + w * mp.fdot(x, x) / d for x in X] for X in (left, right))
    K = [[b + w * mp.fdot(x, y) / d for y in right] for x in left]
    for _ in range(depth):
        for i, row in enumerate(K):
            for j, k in enumerate(row):
                size = mp.sqrt(q1[i] * q2[j])
                angle = mp.acos(max(min(k / size, mp.mpf(1)), mp.mpf(-1)))
                mixed = mp.sin(angle) + (mp.pi - angle) * mp.cos(angle)
                row[j] = b + w * size * mixed / (2 * mp.pi)
        q1, q2 = ([b + w * q / 2 for q in some] for some in (q1, q2))
    return mp.matrix(K), q1


class Dense:
    """Everything about one posterior; `noise` has a number for each row, as mpmath's or floats."""

    def __init__(self, X, y, noise, depth, w, b):
        self.X, self.net = X, (depth, mp.mpf(w), mp.mpf(b))
        self.y = mp.matrix([mp.mpf(float(v)) for v in y])
        K = kernel(X, X, *self.net)[0]
        self.noise = [mp.mpf(v) for v in noise]
        for i, more in enumerate(self.noise):
            K[i, i] += more
        self.P = K**-1
        self.alpha = self.P * self.y
        self.precision = [self.P[i, i] for i in range(len(X))]
        fit, n = mp.fdot(self.y, self.alpha), len(X)
        self.evidence = -(fit + mp.log(mp.det(K)) + n * mp.log(2 * mp.pi)) / 2
        terms = zip(self.precision, self.alpha, strict=True)
        self.density = sum(mp.log(p / (2 * mp.pi)) - a**2 / p for p, a in terms) / 2

    def predict(self, Xs):
        """Mean and covariance at test points."""
        cross, own = kernel(Xs, self.X, *self.net)[0], kernel(Xs, Xs, *self.net)[0]
        covariance = own - cross * self.P * cross.T
        return as_floats(cross * self.alpha), np.array(covariance.tolist(), dtype=float)

    def left_out(self):
        """Mean and variance of an observation, of each row from all others."""
        rows = list(zip(self.y, self.alpha, self.precision, strict=True))
        return as_floats(y - a / p for y, a, p in rows), as_floats(1 / p for _, _, p in rows)


def slopes(X, y, noise, depth, w, b):
    """Derivatives of evidence and density in w, in b, and in the noise of each row: (2, n + 2)."""
    start = [mp.mpf(w), mp.mpf(b), *(mp.mpf(v) for v in noise)]

    def at(values):
        found = Dense(X, y, values[2:], depth, values[0], values[1])
        return mp.matrix([found.evidence, found.density])

    columns = []
    for k, value in enumerate(start):
        step = value * mp.mpf(10) ** -(DIGITS // 3)
        two = [[v + sign * step * (i == k) for i, v in enumerate(start)] for sign in (1, -1)]
        columns.append((at(two[0]) - at(two[1])) / (2 * step))
    return np.array([[float(column[i]) for column in columns] for i in (0, 1)])


def as_floats(values):
    return np.array([float(v) for v in values])
