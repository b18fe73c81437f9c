"""`pysimt-sac average`: average the weights of several checkpoints."""

import argparse
from pathlib import Path

EPILOG = """Average the last or the best checkpoints of one run (see n_checkpoints and checkpoint_freq); average several
runs only if they started from the same weights. `ema_decay` averages during training instead."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.epilog = EPILOG
    parser.add_argument("checkpoints", nargs="+", type=Path, metavar="CKPT", help="a checkpoint that training wrote")
    parser.add_argument("-o", "--output", required=True, type=Path, metavar="OUT", help="the checkpoint to write")


def run(args: argparse.Namespace) -> int:
    """Average the checkpoints."""
    from pysimt_sac.hosts.engine.averaging import average_checkpoints

    average_checkpoints(args.checkpoints, args.output)
    print(f"{args.output}: the mean of {len(args.checkpoints)} checkpoints")
    return 0
