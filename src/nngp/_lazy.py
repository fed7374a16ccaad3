"""Lazy attributes of a package: names that are imported on first use."""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def lazy_attributes(
    package: str,
    homes: Mapping[str, str],
    *,
    public: Iterable[str] | None = None,
    check: Callable[[], None] = lambda: None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the functions `__getattr__` and `__dir__` of a package.

    `homes` maps each name to the module that defines it; "plots": "nngp.plots" is that module
    itself. `public` are all names to list, by default those of `homes`. `check` raises ImportError
    if an optional package is missing.
    """
    listed = sorted({*(homes if public is None else public), "__doc__", "__name__"})

    def __getattr__(name: str) -> Any:  # noqa: N807
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        check()
        module = import_module(homes[name])
        return module if homes[name] == f"{package}.{name}" else getattr(module, name)

    def __dir__() -> list[str]:  # noqa: N807
        return listed

    return __getattr__, __dir__
