"""Measure how fast the report page responds in a real browser: 5 systems, 1,000 sentences, best of 5 tries.

python -m benchmarks.page
"""

import contextlib
import tempfile
from pathlib import Path

from pysimt_sac.evaluation.report.page import render_page
from tests.evaluation.report.browser import CHROMIUM, Browser, change
from tests.evaluation.report.reporting import make_report

CHANGES = {"filter by a word": ("query", "ufer", ""), "filter by an ambiguous word": ("word", "=bank", "")}
CHANGES |= {"sort by improvement": ("sort", "gain:fifth", "line"), "sort by score": ("sort", "score:base", "line")}


def main() -> None:
    if CHROMIUM is None:
        raise SystemExit("Chromium is not installed (Debian: apt install chromium)")
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Browser(Path(folder) / "profile")) as browser:
        path = Path(folder) / "report.html"
        names = ["base", "second", "third", "fourth", "fifth"]
        path.write_text(render_page(make_report(Path(folder), 1000, names)), encoding="utf-8")
        page = browser.open(path.as_uri())
        for what, (control, value, other) in CHANGES.items():
            tries = []
            for _ in range(5):
                change(page, control, other)
                tries.append(change(page, control, value))
            print(f"{what:<30}{min(tries):>8.1f} ms")


if __name__ == "__main__":
    main()
