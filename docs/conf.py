"""How the pages become a site: `make docs`."""

from __future__ import annotations

from inspect import Parameter, Signature, signature
from typing import Any

from softcount import __version__
from softcount.estimators.base import Estimator

project = "Softcount"
author = "The Softcount developers"
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["gallery/GALLERY_HEADER.rst"]

# Headings can be linked to, and links to files of the repository are left as they are.
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing", "myst.header", "misc.highlighting_failure"]  # the last: JSON after curl

templates_path = ["_templates"]
autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "write_computation_times": False,  # that page loads from elsewhere
    "show_memory": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "capture_repr": (),  # a display is shown by its picture
}

html_theme = "pydata_sphinx_theme"
html_title = "Softcount"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_show_sourcelink = False
html_theme_options = {
    "header_links_before_dropdown": 8,
    "navigation_with_keys": False,
    "navbar_end": ["search-button", "theme-switcher"],
    "navbar_persistent": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
}
html_sidebars = {"index": [], "install": []}


def constructor_signature(app: Any, what: str, name: str, own: Any, *rest: Any) -> tuple[str, str] | None:
    """The parameters of an estimator: autodoc would show those of `__new__`, which takes any."""
    if not (isinstance(own, type) and issubclass(own, Estimator)):
        return None
    shown = [one.replace(annotation=Parameter.empty) for one in signature(own).parameters.values()]
    return str(Signature(shown)), ""


def setup(app: Any) -> None:
    app.connect("autodoc-process-signature", constructor_signature)
