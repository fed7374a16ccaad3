"""Check that optional packages are installed, before any work."""

from importlib.util import find_spec


def need_packages(*names: str) -> None:
    """Raise ImportError unless the packages are installed; by default those of the extra."""
    for name in names or ("jax", "optax"):
        if find_spec(name) is None:
            raise ImportError(
                f"finite networks need {name}; install it with: pip install 'nngp[finite]'"
            )
