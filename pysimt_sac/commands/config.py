"""`pysimt-sac config`: a configuration with all that it includes, as one plain file."""

import argparse
import sys
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("file", type=Path, metavar="FILE", help="configuration file")
    parser.add_argument(
        "overrides", nargs="*", metavar="SECTION.KEY:VALUE", help="replaces a value of the configuration"
    )
    parser.add_argument(
        "--resolved", action="store_true", help="final values, defaults included, instead of what is written"
    )


def run(args: argparse.Namespace) -> int:
    """Print it."""
    text = resolved if args.resolved else merged
    print(text(args.file, args.overrides), end="")
    return 0


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

    import pysimt_sac.models  # noqa: F401 - registers our models
    from pysimt_sac.engine.config.parser import check_config, find_model, option_classes, read_config, resolved_text

    options = read_config(path, overrides)
    train, warnings = check_config(options)
    for warning in warnings:
        print(f"Warning: {warning}", file=sys.stderr)
    model = find_model(train.model_type, "[train] model_type")
    for cls in option_classes(model):
        for field in dataclasses.fields(cls):
            if not field.metadata["pysimt_only"]:
                own = getattr(model, "defaults", {})  # of options whose declared default does not suit the model
                options.model.setdefault(field.name, own.get(field.name, field.default))
    return resolved_text(options)
