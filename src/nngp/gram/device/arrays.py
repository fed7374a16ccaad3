"""Arrays on a JAX device, in double precision whatever the global setting is."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import DeviceArray
from nngp.gram.inputs import Inputs


def put(array: ArrayLike) -> DeviceArray:
    """A host array as a float64 array on JAX's default device."""
    with jax.enable_x64(True):
        return jnp.asarray(np.asarray(array, dtype=np.float64))


def default_device() -> object:
    """The device on which JAX makes arrays now."""
    (device,) = jnp.zeros(()).devices()
    return device


def unit_rows(inputs: Inputs) -> DeviceArray:
    """The inputs as unit vectors on the device, uploaded once."""
    return inputs.derived("unit rows on a device", _upload)


def _upload(inputs: Inputs) -> DeviceArray:
    with jax.enable_x64(True):  # a copy of X, which is scaled in place
        return _scale_rows(jnp.array(inputs.X), put(inputs.inverse_norm))


@partial(jax.jit, donate_argnums=0)
def _scale_rows(X: DeviceArray, factor: DeviceArray) -> DeviceArray:
    return X * factor[:, None]
