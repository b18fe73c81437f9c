"""`pysimt-sac score`: compute BLEU, chrF, TER and METEOR of hypotheses."""

import argparse
from pathlib import Path

from pysimt_sac.commands import evaluation_options as options
from pysimt_sac.evaluation.latency import find_latencies, latency_table
from pysimt_sac.evaluation.scores import TextScores, score_texts
from pysimt_sac.evaluation.tables import Table, best_cells
from pysimt_sac.evaluation.texts import check_texts, read_text, short_names

EPILOG = """Hypotheses and reference must be tokenised in the same way, without BPE, one sentence per line. For
significance tests, use `pysimt-sac compare`. If the actions of a simultaneous translation (a.wait3.acts) lie beside it
(a.wait3.gs), its latency is shown: average proportion, average lagging, and differentiable average lagging."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.epilog = EPILOG
    parser.add_argument("hypotheses", nargs="+", type=Path, metavar="HYP", help="hypothesis file")
    parser.add_argument("--ref", required=True, type=Path, metavar="REF", help="reference")
    options.add_metric_arguments(parser)
    options.add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Score all hypotheses."""
    reference = read_text(args.ref, "reference")
    reference = options.with_sources(args, reference, Path(args.src) if args.src else None)
    hypotheses = [read_text(path) for path in args.hypotheses]
    options.warn(check_texts(reference, hypotheses))
    metrics = options.chosen_metrics(args, args.ref)
    names = short_names(args.hypotheses)
    scored = score_texts(reference.lines, [hypothesis.lines for hypothesis in hypotheses], names, metrics)
    latencies = find_latencies({name: [path] for name, path in zip(names, args.hypotheses, strict=True)})
    found = {"reference": reference.name, "hypotheses": scored} | ({"latency": latencies} if latencies else {})
    return options.show(args, found, [score_table(scored), *([latency_table(latencies)] if latencies else [])])


def score_table(scored: list[TextScores]) -> Table:
    """Return a table with a row for each hypothesis."""
    first = scored[0].scores
    shown = [score.metric for score in first if score.metric != "length"]
    directions = [score.higher_is_better for score in first if score.metric != "length"]
    header = ("hypothesis", *(f"{name} {'↑' if up else '↓'}" for name, up in zip(shown, directions, strict=True)))
    rows = []
    for text in scored:
        unknown = f"{text.unknown_words} ({100 * text.unknown_words / max(1, text.words):.1f}%)"
        rows.append((text.name, *(f"{text[name]:.2f}" for name in shown), f"{text.length_ratio:.3f}", unknown))
    best = best_cells([[text[name] for name in shown] for text in scored], directions)
    return Table(
        header=(*header, "length ratio", "unknown words"),
        rows=tuple(rows),
        bold=frozenset((row, column + 1) for row, column in best),
        notes=tuple(f"{score.metric}: {score.signature}" for score in first if score.metric != "length"),
    )
