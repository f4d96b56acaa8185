"""Sphinx configuration. Builds from the root of the repository, so that links work there and in the documentation.

    sphinx-build -c docs . site

Every reference must resolve: `make docs` is nitpicky, and its warnings are errors.
"""

import re
import sys
from pathlib import Path


DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT), str(DOCS / "_ext")]

from modeling_gtransformer import __version__  # noqa: E402 (needs the path above)


project = "G-Transformer"
author = "The G-Transformer for Transformers authors"
copyright = f"2026, {author}"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "markdown_docstrings", "argument_tables"]
root_doc = "docs/index"
# Some pages lie beside their code, where they are read, too.
PAGES = {"docs", "train", "benchmarks", "modeling_gtransformer", "CONTRIBUTING.md", "CHANGELOG.md"}
exclude_patterns = [path.name for path in ROOT.iterdir() if path.name not in PAGES]
exclude_patterns += ["modeling_gtransformer/[!m]*"]  # all but the card of the bundled model

nitpicky = True
# Types of other libraries, in signatures.
nitpick_ignore_regex = [
    (r"py:.*", r"(torch|transformers|huggingface_hub|collections|datasets|evaluate|numpy|os|pathlib)\..+"),
    (r"py:class", r"typing_extensions\.Unpack"),  # Python 3.10
]

myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_inherit_docstrings = False
autodoc_preserve_defaults = True
maximum_signature_line_length = 130
toc_object_entries_show_parents = "hide"
highlight_language = "none"

html_theme = "furo"
html_title = "G-Transformer"
pygments_dark_style = "github-dark"
html_static_path = ["static"]
html_css_files = ["custom.css"]
html_extra_path = ["root"]
html_copy_source = False
html_show_sphinx = False


def links_from_root(app, path: Path, including: str, content: list[str]) -> None:
    """Makes links of the included README relative to the page."""
    if path.name == "README.md":
        content[0] = re.sub(r"\]\((?![a-z]+:|#)", "](../", content[0])


def setup(app) -> None:
    app.connect("include-read", links_from_root)
