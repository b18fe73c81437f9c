"""Join the `results.json` of a comparison that was made in parts: other systems, compared with the same runs.

Every figure is of one system, or of a system and a baseline. So it does not matter where the other systems were
trained, as long as the baselines are the same: the same text, and the same scores of every run, to the last digit.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pysimt_sac.corpora.record import versions
from pysimt_sac.errors import UserError
from pysimt_sac.evaluation.report.paper_tables import same_system
from pysimt_sac.reproduce.results import Results
from pysimt_sac.reproduce.stamps import PACKAGES, commit

SETTINGS = ("title", "pair", "short", "matrix", "baselines", "searches", "tests")
HINT = "only parts of one comparison can be joined"


def join(parts: Mapping[Path, Results]) -> Results:
    """All systems of the parts, by their files; a system of several parts is that of the last one."""
    (first, whole), *others = parts.items()
    for path, part in others:
        check_same(first, whole, path, part)
        whole = join_two(whole, part)
    return whole


def replaced(parts: Mapping[Path, Results]) -> list[tuple[str, Path, Path]]:
    """The systems that are not baselines and stand in several files: name, the file that counts, one that does not."""
    holders: dict[str, list[Path]] = {}
    for path, part in parts.items():
        for name in names(part):
            holders.setdefault(name, []).extend([path] if name not in part["baselines"] else [])
    return [(name, paths[-1], path) for name, paths in holders.items() for path in paths[:-1]]


def names(results: Results) -> list[str]:
    """The systems of a file."""
    return [system["name"] for system in results["systems"]]


def check_same(first: Path, whole: Results, path: Path, part: Results) -> None:
    """Refuse what was not made in the same way, or has other runs of a baseline."""
    for key in SETTINGS:
        if whole[key] != part[key]:
            raise UserError(f"{key} is {part[key]!r}, not {whole[key]!r} as in {first}", path, HINT)
    for key in ("data", "ambiguous_words"):
        if whole[key].get("files") != part[key].get("files") or not part["data"].get("files"):
            raise UserError(f"was made of other text than {first}, or does not say of which ({key})", path, HINT)
    facts = {"comparisons": comparison_facts, "lexical": lexical_facts, "paper_tables": table_facts}
    for key, of_one in facts.items():
        if [of_one(own) for own in whole[key]] != [of_one(own) for own in part[key]]:
            what = f"its {key} are of other sets, sentences, metrics or settings than those of {first}"
            raise UserError(what, path, HINT)
    for name in whole["baselines"]:
        if (name in names(whole)) != (name in names(part)) or scores_of(whole, name) != scores_of(part, name):
            raise UserError(f"has other runs of {name} than {first}: their scores differ", path, HINT)


def comparison_facts(part: Results) -> list[object]:
    """What must be the same in two comparisons that are joined."""
    facts = ("search", "baseline", "variant", "test_set", "sentences", "left_out", "resampling")
    return [*(part[name] for name in facts), signatures(part["metrics"])]


def lexical_facts(part: Results) -> list[object]:
    """What must be the same in two lists of ambiguous words that are joined."""
    facts = [part[name] for name in ("search", "baseline", "test_set", "cases")]
    return [*facts, signatures(part["all"]), signatures(part["rare"])]


def table_facts(table: Results) -> list[object]:
    """What must be the same in two tables of the paper's that are joined."""
    return [table[name] for name in ("key", "columns")]


def signatures(metrics: Sequence[Results]) -> list[tuple[str, str]]:
    """Metrics, and how they are computed."""
    return [(metric["metric"], metric["signature"]) for metric in metrics]


def metric_lists(results: Results) -> list[list[Results]]:
    """Every list of metrics, always in the same order."""
    found = [part["metrics"] for part in results["comparisons"]]
    return found + [part[kind] for part in results["lexical"] for kind in ("all", "rare")]


def scores_of(results: Results, name: str) -> list[list[float]]:
    """The scores of a system's runs, by every metric, on every set."""
    own = [system for metrics in metric_lists(results) for metric in metrics for system in metric["systems"]]
    return [system["runs"] for system in own if system["system"] == name]


def join_two(whole: Results, part: Results) -> Results:
    """The systems of both; those of `part` count, but for the baselines, which are equal."""
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
    """What is missing, but for the steps of systems that are taken from the other side."""
    steps = tuple(f"{what} {name}, seed " for name in systems for what in ("train", "translate with"))
    return [line for line in missing if not any(step in line for step in steps)]


def merge(left: Sequence[Results], right: Sequence[Results], key: str, new: set[str]) -> list[Results]:
    """Entries by name; those of `new` systems are the right side's, in the place of the left side's or at the end.

    A new system without an entry on the right has none: the left side's would be of other runs.
    """
    theirs = {entry[key]: entry for entry in right if entry[key] in new}
    found = [theirs.pop(entry[key], None) if entry[key] in new else entry for entry in left]
    return [*(entry for entry in found if entry), *theirs.values()]


def join_rows(left: Sequence[Results], right: Sequence[Results], new: set[str]) -> list[Results]:
    """The rows of a table of the paper's: each of its own, followed by ours of that name, then our others."""
    papers = [row for row in left if not row["runs"]]
    own = merge([row for row in left if row["runs"]], [row for row in right if row["runs"]], "system", new)
    rows = []
    for paper in papers:
        rows += [paper, *(row for row in own if same_system(row["system"], paper["system"]))]
    return rows + [row for row in own if row not in rows]
