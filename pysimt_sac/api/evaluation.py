"""Scores and significance tests of translations, given as lists of sentences."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pysimt_sac.core.errors import UserError
from pysimt_sac.evaluation.comparison import Comparison, System, compare_systems
from pysimt_sac.evaluation.lexical import Case, LexicalComparison, compare_lexical, read_cases
from pysimt_sac.evaluation.scores import choose_metrics, score_text
from pysimt_sac.evaluation.significance import Resampling
from pysimt_sac.evaluation.texts import check_lengths

Runs = Sequence[str] | Sequence[Sequence[str]]  # a system's hypotheses, of one run or of several


def bleu(hypotheses: Sequence[str], references: Sequence[str], *, tokenize: str = "none") -> float:
    """Compute corpus BLEU as `pysimt-sac score` does. tokenize: sacrebleu's tokeniser; `none` for tokenised text."""
    check_lengths("hypotheses", as_run(hypotheses, "hypotheses"), "references", as_run(references, "references"))
    return score_text(references, hypotheses, choose_metrics(["bleu"], tokenize).metrics)["BLEU"]


def compare(
    baseline: Runs,
    systems: Mapping[str, Runs],
    references: Sequence[str],
    *,
    metrics: Sequence[str] = ("bleu", "chrf", "ter"),
    tokenize: str = "none",
    no_unk: bool = False,
    **resampling: Any,
) -> Comparison:
    """Compare systems with a baseline, several runs each, with significance tests, as `pysimt-sac compare` does.

    resampling: the options shuffles, bootstrap, seed.
    """
    others = [as_system(name, runs) for name, runs in systems.items()]
    choice = choose_metrics([name.lower() for name in metrics], tokenize)
    if choice.missing:
        raise UserError("; ".join(choice.missing), "metrics", "leave it out, or install it")
    texts, first = as_run(references, "references"), as_system("baseline", baseline)
    return compare_systems(texts, first, others, choice.metrics, Resampling(**resampling), no_unk)


def lexical(
    systems: Mapping[str, Runs], mlt: str | Path | Sequence[Case], *, case_sensitive: bool = False, **resampling: Any
) -> LexicalComparison:
    """Compute accuracy on ambiguous words (LTA, ALI), as `pysimt-sac lexical` does; the first system is the baseline.

    mlt: a list of ambiguous words written by `pysimt-sac prepare`, or its rows; resampling: as in `compare`.
    """
    if not systems:
        raise UserError("no hypotheses are given", "systems", "e.g. {'mle': hypotheses}")
    cases = read_cases(Path(mlt), case_sensitive) if isinstance(mlt, str | Path) else list(mlt)
    return compare_lexical(cases, [as_system(name, runs) for name, runs in systems.items()], Resampling(**resampling))


def as_system(name: str, runs: Runs) -> System:
    """Return a system of one run or of several."""
    single = not runs or isinstance(runs[0], str)
    return System(name, tuple(as_run(run, name) for run in ([runs] if single else runs)))


def as_run(lines: Any, name: str) -> tuple[str, ...]:
    """Return sentences as a tuple; refuse a single string."""
    if isinstance(lines, str) or not all(isinstance(line, str) for line in lines):
        raise UserError("is not a list of sentences", name)
    return tuple(lines)
