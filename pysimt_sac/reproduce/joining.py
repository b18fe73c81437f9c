"""Join the `results.json` files of a comparison made in parts: different systems, the same baseline runs.

Every figure belongs to one system, or to a system and a baseline. So it does not matter where the other systems were
trained, as long as the baselines are the same: the same text, and the same scores of every run to the last digit.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pysimt_sac.core.errors import UserError
from pysimt_sac.corpora.record import versions
from pysimt_sac.evaluation.report.paper_tables import same_system
from pysimt_sac.reproduce.results import Results
from pysimt_sac.reproduce.stamps import PACKAGES, commit

SETTINGS = ("title", "pair", "short", "matrix", "baselines", "searches", "tests")
HINT = "only parts of one comparison can be joined"


def join(parts: Mapping[Path, Results]) -> Results:
    """Join the systems of all parts, given by file; for a system in several parts, the last one counts."""
    (first, whole), *others = parts.items()
    for path, part in others:
        check_same(first, whole, path, part)
        whole = join_two(whole, part)
    return whole


def replaced(parts: Mapping[Path, Results]) -> list[tuple[str, Path, Path]]:
    """Return the systems, without baselines, in several files: name, the file that counts, one that does not."""
    holders: dict[str, list[Path]] = {}
    for path, part in parts.items():
        for name in names(part):
            holders.setdefault(name, []).extend([path] if name not in part["baselines"] else [])
    return [(name, paths[-1], path) for name, paths in holders.items() for path in paths[:-1]]


def names(results: Results) -> list[str]:
    """Return the names of the systems."""
    return [system["name"] for system in results["systems"]]


def check_same(first: Path, whole: Results, path: Path, part: Results) -> None:
    """Refuse parts with different settings, text or baseline runs."""
    for key in SETTINGS:
        if whole[key] != part[key]:
            raise UserError(f"{key} is {part[key]!r}, not {whole[key]!r} as in {first}", path, HINT)
    for key in ("data", "ambiguous_words"):
        if whole[key].get("files") != part[key].get("files") or not part["data"].get("files"):
            raise UserError(f"was made from other text than {first}, or does not record which ({key})", path, HINT)
    facts = {"comparisons": comparison_facts, "lexical": lexical_facts, "paper_tables": table_facts}
    for key, of_one in facts.items():
        if [of_one(own) for own in whole[key]] != [of_one(own) for own in part[key]]:
            what = f"its {key} differ from those of {first} in sets, sentences, metrics or settings"
            raise UserError(what, path, HINT)
    for name in whole["baselines"]:
        if (name in names(whole)) != (name in names(part)) or scores_of(whole, name) != scores_of(part, name):
            raise UserError(f"has different runs of {name} than {first}: their scores differ", path, HINT)


def comparison_facts(part: Results) -> list[object]:
    """Return what must be the same in two comparisons to join."""
    facts = ("search", "baseline", "variant", "test_set", "sentences", "left_out", "resampling")
    return [*(part[name] for name in facts), signatures(part["metrics"])]


def lexical_facts(part: Results) -> list[object]:
    """Return what must be the same in two results on ambiguous words to join."""
    facts = [part[name] for name in ("search", "baseline", "test_set", "cases")]
    return [*facts, signatures(part["all"]), signatures(part["rare"])]


def table_facts(table: Results) -> list[object]:
    """Return what must be the same in two of the paper's tables to join."""
    return [table[name] for name in ("key", "columns")]


def signatures(metrics: Sequence[Results]) -> list[tuple[str, str]]:
    """Return the names and signatures of metrics."""
    return [(metric["metric"], metric["signature"]) for metric in metrics]


def metric_lists(results: Results) -> list[list[Results]]:
    """Return every list of metrics, always in the same order."""
    found = [part["metrics"] for part in results["comparisons"]]
    return found + [part[kind] for part in results["lexical"] for kind in ("all", "rare")]


def scores_of(results: Results, name: str) -> list[list[float]]:
    """Return the scores of a system's runs, by every metric, on every set."""
    own = [system for metrics in metric_lists(results) for metric in metrics for system in metric["systems"]]
    return [system["runs"] for system in own if system["system"] == name]


def join_two(whole: Results, part: Results) -> Results:
    """Join the systems of both; those of `part` count, except for the baselines, which are equal."""
    new = {name for name in names(part) if name not in whole["baselines"]}
    old = {name for name in names(whole) if name not in whole["baselines"]} - new

    def metrics(left: Sequence[Results], right: Sequence[Results]) -> list[Results]:
        return [{**one, "systems": merge(one["systems"], other["systems"], "system", new)}
                for one, other in zip(left, right, strict=True)]  # fmt: skip

    return {
        **whole,
        "made": {"commit": commit(), "versions": versions(PACKAGES)},
        "seconds": None,  # the baselines' steps are in both
        "systems": merge(whole["systems"], part["systems"], "name", new),
        "comparisons": [{**one, "metrics": metrics(one["metrics"], other["metrics"])}
                        for one, other in zip(whole["comparisons"], part["comparisons"], strict=True)],
        "lexical": [{**one, **{kind: metrics(one[kind], other[kind]) for kind in ("all", "rare")}}
                    for one, other in zip(whole["lexical"], part["lexical"], strict=True)],
        "paper_tables": [{**one, "rows": join_rows(one["rows"], other["rows"], new)}
                         for one, other in zip(whole["paper_tables"], part["paper_tables"], strict=True)],
        "missing": list(dict.fromkeys([*not_about(whole["missing"], new), *not_about(part["missing"], old)])),
    }  # fmt: skip


def not_about(missing: Sequence[str], systems: set[str]) -> list[str]:
    """Return what is missing, without the steps of systems taken from the other side."""
    steps = tuple(f"{what} {name}, seed " for name in systems for what in ("train", "translate with"))
    return [line for line in missing if not any(step in line for step in steps)]


def merge(left: Sequence[Results], right: Sequence[Results], key: str, new: set[str]) -> list[Results]:
    """Merge entries by name; those of `new` systems are the right side's, replacing the left side's or at the end.

    A new system without an entry on the right gets none: the left side's would belong to other runs.
    """
    theirs = {entry[key]: entry for entry in right if entry[key] in new}
    found = [theirs.pop(entry[key], None) if entry[key] in new else entry for entry in left]
    return [*(entry for entry in found if entry), *theirs.values()]


def join_rows(left: Sequence[Results], right: Sequence[Results], new: set[str]) -> list[Results]:
    """Join the rows of one of the paper's tables: each of its rows, followed by ours of that name, then our others."""
    papers = [row for row in left if not row["runs"]]
    own = merge([row for row in left if row["runs"]], [row for row in right if row["runs"]], "system", new)
    rows = []
    for paper in papers:
        rows += [paper, *(row for row in own if same_system(row["system"], paper["system"]))]
    return rows + [row for row in own if row not in rows]
