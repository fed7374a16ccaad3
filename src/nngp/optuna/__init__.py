"""Bayesian optimisation with Optuna (extra `optuna`): a sampler that is a wide network.

import optuna, nngp.optuna

study = optuna.create_study(sampler=nngp.optuna.NNGPSampler(seed=0))
study.optimize(objective, n_trials=60)

Takes Optuna's trials; gives parameters for the next one. `space` turns parameters into inputs,
`surrogate` learns a network from them, `acquisition` says where to look, `sampler` is what Optuna
calls.
"""

from importlib.util import find_spec

if find_spec("optuna") is None:
    raise ImportError("nngp.optuna needs Optuna; install it with: pip install 'nngp[optuna]'")

from nngp.optuna.sampler import NNGPSampler  # after the check

__all__ = ["NNGPSampler"]
