"""The documentation site: ``sphinx-build -W docs docs/_build``.

Pages are the Markdown files of this folder. The reference is made from ``__all__`` of the public modules, the gallery
by running the scripts of ``examples/``. Nothing is fetched: MathJax comes from a package.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import shutil
from pathlib import Path
from typing import Any

import boostlist

HERE = Path(__file__).parent
PUBLIC = (
    "boostlist",
    "boostlist.losses",
    "boostlist.objectives",
    "boostlist.metrics",
    "boostlist.models",
    "boostlist.boosters",
    "boostlist.ensemble",
    "boostlist.datasets",
    "boostlist.model_selection",
    "boostlist.evaluation",
    "boostlist.evaluation.significance",
    "boostlist.distributed",
    "boostlist.solvers",
)
# Arguments of gallery scripts that take minutes without any.
ARGUMENTS = {"out_of_core.py": ["lightgbm", "3000"], "rank_answers.py": ["--questions", "600"]}

project = "boostlist"
author = "The boostlist developers"
copyright = "The boostlist developers"
release = version = boostlist.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/*.ipynb"]
templates_path = ["_templates"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]

autosummary_generate = True
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
autodoc_default_options = {"members": True, "inherited-members": False}
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_attr_annotations = False
default_role = "py:obj"

html_theme = "pydata_sphinx_theme"
html_title = "boostlist"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 9,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"*": []}
html_show_sourcelink = False

os.environ.setdefault("MPLBACKEND", "agg")
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "reset_argv": lambda conf, script: ARGUMENTS.get(Path(script["src_file"]).name, []),
    "ignore_pattern": r"reproduce",
    "nested_sections": False,
    "download_all_examples": False,
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 10**6,
    "abort_on_example_error": True,
}


def public_names(module: str) -> list[str]:
    """Return the classes and functions that a module declares public."""
    found = importlib.import_module(module)
    names = getattr(found, "__all__", ())
    return [name for name in names if inspect.isclass(getattr(found, name)) or inspect.isroutine(getattr(found, name))]


def documented_in(module: str) -> list[str]:
    """Return the public names that no earlier module has: an object has one entry, whatever its other names."""
    earlier = PUBLIC[: PUBLIC.index(module)]
    seen = {id(getattr(importlib.import_module(each), name)) for each in earlier for name in public_names(each)}
    found = importlib.import_module(module)
    return [name for name in public_names(module) if id(getattr(found, name)) not in seen]


def write_reference() -> None:
    """Write a page for each public module."""
    folder = HERE / "reference"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for module in PUBLIC:
        lines = [module, "=" * len(module), "", f".. automodule:: {module}", "   :no-members:", ""]
        lines += [f".. currentmodule:: {module}", "", ".. autosummary::", "   :toctree: generated", "   :nosignatures:"]
        lines += ["", *(f"   {name}" for name in documented_in(module))]
        (folder / f"{module}.rst").write_text("\n".join(lines) + "\n", encoding="utf-8")


def plain_text_formulas(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Show indented blocks of a docstring, which are formulas in plain text, to the letter, and |w| in a line too."""
    found: list[str] = []
    in_block = False
    for i, line in enumerate(lines):
        starts = line.startswith("    ") and (not i or not lines[i - 1].strip()) and not in_block
        if starts and _prose_before(found):
            found += ["::", ""]
            in_block = True
        elif line.strip() and not line.startswith("    "):
            in_block = False
        found.append(line if in_block else re.sub(r"(?<!`)\|(?=\S)", r"\\|", line))
    lines[:] = found


def _prose_before(lines: list[str]) -> bool:
    """Whether the last line with text stands at the margin and is no directive, field or list item."""
    last = next((line for line in reversed(lines) if line.strip()), "")
    return bool(last) and not last.startswith((" ", "..", ":", "-", "*", ">>>")) and not last.endswith("::")


def skip_what_scikit_learn_adds(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool:
    """Leave out the methods that scikit-learn writes into every estimator for metadata routing."""
    return skip or name == "get_metadata_routing" or (name.startswith("set_") and name.endswith("_request"))


def links_of_the_site(text: str) -> str:
    """Let links that lead to a file on a code host lead to a page here, and drop those to what is no page."""
    text = re.sub(r"\]\(docs/(\w+\.md)", r"](\1", text)
    text = text.replace("](../examples)", "](gallery/index.rst)")
    return re.sub(r"\[([^]]+)\]\((?:\.\./[^)]+|CHANGELOG\.md)\)", r"\1", text)


def read_page(app: Any, name: str, content: list[str]) -> None:
    """Handle a page of this folder."""
    content[0] = links_of_the_site(content[0])


def read_included(app: Any, path: Any, parent: str, content: list[str]) -> None:
    """Handle a file that a page includes."""
    content[0] = links_of_the_site(content[0])


def check_reference(app: Any, error: Exception | None) -> None:
    """Fail where a public name has no entry."""
    if error is not None or app.builder.name != "html":
        return
    entries = app.env.get_domain("py").objects
    documented = {id(_resolve(name)) for name in entries}
    missing = [
        f"{module}.{name}"
        for module in PUBLIC
        for name in public_names(module)
        if id(getattr(importlib.import_module(module), name)) not in documented
    ]
    if missing:
        raise ValueError(f"public names without an entry in the reference: {', '.join(missing)}")


def _resolve(name: str) -> Any:
    """Return the object of a full name, None for one that is no attribute of a module."""
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError):
        return None


def setup(app: Any) -> None:
    """Connect the parts above to Sphinx."""
    write_reference()  # here, since Sphinx looks for pages before it emits its first event
    app.connect("autodoc-process-docstring", plain_text_formulas, priority=0)
    app.connect("source-read", read_page)
    app.connect("include-read", read_included)
    app.connect("autodoc-skip-member", skip_what_scikit_learn_adds)
    app.connect("build-finished", check_reference)
