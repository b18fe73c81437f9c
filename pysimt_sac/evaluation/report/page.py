"""The report as one HTML page that needs nothing else: styles, script and data are inside it.

Everything that comes from a file is escaped here. The page's policy allows exactly its own style and script, by their
checksums, and no request to anywhere. Without JavaScript everything but the browser of translations is there.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources

from pysimt_sac import __version__
from pysimt_sac.evaluation.lexical.accuracy import LexicalAccuracy, LexicalComparison
from pysimt_sac.evaluation.lexical.frequency import REFERENCE, FrequencyAnalysis, WordUse
from pysimt_sac.evaluation.report.data import NamedFigure, ReportData, SetReport
from pysimt_sac.evaluation.report.figures import REFERENCE_STYLE, line_styles, svg, system_style
from pysimt_sac.evaluation.report.layout import best_cells
from pysimt_sac.evaluation.scoring.comparison import Comparison, MetricComparison, SystemScore
from pysimt_sac.evaluation.scoring.significance import SIGNIFICANT

CURVE_SECTIONS = {"validation": "Validation", "training": "Training", "health": "Health of the learner"}
ARROWS = {True: "↑", False: "↓"}


def render_page(data: ReportData, title: str = "What training did to the translations") -> str:
    """The whole page."""
    style = page_file("report.css") + line_styles()
    script = page_file("report.js")
    content = json.dumps(
        {"measure": data.measure, "systems": data.systems, "sets": [one.browser for one in data.sets]},
        ensure_ascii=False,
        separators=(",", ":"),
    )
    policy = (
        f"default-src 'none'; style-src '{policy_hash(style)}'; script-src '{policy_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer"><meta name="color-scheme" content="light dark">',
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title><style>{style}</style></head><body>',
        '<a class="skip" href="#translations">Skip to the translations</a>',
        header(data, title),
        "<main>",
        scores_section(data),
        lexical_section(data),
        frequency_section(data),
        curves_section(data),
        page_file("browser.html"),
        "</main>",
        f"<footer>Made by pysimt_sac {escape(__version__)}. This page makes no connection to anywhere.</footer>",
        f'<script type="application/json" id="data">{safe_json(content)}</script>',
        f"<script>{script}</script></body></html>\n",
    ]
    return "\n".join(part for part in parts if part)


def page_file(name: str) -> str:
    """A part of the page as it is packaged."""
    return resources.files("pysimt_sac.evaluation.report").joinpath("assets", name).read_text(encoding="utf-8")


def policy_hash(text: str) -> str:
    """How the page's policy names a style or script that may be used."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def safe_json(text: str) -> str:
    """JSON that cannot end the script element it stands in."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def header(data: ReportData, title: str) -> str:
    """Title, contents, and the systems with their lines' looks."""
    links = [("scores", "Scores")]
    if any(one.lexical for one in data.sets):
        links.append(("lexical", "Ambiguous words"))
    if any(one.frequency for one in data.sets):
        links.append(("frequency", "Word frequency"))
    if data.curves:
        links.append(("curves", "Curves"))
    links.append(("translations", "Translations"))
    contents = "".join(f'<li><a href="#{place}">{name}</a></li>' for place, name in links)
    sets = ", ".join(f"{escape(one.name)} ({one.sentences:,} sentences)" for one in data.sets)
    return (
        f"<header><h1>{escape(title)}</h1><p>{sets}</p>{legend(data, with_runs=True)}"
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav></header>'
    )


def legend(data: ReportData, with_runs: bool = False, with_reference: bool = False) -> str:
    """The systems and what their lines look like."""
    entries = []
    for number, (name, runs) in enumerate(zip(data.systems, data.runs, strict=True)):
        note = ", the baseline" if with_runs and number == 0 and len(data.systems) > 1 else ""
        note += f", {runs} runs" if with_runs and runs > 1 else ""
        entries.append((system_style(number), escape(name) + note))
    if with_reference:
        entries.append((REFERENCE_STYLE, REFERENCE))
    return '<ul class="legend">' + "".join(f"<li>{swatch(style)} {text}</li>" for style, text in entries) + "</ul>"


def swatch(style: int) -> str:
    """A short piece of a line."""
    return (
        f'<svg class="swatch" viewBox="0 0 34 10" aria-hidden="true"><line class="line s{style}" '
        'x1="1" x2="33" y1="5" y2="5"/></svg>'
    )


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], wide: bool = True) -> str:
    """A table of cells that are HTML already; the first cell of a row is its heading. It scrolls on narrow screens."""
    top = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>' + "".join(f"<td>{cell}</td>" for cell in row[1:]) + "</tr>" for row in rows
    )
    inside = f"<table><caption>{caption}</caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    label = escape(f"Table: {caption}", quote=True)
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">{inside}</div>' if wide else inside


def section(place: str, title: str, inside: str) -> str:
    """A part of the page."""
    return f'<section id="{place}"><h2>{title}</h2>{inside}</section>'


# Scores


def scores_section(data: ReportData) -> str:
    """A table for each test set."""
    resampling = data.sets[0].comparison.resampling
    notes = [f"{escape(part.metric)}: {escape(part.signature)}" for part in data.sets[0].comparison.metrics]
    if len(data.systems) > 1:
        notes.insert(
            0,
            f"<b>Bold</b>: the best. ± standard deviation of the runs. Below: difference from "
            f"{escape(data.systems[0])} and p, two-sided, by {resampling.shuffles:,} shuffles; * p ≤ {SIGNIFICANT}.",
        )
    if 1 in data.runs:
        notes.append("A system with one run: whether another seed would give the same, this cannot tell.")
    inside = "".join(score_table(one.comparison) for one in data.sets)
    return section("scores", "Scores", inside + notes_list(notes))


def notes_list(notes: Iterable[str]) -> str:
    """Small print."""
    return '<ul class="notes">' + "".join(f"<li>{note}</li>" for note in notes) + "</ul>"


def score_table(comparison: Comparison) -> str:
    """A row for each system."""
    parts = comparison.metrics
    head = ["system", *(escape(part.metric) + arrow(part) for part in parts)]
    values = [[round(part.systems[row].average, 2) for part in parts] for row in range(len(parts[0].systems))]
    best = best_cells(values, [part.higher_is_better for part in parts])
    best = frozenset(cell for cell in best if parts[cell[1]].metric != "length")
    rows = [
        [
            escape(parts[0].systems[row].system),
            *(score_cell(part.systems[row], (row, column) in best) for column, part in enumerate(parts)),
        ]
        for row in range(len(parts[0].systems))
    ]
    return table(f"{escape(comparison.test_set)}: {comparison.sentences:,} sentences", head, rows)


def arrow(part: MetricComparison) -> str:
    """Which direction is better."""
    return "" if part.metric == "length" else f" {ARROWS[part.higher_is_better]}"


def score_cell(system: SystemScore, best: bool) -> str:
    """Average, spread, and what significance testing says."""
    shown = f"{system.average:.2f}"
    shown = f"<b>{shown}</b>" if best else shown
    if system.s_test is not None:
        shown += f" ±{system.s_test:.2f}"
    found = system.against_baseline
    return shown + (difference(found.difference, found.p) if found else "")


def difference(value: float, p: float) -> str:
    """A difference from the baseline, with a star if it is significant."""
    star = f'<span class="star" title="p ≤ {SIGNIFICANT}">*</span>' if p <= SIGNIFICANT else ""
    shown = f"p={p:.3f}" if p >= 0.001 else "p&lt;0.001"
    return f'<span class="diff">{value:+.2f}{star} {shown}</span>'


# Ambiguous words


def lexical_section(data: ReportData) -> str:
    """LTA and ALI on all and on rare cases, and by word."""
    inside = "".join(
        lexical_table(one, one.lexical) + word_table(one, one.lexical) for one in data.sets if one.lexical is not None
    )
    if not inside:
        return ""
    notes = [
        "LTA: a correct translation of the ambiguous word is in the output, in percent.",
        "ALI: +1 for each correct one, −1 for each known wrong one, 0 for neither, averaged, in percent.",
        "Rare: the correct translation is not the most frequent one in training.",
    ]
    if len(data.systems) > 1:
        baseline = escape(data.systems[0])
        notes.append(f"Below: difference from {baseline} and p, by shuffling sentences; * p ≤ {SIGNIFICANT}.")
    return section("lexical", "Ambiguous words", inside + notes_list(notes))


def lexical_table(one: SetReport, lexical: LexicalComparison) -> str:
    """A row for each system, all and rare cases."""
    kinds = [("all", lexical.all)] + ([("rare", lexical.rare)] if lexical.rare else [])
    head = ["system"]
    for kind, _ in kinds:
        cases = getattr(lexical.systems[0], kind).cases
        head += [f"LTA, {kind} ({cases:,})", f"ALI, {kind}"]
    rows = []
    for number, system in enumerate(lexical.systems):
        cells = [escape(system.system)]
        for kind, tests in kinds:
            accuracy = getattr(system, kind)
            for value, test in zip((accuracy.lta, accuracy.ali), tests, strict=True):
                found = test.systems[number].against_baseline
                cells.append(f"{value:.2f}" + (difference(found.difference, found.p) if found else ""))
        rows.append(cells)
    return table(f"{escape(one.name)}: translation of ambiguous words", head, rows)


def word_table(one: SetReport, lexical: LexicalComparison) -> str:
    """LTA of each word; the words are buttons that filter the translations."""
    first = lexical.systems[0].words
    words = sorted(first, key=lambda word: (-first[word].cases, word))

    def row(word: str) -> list[str]:
        button = (
            f'<button type="button" class="word" data-set="{escape(one.name)}" data-word="{escape(word)}">'
            f"{escape(word)}</button>"
        )
        return [button, str(first[word].cases), *(word_cell(system, word) for system in lexical.systems)]

    head = ["word", "cases", *(f"LTA {escape(system.system)}" for system in lexical.systems)]
    caption = f"{escape(one.name)}: the share of correct translations of each word. A word shows its sentences below."
    inside = table(caption, head, map(row, words))
    return f"<details><summary>{escape(one.name)}: each of {len(words)} ambiguous words</summary>{inside}</details>"


def word_cell(system: LexicalAccuracy, word: str) -> str:
    """A word's accuracy in one system."""
    return f"{system.words[word].lta:.1f}"


# Word frequency


def frequency_section(data: ReportData) -> str:
    """The figure and the numbers for each test set."""
    parts = []
    measure = data.measure
    for one in data.sets:
        if one.frequency is None:
            continue
        figures = "".join(figure_block(figure) for figure in one.figures)
        parts.append(
            f"<h3>{escape(one.name)}</h3>{legend(data, with_reference=True)}"
            f'<div class="figures">{figures}</div>{frequency_table(one.frequency, one.name)}'
        )
    if not parts:
        return ""
    analysis = next(one.frequency for one in data.sets if one.frequency is not None)
    improved = f"Improved: a higher sentence {measure.upper()} than {escape(data.systems[0])}'s. First runs only."
    notes = (
        "Curves: of all words that a text has, P percent were seen at most so often in training. Lower is rarer.",
        *([improved] if len(data.systems) > 1 else []),
        f"Rare: seen at most {analysis.rare_limit} times in the {analysis.training_words:,} words of training; "
        "unseen: never.",
        "TTR: different words per word. Distinct-n: different n-grams per n-gram. P50: the median frequency.",
    )
    return section("frequency", "Word frequency", "".join(parts) + notes_list(notes))


def frequency_table(analysis: FrequencyAnalysis, name: str) -> str:
    """A row for each text."""
    head = ("text", "words", "types", "TTR", "distinct-2", "distinct-3", "unseen", "rare", "P10", "P50", "P90")

    def row(text: WordUse) -> list[str]:
        percentiles = [f"{text.percentiles[percent]:,}" if text.percentiles else "–" for percent in (10, 50, 90)]
        return [
            escape(text.name),
            f"{text.words:,}",
            f"{text.types:,}",
            *(f"{value:.3f}" for value in (text.type_token_ratio, text.distinct_2, text.distinct_3)),
            *(f"{100 * value:.2f}%" for value in (text.unseen, text.rare)),
            *percentiles,
        ]

    return table(f"{escape(name)}: words of all sentences", head, map(row, analysis.all.texts))


# Curves


def curves_section(data: ReportData) -> str:
    """Curves by kind."""
    parts = []
    for key, title in CURVE_SECTIONS.items():
        figures = [figure for figure in data.curves if figure.section == key]
        if figures:
            blocks = "".join(figure_block(figure, last_values=True) for figure in figures)
            parts.append(f'<h3>{escape(title)}</h3><div class="figures">{blocks}</div>')
    if not parts:
        return ""
    return section("curves", "Training and health curves", legend(data) + "".join(parts))


def figure_block(named: NamedFigure, last_values: bool = False) -> str:
    """A figure with its title, and with the last values of its lines."""
    caption = f"<b>{escape(named.caption)}</b>"
    if last_values:
        lasts = [f"{escape(line.name)} {line.points[-1][1]:.4g}" for line in named.figure.series if line.points]
        caption += f'<span class="last">last: {"; ".join(lasts)}</span>'
    return f"<figure><figcaption>{caption}</figcaption>{svg(named.figure)}</figure>"
