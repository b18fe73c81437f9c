"""A reward or an algorithm of the user's own with options of its own: accepted, typed, listed, checked for typos."""

import pytest

from pysimt_sac import models  # noqa: F401 - registers the algorithms
from pysimt_sac.cli import main_sac
from pysimt_sac.core import registry as registries
from pysimt_sac.core.registry import MODELS, REWARDS
from pysimt_sac.hosts.engine import shell as embedded  # noqa: F401 - registers the plain model
from tests.models.runs import points

REWARD = """\
import dataclasses
from pysimt_sac.core.options import option
from pysimt_sac.rewards import reward

@dataclasses.dataclass(frozen=True)
class GiftOptions:
    gift_size: float = option(1.0, "`gift`: what every hypothesis earns", above=0)
    gift_wrap: str = option("paper", "`gift`: what it comes in", choices=("paper", "foil"))

@reward("gift")
class Gift:
    options_class = GiftOptions

    def __init__(self, options):
        self.options = options

    def __call__(self, translations):
        return [self.options.gift_size * (-1 if self.options.gift_wrap == "foil" else 1)] * len(translations.ended)
"""
ALGORITHM = """\
import dataclasses
from pysimt_sac.core.options import option
from pysimt_sac.rl.algorithm import ActorLoss, Algorithm, algorithm
from pysimt_sac.rl.setup import ActorOptions

@dataclasses.dataclass(frozen=True)
class ScaledOptions:
    loss_scale: float = option(1.0, "what the loss is multiplied by", above=0)

@algorithm("ScaledNMT")
class Scaled(Algorithm):
    option_classes = (ActorOptions, ScaledOptions)

    def update(self, batch, step):
        nll = self.actor.nll(self.actor.encode(batch), batch[self.actor.target])
        scale = self.setup.read(ScaledOptions).loss_scale
        return ActorLoss({"mle": scale * nll}, int((batch.lengths[self.actor.target] - 1).sum()))
"""
QUICK = ["train.model_type:REINFORCENMT", "train.max_epochs:1", "model.n_samples:1", "model.health_freq:1"]


@pytest.fixture(autouse=True)
def forget():
    kept = [(registry, dict(registry.items)) for registry in (MODELS, REWARDS)]
    yield
    for registry, items in kept:
        registry.items = items


@pytest.fixture
def gift(toy):
    """Overrides that use the reward."""
    path = toy.folder / "gift.py"
    path.write_text(REWARD)
    return [*QUICK, f"model.reward_modules:{path}", "model.reward:gift", "model.reward_scale:1.0"]


def test_options_of_a_reward_reach_it(toy, pysimt, gift):
    outcome = pysimt("train", "-C", toy.config, *gift, "model.gift_size:2.5", "model.gift_wrap:foil")
    assert outcome.status == 0, outcome.err
    assert "not used" not in outcome.err
    assert set(points(toy.run_folder, "rl_reward_gift").values()) == {-2.5}


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("gift_sise:2", r"unknown key 'gift_sise' (did you mean 'gift_size'?)"),
        ("gift_size:much", "gift_size: 'much' is not a finite number"),
        ("gift_size:0", "gift_size: 0.0 must be more than 0"),
        ("gift_wrap:wood", "gift_wrap: 'wood' is not one of paper, foil"),
    ],
)
def test_they_are_checked_as_ours_are(toy, pysimt, gift, word, message):
    outcome = pysimt("train", "-C", toy.config, *gift, f"model.{word}")
    assert outcome.status == 2
    assert message in outcome.error
    assert not toy.run_folder.exists()


def test_a_reward_may_learn_without_labels(toy, pysimt, gift):
    path = toy.folder / "gift.py"
    learn = "    def learn(self, translations):\n        return {'seen': len(translations.ended)}\n"
    path.write_text(f"{REWARD}\n{learn}")
    outcome = pysimt("train", "-C", toy.config, *gift)
    assert outcome.status == 0, outcome.err
    assert set(points(toy.run_folder, "rl_gift_seen").values()) == {20}


def test_options_of_a_reward_that_is_not_in_the_mixture_are_warned_of(toy, pysimt, gift):
    outcome = pysimt("train", "-C", toy.config, *gift, "model.reward:bleu", "model.gift_size:2.5")
    assert outcome.status == 0
    assert "[model] gift_size is not used by REINFORCENMT" in outcome.err


def test_a_control_may_include_them(toy, pysimt, gift):
    """It names another model, which has no rewards."""
    lines = [word.replace("model.", "", 1).replace(":", ": ", 1) for word in gift if word.startswith("model.")]
    mine, control = toy.folder / "mine.conf", toy.folder / "control.conf"
    mine.write_text("\n".join(["[include]", "base: toy.conf", "[model]", *lines, "gift_size: 2"]))
    control.write_text("[include]\nbase: mine.conf\n[train]\nmodel_type: MLENMT\nmax_epochs: 1\n")
    outcome = pysimt("train", "-C", control)
    assert outcome.status == 0, outcome.err
    assert "not used" not in outcome.err


def test_an_installed_packages_reward_has_options_too(toy, pysimt, gift, monkeypatch):
    class Point:
        name, value = "present", "shop:Present"

        @staticmethod
        def load():
            scope = {}
            exec(REWARD.replace("gift", "present"), scope)
            del REWARDS.items["present"]
            return scope["Gift"]

    monkeypatch.setattr(registries, "entry_points", lambda group: [Point] if group == "pysimt_sac.rewards" else [])
    monkeypatch.setattr(REWARDS, "_entry_points_read", False)
    outcome = pysimt("train", "-C", toy.config, *gift, "model.reward:present", "model.present_size:3")
    assert outcome.status == 0, outcome.err
    assert set(points(toy.run_folder, "rl_reward_present").values()) == {3.0}


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("gift_size: float", "alpha: float", ""),  # REINFORCE has no such key
        ("gift_size: float", "lambda_rl: float", "RLOptions and GiftOptions both declare the key 'lambda_rl'"),
        ('option(1.0, "`gift`: what every hypothesis earns", above=0)', "1.0", "gift_size is not declared by `option`"),
        ("    gift_size: float", "    giftSize: float", "GiftOptions.giftSize has capitals"),
        ("options_class = GiftOptions", "options_class = 5", "options_class of Gift: 5 is not a frozen dataclass"),
    ],
)
def test_declarations_that_cannot_be_used_are_refused(toy, pysimt, gift, before, after, message):
    path = toy.folder / "gift.py"
    path.write_text(REWARD.replace(before, after).replace("self.options.gift_size", "1"))
    outcome = pysimt("train", "-C", toy.config, *gift)
    if message:
        assert outcome.status == 2
        assert message in outcome.error
    else:
        assert outcome.status == 0, outcome.err


def test_options_of_an_algorithm_reach_it(toy, pysimt):
    path = toy.folder / "scaled.py"
    path.write_text(ALGORITHM)
    words = ["train.model_type:ScaledNMT", f"model.plugin_modules:{path}", "train.max_epochs:1", "train.lr:1e-9"]
    losses = []
    for scale in (1, 3):
        outcome = pysimt("train", "-C", toy.config, "-s", scale, *words, f"model.loss_scale:{scale}")
        assert outcome.status == 0, outcome.err
        losses.append(points(toy.folder / f"runs/toy-{scale}", "train_LOSS"))
    assert losses[1] == pytest.approx({step: 3 * loss for step, loss in losses[0].items()}, rel=1e-4)
    outcome = pysimt("train", "-C", toy.config, *words, "model.loss_scael:2")
    assert "unknown key 'loss_scael' (did you mean 'loss_scale'?)" in outcome.error


def test_they_are_listed_and_resolved(toy, gift, capsys):
    assert main_sac(["config", str(toy.config), *gift, "--resolved", "--trust"]) == 0
    assert "\ngift_size: 1.0\ngift_wrap: paper\n" in capsys.readouterr().out
    assert main_sac(["config", str(toy.config), *gift, "--options", "--trust"]) == 0
    listed = capsys.readouterr().out
    assert "[model] GiftOptions\n  gift_size: 1.0\n      `gift`: what every hypothesis earns\n" in listed


def test_a_printed_configuration_keeps_inherited_options_of_ones_own(toy, gift, capsys):
    """Those of other models, which it does not use, are left out."""
    mine = toy.folder / "mine.conf"
    base = toy.folder / "base.conf"
    base.write_text(toy.config.read_text().replace("[model]\n", "[model]\ngift_size: 3\nalpha: 0.1\n"))
    mine.write_text("[include]\nbase: base.conf\n")
    assert main_sac(["config", str(mine), *gift]) == 0
    shown = capsys.readouterr().out
    assert "gift_size: 3\n" in shown
    assert "alpha" not in shown
