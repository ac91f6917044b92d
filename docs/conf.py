"""How the site is built: ``make docs``. Nothing is fetched, neither by the build nor by a reader."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE / "_ext"))

from sphinx_gallery.sorting import ExplicitOrder  # noqa: E402

import asset_svm  # noqa: E402

project = "asset-svm"
author = "the authors of asset-svm"
copyright = author
version = release = asset_svm.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "command",
    "mathml",
    "accessible",
]
exclude_patterns = ["_ext", "_templates", "README.md"]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["site.css"]
nitpicky = False

# Pages ------------------------------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_block"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

autosummary_generate = True
autodoc_typehints = "none"  # docstrings say them
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "asset-svm"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "asset-svm"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "show_prev_next": True,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "gallery/index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "back_to_top_button": False,
}
html_sidebars = {"index": [], "changelog": []}

# The gallery ------------------------------------------------------------------------------------------

PARTS = ("first", "data", "understand", "inside", "deploy")
sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(^|/)(?!plot_)[^/]*\.py$",
    "subsection_order": ExplicitOrder([f"../examples/{part}" for part in PARTS]),
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "gallery/uses",
    "doc_module": ("asset_svm",),
    "reset_modules": ("settling.settle",),
    "reset_modules_order": "before",
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "parallel": int(os.environ.get("ASSET_DOCS_JOBS", "2")),
    "min_reported_time": 1,
    "write_computation_times": False,
    "plot_gallery": "True",
    "abort_on_example_error": False,
}


# Pages that are kept elsewhere ------------------------------------------------------------------------


ROOT_PAGES = ("CHANGELOG", "CODE_OF_CONDUCT", "CONTRIBUTING", "RELEASING", "SECURITY")


def page_of(name: str) -> str:
    """The page that a file of the repository's root is."""
    return name.lower().replace("_", "-")


def copy_notes(app: object, config: object) -> None:
    """Take the notes on measurements, and the root's files, where the pages can link to them."""
    notes = HERE / "notes"
    shutil.rmtree(notes, ignore_errors=True)
    notes.mkdir()
    for name in ROOT_PAGES:
        text = (ROOT / f"{name}.md").read_text()
        text = text.replace("](docs/", "](").replace("](benchmarks/notes/", "](notes/")
        for other in ROOT_PAGES:
            text = text.replace(f"]({other}.md", f"]({page_of(other)}.md")
        (HERE / f"{page_of(name)}.md").write_text(text.replace("](LICENSE)", "](../LICENSE)"))
    for note in sorted((ROOT / "benchmarks" / "notes").glob("*.md")):
        shutil.copy(note, notes / note.name)


def relink(app: object, page: str, source: list[str]) -> None:
    """Point links of the repository to pages of the site."""
    text = source[0].replace("](../benchmarks/notes/", "](notes/")
    if page.startswith("notes/"):
        text = text.replace("](../../docs/", "](../").replace("](../../README.md", "](../benchmarks.md")
    source[0] = text


def setup(app: object) -> None:
    """Connect the two."""
    app.connect("config-inited", copy_notes)  # type: ignore[attr-defined]
    app.connect("source-read", relink)  # type: ignore[attr-defined]
