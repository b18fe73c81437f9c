"""Human ranking, as in the paper: a blind sheet for the annotator, its key, and the scores of filled sheets.

The sheet is a CSV file for spreadsheet programs. It does not name the systems, and their order changes from row to row;
the key, a JSON file, records the orders. Items are counted from a random number on: a sheet fits only its key.
"""

import csv
import io
import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import BOM, atomic_write, require_file
from pysimt_sac.core.records import read_record

FREQUENCIES = {"rare": (1, 1), "other": (10, 100)}  # lowest and highest training frequency of a group's words
KEY_HINT = "pysimt-sac rank sample writes it"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
FORMULA_STARTS = ("=", "+", "-", "@", "\t")  # a spreadsheet evaluates cells that begin like this


@dataclass(frozen=True)
class SheetRow:
    """A sentence to rank, the word for which it was drawn, and the systems in the order of the sheet."""

    item: str
    group: str
    line: int
    word: str
    order: list[str]


@dataclass(frozen=True)
class SheetKey:
    """The content of a key."""

    systems: list[str]
    items: list[SheetRow]


@dataclass(frozen=True)
class RankingScore:
    """A system on a group of sentences: how many other systems it is ranked better than or equal to.

    p: of a two-sided sign test against the first system, without ties; a sentence has one vote.
    """

    group: str
    system: str
    judgements: int
    score: float
    p: float


Judgement = tuple[SheetRow, dict[str, float]]  # one annotator's ranks of the systems in one row; 1 is best


def draw_rows(
    training: Counter[str], sources: Sequence[str], outputs: Mapping[str, Sequence[str]], per_group: int, seed: int
) -> list[SheetRow]:
    """Draw sentences with rare words, and with others on which the systems differ, in random order."""
    generator = random.Random(seed)
    drawn: dict[int, tuple[str, str]] = {}  # group and word of each line
    for group, (least, most) in FREQUENCIES.items():  # rare words first: fewer sentences contain one
        places = [
            (word, line)
            for line, (source, *texts) in enumerate(zip(sources, *outputs.values(), strict=True))
            for word in sorted(set(source.split()))
            if least <= training[word] <= most and any(map(str.isalpha, word)) and (most == 1 or len(set(texts)) > 1)
        ]
        wanted = len(drawn) + per_group
        for word, line in generator.sample(places, len(places)):
            if len(drawn) < wanted and line not in drawn and (group, word) not in drawn.values():
                drawn[line] = (group, word)
    rows = []
    for name, line in enumerate(generator.sample(sorted(drawn), len(drawn)), generator.randrange(10**6)):
        group, word = drawn[line]
        rows.append(SheetRow(f"s{name}", group, line, word, generator.sample(list(outputs), len(outputs))))
    return rows


def write_sheet(
    sheet: Path, key: Path, rows: Sequence[SheetRow], sources: Sequence[str], outputs: Mapping[str, Sequence[str]]
) -> None:
    """Write the sheet for the annotator, and the key: which system is which in each row."""
    columns = [f"{name} {letter}" for name in ("translation", "rank") for letter in LETTERS[: len(outputs)]]
    with atomic_write(sheet) as stream:
        stream.write(BOM)
        writer = csv.writer(stream, lineterminator="\r\n")
        writer.writerow(["item", "word", "source", *columns])
        for row in rows:
            texts = [row.word, sources[row.line], *(outputs[system][row.line] for system in row.order)]
            safe = [f"'{text}" if text.startswith(FORMULA_STARTS) else text for text in texts]
            writer.writerow([row.item, *safe, *[""] * len(outputs)])
    with atomic_write(key) as stream:
        json.dump(asdict(SheetKey(list(outputs), list(rows))), stream, ensure_ascii=False, indent=1)


def read_judgements(paths: Sequence[Path], key: Path) -> tuple[list[Judgement], list[str]]:
    """Read filled sheets, with commas, semicolons or tabs; also return the systems. Rows without ranks are left out."""
    content = read_record(SheetKey, key, "key of a ranking", KEY_HINT)
    rows, systems = {row.item: row for row in content.items}, content.systems
    if not systems or any(sorted(row.order) != sorted(systems) for row in content.items):
        raise UserError("has rows that do not order its systems", key, KEY_HINT)
    judgements = []
    for path in paths:
        text = require_file(path, "sheet").read_bytes().decode("utf-8-sig", errors="replace")  # we only read ASCII
        separator = max(",;\t", key=text.partition("\n")[0].count)
        for number, cells in enumerate(csv.DictReader(io.StringIO(text, newline=""), delimiter=separator), 2):
            row, where = rows.get(cells.get("item", "")), f"{path}, row {number}"
            if row is None:
                raise UserError("this item is not in the key", where, "does the sheet belong to this key?")
            ranks = [cells.get(f"rank {letter}") or "" for letter in LETTERS[: len(systems)]]
            try:
                if any(ranks):
                    numbers = [float(rank.replace(",", ".")) for rank in ranks]
                    judgements.append((row, dict(zip(row.order, numbers, strict=True))))
            except ValueError:
                hint = "give every translation a rank; 1 is best"
                raise UserError(f"{', '.join(map(repr, ranks))} are not ranks", where, hint) from None
    return judgements, systems


def score_ranking(judgements: Sequence[Judgement], systems: Sequence[str]) -> list[RankingScore]:
    """Score all systems on all sentences and on each group."""
    if not judgements:
        raise UserError("no sentence is ranked", hint="fill in the columns 'rank A', 'rank B', ...")
    groups = {"all": judgements}
    groups |= {group: own for group in FREQUENCIES if (own := [each for each in judgements if each[0].group == group])}
    return [score_system(group, system, systems[0], own) for group, own in groups.items() for system in systems]


def score_system(group: str, system: str, baseline: str, judgements: Sequence[Judgement]) -> RankingScore:
    """Score one system. The judgements of a sentence are averaged first, so that all sentences have the same weight."""
    scores: dict[str, list[int]] = defaultdict(list)
    votes: Counter[str] = Counter()
    for row, ranks in judgements:
        scores[row.item].append(sum(ranks[system] <= rank for other, rank in ranks.items() if other != system))
        votes[row.item] += (ranks[system] < ranks[baseline]) - (ranks[system] > ranks[baseline])
    wins, losses = (sum(sign * vote > 0 for vote in votes.values()) for sign in (1, -1))
    tail = sum(math.comb(wins + losses, count) for count in range(min(wins, losses) + 1))
    p = min(1.0, 2 * tail / 2 ** (wins + losses))
    return RankingScore(group, system, len(judgements), fmean(map(fmean, scores.values())), p)
