"""The files of a human ranking: a blind sheet for the annotator, and its key.

The sheet is a CSV file for spreadsheet programs (UTF-8 with a byte-order mark). It does not name the systems, and their
order changes from row to row; the key, a JSON file, records the orders. Spreadsheet programs save filled sheets with
various separators and encodings, so only item numbers, the source's ASCII letters and ranks are read back.
"""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import BOM, atomic_write, read_lines, require_file, why
from pysimt_sac.evaluation.ranking.sample import RankingItem, RankingOptions
from pysimt_sac.evaluation.ranking.score import Judgement

FORMULA_STARTS = ("=", "+", "-", "@", "\t")  # a spreadsheet evaluates cells that begin like this
NOT_THIS_KEY = "does the sheet belong to this key?"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def write_sheet(
    path: Path,
    items: Sequence[RankingItem],
    sources: Sequence[str],
    outputs: Mapping[str, Sequence[str]],
    references: Sequence[str] | None = None,
) -> None:
    """Write the sheet for the annotator."""
    systems = len(outputs)
    if systems > len(LETTERS):
        raise UserError(f"{systems} systems are too many for one sheet", hint=f"at most {len(LETTERS)}")
    letters = LETTERS[:systems]
    header = ["item", "word", "source"] + (["reference"] if references else [])
    header += [f"translation {letter}" for letter in letters] + [f"rank {letter}" for letter in letters]
    with atomic_write(path) as stream:
        stream.write(BOM)
        writer = csv.writer(stream, lineterminator="\r\n")
        writer.writerow(header)
        for item in items:
            texts = [item.word, sources[item.line]] + ([references[item.line]] if references else [])
            texts += [outputs[system][item.line] for system in item.order]
            writer.writerow([item.number, *map(escape_cell, texts), *[""] * systems])


def escape_cell(cell: str) -> str:
    """Escape a cell that a spreadsheet would evaluate."""
    return f"'{cell}" if cell.startswith(FORMULA_STARTS) else cell


def write_key(path: Path, items: Sequence[RankingItem], sources: Sequence[str], options: RankingOptions) -> None:
    """Write the key: which system is which in each item."""
    rows = [
        {
            "item": item.number,
            "group": item.group,
            "line": item.line,
            "word": item.word,
            "frequency": item.frequency,
            "source": sources[item.line],
            "order": list(item.order),
        }
        for item in items
    ]
    with atomic_write(path) as stream:
        json.dump({"ranking": 1, "seed": options.seed, "items": rows}, stream, ensure_ascii=False, indent=1)
        stream.write("\n")


def read_key(path: Path) -> dict[int, tuple[RankingItem, str]]:
    """Read the items of a key by number, with their source sentences."""
    try:
        content = json.loads("\n".join(read_lines(path, "key")))
        items = {}
        for row in content["items"]:
            item = RankingItem(
                row["item"], row["group"], row["line"], row["word"], row["frequency"], tuple(row["order"])
            )
            items[item.number] = (item, str(row["source"]))
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise UserError("is not the key of a ranking", path, "pysimt-sac rank sample writes it") from error
    return items


def read_judgements(path: Path, key: dict[int, tuple[RankingItem, str]]) -> tuple[list[Judgement], int]:
    """Read the judgements of a filled sheet; also return the number of rows without ranks."""
    header, *rows = read_cells(path)
    columns = {name.strip().lower(): place for place, name in enumerate(header)}
    systems = len(next(iter(key.values()))[0].order) if key else 0
    wanted = ["item", "source", *(f"rank {letter.lower()}" for letter in LETTERS[:systems])]
    for name in wanted:
        if name not in columns:
            raise UserError(f"has no column {name!r}", path, NOT_THIS_KEY)
    judgements, empty, seen = [], 0, set()
    for number, row in enumerate(rows, 2):
        if not any(cell.strip() for cell in row):
            continue
        cells = [row[columns[name]].strip() if columns[name] < len(row) else "" for name in wanted]
        where = f"{path}, row {number}"
        item = find_item(cells[0], cells[1], key, where)
        if item.number in seen:
            raise UserError(f"item {item.number} occurs twice", where, "remove one of them")
        seen.add(item.number)
        if not any(cells[2:]):
            empty += 1
            continue
        ranks = {system: parse_rank(cell, systems, where) for system, cell in zip(item.order, cells[2:], strict=True)}
        judgements.append(Judgement(item, ranks))
    return judgements, empty


def read_cells(path: Path) -> list[list[str]]:
    """Read the cells of a CSV file with commas, semicolons or tabs, in any of the usual encodings."""
    require_file(path, "sheet")
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot be read: {why(error)}", path) from error
    if raw.startswith(b"PK"):
        raise UserError("is a workbook, not a CSV file", path, "save it as CSV in the spreadsheet program")
    try:
        text = raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")  # only ASCII is read from it
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    if not rows:
        raise UserError("is empty", path)
    return rows


def find_item(number: str, source: str, key: dict[int, tuple[RankingItem, str]], where: str) -> RankingItem:
    """Return the key's item for a row, which must have the same source sentence."""
    parsed = whole_number(number)
    found = None if parsed is None else key.get(parsed)
    if found is None:
        raise UserError(f"the key has no item {number!r}", where, NOT_THIS_KEY)
    item, expected = found
    if plain_letters(source) != plain_letters(expected):
        raise UserError(f"item {number} has another source in the key", where, NOT_THIS_KEY)
    return item


def plain_letters(text: str) -> str:
    """Return the ASCII letters, which are the same in all encodings."""
    return "".join(character for character in text if character.isascii() and character.isalpha())


def parse_rank(cell: str, systems: int, where: str) -> int:
    """Parse a rank from 1 to the number of systems."""
    rank = whole_number(cell)
    if rank is None or not 1 <= rank <= systems:
        raise UserError(f"{cell!r} is not a rank", where, f"give every translation a rank from 1 (best) to {systems}")
    return rank


def whole_number(cell: str) -> int | None:
    """Parse a whole number, which a spreadsheet may have written as 1.0 or 1,0; None if it is not one."""
    whole, _, rest = cell.replace(",", ".").partition(".")
    return int(whole) if whole.isdecimal() and not rest.strip("0") else None


def key_summary(items: Sequence[RankingItem]) -> dict[str, Any]:
    """Return the number of sentences of each group and the mean training frequency of their words."""
    summary = {}
    for group in dict.fromkeys(item.group for item in items):
        frequencies = [item.frequency for item in items if item.group == group]
        summary[group] = (len(frequencies), sum(frequencies) / len(frequencies))
    return summary
