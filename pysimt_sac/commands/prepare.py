"""`pysimt-sac prepare CORPUS`: one sub-command per corpus."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pysimt_sac.commands.arguments import language_pair, natural, positive
from pysimt_sac.corpora.record import TextStatistics, summary_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A second level of sub-commands, one per corpus."""
    corpora = parser.add_subparsers(dest="corpus", metavar="CORPUS", required=True)
    add_demo(corpora.add_parser("demo", help="generate the small English-German demo corpus"))
    add_multi30k(corpora.add_parser("multi30k", help="Multi30K, from a clone of multi30k/dataset or its raw files"))
    add_iwslt14(corpora.add_parser("iwslt14", help="IWSLT14, from the official archive or plain parallel files"))
    add_mlt(corpora.add_parser("mlt", help="MLT's ambiguous words, aligned with a prepared Multi30K"))


def run(args: argparse.Namespace) -> int:
    """Hand over to the chosen corpus."""
    return int(args.run_corpus(args) or 0)


def print_summary(folder: Path, statistics: Sequence[TextStatistics]) -> None:
    """What was written, in numbers."""
    print("\n".join(summary_table(statistics)))
    print(f"written to {folder}")


def say(message: str) -> None:
    """Progress, apart from the results on standard output."""
    print(message, file=sys.stderr, flush=True)


def add_common(parser: argparse.ArgumentParser, raw_help: str) -> None:
    """Arguments of every corpus that is read from somewhere."""
    parser.add_argument("--raw", type=Path, required=True, metavar="DIR", help=raw_help)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write to")


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """How many processes to use; the result is the same for any number."""
    jobs = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parser.add_argument("--jobs", type=positive, default=jobs, metavar="N", help="processes (default: one per core)")


def add_demo(parser: argparse.ArgumentParser) -> None:
    """Arguments of `prepare demo`."""
    from pysimt_sac.corpora.demo import DEFAULT_SEED

    parser.description = "Generate English captions and their German translations, with ambiguous words."
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write to")
    parser.add_argument(
        "--seed", type=int, default=DEFAULT_SEED, help="another seed makes another corpus (default: %(default)s)"
    )
    parser.set_defaults(run_corpus=run_demo)


def run_demo(args: argparse.Namespace) -> None:
    """Generate and describe the demo corpus."""
    from pysimt_sac.corpora import demo

    print_summary(args.out, demo.prepare(args.out, args.seed))


def add_multi30k(parser: argparse.ArgumentParser) -> None:
    """Arguments of `prepare multi30k`; the defaults are the paper's choices."""
    parser.description = (
        "Lower-case, normalise and tokenise Multi30K, split hyphens, learn BPE on both sides and apply it to the "
        "target side. OUT/en-de gets SPLIT.lc.norm.tok[.bpe].LANG, vocabularies, and references for scoring (.dehyph)."
    )
    add_common(parser, "folder of SPLIT.LANG[.gz], or a clone of multi30k/dataset")
    parser.add_argument(
        "--pair",
        type=language_pair,
        action="append",
        default=[],
        help="language pair, source first; may be repeated (default: en-de and en-fr, those whose files are there)",
    )
    parser.add_argument("--download", action="store_true", help="first fetch the raw files that are missing in --raw")
    parser.add_argument("--no-split-hyphens", action="store_true", help="leave words like t-shirt whole")
    bpe = parser.add_argument_group("byte-pair encoding")
    bpe.add_argument(
        "--bpe-merges",
        type=positive,
        default=10000,
        metavar="N",
        help="units to learn, each character counted as one, as in the paper (default: %(default)s)",
    )
    bpe.add_argument(
        "--bpe-threshold",
        type=natural,
        default=2,
        metavar="N",
        help="split units that are rarer in the training text (default: %(default)s)",
    )
    bpe.add_argument(
        "--bpe-sides",
        choices=("target", "both", "none"),
        default="target",
        help="which sides to write in BPE units, too (default: %(default)s)",
    )
    bpe.add_argument(
        "--codes", type=Path, metavar="FILE", help="use these codes of subword-nmt instead of learning some"
    )
    bpe.add_argument(
        "--codes-vocab",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="the vocabulary that belongs to --codes (with --bpe-sides both: source's and target's)",
    )
    add_jobs(parser)
    parser.set_defaults(run_corpus=run_multi30k)


def run_multi30k(args: argparse.Namespace) -> None:
    """Prepare and describe one folder per pair."""
    from pysimt_sac.corpora import download, multi30k

    if args.download:
        pairs = args.pair or multi30k.PAPER_PAIRS
        folder = multi30k.raw_folder(args.raw) if args.raw.exists() else args.raw
        download.download_multi30k(folder, {language for pair in pairs for language in pair.split("-")}, say)
    settings = multi30k.Multi30kSettings(
        split_hyphens=not args.no_split_hyphens,
        bpe_units=args.bpe_merges,
        bpe_threshold=args.bpe_threshold,
        bpe_sides=args.bpe_sides,
        codes=args.codes,
        codes_vocabularies=tuple(args.codes_vocab),
    )
    for pair, statistics in multi30k.prepare(args.raw, args.out, args.pair, settings, args.jobs, say).items():
        print_summary(args.out / pair, statistics)


def add_iwslt14(parser: argparse.ArgumentParser) -> None:
    """Arguments of `prepare iwslt14`; the defaults are those of the work on reinforcement learning since MIXER."""
    parser.description = (
        "Tokenise and lower-case IWSLT14; leave out long training pairs, and those of which one side is 1.5 times as "
        "long as the other; make every 23rd of the others validation, unless there is a validation set; write "
        "vocabularies. OUT/de-en gets SPLIT.tok.lc.LANG and train.tok.lc-min3.vocab.LANG."
    )
    add_common(parser, "de-en.tgz, the folder it unpacks to, or a folder of train, val and test.LANG[.gz]")
    parser.add_argument("--pair", type=language_pair, default="de-en", help="source first (default: %(default)s)")
    parser.add_argument(
        "--max-words", type=positive, default=50, metavar="N", help="longest side of a training pair (default: 50)"
    )
    parser.add_argument(
        "--min-freq", type=positive, default=3, metavar="N", help="rarer words are unknown (default: %(default)s)"
    )
    add_jobs(parser)
    parser.set_defaults(run_corpus=run_iwslt14)


def run_iwslt14(args: argparse.Namespace) -> None:
    """Prepare and describe IWSLT14."""
    from pysimt_sac.corpora import iwslt14

    settings = iwslt14.Iwslt14Settings(args.max_words, args.min_freq)
    print_summary(args.out / args.pair, iwslt14.prepare(args.raw, args.out, args.pair, settings, args.jobs, say))


def add_mlt(parser: argparse.ArgumentParser) -> None:
    """Arguments of `prepare mlt`."""
    parser.description = (
        "Align MLT's ambiguous words with a prepared Multi30K. OUT/en-de gets SPLIT.mlt.tsv: word, correct "
        "translations, candidates with their counts in training, line (from 0), and whether the case is rare."
    )
    add_common(parser, "folder of ENDE_MLTD_full.txt and test_sets/ende_test2016.txt and so on")
    parser.add_argument(
        "--corpus", type=Path, required=True, metavar="DIR", help="what `prepare multi30k` has written (its --out)"
    )
    parser.add_argument(
        "--list",
        choices=("later", "full"),
        default="later",
        help="the later test sets, or the full annotation with the paper's counts for 2016 (default: %(default)s)",
    )
    parser.set_defaults(run_corpus=run_mlt)


def run_mlt(args: argparse.Namespace) -> None:
    """Align, and say what became of all rows."""
    from pysimt_sac.corpora import mlt

    outcome = mlt.prepare(args.raw, args.corpus, args.out, args.list, say)
    print("pair   test set           rows  aligned   rare")
    for row in outcome.lists:
        share = f"{100 * row.rare / row.aligned:.1f}%" if row.aligned else "-"
        print(f"{row.pair:5}  {row.split:16}  {row.rows:5,}  {row.aligned:7,}  {row.rare:5,} ({share})")
    for lost in outcome.not_aligned:
        say(f"not aligned: {lost.file}, row {lost.row}: {lost.reason}: {lost.text}")
    print(f"{len(outcome.not_aligned)} rows not aligned (listed in {mlt.NOT_ALIGNED})")
    print(f"written to {args.out}")
