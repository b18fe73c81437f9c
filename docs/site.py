"""Build the documentation as a small static site, with Sphinx: `make site`.

The pages stay plain Markdown; this script collects them in a folder, adds an index, the tutorial and an API reference
from the docstrings, and calls Sphinx. Neither building nor reading the site needs a network.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # Sphinx's own processes do not need it
from notebook import as_markdown, read

ROOT = Path(__file__).parents[1]
PAGES = {
    "Get started": ("readme", "tutorial", "api", "reference"),
    "Train": ("options", "algorithms", "extending", "completion", "resuming", "distributed", "pysimt"),
    "Data and evaluation": (
        "own-corpus",
        "corpora",
        "analyses",
        "reproduce",
        "results",
        "results-tables",
        "development",
        "benchmarks",
    ),
    "More": ("glossary", "contributing", "changelog"),
}
ELSEWHERE = {
    "readme": "README.md",
    "results": "experiments/RESULTS.md",
    "benchmarks": "benchmarks/README.md",
    "contributing": "CONTRIBUTING.md",
    "changelog": "CHANGELOG.md",
}
CONFIG = """\
project, author, copyright = "pysimt_sac", "", ""
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "alabaster"
html_theme_options = {"description": "Reinforcement learning for machine translation", "page_width": "1100px"}
html_show_copyright = html_show_sphinx = False
html_copy_source = html_show_sourcelink = False
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
add_module_names = False
"""
REFERENCE = """\
# API reference

{api}`api` shows how these are used.

```{eval-rst}
.. currentmodule:: pysimt_sac

.. autofunction:: load
.. autoclass:: Model
   :members: translate, score
.. autoclass:: Translation
.. autofunction:: train
.. autoclass:: Run
   :members:
.. autofunction:: bleu
.. autofunction:: compare
.. autofunction:: lexical
.. autoexception:: UserError
```
""".replace("{api}`api`", "[The API page](api.md)")


def gather(folder: Path) -> None:
    """Copy all pages and pictures to one folder."""
    for path in (ROOT / "docs").iterdir():
        if path.suffix in (".md", ".svg", ".png"):
            shutil.copy(path, folder)
    for name, path in ELSEWHERE.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        (folder / f"{name}.md").write_text(re.sub(r"\]\(docs/", "](", text), encoding="utf-8")
    (folder / "tutorial.md").write_text(as_markdown(read(), folder), encoding="utf-8")
    (folder / "reference.md").write_text(REFERENCE, encoding="utf-8")
    (folder / "conf.py").write_text(CONFIG, encoding="utf-8")
    (folder / "index.md").write_text(index_page(), encoding="utf-8")
    link_pages(folder)


def index_page() -> str:
    """Return the index page, which lists all others by topic."""
    parts = ["# pysimt_sac", "Reinforcement learning for machine translation."]
    for caption, pages in PAGES.items():
        names = "\n".join(pages)
        parts.append(f"```{{toctree}}\n:maxdepth: 1\n:caption: {caption}\n\n{names}\n```")
    return "\n\n".join(parts) + "\n"


def link_pages(folder: Path) -> None:
    """Turn names of pages, written as `docs/glossary.md` or `glossary.md`, into links."""
    pages = {f"{name}.md" for names in PAGES.values() for name in names}
    places = {**{path: f"{name}.md" for name, path in ELSEWHERE.items()}, **{page: page for page in pages}}
    places.update({f"docs/{page}": page for page in pages})
    for path in folder.glob("*.md"):
        text = path.read_text(encoding="utf-8")
        for name, page in places.items():
            if page != path.name:
                text = text.replace(f"`{name}`", f"[{name}]({page})")
        path.write_text(text, encoding="utf-8")


def main() -> int:
    """Build the site; every warning of Sphinx is an error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/site"), help="folder to write to")
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as folder:
        gather(Path(folder))
        words = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", f"{folder}/.doctrees"]
        status = subprocess.run([*words, folder, str(out)]).returncode
    if status == 0:
        sys.stdout.write(f"{out}/index.html\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
