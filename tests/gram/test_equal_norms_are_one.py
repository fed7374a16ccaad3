"""What `normalize` made has x·x/d = 1 and nothing near it: curves are shared between data sets."""

import numpy as np

import nngp
from nngp.gram.inputs import Inputs, common_var


def test_normalized_inputs_share_exactly_one():
    for d in (3, 64, 784, 3072):
        X = nngp.normalize(np.random.default_rng(d).standard_normal((50, d)), center=True)
        assert common_var(Inputs.of(X)) == 1.0
        assert common_var(Inputs.of(X[:10]), Inputs.of(X[10:])) == 1.0
    doubled = common_var(Inputs.of(np.sqrt(2) * X))
    assert doubled is not None
    assert abs(doubled - 2) < 1e-12
    assert common_var(Inputs.of(np.concatenate([X, X * (1 + 1e-9)]))) is None
