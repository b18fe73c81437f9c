"""Build the documentation as a small static site, with Sphinx: `make site`.

The pages stay plain Markdown; this script collects them in a folder, adds an index, the notebooks and an API reference
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
from notebook import NOTEBOOKS, as_markdown, read

from pysimt_sac import __version__

ROOT = Path(__file__).parents[1]
PAGES = {
    "Get started": ("readme", "tutorial", "api", "reference"),
    "Train": (
        "options",
        "algorithms",
        "extending",
        "completion",
        "resuming",
        "distributed",
        "pysimt",
        "huggingface",
        "marian",
    ),
    "Data and evaluation": (
        "own-corpus",
        "corpora",
        "analyses",
        "reproduce",
        "results",
        "results-tables",
        "development",
        "benchmarks",
        "machines",
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
html_theme, html_title = "furo", "pysimt_sac {version}"
html_static_path, html_css_files = ["static"], ["site.css"]
html_show_copyright = html_show_sphinx = False
html_copy_source = html_show_sourcelink = False
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
add_module_names = False
"""
STYLE = """\
.content { width: 48em; }
@media (min-width: 97em) { .content { width: 60em; } }
"""
START = """\
# pysimt_sac

Fine-tune a translation model by reinforcement learning, and learn whether it helped.

![A configuration and a corpus go into the host, which trains a model; its translations are scored.](overview.svg)

Include the configuration that you have, choose an algorithm, and name the actor to start from:

```ini
[include]
base: my.conf

[train]
model_type: BranchedSACNMT
pretrained_file: ./runs/my
```

```sh
pysimt train -C my_sac.conf                                # resumes after any interruption
pysimt translate runs/my_sac -s test -f bs -k 6 -o out/sac
pysimt-sac compare --ref test.de --baseline out/mle.test.beam6 --system SAC out/sac.test.beam6
```

- **Algorithms**: [Soft Actor-Critic, branched rollouts, REINFORCE, MIXER, MRT and others](algorithms.md), a file each.
- **Rewards**: BLEU, GLEU, chrF, TER, an unsupervised one, mixtures, and [your own](extending.md).
- **Evidence**: several seeds, controls, significance, lexical accuracy, [one page that shows it all](analyses.md).
- **Your text**: [from raw files to a table](own-corpus.md). No data at hand? `make demo` takes five minutes.
- **pysimt**: [the same plugin runs inside it](pysimt.md); without it, a small engine of its own speaks its formats.
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
    for name in NOTEBOOKS:
        (folder / f"{name}.md").write_text(as_markdown(read(name), folder), encoding="utf-8")
    (folder / "reference.md").write_text(REFERENCE, encoding="utf-8")
    (folder / "conf.py").write_text(CONFIG.replace("{version}", __version__), encoding="utf-8")
    (folder / "static").mkdir()
    (folder / "static/site.css").write_text(STYLE, encoding="utf-8")
    (folder / "index.md").write_text(index_page(), encoding="utf-8")
    link_pages(folder)


def index_page() -> str:
    """Return the start page; the other pages are in its navigation, by topic."""
    parts = [START]
    for caption, pages in PAGES.items():
        names = "\n".join("README <readme>" if page == "readme" else page for page in pages)
        parts.append(f"```{{toctree}}\n:maxdepth: 1\n:hidden:\n:caption: {caption}\n\n{names}\n```")
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


def list_of_versions(folder: Path) -> str:
    """Return a page with the versions of the documentation in a folder, the newest first; it opens the first."""

    def order(name: str) -> tuple[int, ...]:
        return tuple(map(int, re.findall(r"\d+", name)))

    names = sorted((path.parent.name for path in folder.glob("*/index.html")), key=order, reverse=True)
    links = "".join(f'<li><a href="{name}/">{name}</a></li>' for name in names)
    opened = f'<meta http-equiv="refresh" content="0; url={names[0]}/">' if names else ""
    return f'<!doctype html><meta charset="utf-8"><title>pysimt_sac</title>{opened}<ul>{links}</ul>\n'


def main() -> int:
    """Build the site; every warning of Sphinx is an error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/site"), help="folder to write to")
    parser.add_argument("--check-links", action="store_true", help="also check the addresses of other sites")
    parser.add_argument("--list-versions", type=Path, metavar="DIR", help="write DIR/index.html, with links to DIR/*/")
    args = parser.parse_args()
    if args.list_versions:
        (args.list_versions / "index.html").write_text(list_of_versions(args.list_versions), encoding="utf-8")
        return 0
    out, status = args.out, 0
    with tempfile.TemporaryDirectory() as folder:
        gather(Path(folder))
        words = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", f"{folder}/.doctrees"]
        for builder, place in [("html", out)] + [("linkcheck", Path(folder) / "links")] * args.check_links:
            status = status or subprocess.run([*words, "-b", builder, folder, str(place)]).returncode
    if status == 0:
        sys.stdout.write(f"{out}/index.html\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
