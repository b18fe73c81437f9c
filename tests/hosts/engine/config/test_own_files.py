"""Models, metrics and rewards of the user's own: what a file or another package adds, and what is said if it fails."""

import pytest

from pysimt_sac import models  # noqa: F401 - registers the algorithms
from pysimt_sac.cli import main
from pysimt_sac.core import metrics, registry  # noqa: F401 - registers the metrics
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.registry import METRICS, MODELS, REWARDS, Registry, load_plugin_modules
from pysimt_sac.hosts.engine import shell as embedded  # noqa: F401 - registers the plain model
from tests.models.runs import points

TWICE = """
from pysimt_sac.core.metrics import metric
from pysimt_sac.rl.algorithm import ActorLoss, Algorithm, algorithm

@algorithm("TwiceNMT")
class Twice(Algorithm):
    def update(self, batch, step):
        nll = self.actor.nll(self.actor.encode(batch), batch[self.actor.target])
        return ActorLoss({"mle": 2 * nll}, int((batch.lengths[self.actor.target] - 1).sum()))

@metric("shortness", higher_better=False)
def shortness(hypotheses, references):
    return sum(len(line.split()) for line in hypotheses)
"""
TWICE_NETWORK = """
from pysimt_sac.core.registry import MODELS
from pysimt_sac.hosts.engine.nmt import SimultaneousNMT

@MODELS.register("TwiceNMT")
class TwiceNMT(SimultaneousNMT):
    def forward(self, batch, uctr=0, ectr=0):
        out = super().forward(batch)
        return {**out, "loss": (2 if self.training else 1) * out["loss"]}
"""
BROKEN_ALGORITHM = """\
from pysimt_sac.rl.algorithm import Algorithm, algorithm

@algorithm("BrokenNMT")
class Broken(Algorithm):
    def update(self, batch, step):
        return batch["tgt"] * 2
"""
BROKEN_METRIC = """\
from pysimt_sac.core.metrics import metric

@metric("broken")
def broken(hypotheses, references):
    words = [line.split() for line in hypotheses]
    return sum(len(words) for words in hypotheses) / len(words[:0])
"""
BROKEN_REWARD = """\
from pysimt_sac.rewards import reward

@reward("broken")
def broken(translations):
    return [reference[99] for reference in translations.references]
"""


@pytest.fixture(autouse=True)
def forget_plugins():
    kept = [(each, dict(each.items)) for each in (MODELS, METRICS, REWARDS)]
    yield
    for each, items in kept:
        each.items = items


def train(toy, name, *changes):
    """A run's training and validation losses."""
    command = ["train", "-C", str(toy.config), "-s", name, "train.max_epochs:1", "train.lr:1e-9", *changes]
    assert main(command) == 0
    return [points(toy.folder / f"runs/toy-{name}", curve) for curve in ("train_LOSS", "val_LOSS")]


@pytest.mark.parametrize("text", [TWICE, TWICE_NETWORK], ids=["algorithm", "network"])
def test_a_file_of_ones_own_adds_a_model(toy, text):
    plugin = toy.folder / "mine.py"
    plugin.write_text(text)
    expected_training, expected_validation = train(toy, "plain")
    changes = [f"model.plugin_modules:{plugin}", "train.model_type:TwiceNMT"]
    training, validation = train(toy, "twice", *changes)
    assert training == pytest.approx({step: 2 * loss for step, loss in expected_training.items()}, rel=1e-4)
    assert validation == pytest.approx(expected_validation, rel=1e-4)
    (checkpoint,) = toy.folder.glob("runs/toy-twice/twicenmt-*.best.loss.ckpt")
    assert main(["translate", "-s", "val", "-o", str(toy.folder / "out/x"), str(checkpoint)]) == 0


def test_a_file_of_ones_own_adds_a_metric(toy):
    plugin = toy.folder / "mine.py"
    plugin.write_text(TWICE)
    changes = [f"model.plugin_modules:{plugin}", "train.model_type:TwiceNMT", "train.eval_metrics:loss,shortness"]
    train(toy, "short", *changes)
    assert len(list(toy.folder.glob("runs/toy-short/twicenmt-*.best.shortness.ckpt"))) == 1


def test_names_match_in_any_case_and_the_nearest_is_offered():
    things = Registry("thing")
    things.register("Apple")(1)
    assert things.get("apple") == 1
    with pytest.raises(UserError, match=r"unknown thing 'aple' \(did you mean 'Apple'\?\)"):
        things.get("aple")


def test_other_packages_add_through_entry_points(monkeypatch):
    class Point:
        name, value = "Pear", "orchard:Pear"

        @staticmethod
        def load():
            return 2

    monkeypatch.setattr(registry, "entry_points", lambda group: [Point] if group == "pysimt_sac.things" else [])
    assert Registry("thing").get("pear") == 2


def test_a_broken_entry_point_is_named_every_time(monkeypatch):
    class Point:
        name, value = "Pear", "orchard:Pear"

        @staticmethod
        def load():
            raise ImportError("no module named orchard")

    monkeypatch.setattr(registry, "entry_points", lambda group: [Point])
    things = Registry("thing")
    for _ in range(2):  # the rest of them must not be left out in silence
        with pytest.raises(UserError, match=r"entry point orchard:Pear: cannot load: no module named orchard"):
            things.get("pear")


def test_a_file_that_failed_is_read_again(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("1 / 0")
    for _ in range(2):
        with pytest.raises(UserError, match="line 1, `1 / 0`: ZeroDivisionError"):
            load_plugin_modules([path])


@pytest.mark.parametrize(
    ("text", "changes", "expected"),
    [
        (
            BROKEN_ALGORITHM,
            ["model.plugin_modules:{}", "train.model_type:BrokenNMT"],
            "line 6, `return batch[\"tgt\"] * 2`: KeyError: 'tgt'",
        ),
        (
            BROKEN_METRIC,
            ["model.plugin_modules:{}", "train.eval_metrics:broken"],
            "line 6, `return sum(len(words) for words in hypotheses) / len(words[:0])`: ZeroDivisionError: division",
        ),
        (
            BROKEN_REWARD,
            ["model.reward_modules:{}", "train.model_type:REINFORCENMT", "model.reward:broken"],
            "line 5, `return [reference[99] for reference in translations.references]`: IndexError",
        ),
        (
            BROKEN_REWARD.replace("return", "import sys; sys.exit(0); return"),
            ["model.reward_modules:{}", "train.model_type:REINFORCENMT", "model.reward:broken"],
            "line 5, `import sys; sys.exit(0); return [reference[99] for reference in translations.references]`: Syst",
        ),
    ],
    ids=["algorithm", "metric", "reward", "a reward that ends Python"],
)
def test_the_error_in_a_file_names_its_line_and_statement(toy, pysimt, text, changes, expected):
    path = toy.folder / "mine.py"
    path.write_text(text)
    outcome = pysimt("train", "-C", toy.config, *(change.format(path) for change in changes))
    assert outcome.status == 2
    assert f"{path}: {expected}" in outcome.error
