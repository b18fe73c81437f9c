"""The paper's figures are the paper's, and our own rows are beside them."""

import re

import pytest

from pysimt_sac.evaluation.tables import render
from pysimt_sac.reproduce.tables import filled_tables, number_in, paper_tables
from tests.reproduce.sample import TEST, sample_results, score

LABELS = {
    "multi30k": "tab:res_multi30k",
    "iwslt-multi30k": "tab:res_multi30k-iwslt",
    "iwslt14": "tab:iwslt",
    "lexical-all": "tab:lex_translation",
    "lexical-rare": "tab:lex_translation",
    "ambiguous": "table:amb-bleu",
}


def figures_in_latex(source: str, label: str) -> list[list[str]]:
    """The figures of every line of the table that carries a label, with their stars."""
    table = next(
        part.split(r"\end{table")[0]
        for part in source.split(r"\begin{table")[1:]
        if rf"\label{{{label}}}" in part.split(r"\end{table")[0]
    )
    body = re.sub(r"\\caption.*", "", table, flags=re.DOTALL)
    lines = [re.sub(r"~\\cite\{\w+\}|\\bf\b|@?\\hspace\{[^}]*\}", "", line) for line in body.split(r"\\")]
    return [found for line in lines if (found := re.findall(r"(?<![\w.])(?:\d+\.\d+\*?|-(?= ))", line))]


@pytest.mark.parametrize("key", LABELS)
def test_figures_are_the_papers(research_data, key):
    expected = figures_in_latex((research_data / "paper.tex").read_text(encoding="utf-8"), LABELS[key])
    if key.startswith("lexical"):  # both halves are in one table of the paper
        expected = expected[-12:-6] if key == "lexical-all" else expected[-6:]
    table = paper_tables()[key]
    rows = [cells for systems in table.groups.values() for cells in systems.values()]
    assert len(rows) == len(expected[-len(rows) :])
    for cells, figures in zip(rows, expected[-len(rows) :], strict=True):
        wanted = [figure for figure in figures if figure != "-"]
        assert [cell for cell in cells if cell != "-"] == wanted


def test_every_row_has_a_figure_for_every_column():
    for table in paper_tables().values():
        for systems in table.groups.values():
            assert {len(cells) for cells in systems.values()} == {len(table.columns())}


def test_the_papers_ali_for_all_cases_is_what_we_say_it_is():
    for systems in paper_tables()["lexical-all"].groups.values():
        for cells in systems.values():
            for place in range(0, 9, 3):
                assert number_in(cells[place + 2]) == pytest.approx(2 * number_in(cells[place]) - 100, abs=0.021)


def tables(scores, **changes):
    """The filled tables of some scores, by key, as lines of Markdown."""
    found = filled_tables(sample_results(scores=scores, **changes))
    return {table.title.split(":")[0]: render(table, "markdown").splitlines() for table in found}


def test_own_rows_are_beside_the_papers():
    systems = [{"name": name} for name in ("C1", "MLE", "SAC BLEU")]
    scores = [
        score("BLEU", "C1", [39.0], {"MLE": 0.3}),
        score("BLEU", "MLE", [38.0, 39.0]),
        score("BLEU", "SAC BLEU", [40.0, 40.4], {"MLE": 0.01}),
        score("METEOR (exact stem)", "MLE", [56.0, 56.0]),
        score("METEOR (exact stem)", "SAC BLEU", [57.0, 57.0], {"MLE": 0.3}),
    ]
    runs = [{"system": "C1"}, *[{"system": name} for name in ("MLE", "SAC BLEU") for _ in range(2)]]
    (lines,) = tables(scores, systems=systems, runs=runs).values()
    rows = [line.split(" | ")[1:5] for line in lines if "paper" in line or "own" in line.partition("own rows")[0]]
    assert rows[:7] == [
        ["MLE", "paper", "38.5", "**57.2**"],
        ["MLE", "own, 2 runs", "38.5±0.7", "56.0±0.0"],
        ["ERAC", "paper", r"**38.9**\*", r"56.1\*"],
        ["SAC BLEU", "paper", "38.1", r"56.8\*"],
        ["SAC BLEU", "own, 2 runs", r"**40.2±0.3**\*", "**57.0±0.0**"],
        ["SAC unsuper", "paper", r"38.0\*", "56.9"],
        ["C1", "own, 1 run", "39.0", "-"],
    ]
    assert any("against MLE (own rows: against your MLE); ±" in line for line in lines)
    assert any("exact words and stems only" in line for line in lines)


def test_each_table_takes_its_own_part_of_the_test_sets():
    scores = [
        score("BLEU", "MLE", [38.0]),
        score("BLEU", "MLE", [36.0], part="ambiguous"),
        score("LTA", "MLE", [65.0], part="cases"),
        score("LTA", "MLE", [45.0], part="rare cases"),
    ]
    found = tables(scores)
    assert set(found) == {"multi30k", "lexical-all", "lexical-rare", "ambiguous"}
    own = {key: next(line for line in lines if "own, " in line) for key, lines in found.items()}
    assert "| 38.0 |" in own["multi30k"]
    assert "| 36.0 |" in own["ambiguous"]
    assert "| 65.00 | - | 30.00 |" in own["lexical-all"]
    assert "| 45.00 | - |" in own["lexical-rare"]


def test_results_on_other_test_sets_or_pairs_fill_no_table():
    assert tables([score("BLEU", "MLE", [38.0], test_set="val")], tests=["val"]) == {}
    assert tables([score("BLEU", "MLE", [38.0], test_set=TEST)], pair="demo") == {}
