"""The report as one self-contained HTML page.

All text from files is escaped here. The content security policy allows only the page's own style and script, by their
hashes, and no requests. Without JavaScript, only the browser of translations is missing.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from html import escape
from importlib import resources

from pysimt_sac.engine.version import full_version
from pysimt_sac.evaluation.lexical.accuracy import LexicalComparison
from pysimt_sac.evaluation.lexical.frequency import REFERENCE
from pysimt_sac.evaluation.report.data import ReportData
from pysimt_sac.evaluation.report.figures import REFERENCE_STYLE, NamedFigure, line_styles, svg, system_style
from pysimt_sac.evaluation.report.layout import as_html
from pysimt_sac.evaluation.report.tables import (
    COMPARISON_COLUMNS,
    accuracy_table,
    comparison_table,
    frequency_table,
    word_table,
)

TITLE = "Translation report"
STYLES = ("page.css", "tables.css", "browser.css")
SCRIPTS = ("charts.js", "marking.js", "view.js", "browser.js")
CURVE_SECTIONS = {"validation": "Validation", "training": "Training", "diagnostics": "Diagnostics of the algorithm"}
MOST_WARNINGS = 5  # of a run that are shown unasked
RUN_NOTES = (
    "checkpoint: the best of the run by its first validation metric, which `translate RUN` uses; of update: when it "
    "was saved, of all the run's updates; at update 0 it is the starting point, and training has gained nothing",
    "-: the model has no such setting. Paths are shown by their last parts.",
)
FREQUENCY_FIGURES = (
    "Figures: P percent of a text's words have at most this training frequency. A lower curve means rarer words."
)


def render_page(data: ReportData, title: str = TITLE) -> str:
    """The whole page."""
    style = joined(STYLES) + line_styles()
    script = f'(() => {{\n"use strict";\n{joined(SCRIPTS)}}})();\n'
    content = json.dumps(
        {"measure": data.measure, "sets": [test_set.browser for test_set in data.sets]},
        ensure_ascii=False,
        separators=(",", ":"),
    )
    policy = (
        f"default-src 'none'; style-src '{policy_hash(style)}'; script-src '{policy_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    sections = {
        "scores": ("Scores", scores_part(data)),
        "lexical": ("Ambiguous words", lexical_part(data)),
        "frequency": ("Word frequency", frequency_part(data)),
        "curves": ("Training curves", curves_part(data)),
        "runs": ("Runs", provenance_part(data)),
    }
    shown = {place: part for place, part in sections.items() if part[1]}
    links = {**{place: name for place, (name, _) in shown.items()}, "translations": "Translations"}
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer"><meta name="color-scheme" content="light dark">',
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title><style>{style}</style></head><body>',
        '<a class="skip" href="#translations">Skip to the translations</a>',
        header(data, title, links),
        "<main>",
        *(f'<section id="{place}"><h2>{name}</h2>{inside}</section>' for place, (name, inside) in shown.items()),
        page_file("browser.html"),
        "</main>",
        f"<footer>Made by pysimt_sac {escape(full_version())}. This page makes no network requests.</footer>",
        f'<script type="application/json" id="data">{safe_json(content)}</script>',
        f"<script>{script}</script></body></html>\n",
    ]
    return "\n".join(parts)


def joined(names: Iterable[str]) -> str:
    """Several packaged assets as one."""
    return "\n".join(map(page_file, names))


def page_file(name: str) -> str:
    """A packaged asset."""
    return resources.files("pysimt_sac.evaluation.report").joinpath("assets", name).read_text(encoding="utf-8")


def policy_hash(text: str) -> str:
    """The hash by which the policy allows a style or script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def safe_json(text: str) -> str:
    """Escape JSON for a script element."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def header(data: ReportData, title: str, links: Mapping[str, str]) -> str:
    """Title, contents and systems."""
    contents = "".join(f'<li><a href="#{place}">{name}</a></li>' for place, name in links.items())
    sets = ", ".join(f"{escape(test_set.name)} ({test_set.sentences:,} sentences)" for test_set in data.sets)
    return (
        f"<header><h1>{escape(title)}</h1><p>{sets}</p>{legend(data, with_runs=True)}"
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav></header>'
    )


def legend(data: ReportData, with_runs: bool = False, with_reference: bool = False) -> str:
    """The systems and their line styles."""
    entries = []
    for number, (name, runs) in enumerate(zip(data.systems, data.runs, strict=True)):
        note = ", the baseline" if with_runs and number == 0 and len(data.systems) > 1 else ""
        note += f", {runs} runs" if with_runs and runs > 1 else ""
        note += f", identical to {escape(data.systems[0])}" if with_runs and data.is_identical(number) else ""
        entries.append((system_style(number), escape(name) + note))
    if with_reference:
        entries.append((REFERENCE_STYLE, REFERENCE))
    return '<ul class="legend">' + "".join(f"<li>{swatch(style)} {text}</li>" for style, text in entries) + "</ul>"


def swatch(style: int) -> str:
    """A sample of a line style."""
    return (
        f'<svg class="swatch" viewBox="0 0 34 10" aria-hidden="true"><line class="line s{style}" '
        'x1="1" x2="33" y1="5" y2="5"/></svg>'
    )


def notes_list(notes: Iterable[str]) -> str:
    """Notes below a section's tables."""
    return '<ul class="notes">' + "".join(f"<li>{escape(note)}</li>" for note in notes) + "</ul>"


def scores_part(data: ReportData) -> str:
    """The table that `pysimt-sac compare` prints, for each test set."""
    tables = [comparison_table(test_set.comparison) for test_set in data.sets]
    return "".join(as_html(table, table.title) for table in tables) + notes_list((COMPARISON_COLUMNS, *tables[0].notes))


def lexical_part(data: ReportData) -> str:
    """LTA and ALI on all and on rare cases, and by word."""
    parts, notes = [], ""
    for test_set in data.sets:
        if test_set.lexical is not None:
            table = accuracy_table(test_set.lexical)
            parts.append(as_html(table, f"{test_set.name}: translation of ambiguous words"))
            parts.append(word_details(test_set.name, test_set.lexical))
            notes = notes_list(table.notes)
    return "".join(parts) + notes


def word_details(name: str, lexical: LexicalComparison) -> str:
    """The accuracy of each word; the words are buttons that filter the translations."""

    def button(word: str) -> str:
        attributes = f'class="word" data-set="{escape(name)}" data-word="{escape(word)}"'
        return f'<button type="button" {attributes}>{escape(word)}</button>'

    table = word_table(lexical)
    inside = as_html(table, f"{name}: each word. Select a word to show its sentences.", button)
    return f"<details><summary>{escape(name)}: each of {len(table.rows)} ambiguous words</summary>{inside}</details>"


def frequency_part(data: ReportData) -> str:
    """Figures and table for each test set."""
    parts, notes = [], ""
    for test_set in data.sets:
        if test_set.frequency is not None:
            figures = "".join(map(figure_block, test_set.figures))
            table = frequency_table(test_set.frequency, test_set.frequency.all)
            parts.append(f"<h3>{escape(test_set.name)}</h3>{legend(data, with_reference=True)}")
            parts.append(f'<div class="figures">{figures}</div>{as_html(table, f"{test_set.name}: {table.title}")}')
            notes = notes_list((FREQUENCY_FIGURES, *table.notes, "Only the first run of each system is analysed."))
    return "".join(parts) + notes


def curves_part(data: ReportData) -> str:
    """Validation, training and diagnostic curves; those that tell less are folded away."""

    def blocks(section: str) -> tuple[int, str]:
        figures = [figure for figure in data.curves if figure.section == section]
        inside = "".join(figure_block(figure, last_values=True) for figure in figures)
        look = "figures pairs" if len(figures) in (2, 4) else "figures"
        return len(figures), f'<div class="{look}">{inside}</div>'

    found = {title: blocks(section) for section, title in CURVE_SECTIONS.items()}
    parts = [f"<h3>{escape(title)}</h3>{inside}" for title, (number, inside) in found.items() if number]
    number, inside = blocks("more")
    if number:
        parts.append(f"<details><summary>{number} more curves</summary>{inside}</details>")
    return legend(data) + "".join(parts) if parts else ""


def provenance_part(data: ReportData) -> str:
    """The runs, the warnings of their logs, and how their configurations differ."""
    found = data.provenance
    if found is None:
        return ""
    parts = [as_html(found.runs, "The best checkpoint of each run, and how it was trained")]
    software = (f"{', '.join(names)}: trained with {each}" for each, names in found.software.items())
    parts.append(notes_list((*RUN_NOTES, *software)))
    for name, warnings in found.warnings.items():
        entries = "".join(f"<li>{escape(warning)}</li>" for warning in warnings)
        is_open = " open" if len(warnings) <= MOST_WARNINGS else ""
        title = f"{escape(name)}: {len(warnings)} warning{'s' * (len(warnings) > 1)} of the log"
        parts.append(f'<details{is_open}><summary>{title}</summary><ul class="warnings">{entries}</ul></details>')
    if not found.warnings:
        parts.append("<p>The logs have no warnings.</p>")
    if found.differing:
        parts.append(as_html(found.differing, "Settings that differ between the systems"))
    if found.defaults:
        inside = as_html(found.defaults, "Settings that only some of the models have, at their default values")
        number = len(found.defaults.rows)
        parts.append(f"<details><summary>{number} settings at their defaults that only some models have</summary>")
        parts.append(f"{inside}</details>")
    return "".join(parts)


def figure_block(named: NamedFigure, last_values: bool = False) -> str:
    """A figure with its caption, its explanation and, if asked for, the last values of its lines."""
    caption = f"<b>{escape(named.caption)}</b>"
    if named.note:
        caption += f'<span class="note">{escape(named.note[0].upper() + named.note[1:])}</span>'
    if last_values:
        lasts = [f"{escape(line.name)} {line.points[-1][1]:.4g}" for line in named.figure.series if line.points]
        caption += f'<span class="last">last: {"; ".join(lasts)}</span>'
    return f"<figure><figcaption>{caption}</figcaption>{svg(named.figure)}</figure>"
