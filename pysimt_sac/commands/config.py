"""`pysimt-sac config`: show a configuration merged with its includes; list and copy the ready-made experiments."""

import argparse
import dataclasses
import shutil
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pysimt_sac.core.errors import UserError, did_you_mean
from pysimt_sac.core.files import atomic_write, read_lines
from pysimt_sac.hosts.engine.config.ready import ready_configs

if TYPE_CHECKING:
    from pysimt_sac.hosts.engine.config.parser import Options

WIDEST = 100  # columns of a readable list


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="configuration file")
    parser.add_argument(
        "overrides", nargs="*", metavar="SECTION.KEY:VALUE", help="replaces a value of the configuration"
    )
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--resolved", action="store_true", help="final values, defaults included, instead of the text as written"
    )
    group.add_argument(
        "--options", action="store_true", help="explain every key that affects its model, including your own"
    )
    parser.add_argument("--trust", action="store_true", help="run the Python files that the configuration names")
    group.add_argument("--list", action="store_true", help="list the experiments that come with this package")
    group.add_argument(
        "--copy", nargs="+", metavar=("NAME", "DEST"), help="copy one of them, merged, to a file or folder (default: .)"
    )


def run(args: argparse.Namespace) -> int:
    """Show, list or copy configurations."""
    if args.file and (args.list or args.copy):
        raise UserError("is for one configuration, not for --list or --copy", args.file, "leave it out")
    if args.list:
        for name, path in ready_configs().items():
            print(f"{name:18}{read_lines(path)[0].removeprefix('# ')}")
    elif args.copy:
        print(f"Wrote {copy(*args.copy)}")
    elif args.file:
        if args.resolved or args.options:
            view = resolved if args.resolved else explained
            print(view(args.file, args.overrides, args.trust), end="")
        else:
            print(merged(args.file, args.overrides), end="")
    else:
        raise UserError("no configuration is named", "FILE", "--list shows those that come with this package")
    return 0


def copy(name: str, dest: str = ".", *more: str) -> Path:
    """Write an experiment merged with its includes; return the path."""
    if more:
        raise UserError(f"{more[0]!r} is one argument too many", "--copy", "give a name and at most one destination")
    known = ready_configs(with_bases=True)
    name = name.removesuffix(".conf")
    if name not in known:
        raise UserError(f"no experiment is called {name!r}", "--copy", did_you_mean(name, known))
    path = Path(dest).expanduser()
    if dest.endswith("/") or path.is_dir():
        path /= f"{name}.conf"
    if path.exists() or path.is_symlink():
        raise UserError("already exists", path, "choose another name, or remove it")
    with atomic_write(path) as stream:
        stream.write(merged(known[name], []))
    return path


# The views of a configuration


def register_models() -> None:
    """Register our algorithms and the plain model."""
    import pysimt_sac.hosts.engine.nmt
    import pysimt_sac.hosts.huggingface.network
    import pysimt_sac.models  # noqa: F401


def merged(path: Path, overrides: list[str]) -> str:
    """Return the text as written, with interpolations and comments; a configuration to include may be incomplete."""
    register_models()
    from pysimt_sac.core.registry import MODELS
    from pysimt_sac.hosts.engine.config.merging import MergedConfig
    from pysimt_sac.hosts.engine.config.parser import model_keys

    config = MergedConfig(path, overrides)
    name = config.values.get("train", "model_type", fallback=None) or ""
    keys = {known.lower(): model_keys(model) for known, model in MODELS.items.items()}
    if name.lower() in keys:
        config.drop_included("model", set().union(*keys.values()) - keys[name.lower()])
    return config.text(with_comments=True)


def checked(path: Path, overrides: list[str], trusted: bool) -> tuple["Options", tuple[type, ...], dict[str, Any]]:
    """Return a configuration that training would accept, its option classes, and its model's own defaults."""
    register_models()
    from pysimt_sac.hosts.engine.config import parser

    options = parser.read_config(path, overrides)
    if not trusted:
        parser.check_trust(options)
    train, warnings = parser.check_config(options)
    for warning in warnings:
        print(f"Warning: {warning}", file=sys.stderr)
    model = parser.find_model(train.model_type, "[train] model_type")
    return options, parser.used_option_classes(model, options.model, f"{path} [model]"), getattr(model, "defaults", {})


def resolved(path: Path, overrides: list[str], trusted: bool) -> str:
    """Return the final values that training would use."""
    from pysimt_sac.hosts.engine.config.parser import resolved_text

    options, classes, defaults = checked(path, overrides, trusted)
    for cls in classes:
        for field in dataclasses.fields(cls):
            if not field.metadata["pysimt_only"]:
                options.model.setdefault(field.name, defaults.get(field.name, field.default))
    return resolved_text(options)


def explained(path: Path, overrides: list[str], trusted: bool) -> str:
    """List every key that affects a configuration's model, with its default and meaning."""
    from pysimt_sac.core.sections import TrainOptions

    _, classes, defaults = checked(path, overrides, trusted)
    seen: set[str] = set()
    blocks = []
    for section, cls in [("train", TrainOptions), *(("model", cls) for cls in classes)]:
        fields = [field for field in dataclasses.fields(cls) if field.name not in seen]
        seen |= {field.name for field in fields}
        used = [field for field in fields if not field.metadata["pysimt_only"]]
        if used:
            lines = [described(field, defaults.get(field.name, field.default)) for field in used]
            blocks.append("\n".join([f"[{section}] {cls.__name__}", *lines]))
    return "\n\n".join(blocks) + "\n"


def described(field: "dataclasses.Field[Any]", default: Any) -> str:
    """Return a key with its default, and below it its meaning and choices."""
    meaning = field.metadata["help"]
    if field.metadata["choices"]:
        meaning += f" ({', '.join(str(choice) for choice in field.metadata['choices'])})"
    width = min(WIDEST, shutil.get_terminal_size().columns)
    shown = "none" if default in ("", None, ()) else str(default)
    return f"  {field.name}: {shown}\n" + textwrap.indent(textwrap.fill(meaning, width - 6), " " * 6)
