"""`docs/algorithms.md` cannot go stale: its models, files, functions and options are those of the package."""

import dataclasses
import importlib
import re
from pathlib import Path

import pytest

from pysimt_sac.engine.config.registry import MODELS
from pysimt_sac.models import RLModel
from pysimt_sac.rl import losses

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/algorithms.md").read_text(encoding="utf-8")
ROWS = [line.strip("|").split(" | ") for line in PAGE.splitlines() if re.match(r"\| `\w+NMT`", line)]
# Other tests may have registered models of their own.
OURS = [model for model in MODELS.items.values() if model.__module__.startswith("pysimt_sac.models.")]


def names(text):
    return re.findall(r"`([\w./]+)`", text)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: names(row[0])[0])
def test_every_name_in_a_row_exists(row):
    model_type, file = names(row[0])
    assert (ROOT / file).is_file()
    module = importlib.import_module(file.removesuffix(".py").replace("/", "."))
    model = MODELS.get(model_type)
    assert model.__module__ == module.__name__
    options = {field.name for cls in model.option_classes for field in dataclasses.fields(cls)}
    for name in names(" ".join(row[1:])):
        owner, _, method = name.partition(".")
        if method:
            assert method in vars(getattr(module, owner)), name
        else:
            assert name in options or hasattr(module, name) or callable(getattr(losses, name)), name
    (*_, where) = row
    assert names(where), "a row says which function has its equation"


def test_every_algorithm_has_its_row():
    assert {model.__name__ for model in OURS} == {names(row[0])[0] for row in ROWS}


def test_no_algorithm_inherits_from_another():
    for model in OURS:
        assert model.__bases__ == (RLModel,)
    learners = [vars(importlib.import_module(model.__module__)) for model in OURS]
    bases = {base.__module__ for each in learners for name, cls in each.items() if name.endswith("Learner")
             and cls.__module__.startswith("pysimt_sac.models") for base in cls.__bases__}  # fmt: skip
    assert bases == {"pysimt_sac.rl.learner"}
