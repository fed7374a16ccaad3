"""Settings of the site. `make docs` builds it; nothing is fetched, and a warning is an error."""

import os
import sys
from pathlib import Path

from jupyter_cache import get_cache

import nngp

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "nngp"
author = "The nngp developers"
copyright = "The nngp developers"
version = release = nngp.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "commands",
    "explorer",
    "gallery",
    "mathml",
    "notebooks",
    "reference",
]
exclude_patterns = ["conf.py", "data", "_build", "_ext", "_ipython", "explorer/*.html"]
nitpicky = False
suppress_warnings = ["config.cache"]

# Pages with code are notebooks: what they show is what their code printed in this build.
nb_custom_formats = {".py": ["jupytext.reads", {"fmt": "py:percent"}]}
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE / "_build" / ".jupyter_cache")
# Made here, once: two processes that build pages side by side would both make its tables.
get_cache(nb_execution_cache_path).list_cache_records()
nb_execution_timeout = 300
nb_merge_streams = True
nb_render_markdown_format = "myst"
nb_execution_show_tb = True
os.environ["IPYTHONDIR"] = str(HERE / "_ipython")
os.environ["MATPLOTLIBRC"] = str(HERE / "_static" / "matplotlibrc")
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(HERE / "_ext"), *filter(None, [os.environ.get("PYTHONPATH")])]
)
os.environ["PATH"] = os.pathsep.join(  # the command `nngp` is that of this environment
    [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath", "amsmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

autodoc_typehints = "none"  # the sections of a docstring say it in words
autodoc_member_order = "bysource"
autosummary_generate = True
napoleon_google_docstring = False
default_role = "py:obj"
modindex_common_prefix = ["nngp."]

html_theme = "furo"
html_title = f"nngp {version}"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#005f94",
        "color-brand-content": "#005f94",
        "color-brand-visited": "#5b4a8a",
        "color-sidebar-background": "#f4f7f9",
        "font-stack--headings": "Georgia, 'Times New Roman', serif",
    },
    "dark_css_variables": {
        "color-brand-primary": "#5ab4e8",
        "color-brand-content": "#5ab4e8",
        "color-brand-visited": "#b5a3e0",
    },
}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
templates_path = ["_templates"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
