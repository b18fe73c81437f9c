"""`docs/options.md` cannot go stale: it is what `make docs` writes, and lists every key that acts on a model."""

import dataclasses
import re
from pathlib import Path

import pytest

from pysimt_sac.core.registry import MODELS
from pysimt_sac.core.sections import ModelOptions, RecipeOptions, TrainOptions
from pysimt_sac.hosts.engine.config.parser import option_classes

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/options.md").read_text(encoding="utf-8")


def test_it_is_what_the_declarations_say(generate):
    assert generate.page() == PAGE, "run `make docs`"


def part_of(name):
    """The part of the page on one model."""
    return PAGE.partition(f"## `[model]` of `{name}`\n")[2].partition("\n## ")[0]


def test_maximum_likelihood_has_no_keys_of_rewards():
    assert part_of("MLENMT").strip() == "Shared keys: [ActorOptions](#actoroptions)."


@pytest.mark.parametrize("name", ["SACNMT", "VineNMT", "REINFORCENMT"])
def test_every_key_of_an_algorithm_is_listed_with_its_default(name):
    model, part = MODELS.get(name), part_of(name)
    for cls in set(option_classes(model)) - {ModelOptions, RecipeOptions}:
        shared = f"[{cls.__name__}](#{cls.__name__.lower()})" in part
        place = PAGE.partition(f"### {cls.__name__}\n")[2].partition("\n#")[0] if shared else part
        for field in dataclasses.fields(cls):
            assert f"| `{field.name}` |" in place
            if field.name in model.defaults:
                value = model.defaults[field.name]
                assert f"`{field.name}` `{value}`" in part or f"`{field.name}` | `{value}` |" in part


def test_the_glossary_names_files_and_options_that_exist():
    glossary = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    for name in re.findall(r"`((?:\w+/)+\w+\.\w+)`", glossary):
        assert (ROOT / name).exists() or (ROOT / "pysimt_sac" / name).exists(), name
    every = {
        name for model in MODELS.items.values() for cls in option_classes(model) for name in cls.__dataclass_fields__
    }
    every |= set(TrainOptions.__dataclass_fields__)
    for name in re.findall(r"`([a-z_]+)(?:: \w+)?`", glossary):
        assert name in every, name
