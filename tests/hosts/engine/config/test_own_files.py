"""An exception in a file of the user's own: one line that names the file, the line in it and the statement."""

import pytest

from pysimt_sac import models  # noqa: F401 - registers the algorithms
from pysimt_sac.core.registry import METRICS, MODELS, REWARDS
from pysimt_sac.hosts.engine import shell as embedded  # noqa: F401 - registers the plain model

ALGORITHM = """\
from pysimt_sac.rl.algorithm import Algorithm, algorithm

@algorithm("BrokenNMT")
class Broken(Algorithm):
    def update(self, batch, update, epoch):
        return batch["tgt"] * 2
"""
METRIC = """\
from pysimt_sac.core.metrics import metric

@metric("broken")
def broken(hypotheses, references):
    words = [line.split() for line in hypotheses]
    return sum(len(words) for words in hypotheses) / len(words[:0])
"""
REWARD = """\
from pysimt_sac.rewards import reward

@reward("broken")
def broken(translations):
    return [reference[99] for reference in translations.references]
"""


@pytest.fixture(autouse=True)
def forget_plugins():
    kept = [(registry, dict(registry.items)) for registry in (MODELS, METRICS, REWARDS)]
    yield
    for registry, items in kept:
        registry.items = items


@pytest.mark.parametrize(
    ("text", "changes", "expected"),
    [
        (
            ALGORITHM,
            ["model.plugin_modules:{}", "train.model_type:BrokenNMT"],
            "line 6, `return batch[\"tgt\"] * 2`: KeyError: 'tgt'",
        ),
        (
            METRIC,
            ["model.plugin_modules:{}", "train.eval_metrics:broken"],
            "line 6, `return sum(len(words) for words in hypotheses) / len(words[:0])`: ZeroDivisionError: division",
        ),
        (
            REWARD,
            ["model.reward_modules:{}", "train.model_type:REINFORCENMT", "model.reward:broken"],
            "line 5, `return [reference[99] for reference in translations.references]`: IndexError",
        ),
    ],
    ids=["algorithm", "metric", "reward"],
)
def test_file_line_and_statement_are_named(toy, pysimt, text, changes, expected):
    path = toy.folder / "mine.py"
    path.write_text(text)
    outcome = pysimt("train", "-C", toy.config, *(change.format(path) for change in changes))
    assert outcome.status == 2
    assert f"{path}: {expected}" in outcome.error


def test_so_is_what_goes_wrong_while_a_file_is_read(toy, pysimt):
    path = toy.folder / "mine.py"
    path.write_text("sizes = []\n\nlargest = max(sizes)\n")
    outcome = pysimt("train", "-C", toy.config, f"model.plugin_modules:{path}")
    assert outcome.status == 2
    assert f"{path}: line 3, `largest = max(sizes)`: ValueError: max()" in outcome.error
