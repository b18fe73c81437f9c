"""`pysimt-sac config`: a configuration with all that it includes, as one plain file; and the ready-made experiments."""

import argparse
import sys
from pathlib import Path

from pysimt_sac.engine.config.ready import ready_configs
from pysimt_sac.errors import UserError, did_you_mean
from pysimt_sac.files import atomic_write, read_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to show, or what to copy."""
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="configuration file")
    parser.add_argument(
        "overrides", nargs="*", metavar="SECTION.KEY:VALUE", help="replaces a value of the configuration"
    )
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--resolved", action="store_true", help="final values, defaults included, instead of what is written"
    )
    group.add_argument("--list", action="store_true", help="list the experiments that come with this package")
    group.add_argument(
        "--copy", nargs="+", metavar=("NAME", "DEST"), help="copy one of them, whole, to a file or folder (default: .)"
    )


def run(args: argparse.Namespace) -> int:
    """Do one of three things."""
    if args.file and (args.list or args.copy):
        raise UserError("is for one configuration, not for --list or --copy", args.file, "leave it out")
    if args.list:
        for name, path in ready_configs().items():
            print(f"{name:18}{read_lines(path)[0].removeprefix('# ')}")
    elif args.copy:
        print(f"Wrote {copy(*args.copy)}")
    elif args.file:
        text = resolved if args.resolved else merged
        print(text(args.file, args.overrides), end="")
    else:
        raise UserError("no configuration is named", "FILE", "--list shows those that come with this package")
    return 0


# One configuration


def merged(path: Path, overrides: list[str]) -> str:
    """What is written, interpolations and comments kept; a configuration that others include need not be complete."""
    import pysimt_sac.models  # noqa: F401 - registers our models
    from pysimt_sac.engine.config.merging import read_merged
    from pysimt_sac.engine.config.parser import model_keys
    from pysimt_sac.engine.config.registry import MODELS

    config = read_merged(path, overrides)
    entry = config.sections.get("train", {}).get("model_type")
    name = (entry.text or "").lower() if entry else ""
    models = {name.lower(): model for name, model in MODELS.items.items()}
    if name in models:
        unused = config.sections.get("model", {}).keys() - model_keys(models[name])
        config.drop("model", [key for key in unused if config.is_inherited("model", key)])
    return config.text()


def resolved(path: Path, overrides: list[str]) -> str:
    """What training would be told."""
    import dataclasses

    import pysimt_sac.engine.network.nmt  # registers the plain model
    import pysimt_sac.models  # noqa: F401 - registers our models
    from pysimt_sac.engine.config.parser import check_config, find_model, option_classes, read_config, resolved_text

    options = read_config(path, overrides)
    train, warnings = check_config(options)
    for warning in warnings:
        print(f"Warning: {warning}", file=sys.stderr)
    model = find_model(train.model_type, "[train] model_type")
    own = getattr(model, "defaults", {})  # of options whose declared default does not suit the model
    for cls in option_classes(model):
        for field in dataclasses.fields(cls):
            if not field.metadata["pysimt_only"]:
                options.model.setdefault(field.name, own.get(field.name, field.default))
    return resolved_text(options)


# The ready ones


def copy(name: str, dest: str = ".", *more: str) -> Path:
    """Write an experiment with all that it includes; the path written."""
    if more:
        raise UserError(f"{more[0]!r} is one word too many", "--copy", "give a name and at most one place")
    known = ready_configs()
    name = name.removesuffix(".conf")
    if name not in known:
        raise UserError(f"no experiment is called {name!r}", "--copy", did_you_mean(name, known))
    path = Path(dest).expanduser()
    if dest.endswith("/") or path.is_dir():
        path /= f"{name}.conf"
    if path.exists() or path.is_symlink():
        raise UserError("is there already", path, "choose another name, or remove it")
    with atomic_write(path) as stream:
        stream.write(merged(known[name], []))
    return path
