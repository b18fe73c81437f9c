"""`pysimt build-vocab`: build vocabularies from text files, with pysimt's options and file names."""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pysimt_sac.commands.arguments import natural
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import stream_lines
from pysimt_sac.corpora.vocabulary_builder import count_words, keep_frequent, vocabulary_path, write_vocabulary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add pysimt's own options."""
    parser.description = (
        "Count the words of text files. FILE.LANG gives FILE[-minN][-maxNtokens].vocab.LANG, most frequent words "
        "first, equally frequent ones in the order of their first appearance."
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="tokenised text, one sentence per line")
    parser.add_argument("-o", "--output-dir", type=Path, default=Path("."), metavar="DIR", help="folder to write to")
    parser.add_argument("-s", "--single", type=Path, metavar="NAME", help="write one vocabulary of all files, to NAME")
    parser.add_argument("-m", "--min-freq", type=natural, default=0, metavar="N", help="leave out words rarer than N")
    parser.add_argument(
        "-M", "--max-items", type=natural, default=0, metavar="N", help="keep the N most frequent words"
    )
    parser.add_argument(
        "-x", "--exclude-symbols", action="store_true", help="leave out <pad>, <bos>, <eos>, <unk> (models need them)"
    )


def run(args: argparse.Namespace) -> int:
    """Count everything first, then write, so that a bad file leaves nothing behind."""
    counts = [count_words(stream_lines(path)) for path in args.files]
    places = [vocabulary_path(args.output_dir, path, args.min_freq, args.max_items) for path in args.files]
    if args.single:
        counts, places = [sum(counts, Counter())], [args.output_dir / args.single]
    require_distinct(places)
    for place, count in zip(places, counts, strict=True):
        words = keep_frequent(count, args.min_freq, args.max_items)
        write_vocabulary(place, words, with_special_tokens=not args.exclude_symbols)
        print(f"{place}: {len(words):,} of {len(count):,} words")
    return 0


def require_distinct(places: Sequence[Path]) -> None:
    """Refuse files of the same name in different folders, which would overwrite each other's vocabulary."""
    for place, times in Counter(places).items():
        if times > 1:
            raise UserError("would be written twice", place, "use another -o for one of the files, or -s for all")
