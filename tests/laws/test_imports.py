"""No two modules of the package import each other, directly or in a ring.

Every import counts: at the top of a file, inside a function, and under `if TYPE_CHECKING`. A name
that a package's `__init__` only re-exports is followed to the module that defines it, so that
`from nngp.gram import kernel` is an import of `nngp.gram.kernel`. A package's `__init__` is a
module as well: imported for a name that it defines itself, it takes part like any other. Modules
imported by a name that is computed (`import_module`) are not seen.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
PAPER = Path(__file__).parents[2] / "reproduction" / "src"

# Rings that are still to be removed, each the set of its modules. It only ever shrinks.
KNOWN: set[frozenset[str]] = set()

Graph = dict[str, set[str]]


def modules_in(root: Path) -> dict[str, ast.Module]:
    """All modules below `root` by dotted name; a package stands for its `__init__`."""
    out = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        out[name] = ast.parse(path.read_text(), str(path))
    return out


def imports_in(tree: ast.Module, modules: dict[str, ast.Module]) -> Iterator[tuple[str, str]]:
    """Each import of a module of the package, as (module, name taken from it or "")."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports in this package are absolute"
            if node.module in modules:
                yield from ((node.module, alias.name) for alias in node.names)


def home_of(module: str, name: str, modules: dict[str, ast.Module]) -> str:
    """The module that `from module import name` reads `name` from, re-exports followed."""
    source = _re_exports(modules[module]).get(name, (module, name))
    if source == (module, name):  # its own submodule, or defined there
        return f"{module}.{name}" if f"{module}.{name}" in modules else module
    return home_of(*source, modules) if source[0] in modules else module


def _re_exports(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """Names that a module imports from others, each with its source."""
    out = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                out[alias.asname or alias.name] = (node.module, alias.name)
    return out


@cache
def import_graph(root: Path) -> Graph:
    """Which module imports which."""
    modules = modules_in(root)
    graph: Graph = {name: set() for name in modules}
    for name, tree in modules.items():
        for module, item in imports_in(tree, modules):
            is_package = any(other.startswith(f"{module}.") for other in modules)
            graph[name].add(home_of(module, item, modules) if item and is_package else module)
    return graph


def rings(graph: Graph) -> set[frozenset[str]]:
    """Strongly connected components of two or more modules, and modules that import themselves."""
    reach = {name: _reachable(graph, name) for name in graph}
    out = set()
    for name in graph:
        if name in reach[name]:
            out.add(frozenset(other for other in reach[name] if name in reach[other]))
    return out


def _reachable(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    pending = list(graph[start])
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += graph[name]
    return found


def written(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_no_ring_of_imports():
    found = rings(import_graph(SOURCE)) | rings(import_graph(PAPER))
    new = [sorted(ring) for ring in found - KNOWN]
    assert not new, f"modules that import each other: {new}"
    gone = [sorted(ring) for ring in KNOWN - found]
    assert not gone, f"no longer a ring, remove it from KNOWN: {gone}"


def test_the_graph_is_that_of_the_package():
    graph = import_graph(SOURCE)
    assert "nngp.architecture.activation" in graph["nngp.covariance.select"]
    assert "nngp.architecture" not in graph["nngp.covariance.select"]  # only re-exports it
    assert "nngp.covariance.differentiable" in graph["nngp.gram.jax_kernel"]  # in a function


@pytest.mark.parametrize(
    "late",
    [
        "from p.a import f\n",
        "def g():\n    from p.a import f\n    return f\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.a import f\n",
        "import p.a\n",
        "from p import f\n",
        "from p import a\n",
    ],
    ids=["top", "function", "typing", "module", "re-export", "from package"],
)
def test_a_ring_is_found_however_it_is_written(tmp_path, late):
    files = {
        "p/__init__.py": "from p.a import f\n",
        "p/a.py": "from p.b import g\nf = g\n",
        "p/b.py": late + "g = 1\n",
        "p/c.py": "from p import f\nfrom p.b import g\n",
    }
    assert rings(import_graph(written(tmp_path, files))) == {frozenset({"p.a", "p.b"})}


def test_re_exports_are_no_ring(tmp_path):
    files = {
        "p/__init__.py": "from p.a import f\nfrom p.b import g\n",
        "p/a.py": "f = 1\n",
        "p/b.py": "from p import f\ng = f\n",
    }
    assert rings(import_graph(written(tmp_path, files))) == set()


def test_what_a_package_defines_itself_counts(tmp_path):
    files = {
        "p/__init__.py": "from p.a import f\nSIZE = 1\n",
        "p/a.py": "from p import SIZE\nf = SIZE\n",
    }
    assert rings(import_graph(written(tmp_path, files))) == {frozenset({"p", "p.a"})}
