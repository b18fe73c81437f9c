"""Tables as plain text, Markdown, LaTeX or HTML."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

FORMATS = ("text", "markdown", "latex")
LATEX_ESCAPES = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "↑": r"$\uparrow$",
        "↓": r"$\downarrow$",
        "±": r"$\pm$",
        "–": "--",
    }
)

LONG_WORD = re.compile(r"[^\s<>]{14,}")  # such as a file name: may be wrapped after _, / and -
NOTHING = ("", "-")  # cells that are hidden on phones


@dataclass(frozen=True)
class Table:
    """A table. The first `left` columns are left-aligned; there is a rule before each row in `rules`.

    words: further columns that contain words, not numbers: left-aligned and wrapped in HTML.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    left: int = 1
    rules: frozenset[int] = frozenset()
    bold: frozenset[tuple[int, int]] = frozenset()
    notes: tuple[str, ...] = ()
    words: frozenset[int] = frozenset()


def best_cells(
    values: Sequence[Sequence[float | None]], higher_is_better: Sequence[bool]
) -> frozenset[tuple[int, int]]:
    """Return the row and column of each column's best values, ties included."""
    found = set()
    for column, higher in enumerate(higher_is_better):
        numbers = {row: value for row, line in enumerate(values) if (value := line[column]) is not None}
        if len(numbers) > 1:
            best = max(numbers.values()) if higher else min(numbers.values())
            found |= {(row, column) for row, value in numbers.items() if value == best}
    return frozenset(found)


def render(table: Table, style: str) -> str:
    """Render the table in one of FORMATS."""
    return {"text": as_text, "markdown": as_markdown, "latex": as_latex}[style](table)


def as_text(table: Table) -> str:
    """Render as aligned columns, without those that have nothing in any row."""
    every = zip(table.header, *table.rows, strict=True)
    columns = [column for column in every if {cell.strip() for cell in column[1:]} != {"-"}]
    widths = [max(map(len, column)) for column in columns]
    header, *rows = zip(*columns, strict=True)

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.ljust(width) if number < table.left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join(padded).rstrip()

    lines = [table.title, ""] if table.title else []
    lines += [line(header), "-" * (sum(widths) + 2 * len(widths) - 2)]
    for number, row in enumerate(rows):
        if number in table.rules and number > 0:
            lines.append("")
        lines.append(line(row))
    if table.notes:
        lines += ["", *table.notes]
    return "\n".join(lines)


def marked_cells(table: Table, row: int, escape_text: Callable[[str], str], bold: str) -> list[str]:
    """Return a row's cells, escaped, and in bold where the table says so, except for stars."""
    cells = []
    for column, cell in enumerate(table.rows[row]):
        number = cell.rstrip("* ")
        text, stars = escape_text(number), escape_text(cell[len(number) :].strip())
        cells.append((bold.format(text) if (row, column) in table.bold else text) + stars)
    return cells


def as_markdown(table: Table) -> str:
    """Render as a pipe table."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    lines = [f"**{escape_markdown(table.title)}**", ""] if table.title else []
    lines += [
        line(map(escape_markdown, table.header)),
        line(":--" if column < table.left else "--:" for column in range(len(table.header))),
    ]
    lines += [line(marked_cells(table, row, escape_markdown, "**{}**")) for row in range(len(table.rows))]
    if table.notes:
        lines += ["", *(f"- {escape_markdown(note)}" for note in table.notes)]
    return "\n".join(lines)


def as_latex(table: Table) -> str:
    """Render as a `table` with a booktabs `tabular`; title and notes become the caption."""

    def line(cells: Iterable[str]) -> str:
        return " & ".join(cells) + r" \\"

    lines = [
        "% needs \\usepackage{booktabs}",
        r"\begin{table}[t]",
        r"\centering",
        rf"\begin{{tabular}}{{{'l' * table.left}{'r' * (len(table.header) - table.left)}}}",
        r"\toprule",
        line(map(escape_latex, table.header)),
        r"\midrule",
    ]
    for row in range(len(table.rows)):
        if row in table.rules and row > 0:
            lines.append(r"\midrule")
        lines.append(line(marked_cells(table, row, escape_latex, r"\textbf{{{}}}")))
    caption = " ".join(filter(None, (table.title and table.title.rstrip(".") + ".", *table.notes)))
    lines += [r"\bottomrule", r"\end{tabular}"]
    if caption:
        lines.append(rf"\caption{{{escape_latex(caption)}}}")
    return "\n".join([*lines, r"\end{table}"])


def as_html(table: Table, caption: str, heading: Callable[[str], str] = escape) -> str:
    """Render without title and notes; `heading` renders the first cell of a row.

    Cells carry their column's name, which precedes them on phones, where rows are paragraphs. The roles keep it a table
    for assistive technology in that layout, too.
    """
    top = "".join(html_cell(table, column, escape(cell), is_top=True) for column, cell in enumerate(table.header))
    body = []
    for row in range(len(table.rows)):
        cells = marked_cells(table, row, escape, "<b>{}</b>")
        cells[0] = heading(table.rows[row][0])
        rule = ' class="rule"' if row in table.rules else ""
        shown = "".join(html_cell(table, column, cell) for column, cell in enumerate(cells))
        body.append(f'<tr role="row"{rule}>{shown}</tr>')
    inside = f'<caption>{escape(caption)}</caption><thead role="rowgroup"><tr role="row">{top}</tr></thead>'
    inside += f'<tbody role="rowgroup">{"".join(body)}</tbody>'
    around = f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(f"Table: {caption}")}">'
    return f'{around}<table role="table">{inside}</table></div>'


def html_cell(table: Table, column: int, cell: str, is_top: bool = False) -> str:
    """Render a cell, or the heading of a row or column."""
    is_text, is_wrapped = column < table.left or column in table.words, column in table.words and not is_top
    names = {"left": is_text, "words": is_wrapped, "none": cell in NOTHING}
    css_class = " ".join(name for name, applies in names.items() if applies)
    css_class = f' class="{css_class}"' if css_class else ""
    if is_top:
        return f'<th scope="col" role="columnheader"{css_class}>{cell}</th>'
    if column == table.left - 1:
        return f'<th scope="row" role="rowheader"{css_class}>{cell}</th>'
    label = f' data-label="{escape(table.header[column])}"' if column >= table.left else ""
    if is_wrapped:
        cell = LONG_WORD.sub(lambda word: re.sub(r"([_/-])", r"\1<wbr>", word[0]), cell)
    return f'<td role="cell"{css_class}{label}>{cell}</td>'


def escape_markdown(text: str) -> str:
    """Escape Markdown."""
    return re.sub(r"([\\|<*_`])", r"\\\1", text)


def escape_latex(text: str) -> str:
    """Escape LaTeX."""
    return text.translate(LATEX_ESCAPES)
