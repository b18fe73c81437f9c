"""`pysimt-sac prepare CORPUS`: one sub-command per corpus."""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pysimt_sac.commands.arguments import add_number, cores, language_pair, positive
from pysimt_sac.corpora.record import TextStatistics, summary_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add a sub-command for each corpus."""
    corpora = parser.add_subparsers(dest="corpus", metavar="CORPUS", required=True)
    add_demo(corpora.add_parser("demo", help="write the small English-German demo corpus"))
    add_text(corpora.add_parser("text", help="your own parallel text, from raw files to a configuration"))
    add_multi30k(corpora.add_parser("multi30k", help="Multi30K, from a clone of multi30k/dataset or its raw files"))
    add_iwslt14(corpora.add_parser("iwslt14", help="IWSLT14, from the official archive or plain parallel files"))
    add_mlt(corpora.add_parser("mlt", help="MLT's ambiguous words, aligned with a prepared Multi30K"))
    for subparser in corpora.choices.values():
        subparser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write to")


def run(args: argparse.Namespace) -> int:
    """Prepare the chosen corpus."""
    return int(args.run_corpus(args) or 0)


def print_summary(folder: Path, statistics: Sequence[TextStatistics]) -> None:
    """Print statistics of the written files."""
    print("\n".join(summary_table(statistics)))
    print(f"written to {folder}")


def log(message: str) -> None:
    """Print progress to standard error."""
    print(message, file=sys.stderr, flush=True)


def add_raw(parser: argparse.ArgumentParser, help: str) -> None:
    """Add the input folder."""
    parser.add_argument("--raw", type=Path, required=True, metavar="DIR", help=help)


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add the number of processes, which does not change the result."""
    parser.add_argument("--jobs", type=positive, default=cores(), metavar="N", help="processes (default: one per core)")


def add_demo(parser: argparse.ArgumentParser) -> None:
    """Add the options of `prepare demo`."""
    parser.description = "Write English captions with German translations and ambiguous words."
    parser.set_defaults(run_corpus=run_demo)


def run_demo(args: argparse.Namespace) -> None:
    """Write the demo corpus."""
    from pysimt_sac.corpora import demo

    print_summary(args.out, demo.prepare(args.out))


def add_text(parser: argparse.ArgumentParser) -> None:
    """Add the options of `prepare text`."""
    parser.description = (
        "Clean, normalise and tokenise parallel text, one sentence per line, learn subword units on both sides and "
        "apply them. Writes OUT/PAIR with all splits, vocabularies, references for scoring (.dehyph), and mle.conf, "
        "a configuration to start from."
    )
    add = partial(parser.add_argument, nargs=2, type=Path, metavar=("SOURCE", "TARGET"), required=True)
    add("--train", help="training text, such as train.en train.de")
    add("--valid", help="validation text")
    add("--test", help="test set; may be repeated", action="append")
    parser.add_argument("--pair", type=language_pair, help="languages, source first (default: the endings of --train)")
    parser.add_argument("--lowercase", action="store_true", help="lowercase all text")
    parser.add_argument("--split-hyphens", action="store_true", help="split words at hyphens")
    parser.add_argument(
        "--subwords", choices=("bpe", "sentencepiece"), default="bpe", help="units to learn (default: %(default)s)"
    )
    add_number(parser, "--units", 8000, "subword units to learn, characters included")
    parser.add_argument(
        "--sides", choices=("target", "both", "none"), default="both", help="sides to segment (default: %(default)s)"
    )
    add_number(parser, "--max-words", 100, "leave out longer training sentences")
    add_jobs(parser)
    parser.set_defaults(run_corpus=run_text)


def run_text(args: argparse.Namespace) -> None:
    """Prepare text of one's own."""
    from pysimt_sac.corpora import own_text

    pair = args.pair or own_text.language_pair_of(args.train)
    settings = own_text.TextSettings(
        split_hyphens=args.split_hyphens,
        bpe_units=args.units,
        bpe_sides=args.sides,
        subwords=args.subwords,
        lowercase=args.lowercase,
        max_words=args.max_words,
    )
    splits = {"train": args.train, "val": args.valid, **own_text.named_tests(args.test)}
    print_summary(args.out / pair, own_text.prepare(splits, args.out, pair, settings, args.jobs, log))
    print(f"next: pysimt train --check -C {args.out / pair / own_text.CONFIG_NAME}")


def add_multi30k(parser: argparse.ArgumentParser) -> None:
    """Add the options of `prepare multi30k`; the defaults are the paper's."""
    parser.description = (
        "Lowercase, normalise and tokenise Multi30K, split hyphens, learn BPE on both sides and apply it to the target "
        "side. Writes OUT/en-de/SPLIT.lc.norm.tok[.bpe].LANG, vocabularies, and references for scoring (.dehyph)."
    )
    add_raw(parser, "folder of SPLIT.LANG[.gz], or a clone of multi30k/dataset")
    parser.add_argument(
        "--pair",
        type=language_pair,
        action="append",
        default=[],
        help="language pair, source first; may be repeated (default: en-de and en-fr, if their files exist)",
    )
    parser.add_argument("--no-split-hyphens", action="store_true", help="do not split words at hyphens")
    bpe = parser.add_argument_group("byte-pair encoding")
    learned_or_given = bpe.add_mutually_exclusive_group()
    add_number(learned_or_given, "--bpe-merges", 10000, "BPE units to learn, characters included, as in the paper")
    bpe.add_argument(
        "--bpe-sides",
        choices=("target", "both", "none"),
        default="target",
        help="sides to segment with BPE (default: %(default)s)",
    )
    learned_or_given.add_argument(
        "--codes",
        type=Path,
        metavar="FILE",
        help="use these subword-nmt codes, or this SentencePiece model, instead of learning codes",
    )
    bpe.add_argument(
        "--codes-vocab",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="subword-nmt vocabulary of --codes (with --bpe-sides both: source and target)",
    )
    add_jobs(parser)
    parser.set_defaults(run_corpus=run_multi30k)


def run_multi30k(args: argparse.Namespace) -> None:
    """Prepare one folder per language pair."""
    from pysimt_sac.corpora import multi30k
    from pysimt_sac.corpora.language_pairs import PairSettings

    settings = PairSettings(
        split_hyphens=not args.no_split_hyphens,
        bpe_units=args.bpe_merges,
        bpe_sides=args.bpe_sides,
        codes=args.codes,
        codes_vocabularies=tuple(args.codes_vocab),
    )
    for pair, statistics in multi30k.prepare(args.raw, args.out, args.pair, settings, args.jobs, log).items():
        print_summary(args.out / pair, statistics)


def add_iwslt14(parser: argparse.ArgumentParser) -> None:
    """Add the options of `prepare iwslt14`; the defaults are MIXER's."""
    parser.description = (
        "Tokenise and lowercase IWSLT14. Leave out training and validation pairs that are too long, or with a length "
        "ratio above 1.5. Every 23rd remaining pair is used for validation, unless there is a validation set. Writes "
        "OUT/de-en/SPLIT.tok.lc.LANG and train.tok.lc-min3.vocab.LANG."
    )
    add_raw(parser, "de-en.tgz, the folder it unpacks to, or a folder of train, val and test.LANG[.gz]")
    parser.add_argument("--pair", type=language_pair, default="de-en", help="source first (default: %(default)s)")
    add_number(parser, "--max-words", 50, "maximum sentence length")
    add_number(parser, "--min-freq", 3, "minimum word frequency")
    add_jobs(parser)
    parser.set_defaults(run_corpus=run_iwslt14)


def run_iwslt14(args: argparse.Namespace) -> None:
    """Prepare IWSLT14."""
    from pysimt_sac.corpora import iwslt14

    settings = iwslt14.Iwslt14Settings(args.max_words, args.min_freq)
    print_summary(args.out / args.pair, iwslt14.prepare(args.raw, args.out, args.pair, settings, args.jobs, log))


def add_mlt(parser: argparse.ArgumentParser) -> None:
    """Add the options of `prepare mlt`."""
    parser.description = (
        "Align MLT's ambiguous words with a prepared Multi30K. Writes OUT/en-de/SPLIT.mlt.tsv: word, correct "
        "translations, candidates with their counts in training, line (from 0), and whether the case is rare."
    )
    add_raw(parser, "folder of ENDE_MLTD_full.txt and test_sets/ende_test2016.txt and so on")
    parser.add_argument("--corpus", type=Path, required=True, metavar="DIR", help="output folder of `prepare multi30k`")
    parser.add_argument(
        "--list",
        choices=("later", "full"),
        default="later",
        help="lists of the later test sets, or the full list with the paper's counts for 2016 (default: %(default)s)",
    )
    parser.set_defaults(run_corpus=run_mlt)


def run_mlt(args: argparse.Namespace) -> None:
    """Align MLT, and list rows that cannot be aligned."""
    from pysimt_sac.corpora import mlt

    lists, not_aligned = mlt.prepare(args.raw, args.corpus, args.out, args.list, log)
    print("pair   test set           rows  aligned   rare")
    for row in lists:
        share = f"{100 * row.rare / row.aligned:.1f}%" if row.aligned else "-"
        print(f"{row.pair:5}  {row.split:16}  {row.rows:5,}  {row.aligned:7,}  {row.rare:5,} ({share})")
    for unaligned in not_aligned:
        log(f"not aligned: {unaligned.file}, row {unaligned.row}: {unaligned.reason}: {unaligned.text}")
    print(f"{len(not_aligned)} rows not aligned (listed in {mlt.NOT_ALIGNED})")
    print(f"written to {args.out}")
