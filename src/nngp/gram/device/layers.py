"""The recursion of eq. 5 on a device, pair by pair: chains whose activation has a closed form."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from nngp._arrays import DeviceArray
from nngp.architecture import Architecture, Network
from nngp.architecture.activation import ClosedFormKey
from nngp.covariance import closed_form
from nngp.gram.device.arrays import count_of, padded_rows, put
from nngp.gram.device.profiles import BlockOrigin, on_diagonal, recompute
from nngp.gram.error_bounds import FAR_ENOUGH
from nngp.gram.inputs import Inputs
from nngp.gram.triples import layer_variances, snapped_correlation

ClosedForm = ClosedFormKey


def closed_form_of(network: Network) -> ClosedForm | None:
    """The closed form by which a device can compute pairs of different norms, if there is one;
    pairs of one norm it always can."""
    key = network.activation.closed_form if isinstance(network, Architecture) else None
    return None if key is None or key[0] == "dual" else key  # a user's map may know NumPy only


class DeviceLayers(NamedTuple):
    """What the recursion needs for a block: deviations of the inputs, and the variances of every
    layer, on either side; the variances of the weights and biases."""

    left: tuple[DeviceArray, DeviceArray]
    right: tuple[DeviceArray, DeviceArray]
    weights: DeviceArray
    biases: DeviceArray


class LayerVariances:
    """Deviations of inputs, and their variances in every layer, uploaded in blocks."""

    def __init__(self, network: Network, inputs: Inputs) -> None:
        variances = np.stack(layer_variances(network, inputs.var))
        self._columns = np.vstack([np.sqrt(inputs.var), variances]).T
        self._blocks: dict[tuple[int, int], tuple[DeviceArray, DeviceArray]] = {}

    def block(self, rows: slice) -> tuple[DeviceArray, DeviceArray]:
        """Those of some rows, ones beyond the last."""
        key = rows.start, rows.stop
        if key not in self._blocks:
            part = padded_rows(self._columns[rows], count_of(rows), 1.0).T
            self._blocks[key] = put(part[0]), put(part[1:])
        return self._blocks[key]


def layer_values(
    layers: DeviceLayers,
    c: DeviceArray,
    x: DeviceArray,
    y: DeviceArray,
    origin: BlockOrigin,
    form: ClosedForm,
) -> tuple[DeviceArray, DeviceArray]:
    """Cosines to kernel values, but for the diagonal; the smallest 1 - |c| if it is small."""
    value = closed_form(form).value
    (scale1, q1s), (scale2, q2s), weights, biases = layers

    def layer(k: DeviceArray, cov: DeviceArray) -> DeviceArray:
        q1, q2 = q1s[k][:, None], q2s[k][None, :]
        corr = snapped_correlation(jnp, cov, q1, q2)
        return biases[k + 1] + weights[k + 1] * value(jnp, q1, q2, corr)

    def pair(i: DeviceArray, j: DeviceArray, old: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        # Unit vectors alone would take parallel inputs for duplicates.
        same = (x[i] == y[j]).all(axis=1) & (scale1[i] == scale2[j])
        gap = jnp.where(same, 1.0, jnp.maximum(1 - c[i, j], jnp.finfo(c.dtype).eps))
        return jnp.where(same, q1s[-1][i], old), gap

    cov = biases[0] + weights[0] * scale1[:, None] * scale2 * c
    cov = lax.fori_loop(0, len(weights) - 1, layer, cov)
    near = (c > 1 - FAR_ENOUGH) & ~on_diagonal(c.shape, origin)
    return recompute(cov, near, pair)
