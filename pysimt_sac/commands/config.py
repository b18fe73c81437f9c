"""`pysimt-sac config`: show a configuration merged with its includes; list and copy the ready-made experiments."""

import argparse
from pathlib import Path

from pysimt_sac.commands import config_views
from pysimt_sac.core.errors import UserError, did_you_mean
from pysimt_sac.core.files import atomic_write, read_lines
from pysimt_sac.hosts.engine.config.ready import ready_configs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="configuration file")
    parser.add_argument(
        "overrides", nargs="*", metavar="SECTION.KEY:VALUE", help="replaces a value of the configuration"
    )
    parser.add_argument("--json", action="store_true", help="final values as JSON that follows the schema")
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--resolved", action="store_true", help="final values, defaults included, instead of the text as written"
    )
    group.add_argument(
        "--options", action="store_true", help="explain every key that affects its model, including your own"
    )
    group.add_argument(
        "--schema", action="store_true", help="JSON schema of all options; with FILE, including those it adds"
    )
    group.add_argument("--list", action="store_true", help="list the experiments that come with this package")
    group.add_argument(
        "--copy", nargs="+", metavar=("NAME", "DEST"), help="copy one of them, merged, to a file or folder (default: .)"
    )


def run(args: argparse.Namespace) -> int:
    """Show, list or copy configurations."""
    if args.file and (args.list or args.copy):
        raise UserError("is for one configuration, not for --list or --copy", args.file, "leave it out")
    if args.json and (args.list or args.copy or args.options or args.schema):
        raise UserError("shows one configuration", "--json", "use it alone or with --resolved")
    if args.list:
        for name, path in ready_configs().items():
            print(f"{name:18}{read_lines(path)[0].removeprefix('# ')}")
    elif args.copy:
        print(f"Wrote {copy(*args.copy)}")
    elif args.schema:
        print(config_views.schema(args.file, args.overrides), end="")
    elif args.file:
        print(view(args), end="")
    else:
        raise UserError("no configuration is named", "FILE", "--list shows those that come with this package")
    return 0


def view(args: argparse.Namespace) -> str:
    """Return the chosen view of a configuration."""
    if args.json:
        return config_views.as_json(args.file, args.overrides, filled=args.resolved)
    text = config_views.resolved if args.resolved else config_views.listing if args.options else config_views.merged
    return text(args.file, args.overrides)


# The ready-made ones


def copy(name: str, dest: str = ".", *more: str) -> Path:
    """Write an experiment merged with its includes; return the path."""
    if more:
        raise UserError(f"{more[0]!r} is one argument too many", "--copy", "give a name and at most one destination")
    known = ready_configs()
    name = name.removesuffix(".conf")
    if name not in known:
        raise UserError(f"no experiment is called {name!r}", "--copy", did_you_mean(name, known))
    path = Path(dest).expanduser()
    if dest.endswith("/") or path.is_dir():
        path /= f"{name}.conf"
    if path.exists() or path.is_symlink():
        raise UserError("already exists", path, "choose another name, or remove it")
    with atomic_write(path) as stream:
        stream.write(config_views.merged(known[name], []))
    return path
