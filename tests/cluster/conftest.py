"""A cluster of two processes, and a problem with its answer."""

import numpy as np
import pytest
from clusters import Problem, processes

import nngp

pytest.importorskip("distributed", reason="a cluster needs nngp[distributed]")


@pytest.fixture(scope="session")
def client():
    with processes() as client:
        yield client


@pytest.fixture(scope="session")
def problem():
    """Points on a sphere, not a multiple of any tile."""
    rng = np.random.default_rng(0)
    X, Xs = (nngp.normalize(rng.normal(size=(m, 12))) for m in (2050, 60))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2], X.sum(axis=1) / 12])
    return Problem(nngp.Architecture(3, "relu", 1.6, 0.1), X, Y, Xs)


@pytest.fixture(scope="session")
def local(problem):
    """The answer of one machine."""
    return nngp.condition(problem.net, problem.X, problem.Y, noise_var=problem.noise, engine="cpu")
