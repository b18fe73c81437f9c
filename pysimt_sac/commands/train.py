"""`pysimt train`: train a model from a configuration file, or resume a run that was stopped."""

import argparse
import shlex
from pathlib import Path

from pysimt_sac.commands.arguments import minutes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add pysimt's options and ours."""
    parser.add_argument("-C", "--config", required=True, type=Path, help="configuration file")
    parser.add_argument("-s", "--suffix", default="", help="added to the run's name")
    parser.add_argument(
        "-d", "--device-id", default="auto", metavar="DEVICE", help="auto, cpu, gpu or cuda:N (default: auto)"
    )
    parser.add_argument("--restart", action="store_true", help="start over; an old run of this name is moved aside")
    parser.add_argument("--check", action="store_true", help="check everything without training, and report")
    parser.add_argument("--trust", action="store_true", help="--check: run Python files that the configuration names")
    parser.add_argument(
        "--timeout",
        type=minutes,
        default=120.0,
        metavar="MINUTES",
        help="several processes: how long to wait for one that does not answer (default: 120)",
    )
    console = parser.add_mutually_exclusive_group()
    console.add_argument("--verbose", action="store_true", help="show everything that goes to the log file")
    console.add_argument("--quiet", action="store_true", help="show only validations, warnings and the end")
    parser.add_argument(
        "overrides", nargs="*", metavar="SECTION.KEY:VALUE", help="replaces a value of the configuration"
    )


def run(args: argparse.Namespace) -> int:
    """Train on the host that is installed."""
    from pysimt_sac.core.distributed import world

    with world.joined(args.timeout):
        return train(args)


def train(args: argparse.Namespace) -> int:
    """Train, as one of several ranks or as the only process."""
    from pysimt_sac.core.distributed import check_single_process
    from pysimt_sac.hosts import choice

    if choice.name() == "pysimt":
        check_single_process()
        from pysimt_sac.hosts.pysimt.device import reserve_device

        manager = reserve_device(args.device_id)
        from pysimt_sac.hosts.pysimt.host import train as train_in_pysimt

        return train_in_pysimt(args, manager)
    return train_embedded(args)


def train_embedded(args: argparse.Namespace) -> int:
    """Train in the embedded engine."""
    import pysimt_sac.hosts.huggingface.network
    import pysimt_sac.models  # noqa: F401 - registers our models
    from pysimt_sac.core.distributed import world
    from pysimt_sac.hosts.engine.device import choose_device
    from pysimt_sac.hosts.engine.shell import read_training
    from pysimt_sac.hosts.engine.training.console import (
        ALWAYS,
        NORMAL,
        QUIET,
        SILENT,
        VERBOSE,
        log_to_console,
        logger,
    )
    from pysimt_sac.hosts.engine.training.interrupts import Interrupted
    from pysimt_sac.hosts.engine.training.runs import open_run
    from pysimt_sac.hosts.engine.training.startup import describe_finished
    from pysimt_sac.hosts.engine.training.trainer import Trainer

    level = VERBOSE if args.verbose else QUIET if args.quiet else NORMAL
    log_to_console(level if world.is_main else SILENT)
    device = choose_device(args.device_id)
    options, train_options, model = read_training(args.config, args.overrides, trusted=not args.check or args.trust)
    if args.check:
        leads = world.is_main
        world.end()  # one process is enough to check
        if not leads:
            return 0
        from pysimt_sac.hosts.engine.training.check import check_training

        return check_training(model, train_options, device, args.suffix, args.restart)
    with open_run(options, args.suffix, args.restart) as opened:
        if finished := describe_finished(opened, train_options):
            logger.log(ALWAYS, finished)
            return 0
        trainer = Trainer(model, train_options, opened, device)
        try:
            trainer.train()
        except Interrupted as interruption:
            command = command_to_go_on(args) if world.size == 1 else "the same command"
            stopped = f"Stopped by {interruption}; the state is saved. To resume: {command}"
            trainer.journal.show(stopped, ALWAYS)
            return interruption.status
        finally:
            trainer.journal.close()
    return 0


def command_to_go_on(args: argparse.Namespace) -> str:
    """Return the command that was given, but never with `--restart`."""
    words = ["pysimt", "train", "-C", str(args.config)]
    if args.suffix:
        words += ["-s", args.suffix]
    if args.device_id != "auto":
        words += ["-d", args.device_id]
    words += ["--verbose"] * args.verbose + ["--quiet"] * args.quiet
    return shlex.join(words + args.overrides)
