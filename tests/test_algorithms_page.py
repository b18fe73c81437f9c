"""`docs/algorithms.md` cannot go stale: its models, files, functions and options are those of the package."""

import dataclasses
import importlib
import re
from pathlib import Path

import pytest

from pysimt_sac import models  # noqa: F401 - registers the models
from pysimt_sac.core.registry import MODELS
from pysimt_sac.rl import losses
from pysimt_sac.rl.algorithm import Algorithm

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/algorithms.md").read_text(encoding="utf-8")
ROWS = [line.strip("|").split(" | ") for line in PAGE.splitlines() if re.match(r"\| `\w+NMT`", line)]
# Other tests may have registered models of their own.
OURS = {name: cls for name, cls in MODELS.items.items() if cls.__module__.startswith("pysimt_sac.models.")}


def names(text):
    return re.findall(r"`([\w./]+)`", text)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: names(row[0])[0])
def test_every_name_in_a_row_exists(row):
    model_type, file = names(row[0])
    assert (ROOT / "pysimt_sac/models" / file).is_file()
    module = importlib.import_module(f"pysimt_sac.models.{file.removesuffix('.py')}")
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
    assert set(OURS) == {names(row[0])[0] for row in ROWS}


def test_no_algorithm_inherits_from_another():
    for algorithm in OURS.values():
        assert algorithm.__bases__ == (Algorithm,)
        assert "update" in vars(algorithm)
