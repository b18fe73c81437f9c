"""One table in all formats."""

import xml.etree.ElementTree as ElementTree

from pysimt_sac.evaluation.tables import Table, as_html, best_cells, render

TABLE = Table(
    header=("system", "BLEU ↑"),
    rows=(("a_b|c", "38.1±0.2*"), ("x", "7")),
    title="50% <unk>",
    rules=frozenset({0, 1}),
    bold=frozenset({(0, 1)}),
    notes=("* significant",),
)


def test_text_columns_are_aligned():
    assert render(TABLE, "text").split("\n") == [
        "50% <unk>",
        "",
        "system     BLEU ↑",
        "-----------------",
        "a_b|c   38.1±0.2*",
        "",
        "x               7",
        "",
        "* significant",
    ]


def test_markdown_is_escaped_and_stars_are_not_bold():
    assert render(TABLE, "markdown").split("\n") == [
        r"**50% \<unk>**",
        "",
        "| system | BLEU ↑ |",
        "| :-- | --: |",
        r"| a\_b\|c | **38.1±0.2**\* |",
        "| x | 7 |",
        "",
        r"- \* significant",
    ]


def test_latex_is_escaped():
    assert render(TABLE, "latex").split("\n")[4:] == [
        r"\toprule",
        r"system & BLEU $\uparrow$ \\",
        r"\midrule",
        r"a\_b|c & \textbf{38.1$\pm$0.2}* \\",
        r"\midrule",
        r"x & 7 \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\caption{50\% \textless{}unk\textgreater{}. * significant}",
        r"\end{table}",
    ]


def test_html_is_escaped_and_has_headings_rules_and_bold_cells():
    root = ElementTree.fromstring(as_html(TABLE, TABLE.title))
    assert root.get("aria-label") == "Table: 50% <unk>"
    assert root.find("table/caption").text == "50% <unk>"
    first, second = root.findall("table/tbody/tr")
    assert [first.get("class"), second.get("class")] == ["rule", "rule"]
    heading, best = first
    assert (heading.tag, heading.get("scope"), heading.get("class"), heading.text) == ("th", "row", "left", "a_b|c")
    assert (best.find("b").text, best.find("b").tail) == ("38.1±0.2", "*")
    button = as_html(TABLE, "x", lambda word: f"<button>{word.upper()}</button>")
    assert ElementTree.fromstring(button).find(".//tbody/tr/th/button").text == "A_B|C"


def test_the_best_of_each_column():
    values = [[1.0, 5.0, None], [2.0, 3.0, 4.0], [2.0, None, None]]
    assert best_cells(values, [True, False, True]) == {(1, 0), (2, 0), (1, 1)}
