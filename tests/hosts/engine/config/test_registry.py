"""Models and metrics of the user's own: from a file named in the config, and from other packages."""

import pytest

from pysimt_sac.cli import main
from pysimt_sac.core import registry
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.registry import METRICS, MODELS, Registry, load_plugin_modules
from tests.models.runs import points

ALGORITHM = """
from pysimt_sac.core.metrics import metric
from pysimt_sac.rl.algorithm import ActorLoss, Algorithm, algorithm

@algorithm("TwiceNMT")
class Twice(Algorithm):
    def update(self, batch, update, epoch):
        nll = self.actor.nll(self.actor.encode(batch), batch[self.actor.target])
        return ActorLoss({"mle": 2 * nll}, int((batch.lengths[self.actor.target] - 1).sum()))

@metric("shortness", higher_better=False)
def shortness(hypotheses, references):
    return sum(len(line.split()) for line in hypotheses)
"""
NETWORK = """
from pysimt_sac.core.registry import MODELS
from pysimt_sac.hosts.engine.nmt import SimultaneousNMT

@MODELS.register("TwiceNMT")
class TwiceNMT(SimultaneousNMT):
    def forward(self, batch, uctr=0, ectr=0):
        out = super().forward(batch)
        return {**out, "loss": (2 if self.training else 1) * out["loss"]}
"""


@pytest.fixture(autouse=True)
def forget_plugins():
    models, metrics = dict(MODELS.items), dict(METRICS.items)
    yield
    MODELS.items, METRICS.items = models, metrics


def train(toy, name, *changes):
    """A run's training and validation losses."""
    command = ["train", "-C", str(toy.config), "-s", name, "train.max_epochs:1", "train.lr:1e-9", *changes]
    assert main(command) == 0
    return [points(toy.folder / f"runs/toy-{name}", curve) for curve in ("train_LOSS", "val_LOSS")]


@pytest.mark.parametrize("text", [ALGORITHM, NETWORK], ids=["algorithm", "network"])
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
    plugin.write_text(ALGORITHM)
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


@pytest.mark.parametrize(
    ("text", "message"), [("1 / 0", "ZeroDivisionError"), ("def (", "SyntaxError"), ("import nowhere_x", "nowhere_x")]
)
def test_a_broken_file_is_named(tmp_path, text, message):
    path = tmp_path / "broken.py"
    path.write_text(text)
    for _ in range(2):  # a failed file is not remembered as loaded
        with pytest.raises(UserError, match=message):
            load_plugin_modules([path])
