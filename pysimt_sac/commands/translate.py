"""`pysimt translate`: translate splits of a configuration, other files, or standard input."""

import argparse
import json
import re
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import read_lines, write_lines
from pysimt_sac.core.options import read_section
from pysimt_sac.core.sections import SearchOptions

if TYPE_CHECKING:
    from pysimt_sac.hosts.engine.decoding.translation import Translator

# The options of the search, as pysimt calls them.
SHORT = {
    "func": "-f",
    "beam_size": "-k",
    "lp_alpha": "-a",
    "suppress_unk": "-u",
    "n_best": "-N",
    "max_len": "-m",
    "batch_size": "-b",
}
CALLED = {field.name: SHORT.get(field.name, f"--{field.name.replace('_', '-')}") for field in fields(SearchOptions)}
# Searches of whole splits only, and the options that each of them needs; the engine has wait-k.
OF_SPLITS = {"sgs": ("n_init_tokens", "delta", "criteria"), "wk": ("n_init_tokens",), "bs-pysimt": ()}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add pysimt's options and ours."""
    parser.add_argument(
        "model", help="checkpoint, or a run's folder: its best checkpoint by the first of its eval_metrics"
    )
    parser.add_argument("--last", action="store_true", help="of a run's folder: its last checkpoint, not the best one")
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
    for field in fields(SearchOptions):
        words = [SHORT[field.name]] if field.name in SHORT else []
        words.append(f"--{field.name.replace('_', '-')}")
        if isinstance(field.default, bool):
            parser.add_argument(*words, action="store_true", help=field.metadata["help"])
        else:
            help = f"{field.metadata['help']} (default: {field.default})"
            choices, kind = field.metadata["choices"], type(field.default)
            parser.add_argument(*words, type=kind, default=field.default, choices=choices, help=help)
    parser.add_argument(
        "--tune-lp",
        action="store_true",
        help="beam search: choose -a on the configuration's validation set, and write it to PREFIX.beamK.lp_alpha",
    )
    parser.add_argument("-r", "--stochastic", action="store_true", help="sampling: a different result every time")
    parser.add_argument("--n-init-tokens", default="", metavar="K,...", help="sgs, wk: source words read at first")
    parser.add_argument("--delta", default="", metavar="N,...", help="sgs: source words read at a time")
    parser.add_argument("--criteria", default="", metavar="NAME,...", help="sgs: wait_if_diff, wait_if_worse")
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


def run(args: argparse.Namespace) -> int:
    """Translate on the host that is installed, as one of several ranks or as the only process."""
    from pysimt_sac.core.distributed import check_single_process, world
    from pysimt_sac.hosts import choice

    with world.joined():
        check_arguments(args)
        if not args.splits and world.size > 1:
            raise UserError("cannot be divided among processes", "standard input", "translate files, with -s or -S")
        if args.output and args.output.endswith("/"):
            args.output += name_of_system(args.model)
        search = search_options(args)
        if choice.name() == "pysimt":
            if args.tune_lp:
                raise UserError("needs the engine", "--tune-lp", "set PYSIMT_SAC_HOST=embedded")
            check_single_process()
            return translate_in_pysimt(args, search)
        return translate_embedded(args, search)


def check_arguments(args: argparse.Namespace) -> None:
    """Refuse combinations that make no sense."""
    if args.n_best and args.func != "bs":
        raise UserError("n-best lists come from beam search", "-N", "add -f bs")
    if args.n_best and not args.splits:
        raise UserError("n-best lists are written to files, not to standard output", "-N", "name splits with -s")
    if args.tune_lp and (args.func != "bs" or not args.splits):
        raise UserError("chooses a length penalty for splits, in beam search", "--tune-lp", "-f bs -s test -o out/my")
    if args.func in OF_SPLITS and not args.splits:
        raise UserError("this search translates whole splits only", f"-f {args.func}", "name splits with -s")
    for name in OF_SPLITS.get(args.func, ()):
        if not getattr(args, name):
            raise UserError(f"needs --{name.replace('_', '-')}", f"-f {args.func}", "e.g. -f wk --n-init-tokens 3")
    if args.prepare and not args.raw:
        raise UserError("is only for plain text", "--prepare", "add --raw")
    if args.raw and args.splits and not args.source:
        hint = "give plain text on standard input, or with -s NAME -S src:FILE"
        raise UserError("the splits of a configuration are prepared text", "--raw", hint)
    if not re.fullmatch(r"([1-9]\d{0,5}(,|$))*", f"{args.n_init_tokens}"):
        raise UserError(f"{args.n_init_tokens!r} is not a list of numbers", "--n-init-tokens", "e.g. 1,3,5")
    if args.raw and (args.disable_filters or args.func in OF_SPLITS):
        other = "-n" if args.disable_filters else f"-f {args.func}"
        raise UserError(f"cannot be combined with {other}", "--raw", "leave one of them out")
    if args.source and (not args.splits or "," in args.splits):
        raise UserError("needs the name of one split", "-S", "e.g. -s mytest -S src:mytest.en -o out/sys")
    if args.splits is not None and not all(split.strip() for split in args.splits.split(",")):
        raise UserError(f"{args.splits!r} is not a list of splits", "-s", "e.g. -s val,test")
    if args.splits and not args.output:
        raise UserError("missing", "-o PREFIX", "give the prefix of the output files")
    if args.output and not args.splits:
        hint = "write > FILE instead, or name a file with -s NAME -S src:FILE"
        raise UserError("standard input is translated to standard output, not to files", "-o", hint)


def name_of_system(named: str) -> str:
    """Return the name for translations when -o is a folder: the run's, or that of a checkpoint outside a run."""
    path = Path(named).expanduser().resolve()
    if path.is_dir():
        return path.name
    is_in_run = (path.parent / "train_state.pt").exists()
    return path.parent.name if is_in_run else path.name.removesuffix(".ckpt")


def search_options(args: argparse.Namespace) -> SearchOptions:
    """Return the options of the search."""
    import secrets

    from pysimt_sac.core.distributed import world

    if args.stochastic:
        args.seed = world.broadcast_from_main(lambda: secrets.randbelow(2**31))
    return read_section(SearchOptions, vars(args), CALLED)


def warn(message: str) -> None:
    """Print a line on standard error, on rank 0 only."""
    from pysimt_sac.core.distributed import world

    if world.is_main:
        print(message, file=sys.stderr, flush=True)


def translate_other_text(args: argparse.Namespace, translator: "Translator", log: Callable[[str], None]) -> int:
    """Translate standard input, each line as it arrives, or the file that `-S` names."""
    if not args.splits:
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        translator.translate_stream(sys.stdin.buffer, lambda line: print(line, flush=True), warn)
        return 0
    side, _, source = args.source.partition(":")
    if side != translator.model.sl or not source:
        raise UserError(f"{args.source!r} is not of the form {translator.model.sl}:FILE", "-S")
    for path in translator.translate_files({args.splits.strip(): Path(source)}, args.output, warn):
        log(f"Wrote {path}")
    return 0


def translate_in_pysimt(args: argparse.Namespace, search: SearchOptions) -> int:
    """Translate with pysimt's model: splits in its own translator, other text in the engine's."""
    from pysimt_sac.hosts.engine.decoding.translation import Translator, load_best, plain_text_of
    from pysimt_sac.hosts.pysimt.device import reserve_device

    checkpoint = load_best(args.model, args.last)
    args.model = str(checkpoint.path)
    plain = plain_text_of(checkpoint, args.prepare) if args.raw else None
    manager = reserve_device(args.device_id)
    from pysimt_sac.hosts.pysimt.host import load_translator
    from pysimt_sac.hosts.pysimt.stepper import SearchablePysimtModel

    if plain or not args.splits:
        theirs = load_translator(argparse.Namespace(**{**vars(args), "splits": None, "source": None}), search)
        model = SearchablePysimtModel(theirs.model)
        return translate_other_text(args, Translator(model, search, manager.dev, not args.disable_filters, plain), warn)
    theirs = load_translator(args, search)
    theirs()
    if theirs.filter is None and args.func not in ("sgs", "wk"):  # pysimt then writes only the raw translations
        kind = f"beam{args.beam_size}" if args.func == "bs-pysimt" else search.suffix
        for split in theirs.splits:
            stem = Path(f"{args.output}.{split}.{kind}")
            write_lines(stem, read_lines(Path(f"{stem}.raw")))
    return 0


def translate_embedded(args: argparse.Namespace, search: SearchOptions) -> int:
    """Translate in the embedded engine."""
    if args.func in OF_SPLITS and args.func != "wk":
        hint = "use -f bs or gs, or install pysimt and set PYSIMT_SAC_HOST=pysimt"
        raise UserError("this search is pysimt's own", f"-f {args.func}", hint)
    import pysimt_sac.hosts.huggingface.network
    import pysimt_sac.models  # noqa: F401 - registers our models
    from pysimt_sac.core.distributed import world
    from pysimt_sac.hosts.engine.checkpoint import remark_on
    from pysimt_sac.hosts.engine.decoding.length_tuning import tune_length
    from pysimt_sac.hosts.engine.decoding.translation import (
        Translator,
        load_best,
        load_model,
        moved_files,
        plain_text_of,
    )
    from pysimt_sac.hosts.engine.device import choose_device
    from pysimt_sac.hosts.engine.training.console import NORMAL, SILENT, log_to_console, logger

    log_to_console(NORMAL if world.is_main else SILENT)
    device = choose_device(args.device_id)
    checkpoint = load_best(args.model, args.last)
    if str(checkpoint.path) != args.model:
        remark = remark_on(checkpoint)
        logger.info(f"Translating with {checkpoint.path}{f': {remark}' if remark else ''}")
    plain = plain_text_of(checkpoint, args.prepare) if args.raw else None
    moved = moved_files(checkpoint, args.data) if args.data else []
    model = load_model(checkpoint, device, [*moved, *args.override])
    translator = Translator(model, search, device, not args.disable_filters, plain)
    if args.tune_lp:
        tuned = tune_length(translator)
        logger.info(f"Length penalty {tuned['lp_alpha']}: BLEU {tuned['BLEU']} on the validation set")
        if world.is_main:
            write_lines(Path(f"{args.output}.{search.suffix}.lp_alpha"), [json.dumps(tuned)])
    if args.source or not args.splits:
        return translate_other_text(args, translator, logger.info)
    splits = [split.strip() for split in args.splits.split(",")]
    for k in args.n_init_tokens.split(",") if args.func == "wk" else ("",):
        if k:
            translator.wait_for(int(k))
        for path in translator.translate_splits(splits, args.output, logger.warning):
            logger.info(f"Wrote {path}")
    return 0
