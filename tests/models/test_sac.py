"""Soft Actor-Critic through the front door: who learns when, the gate, the warm-up, metrics, and what is shared."""

import pytest
import torch

from pysimt_sac.cli import main
from pysimt_sac.hosts.engine.checkpoint import load_state
from pysimt_sac.rl import losses
from tests.hosts.engine.tiny import tiny_batch
from tests.models import task
from tests.models.runs import changes, equal, lines, points, train

ALONE = 5  # updates in which the critics learn alone: an epoch


@pytest.fixture(scope="module")
def sac(trained):
    """A run of two epochs."""
    options = [f"critic_pretrain_updates:{ALONE}", "support_size:6", "buffer_size:4", "gate_sentences:4"]
    options += ["known_reward:False", "actor_warmup:0"]
    words = [*changes(trained, "SACNMT", *options), "train.eval_zero:True", "train.max_epochs:2"]
    return words, train(trained, "sac-stages", words)


def test_the_critics_learn_alone_first_and_the_actor_after_them(sac):
    _, folder = sac
    assert [line.split(": ")[-1] for line in lines(folder, "Now learning")] == ["critics alone", "actor and critics"]
    first, second, third = (loss for _, loss in sorted(points(folder, "val_LOSS").items()))
    assert first == second != third  # the actor has not moved while the critics learned
    jointly = [update for update in points(folder, "rl_q") if update > ALONE]
    for name in ("mle_loss", "gradient_rl", "gradient_mle"):  # only when the actor learns
        assert sorted(points(folder, f"rl_{name}")) == jointly
        assert all(value > 0 for value in points(folder, f"rl_{name}").values())


def test_the_critics_are_examined_once_before_the_actor_learns_from_them(trained, sac):
    words, folder = sac
    assert len(lines(folder, "Gate: explained variance")) == 1
    assert len(lines(folder, "NOT passed")) == len(lines(folder, "Warning: Q must rank words better")) == 1
    for stop in (ALONE, ALONE + 2):  # the second part begins before the gate
        parts = train(trained, "sac-gate", words, f"train.max_iterations:{stop}")
        assert len(lines(parts, "Gate")) == (stop > ALONE)


def test_the_best_checkpoint_translates(trained, sac):
    (checkpoint,) = sac[1].glob("*.best.bleu.ckpt")
    assert main(["translate", "-s", "val", "-o", str(trained.folder / "out/sac"), str(checkpoint)]) == 0


def test_permuted_rewards_are_another_run(trained, sac):
    words, folder = sac
    permuted = train(trained, "sac-permuted", words, "model.permute_rewards:True")
    states = [load_state(each)[0]["model"]["algorithm"]["critics"] for each in (folder, permuted)]
    assert not equal(*states)


def test_an_actor_is_asked_for_if_it_is_missing(toy, pysimt):
    words = ["train", "-C", toy.config, "train.model_type:SACNMT", "model.gate_sentences:0"]
    outcome = pysimt(*words, "train.pretrained_file:nowhere.ckpt")
    assert outcome.status == 2
    assert "pysimt train -C experiments/mle.conf" in outcome.error
    outcome = pysimt(*words, "train.max_iterations:1")
    assert outcome.status == 0
    assert "Warning: there is no pretrained_file" in outcome.out + outcome.err


# Without a run


def ready(model_type="SACNMT", **options):
    model, corpus = task.make_model(model_type, 1, **options)
    model.start_training(task.Board())
    return model.train(), corpus[corpus.batches(0)[0]]


def test_the_warm_up_begins_when_the_actor_begins():
    model, batch = ready(critic_pretrain_updates=7, actor_warmup=10)
    for update in (7, 8):
        model(batch, uctr=update)
    assert [model.lr_factor(update) for update in (8, 9, 17, 18)] == [0.1, 0.2, 1.0, 1.0]


def test_metrics_are_those_of_the_last_update_alone():
    """And in an order that does not depend on what came before: a resumed run must write the same curves."""
    orders = []
    for first in (1, 3):
        model, batch = ready(critic_pretrain_updates=2)
        for update in range(first, 4):
            model(batch, uctr=update)
            assert ("mle_loss" in model.session.algorithm.metrics) == (update == 3)
        orders.append(list(model.session.algorithm.metrics))
    assert orders[0] == orders[1]


def test_the_target_entropy_is_the_pre_trained_actors():
    model, batch = ready(alpha="auto", critic_pretrain_updates=2)
    temperature, targets = model.session.algorithm.temperature, []
    for update in (1, 2, 3, 4):
        model(batch, uctr=update)
        targets.append((temperature.n_observed, float(temperature.target_entropy)))
    assert [n_observed for n_observed, _ in targets] == [1, 2, 2, 2]
    assert targets[1] == targets[2] == targets[3]


# The divergence from the pre-trained actor, which every algorithm can have


def divergence(model, seed):
    """KL from the pre-trained policy over the first words of all sources."""
    start, _ = task.make_model("MLENMT", seed)
    start.load_state_dict(task.actor(seed))
    policies = []
    for each in (model, start.eval()):
        sources = tiny_batch(each, task.SOURCES, ["bad0"] * len(task.SOURCES))
        with torch.no_grad():
            stepper = each.stepper(each.encode(sources))
            policies.append(stepper.log_probs(sources["trg"][:1].t()).squeeze(1)[:, 2:])  # without <pad> and <bos>
    return float(losses.kl_divergence(*policies))


@pytest.mark.parametrize("model_type", ["REINFORCENMT", "BranchedSACNMT"])
def test_the_divergence_from_the_pre_trained_actor_is_kept_small(model_type):
    free, held = (divergence(task.learn(model_type, 1, 30, kl_weight=weight), 1) for weight in (0.0, 5.0))
    assert free > 0.5
    assert held < 0.2 * free


def test_it_is_measured_from_the_actor_that_training_began_with_resumed_or_not(trained):
    options = ["gate_sentences:0", "kl_weight:1", "gradient_dropout:False", "health_freq:1"]
    options += ["critic_pretrain_updates:0", "actor_warmup:0"]
    words = [*changes(trained, "SACNMT", *options), "train.lr:0.01"]
    for stop in (1, 4):
        folder = train(trained, "sac-kl", words, f"train.max_iterations:{stop}")
    norms, divergences = points(folder, "rl_gradient_kl"), points(folder, "rl_kl")
    assert norms[1] < 1e-5  # at the actor itself; it is far from random weights, or from what it is later
    assert min(norms[update] for update in (2, 3, 4)) > 1e-2
    assert abs(divergences[1]) < 1e-6 < 1e-4 < min(divergences[update] for update in (2, 3, 4))
