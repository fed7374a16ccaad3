"""Activations by name, and families of them."""

from nngp.architecture import activation_names as names, leaky_relu

__all__ = ["leaky_relu", "names"]
