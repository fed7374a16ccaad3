"""What is computed for the paper's figures and tables: each study names its runs and does one."""

from importlib import import_module

from nngp.paper.scope import Scope
from nngp.runs.study import Study


def study_named(name: str, scope: Scope) -> Study:
    """The study of that name, from the module of that name."""
    module = import_module(f"nngp.paper.studies.{name}")
    found: Study = getattr(module, f"{name}_study")(scope)
    return found
