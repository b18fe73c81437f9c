"""`pysimt-sac average`: a checkpoint whose weights are the mean of others'."""

import argparse
from pathlib import Path

EPILOG = """Of one run, the last checkpoints or the best ones (see n_checkpoints and checkpoint_freq); of several runs
only if they began with the same weights. `ema_decay` averages during training instead."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What is averaged, and where it goes."""
    parser.epilog = EPILOG
    parser.add_argument("checkpoints", nargs="+", type=Path, metavar="CKPT", help="a checkpoint that training wrote")
    parser.add_argument("-o", "--output", required=True, type=Path, metavar="OUT", help="the checkpoint to write")


def run(args: argparse.Namespace) -> int:
    """Average, and say so."""
    from pysimt_sac.engine.averaging import average_checkpoints

    average_checkpoints(args.checkpoints, args.output)
    print(f"{args.output}: the mean of {len(args.checkpoints)} checkpoints")
    return 0
