"""Check that JAX is installed, before any work."""

from importlib.util import find_spec


def need_jax() -> None:
    """Raise ImportError unless JAX is installed."""
    if find_spec("jax") is None:
        raise ImportError("finite networks need jax; install it with: pip install 'nngp[finite]'")
