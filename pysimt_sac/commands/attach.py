"""`pysimt-sac attach`: record in a checkpoint how its text was prepared."""

import argparse
import dataclasses
from pathlib import Path

EPILOG = """Training on a corpus from `pysimt-sac prepare` stores this record itself; checkpoints of pysimt and of
earlier versions need it once. FOLDER has a `corpus.json`; docs/corpora.md shows how to write one by hand."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.epilog = EPILOG
    parser.add_argument("checkpoint", metavar="CKPT", help="checkpoint, or a run's folder: its best checkpoint")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="prepared corpus that the model was trained on")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="OUT", help="the checkpoint to write (default: CKPT itself)"
    )


def run(args: argparse.Namespace) -> int:
    """Attach the record."""
    from pysimt_sac.hosts.engine.checkpoint import PREPARATION, save_checkpoint
    from pysimt_sac.hosts.engine.decoding.translation import load_best, preparation_for

    checkpoint = load_best(args.checkpoint)
    preparation = preparation_for(checkpoint, args.folder)
    out = args.output or checkpoint.path.resolve()  # a run's best checkpoint is a link, and stays one
    history = {**checkpoint.history, PREPARATION: preparation.state()}
    save_checkpoint(dataclasses.replace(checkpoint, path=out, history=history))
    languages = f"{preparation.source.language} -> {preparation.target.language}"
    print(f"{out}: can translate plain text, {languages}, with pysimt translate --raw")
    return 0
