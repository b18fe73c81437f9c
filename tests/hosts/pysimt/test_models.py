"""Every model of ours on both hosts from one configuration; what one host trained, the other translates and trains."""

import json

import pytest

from pysimt_sac import models  # noqa: F401 - registers our models
from pysimt_sac.core.options import defaults
from pysimt_sac.core.registry import MODELS
from tests.hosts.pysimt.hosts import (
    NEEDS_PYSIMT,
    pysimt_commands,
    run_folder,
    run_python,
    train,
    training,
    translating,
    translation,
)

pytestmark = NEEDS_PYSIMT

OTHER = {"pysimt": "embedded", "embedded": "pysimt"}
UPDATES = ["train.batch_size:40", "train.max_iterations:50", "train.max_epochs:100", "train.lr:0.001"]
QUICK = {
    "critic_pretrain_updates": 10,
    "support_size": 6,
    "buffer_size": 8,
    "rollout_max_len": 8,
    "actor_warmup": 5,
    "health_freq": 10,
    "gate_sentences": 8,
}

# Beside each model as it is by default: some with more of their parts.
VARIANTS = {
    "SACNMT with known rewards": {"known_reward": True, "gradient_dropout": False, "kl_weight": 0.1},
    "VineNMT sampled": {"branch_path": "sample", "branch_continuation": "sample"},
    "ERACNMT with known rewards": {"known_reward": True},
}

TRAIN_AND_TRANSLATE = """
import sys
from pathlib import Path
from pysimt_sac.cli import main
run, out, *command = sys.argv[1:]
assert main(command) == 0
(checkpoint,) = Path(run).glob("*-final.ckpt")
sys.exit(main(["translate", "-d", "cpu", "-s", "val", "-o", out, str(checkpoint)]))
"""


@pytest.fixture(scope="module")
def toys(tmp_path_factory):
    """A toy and an actor trained on each host."""
    from tests.conftest import make_toy

    toy = make_toy(tmp_path_factory.mktemp("models") / "toy")
    actors = {}
    for host in OTHER:
        folder = train(host, toy, f"mle-{host}", "train.model_type:MLENMT", "train.max_epochs:3")
        (actors[host],) = folder.glob("*.best.bleu.ckpt")
    return toy, actors


def changes_for(kind):
    """Overrides that make 50 updates of a model quick, as far as it has these options, and those of a variant."""
    name = kind.split()[0]
    known = set().union(*(defaults(cls) for cls in MODELS.items[name].option_classes))
    options = {key: QUICK[key] for key in sorted(known & set(QUICK))} | VARIANTS.get(kind, {})
    return [f"train.model_type:{name}", *UPDATES, *(f"model.{key}:{value}" for key, value in options.items())]


def test_each_host_translates_the_others_actor_to_the_same_words(toys):
    toy, actors = toys
    searches = {"gs": "gs.raw", "bs": "beam6.raw", "sample": "sample.raw"}
    for reader in OTHER:
        commands = [
            translating(actor, toy.folder / f"out/{reader}-reads-{host}", "-f", search)
            for host, actor in actors.items()
            for search in searches
        ]
        pysimt_commands(reader, *commands)
    for host in OTHER:
        for suffix in searches.values():
            found = [translation(toy.folder / f"out/{reader}-reads-{host}", suffix=suffix) for reader in OTHER]
            assert found[0] == found[1]
            assert len(set(found[0])) > 1


@pytest.mark.parametrize("kind", [*(name for name in MODELS.items if not name.startswith("Simultaneous")), *VARIANTS])
@pytest.mark.parametrize("host", OTHER)
def test_a_model_fine_tunes_the_other_hosts_actor_for_fifty_updates_and_translates(toys, kind, host):
    toy, actors = toys
    name = kind.replace(" ", "_")
    run, out = run_folder(toy, f"{name}-{host}"), toy.folder / f"out/{name}-{host}"
    pretrained = f"train.pretrained_file:{actors[OTHER[host]]}"
    arguments = [*changes_for(kind), pretrained, "train.eval_freq:-1"]  # without validation, `final` is what is saved
    run_python(TRAIN_AND_TRANSLATE, run, out, *training(toy, f"{name}-{host}", *arguments), PYSIMT_SAC_HOST=host)
    assert any(translation(out))
    (curves,) = run.glob("*.scalars.jsonl")
    points = [json.loads(line) for line in curves.read_text().splitlines()]
    assert max(point["step"] for point in points if point["name"] == "train_LOSS") == 50
    assert None not in [point["value"] for point in points]
    if "kl_weight" in VARIANTS.get(kind, {}):  # the frozen actor is the one that training began with
        first, *_, last = (point["value"] for point in points if point["name"] == "rl_gradient_kl")
        assert first < last
    (log,) = run.glob("*.log")
    expected = "Host: pysimt 1.0.0 with pysimt_sac " if host == "pysimt" else "Host: embedded engine of pysimt_sac "
    assert expected in log.read_text().splitlines()[0]


PLUGIN = """
from pysimt_sac.rl.algorithm import ActorLoss, Algorithm, algorithm

@algorithm("TwiceNMT")
class Twice(Algorithm):
    def update(self, batch, step):
        nll = self.actor.nll(self.actor.encode(batch), batch[self.actor.target])
        return ActorLoss({"mle": 2 * nll}, int((batch.lengths[self.actor.target] - 1).sum()))
"""


@pytest.mark.parametrize("host", OTHER)
def test_an_algorithm_from_a_users_file_trains_and_translates_on_both_hosts(toys, host):
    toy, actors = toys
    plugin = toy.folder / f"mine_{host}.py"
    plugin.write_text(PLUGIN)
    still = [f"train.pretrained_file:{actors[host]}", "train.lr:1e-9", "train.max_epochs:1", "model.dropout_emb:0"]
    named = [f"model.plugin_modules:{plugin}", "train.model_type:TwiceNMT"]
    losses = {}
    for name, changes in (("once", ["train.model_type:MLENMT"]), ("twice", named)):
        run = train(host, toy, f"{name}-{host}", *still, *changes)
        (curves,) = run.glob("*.scalars.jsonl")
        points = [json.loads(line) for line in curves.read_text().splitlines()]
        losses[name] = {point["step"]: point["value"] for point in points if point["name"] == "train_LOSS"}
    assert losses["twice"] == pytest.approx({step: 2 * loss for step, loss in losses["once"].items()}, rel=1e-3)
    (checkpoint,) = run.glob("*.best.bleu.ckpt")
    out = toy.folder / f"out/twice-{host}"
    pysimt_commands(host, translating(checkpoint, out, "-x", f"model.plugin_modules:{plugin}"))
    assert any(translation(out))
