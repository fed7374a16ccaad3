"""The packages that finite networks need."""

from importlib.util import find_spec


def need_finite() -> None:
    """Say what to install, before any work."""
    for name in ("jax", "optax"):
        if find_spec(name) is None:
            raise ImportError(
                f"finite networks need {name}; install it with: pip install 'nngp[finite]'"
            )
