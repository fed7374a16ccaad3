"""Check that the packages for training are installed, before any work."""

from importlib.util import find_spec


def need_packages() -> None:
    """Raise ImportError unless JAX and optax are installed."""
    for name in ("jax", "optax"):
        if find_spec(name) is None:
            raise ImportError(
                f"finite networks need {name}; install it with: pip install 'nngp[finite]' optax"
            )
