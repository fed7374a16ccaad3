"""One network whose last layer is trained by gradient descent while the others stay as drawn.

Written in prior units, f(x) = ψ(x)·v with v ~ N(0, 1): ψ holds √(weight_var/width) φ(z) and, for
the bias, √bias_var. So ψ(x)·ψ(x') is the network's own kernel, and descent treats all weights
alike.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from nngp.finite.many import OF_NOISE, Drawn, hidden


def train(
    net: Drawn, X: Any, Y: Any, X_test: Any, noise_var: Any, tolerance: Any, steps: Any
) -> tuple[Any, Any]:
    """Outputs of the trained network at test inputs, and the gradient's norm at the end relative to
    that at the start. (Numbers are arrays with one entry.)"""
    noise = jax.random.normal(jax.random.fold_in(net.key, OF_NOISE), Y.shape, Y.dtype)
    targets = Y + jnp.sqrt(noise_var) * noise
    features, tests = jnp.split(_features(net, jnp.concatenate([X, X_test])), [len(X)])
    start = _start(net)

    def loss(v: Any) -> Any:
        misfit, moved = features @ v - targets, v - start
        return 0.5 * jnp.sum(misfit**2) + 0.5 * jnp.sum(noise_var * moved**2)

    # No curvature exceeds the largest row sum of the Gram matrix, so the step 1/bound is safe.
    bound = jnp.abs(features @ features.T).sum(axis=1).max() + jnp.squeeze(noise_var)
    v, left = descend(loss, start, 1 / bound, jnp.squeeze(tolerance), jnp.squeeze(steps))
    return tests @ v, left


class _State(NamedTuple):
    last: Any  # where the last step led
    ahead: Any  # and where momentum carried it: the gradient is taken here
    gradient: Any
    momentum: Any
    step: Any


def descend(loss: Any, start: Any, rate: Any, tolerance: Any, steps: Any) -> tuple[Any, Any]:
    """Nesterov's gradient descent, begun anew whenever momentum points uphill, until the gradient's
    norm is below `tolerance` times the first. Gives the point, and what is left of the norm."""
    slope = jax.grad(loss)
    first = slope(start)
    size = jnp.linalg.norm(first)

    def going(s: _State) -> Any:
        return (jnp.linalg.norm(s.gradient) > tolerance * size) & (s.step < steps)

    def move(s: _State) -> _State:
        here = s.ahead - rate * s.gradient
        uphill = jnp.vdot(s.gradient, here - s.last) > 0
        t = jnp.where(uphill, 1.0, (1 + jnp.sqrt(1 + 4 * s.momentum**2)) / 2)
        ahead = here + jnp.where(uphill, 0.0, (s.momentum - 1) / t) * (here - s.last)
        return _State(here, ahead, slope(ahead), t, s.step + 1)

    zero = jnp.zeros((), start.dtype)
    end = jax.lax.while_loop(going, move, _State(start, start, first, zero + 1, zero))
    return end.ahead, jnp.linalg.norm(end.gradient) / jnp.where(size > 0, size, 1.0)


def _features(net: Drawn, X: Any) -> Any:
    """ψ of the inputs: (n, width + 1)."""
    h = hidden(net, X)[-1]
    bias = jnp.full((len(h), 1), jnp.sqrt(net.bias_vars[-1]), h.dtype)
    return jnp.concatenate([h * jnp.sqrt(net.weight_vars[-1] / h.shape[1]), bias], axis=1)


def _start(net: Drawn) -> Any:
    """The last layer as drawn, in prior units: (width + 1, n_out)."""
    w, b = net.layers[-1]["w"], net.layers[-1]["b"]
    scale = jnp.sqrt(net.bias_vars[-1])
    bias = b / jnp.where(scale > 0, scale, 1.0)
    return jnp.concatenate([w * jnp.sqrt(len(w) / net.weight_vars[-1]), bias[None]])
