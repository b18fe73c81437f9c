"""`pysimt translate`: translate splits of a configuration, other files, or standard input."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import read_lines, write_lines
from pysimt_sac.core.sections import LARGEST_BEAM, USUAL_BEAM

if TYPE_CHECKING:
    from pysimt_sac.hosts.engine.decoding.translation import SearchOptions, Translator

LARGEST = 2**62
# pysimt's own searches and the options that each of them needs.
ONLY_IN_PYSIMT = {"sgs": ("n_init_tokens", "delta", "criteria"), "wk": ("n_init_tokens",), "bs-pysimt": ()}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add pysimt's options and ours."""
    parser.add_argument(
        "model", help="checkpoint, or a run's folder: its best checkpoint by the first of its eval_metrics"
    )
    parser.add_argument(
        "-s", "--splits", help="splits of the configuration, separated by commas; without -s and -S: standard input"
    )
    parser.add_argument(
        "-S", "--source", metavar="src:FILE", help="translate this file instead, under the name given by -s"
    )
    parser.add_argument(
        "--raw",
        action="store_true",
        help="read and write plain text instead of prepared text, from standard input or the file named by -S",
    )
    parser.add_argument(
        "--prepare",
        type=Path,
        metavar="FOLDER",
        help="--raw: prepare text like the corpus in this folder, if the checkpoint does not record how",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help="where the splits' files are now, if they have moved: each is searched below it by the end of its path",
    )
    parser.add_argument(
        "-o", "--output", metavar="PREFIX", help="prefix of the output files; a folder (out/) adds the run's name to it"
    )
    parser.add_argument(
        "-f",
        "--func",
        default="gs",
        choices=["gs", "bs", "sample", *ONLY_IN_PYSIMT],
        help="greedy search, beam search or sampling; inside pysimt also its simultaneous greedy search (sgs), wait-k "
        "(wk) and its own beam search for every checkpoint (bs-pysimt) (default: gs)",
    )
    parser.add_argument("--n-init-tokens", default="", metavar="K,...", help="sgs, wk: source words read at first")
    parser.add_argument("--delta", default="", metavar="N,...", help="sgs: source words read at a time")
    parser.add_argument("--criteria", default="", metavar="NAME,...", help="sgs: wait_if_diff, wait_if_worse")
    parser.add_argument("-k", "--beam-size", type=int, default=6, help="hypotheses kept by beam search (default: 6)")
    parser.add_argument(
        "-a", "--lp-alpha", type=float, default=0.0, help="length penalty of beam search; 0 divides by the length"
    )
    parser.add_argument("-u", "--suppress-unk", action="store_true", help="never produce <unk>")
    parser.add_argument("-N", "--n-best", action="store_true", help="write all hypotheses of beam search, with scores")
    parser.add_argument("-m", "--max-len", type=int, default=100, help="longest translation (default: 100)")
    parser.add_argument("-b", "--batch-size", type=int, default=16, help="sentences translated at once (default: 16)")
    parser.add_argument(
        "-n", "--disable-filters", action="store_true", help="do not apply the configuration's eval_filters"
    )
    parser.add_argument(
        "-x",
        "--override",
        nargs="*",
        default=[],
        metavar="SECTION.KEY:VALUE",
        help="replaces a value of the checkpoint's configuration",
    )
    parser.add_argument(
        "-d", "--device-id", default="auto", metavar="DEVICE", help="auto, cpu, gpu or cuda:N (default: auto)"
    )
    parser.add_argument("-r", "--stochastic", action="store_true", help="sampling: a different result every time")
    parser.add_argument("--temperature", type=float, default=1.0, help="sampling: below 1 sharpens, above 1 flattens")
    parser.add_argument("--top-k", type=int, default=0, help="sampling: only from the K likeliest words; 0: all")
    parser.add_argument("--seed", type=int, default=1234, help="sampling: random seed (default: 1234)")


def run(args: argparse.Namespace) -> int:
    """Translate on the host that is installed."""
    from pysimt_sac.core.distributed import world

    with world.joined():
        return translate(args)


def translate(args: argparse.Namespace) -> int:
    """Translate, as one of several ranks or as the only process."""
    from pysimt_sac.core.distributed import check_single_process, world
    from pysimt_sac.hosts import choice
    from pysimt_sac.hosts.engine.decoding.translation import checkpoint_to_use

    check_arguments(args)
    if not args.splits and world.size > 1:
        raise UserError("cannot be divided among processes", "standard input", "translate files, with -s or -S")
    if args.output and args.output.endswith("/"):
        args.output += name_of_system(args.model)
    args.named, args.model = args.model, str(checkpoint_to_use(args.model))
    if choice.name() == "pysimt":
        check_single_process()
        return translate_in_pysimt(args)
    return translate_embedded(args)


def check_arguments(args: argparse.Namespace) -> None:
    """Refuse values and combinations that make no sense."""
    from pysimt_sac.hosts.engine.decoding.translation import LONGEST_TRANSLATION

    positive = {"-k": args.beam_size, "-m": args.max_len, "-b": args.batch_size, "--temperature": args.temperature}
    not_negative = {"-a": args.lp_alpha, "--top-k": args.top_k, "--seed": args.seed}
    for name, value in positive.items():
        if not 0 < value < LARGEST:
            raise UserError(f"{value} must be more than 0, and within reason", name)
    for name, value in not_negative.items():
        if not 0 <= value < LARGEST:
            raise UserError(f"{value} must be 0 or more, and within reason", name)
    if args.max_len > LONGEST_TRANSLATION:
        raise UserError(f"{args.max_len} must be at most {LONGEST_TRANSLATION}", "-m")
    if args.beam_size > LARGEST_BEAM:
        raise UserError(f"{args.beam_size} must be at most {LARGEST_BEAM}", "-k", USUAL_BEAM)
    if args.n_best and args.func != "bs":
        raise UserError("n-best lists come from beam search", "-N", "add -f bs")
    if args.n_best and not args.splits:
        raise UserError("n-best lists are written to files, not to standard output", "-N", "name splits with -s")
    if args.func in ONLY_IN_PYSIMT and not args.splits:
        raise UserError("pysimt's own search translates whole splits only", f"-f {args.func}", "name splits with -s")
    for name in ONLY_IN_PYSIMT.get(args.func, ()):
        if not getattr(args, name):
            raise UserError(f"needs --{name.replace('_', '-')}", f"-f {args.func}", "e.g. -f wk --n-init-tokens 3")
    if args.prepare and not args.raw:
        raise UserError("is only for plain text", "--prepare", "add --raw")
    if args.raw and args.splits and not args.source:
        hint = "give plain text on standard input, or with -s NAME -S src:FILE"
        raise UserError("the splits of a configuration are prepared text", "--raw", hint)
    if args.raw and (args.disable_filters or args.func in ONLY_IN_PYSIMT):
        other = "-n" if args.disable_filters else f"-f {args.func}"
        raise UserError(f"cannot be combined with {other}", "--raw", "leave one of them out")
    if args.source and (not args.splits or "," in args.splits):
        raise UserError("needs the name of one split", "-S", "e.g. -s mytest -S src:mytest.en -o out/sys")
    if args.splits is not None and not all(split.strip() for split in args.splits.split(",")):
        raise UserError(f"{args.splits!r} is not a list of splits", "-s", "e.g. -s val,test")
    if args.splits and not args.output:
        raise UserError("missing", "-o PREFIX", "give the prefix of the output files")


def name_of_system(named: str) -> str:
    """Return the name for translations when -o is a folder: the run's, or that of a checkpoint outside a run."""
    path = Path(named).expanduser().resolve()
    if path.is_dir():
        return path.name
    is_in_run = (path.parent / "train_state.pt").exists()
    return path.parent.name if is_in_run else path.name.removesuffix(".ckpt")


def search_options(args: argparse.Namespace) -> "SearchOptions":
    """Return the options of the search."""
    import secrets

    from pysimt_sac.core.distributed import world
    from pysimt_sac.hosts.engine.decoding.translation import SearchOptions

    names = ("func", "beam_size", "lp_alpha", "suppress_unk", "n_best", "max_len", "batch_size", "temperature", "top_k")
    seed = world.broadcast_from_main(lambda: secrets.randbelow(2**31)) if args.stochastic else args.seed
    return SearchOptions(seed=seed, **{name: getattr(args, name) for name in names})


def warn(message: str) -> None:
    """Print a line on standard error, on rank 0 only."""
    from pysimt_sac.core.distributed import world

    if world.is_main:
        print(message, file=sys.stderr, flush=True)


def translate_standard_input(translator: "Translator") -> int:
    """Translate each line as it arrives."""
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    translator.translate_stream(sys.stdin.buffer, lambda line: print(line, flush=True), warn)
    return 0


def source_file(args: argparse.Namespace, side: str) -> Path:
    """Return the file that `-S` names."""
    named, _, path = args.source.partition(":")
    if named != side or not path:
        raise UserError(f"{args.source!r} is not of the form {side}:FILE", "-S")
    return Path(path)


def translate_other_text(args: argparse.Namespace, translator: "Translator", log: Callable[[str], None]) -> int:
    """Translate standard input, or the file that `-S` names."""
    if not args.splits:
        return translate_standard_input(translator)
    source = source_file(args, str(translator.model.sl))
    for path in translator.translate_file(source, args.splits.strip(), args.output, warn):
        log(f"Wrote {path}")
    return 0


def translate_in_pysimt(args: argparse.Namespace) -> int:
    """Translate with pysimt's model: splits in its own translator, standard input in the engine's."""
    from pysimt_sac.hosts.pysimt.device import reserve_device

    manager = reserve_device(args.device_id)
    from pysimt_sac.hosts.engine.decoding.translation import Translator
    from pysimt_sac.hosts.pysimt.host import load_translator
    from pysimt_sac.hosts.pysimt.stepper import SearchablePysimtModel

    search = search_options(args)
    if args.raw:
        from pysimt_sac.corpora.plain_text import plain_text_of
        from pysimt_sac.hosts.engine.checkpoint import load_checkpoint

        plain = plain_text_of(load_checkpoint(args.model), args.prepare)
        theirs = load_translator(argparse.Namespace(**{**vars(args), "splits": None, "source": None}), search)
        translator = Translator(SearchablePysimtModel(theirs.model), search, manager.dev, plain=plain)
        return translate_other_text(args, translator, warn)
    theirs = load_translator(args, search)
    if not args.splits:
        model = SearchablePysimtModel(theirs.model)
        return translate_standard_input(Translator(model, search, manager.dev, not args.disable_filters))
    theirs()
    if theirs.filter is None and args.func not in ("sgs", "wk"):  # pysimt then writes only the raw translations
        kind = f"beam{args.beam_size}" if args.func == "bs-pysimt" else search.suffix
        for split in theirs.splits:
            stem = Path(f"{args.output}.{split}.{kind}")
            write_lines(stem, read_lines(Path(f"{stem}.raw")))
    return 0


def translate_embedded(args: argparse.Namespace) -> int:
    """Translate in the embedded engine."""
    if args.func in ONLY_IN_PYSIMT:
        hint = "use -f bs or gs, or install pysimt and set PYSIMT_SAC_HOST=pysimt"
        raise UserError("this search is pysimt's own", f"-f {args.func}", hint)
    import pysimt_sac.models  # noqa: F401 - registers our models
    from pysimt_sac.core.distributed import world
    from pysimt_sac.corpora.plain_text import plain_text_of
    from pysimt_sac.hosts.engine.checkpoint import load_checkpoint
    from pysimt_sac.hosts.engine.decoding.translation import Translator, load_model, moved_files
    from pysimt_sac.hosts.engine.device import choose_device
    from pysimt_sac.hosts.engine.training.console import NORMAL, SILENT, log_to_console, logger

    log_to_console(NORMAL if world.is_main else SILENT)
    if args.model != args.named:
        logger.info(f"Translating with {args.model}")
    device = choose_device(args.device_id)
    checkpoint = load_checkpoint(args.model)
    plain = plain_text_of(checkpoint, args.prepare) if args.raw else None
    moved = moved_files(checkpoint, args.data) if args.data else []
    model = load_model(checkpoint, device, [*moved, *args.override])
    translator = Translator(model, search_options(args), device, not args.disable_filters, plain)
    if args.source or not args.splits:
        return translate_other_text(args, translator, logger.info)
    splits = [split.strip() for split in args.splits.split(",")]
    for path in translator.translate_splits(splits, args.output, logger.warning):
        logger.info(f"Wrote {path}")
    return 0
