"""`docs/options.md` cannot go stale: it is what `make docs` writes, and lists every key that acts on a model."""

import re
from pathlib import Path

from pysimt_sac.core.registry import MODELS
from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.hosts.engine.config.parser import option_classes

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/options.md").read_text(encoding="utf-8")


def test_it_is_what_the_declarations_say(generate):
    assert generate.page() == PAGE, "run `make docs`"


def test_maximum_likelihood_has_no_keys_of_rewards(generate):
    assert "reward" not in generate.model_part("MLENMT", MODELS.get("MLENMT"))
    assert "lambda_rl" not in generate.model_part("MLENMT", MODELS.get("MLENMT"))


def test_the_list_of_an_algorithm_is_complete_and_names_the_classes(generate):
    part = generate.model_part("SACNMT", MODELS.get("SACNMT"))
    for cls in set(option_classes(MODELS.get("SACNMT"))) - set(generate.SHARED.values()):
        for name in cls.__dataclass_fields__:
            assert any(f"| `{name}` |" in line and f"| `{cls.__name__}` |" in line for line in part.splitlines()), name


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
