"""The closed forms by name: the activations whose Gaussian integral is known."""

from collections.abc import Callable
from functools import cache

import numpy as np

from nngp.architecture.activation import ClosedFormKey
from nngp.covariance.composed_forms import polynomial_form, scaled_form, sum_form
from nngp.covariance.form import ClosedForm
from nngp.covariance.homogeneous_forms import leaky_relu_form, rectified_power_form, sign_form
from nngp.covariance.kernel_map import kernel_map_form
from nngp.covariance.smooth_forms import (
    erf_form,
    exponential_form,
    gaussian_form,
    gelu_form,
    sine_form,
)


@cache
def closed_form(key: ClosedFormKey) -> ClosedForm:
    """The closed form that `Activation.closed_form` names."""
    name, *parameters = key
    return _FORMS[name](*parameters)


def _scaled(key: ClosedFormKey, a: float, b: float, c: float, d: float) -> ClosedForm:
    """a φ(b x + c) + d."""
    if c and key[0] in ("sin", "cos"):  # by the addition theorem
        of_odd, of_even = (np.cos(c), np.sin(c)) if key[0] == "sin" else (-np.sin(c), np.cos(c))
        odd = scaled_form(closed_form(("sin",)), a * of_odd, b)
        form = sum_form(scaled_form(closed_form(("cos",)), a * of_even, b), odd)
    elif c and key[0] == "gaussian":
        form = scaled_form(gaussian_form(c), a, b)
    else:
        form = scaled_form(closed_form(key), a * (np.exp(c) if key[0] == "exp" else 1.0), b)
    return sum_form(polynomial_form((d,)), form) if d else form


_FORMS: dict[str, Callable[..., ClosedForm]] = {
    "leaky_relu": leaky_relu_form,
    "sign": sign_form,
    "erf": erf_form,
    "gelu": gelu_form,
    "sin": lambda: sine_form(odd=True),
    "cos": lambda: sine_form(odd=False),
    "gaussian": gaussian_form,
    "exp": exponential_form,
    "polynomial": polynomial_form,
    "rectified_power": rectified_power_form,
    "scaled": _scaled,
    "dual": kernel_map_form,
}
