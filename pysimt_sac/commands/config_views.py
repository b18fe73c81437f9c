"""The views of `pysimt-sac config`: a configuration's text, final values, JSON, explained keys, and the schema."""

import dataclasses
import json
import shutil
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pysimt_sac.hosts.engine.config.parser import Options

WIDEST = 100  # columns of a readable list
NOT_SET = ("", None, ())


def register_models() -> None:
    """Register our algorithms and the plain model."""
    import pysimt_sac.hosts.engine.nmt
    import pysimt_sac.models  # noqa: F401


def merged(path: Path, overrides: list[str]) -> str:
    """Return the text as written, with interpolations and comments; a configuration to include may be incomplete."""
    register_models()
    from pysimt_sac.core.registry import MODELS
    from pysimt_sac.hosts.engine.config.merging import read_merged
    from pysimt_sac.hosts.engine.config.parser import model_keys

    config = read_merged(path, overrides)
    entry = config.sections.get("train", {}).get("model_type")
    name = (entry.text or "").lower() if entry else ""
    models = {name.lower(): model for name, model in MODELS.items.items()}
    if name in models:
        others = set().union(*map(model_keys, models.values())) - model_keys(models[name])
        unused = others.intersection(config.sections.get("model", {}))
        config.drop("model", [key for key in unused if config.is_inherited("model", key)])
    return config.text()


class Checked:
    """A configuration that training would accept, and its option classes. Warnings go to standard error."""

    def __init__(self, path: Path, overrides: list[str]) -> None:
        register_models()
        from pysimt_sac.hosts.engine.config.parser import check_config, find_model, read_config, used_option_classes

        self.options: Options = read_config(path, overrides)
        self.train, warnings = check_config(self.options)
        for warning in warnings:
            print(f"Warning: {warning}", file=sys.stderr)
        self.model = find_model(self.train.model_type, "[train] model_type")
        self.classes = used_option_classes(self.model, self.options.model, f"{path} [model]")
        self.defaults: dict[str, Any] = getattr(self.model, "defaults", {})  # where the declared ones do not suit it

    def fill(self) -> None:
        """Add defaults for keys that are not given."""
        for cls in self.classes:
            for field in dataclasses.fields(cls):
                if not field.metadata["pysimt_only"]:
                    self.options.model.setdefault(field.name, self.defaults.get(field.name, field.default))


def resolved(path: Path, overrides: list[str]) -> str:
    """Return the final values that training would use."""
    from pysimt_sac.hosts.engine.config.parser import resolved_text

    checked = Checked(path, overrides)
    checked.fill()
    return resolved_text(checked.options)


def as_json(path: Path, overrides: list[str], filled: bool) -> str:
    """Return final values as the schema describes them: the given ones or, if filled, all."""
    from pysimt_sac.core.options import read_section
    from pysimt_sac.hosts.engine.config.values import plain

    checked = Checked(path, overrides)
    if filled:
        checked.fill()
    options, where = checked.options, f"{path} [model]"
    typed: dict[str, dict[str, Any]] = {"train": vars(checked.train), "model": {}}
    for cls in checked.classes:
        typed["model"] |= vars(read_section(cls, options.model, where))
    assert options.merged is not None  # it was read from a file
    shown = {}
    for name in options.sections:
        given = options[name] if filled else options.merged.sections.get(name, {})
        values = {key: value for key, value in options[name].items() if key in given}
        shown[name] = plain({key: typed.get(name, {}).get(key, value) for key, value in values.items()})
    return json.dumps(shown, indent=2, ensure_ascii=False) + "\n"


def schema(path: Path | None, overrides: list[str]) -> str:
    """Return the JSON schema of our options, and of those in files that a configuration names."""
    register_models()
    from pysimt_sac.core.registry import MODELS
    from pysimt_sac.hosts.engine.config.parser import option_classes
    from pysimt_sac.hosts.engine.config.schema import schema_of

    checked = Checked(path, overrides) if path else None
    MODELS.read_entry_points()
    classes = {name: option_classes(model) for name, model in MODELS.items.items()}
    if checked:
        classes |= {name: checked.classes for name, model in MODELS.items.items() if model is checked.model}
    defaults = {name: getattr(model, "defaults", {}) for name, model in MODELS.items.items()}
    return json.dumps(schema_of(classes, defaults), indent=2, ensure_ascii=False) + "\n"


def listing(path: Path, overrides: list[str]) -> str:
    """List every key that affects a configuration's model, with its default and meaning."""
    from pysimt_sac.core.sections import TrainOptions

    checked = Checked(path, overrides)
    seen: set[str] = set()
    blocks = []
    for section, cls in [("train", TrainOptions), *(("model", cls) for cls in checked.classes)]:
        fields = [field for field in dataclasses.fields(cls) if field.name not in seen]
        seen |= {field.name for field in fields}
        used = [field for field in fields if not field.metadata["pysimt_only"]]
        lines = [described(field, checked.defaults.get(field.name, field.default)) for field in used]
        if lines:
            blocks.append("\n".join([f"[{section}] {cls.__name__}", *lines]))
    return "\n\n".join(blocks) + "\n"


def described(field: "dataclasses.Field[Any]", default: Any) -> str:
    """Return a key with its default, and below it its meaning and choices."""
    meaning = field.metadata["help"]
    if field.metadata["choices"]:
        meaning += f" ({', '.join(str(choice) for choice in field.metadata['choices'])})"
    width = min(WIDEST, shutil.get_terminal_size().columns)
    shown = "none" if default in NOT_SET else str(default)
    return f"  {field.name}: {shown}\n" + textwrap.indent(textwrap.fill(meaning, width - 6), " " * 6)
