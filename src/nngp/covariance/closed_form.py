"""The closed forms by name: the activations whose Gaussian integral is known."""

from collections.abc import Callable
from functools import cache

from nngp.architecture.activation import ClosedFormKey
from nngp.covariance.form import ClosedForm
from nngp.covariance.homogeneous_forms import leaky_relu_form, power_form, sign_form
from nngp.covariance.smooth_forms import erf_form, gaussian_form, gelu_form, sine_form


@cache
def closed_form(key: ClosedFormKey) -> ClosedForm:
    """The closed form that `Activation.closed_form` names."""
    name, parameter = key
    return _FORMS[name](parameter)


_FORMS: dict[str, Callable[[float], ClosedForm]] = {
    "leaky_relu": leaky_relu_form,
    "step": lambda _: sign_form(0.5, 0.5),
    "sign": lambda _: sign_form(0.0, 1.0),
    "leaky_step": lambda slope: sign_form(0.5 * (1 + slope), 0.5 * (1 - slope)),
    "erf": lambda _: erf_form(),
    "gelu": lambda _: gelu_form(),
    "sin": lambda _: sine_form(odd=True),
    "cos": lambda _: sine_form(odd=False),
    "gaussian": lambda _: gaussian_form(),
    "monomial": lambda power: power_form(int(power), rectified=False),
    "rectified_power": lambda power: power_form(int(power), rectified=True),
}
