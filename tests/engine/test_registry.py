"""Models and metrics of the user's own: from a file named in the config, and from other packages."""

import pytest

from pysimt_sac.cli import main
from pysimt_sac.engine.config import registry
from pysimt_sac.engine.config.registry import METRICS, MODELS, Registry, load_plugin_modules
from pysimt_sac.errors import UserError

PLUGIN = """
from pysimt_sac.engine.metrics import metric
from pysimt_sac.engine.config.registry import MODELS
from pysimt_sac.models import MLENMT

@MODELS.register("TwiceNMT")
class TwiceNMT(MLENMT):
    def training_loss(self, batch, update, epoch):
        out = super().training_loss(batch, update, epoch)
        return {**out, "loss": 2 * out["loss"]}

@metric("shortness", higher_better=False)
def shortness(hypotheses, references):
    return sum(len(line.split()) for line in hypotheses)
"""


@pytest.fixture(autouse=True)
def forget_plugins():
    models, metrics = dict(MODELS.items), dict(METRICS.items)
    yield
    MODELS.items, METRICS.items = models, metrics


def test_a_file_of_ones_own_adds_a_model_and_a_metric(toy):
    plugin = toy.folder / "mine.py"
    plugin.write_text(PLUGIN)
    changes = [f"model.plugin_modules:{plugin}", "train.model_type:TwiceNMT", "train.eval_metrics:loss,shortness"]
    assert main(["train", "-C", str(toy.config), "train.max_epochs:1", *changes]) == 0
    (checkpoint,) = toy.folder.glob("runs/*/twicenmt-*.best.shortness.ckpt")
    assert main(["translate", "-s", "val", "-o", str(toy.folder / "out/x"), str(checkpoint)]) == 0


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


@pytest.mark.parametrize(
    ("text", "message"), [("1 / 0", "ZeroDivisionError"), ("def (", "SyntaxError"), ("import nowhere_x", "nowhere_x")]
)
def test_a_broken_file_is_named(tmp_path, text, message):
    path = tmp_path / "broken.py"
    path.write_text(text)
    for _ in range(2):  # a failed file is not remembered as loaded
        with pytest.raises(UserError, match=message):
            load_plugin_modules([path])
