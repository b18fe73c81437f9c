"""Soft Actor-Critic through the front door: stages, metrics, what is shared and what is not, exact resuming."""

import signal
from functools import partial

import pytest

from pysimt_sac.cli import main
from pysimt_sac.hosts.engine.checkpoint import load_checkpoint, load_state
from tests.hosts.engine.dying_runs import die_in_update, fork_training
from tests.models import task
from tests.models.runs import equal, lines, points, train, train_actor

SAC = ["train.model_type:SACNMT", "train.lr:0.001", "train.batch_size:40", "train.eval_zero:True"]
SAC += ["model.critic_pretrain_epochs:1", "model.support:6", "model.health_freq:2", "model.rollout_max_len:8"]
SAC += ["model.buffer_size:4", "model.actor_warmup:3"]


@pytest.fixture
def actor(toy):
    """A toy with a pre-trained actor."""
    return toy, [*SAC, train_actor(toy)]


def test_the_critics_learn_alone_first_and_the_actor_after_them(actor):
    toy, changes = actor
    folder = train(toy, "sac", changes, "train.max_epochs:2")
    (log,) = folder.glob("*.log")
    stages = [line.split(": ")[-1] for line in log.read_text().splitlines() if "Now learning" in line]
    assert stages == ["critics alone", "actor and critics"]
    losses = points(folder, "val_LOSS")
    updates = sorted(losses)
    assert losses[updates[0]] == losses[updates[1]]  # the actor has not moved while the critics learned
    assert losses[updates[2]] != losses[updates[1]]
    metrics = "reward_bleu length_ratio q q_target return td_error entropy critic_loss replay_fill max_probability"
    for name in f"{metrics} sampled_bleu greedy_bleu explained_variance replay_age".split():
        values = points(folder, f"rl_{name}")
        assert len(values) >= 2
        assert None not in values.values(), name
    jointly = [update for update in points(folder, "rl_q") if update > 5]
    for name in ("mle_loss", "gradient_rl", "gradient_mle"):  # only when the actor learns
        assert sorted(points(folder, f"rl_{name}")) == jointly
        assert all(value > 0 for value in points(folder, f"rl_{name}").values())


def test_the_critics_are_examined_once_before_the_actor_follows_them(actor):
    toy, changes = actor
    for stop in (5, 7):  # the second part begins behind the gate
        folder = train(toy, "sac", changes, "train.max_epochs:2", f"train.max_iterations:{stop}")
        assert len(lines(folder, "Gate: explained variance")) == (stop == 7)
    folder = train(toy, "sac", changes, "train.max_epochs:2")
    assert len(lines(folder, "Gate")) == 1
    assert len(lines(folder, "NOT passed")) == len(lines(folder, "Warning: Q must rank words better")) == 1
    assert len(lines(folder, "Replay buffer: at most")) >= 1


def test_the_warm_up_begins_when_the_actor_begins():
    model, corpus = task.make_model("SACNMT", 1, critic_pretrain_epochs=1, actor_warmup=10)
    model.start_training(task.Board())
    batch = corpus[corpus.batches(0)[0]]
    model.train()
    model(batch, uctr=7, ectr=1)
    model(batch, uctr=8, ectr=2)
    assert [model.lr_factor(update) for update in (8, 9, 17, 18)] == [0.1, 0.2, 1.0, 1.0]


def test_beside_the_actor_the_critics_learn_in_one_of_so_many_updates():
    model, corpus = task.make_model("SACNMT", 1, critic_pretrain_epochs=1, critic_every=3)
    model.start_training(task.Board())
    batch, (critic, _) = corpus[corpus.batches(0)[0]], model.session.algorithm.critics.critics
    learned = []
    for update in range(1, 10):
        before = critic.value.bias.clone()
        out = model(batch, uctr=update, ectr=1 if update <= 3 else 2)
        learned.append(not critic.value.bias.equal(before))
        assert out["loss"].requires_grad
    assert learned == [True] * 3 + [False, False, True] * 2


def test_metrics_are_those_of_the_last_update_alone():
    """And in an order that does not depend on what came before: a resumed run must write the same curves."""
    model, corpus = task.make_model("SACNMT", 1, critic_pretrain_epochs=1)
    model.start_training(task.Board())
    batch, algorithm, orders = corpus[corpus.batches(0)[0]], model.session.algorithm, []
    model.train()
    for update, epoch in enumerate((1, 2, 1, 2), 1):
        model(batch, uctr=update, ectr=epoch)
        orders.append(list(algorithm.metrics))
        assert ("mle_loss" in algorithm.metrics) == (epoch == 2)
    assert orders[1] == orders[3]
    fresh, _ = task.make_model("SACNMT", 1, critic_pretrain_epochs=0)
    fresh.start_training(task.Board())
    fresh.train()(batch, uctr=1, ectr=1)
    assert list(fresh.session.algorithm.metrics) == orders[1]


def test_the_target_entropy_is_the_pretrained_actors_however_many_updates_a_batch_has():
    model, corpus = task.make_model("SACNMT", 1, alpha="auto", updates_per_batch=2, critic_pretrain_epochs=1)
    model.start_training(task.Board())
    batch, algorithm = corpus[corpus.batches(0)[0]], model.session.algorithm
    model.train()(batch, uctr=1, ectr=1)
    assert algorithm.temperature.observed == 2
    before = float(algorithm.temperature.target)
    for update in (2, 3):
        model(batch, uctr=update, ectr=2)
    assert float(algorithm.temperature.target) == before


@pytest.mark.parametrize("model_type", ["SACNMT", "ACNMT", "ERACNMT"])
def test_branches_cannot_teach_where_there_are_none(actor, pysimt, model_type):
    toy, changes = actor
    changes = [change for change in changes if not change.startswith("model.buffer_size")]
    changes += [f"train.model_type:{model_type}", "model.critic_target:branch"]
    outcome = pysimt("train", "-C", toy.config, *changes)
    assert outcome.status == 2
    assert "there are no branched states to learn from" in outcome.error


def test_an_actor_is_asked_for_if_it_is_missing(toy, pysimt):
    outcome = pysimt("train", "-C", toy.config, *SAC, "train.pretrained_file:nowhere.ckpt")
    assert outcome.status == 2
    assert "pysimt train -C experiments/mle.conf" in outcome.error
    outcome = pysimt("train", "-C", toy.config, *SAC, "train.max_iterations:1")
    assert outcome.status == 0
    assert "Warning: there is no pretrained_file" in outcome.out + outcome.err


def test_only_the_actor_is_shared_and_it_translates(actor):
    toy, changes = actor
    folder = train(toy, "sac", changes, "train.max_epochs:2")
    (checkpoint,) = folder.glob("*.best.bleu.ckpt")
    names = load_checkpoint(checkpoint).weights
    (mle,) = toy.folder.glob("runs/*-mle/*.best.bleu.ckpt")
    assert set(names) == set(load_checkpoint(mle).weights)
    assert main(["translate", "-s", "val", "-o", str(toy.folder / "out/sac"), str(checkpoint)]) == 0


@pytest.mark.parametrize(
    "more", [
        (),
        ("model.alpha:auto", "model.support:0", "model.target_clip:True"),
        ("model.critic_target:mc",),
        ("model.known_reward:True", "model.branch_states:2", "model.kl_weight:0.1", "model.updates_per_batch:2",
         "model.critic_every:2"),
        ("model.branch_states:1", "model.branch_continuation:sample", "model.alpha:auto", "model.critic_target:mc",
         "model.reward:gleu:0.7,bleu:0.3", "model.reward_unit:word", "model.known_reward:True"),
    ]
)  # fmt: skip
def test_a_resumed_run_equals_an_undisturbed_one_with_critics_and_replay(actor, more):
    toy, changes = actor
    whole = train(toy, "whole", changes, "train.max_epochs:3", *more)
    for stop in (2, 7, 1_000_000):
        parts = train(toy, "parts", changes, "train.max_epochs:3", f"train.max_iterations:{stop}", *more)
    (expected, _), (found, _) = load_state(whole), load_state(parts)
    assert equal(expected["model"], found["model"])
    assert equal(expected["weights"], found["weights"])
    assert equal(expected["optimizer"], found["optimizer"])
    replay = expected["model"]["algorithm"]["replay"]
    assert ("branches.returns_MK" in replay["fields"]) == any("branch_states" in change for change in more)


@pytest.mark.parametrize("model_type", ["SACNMT", "SACUnsupNMT"])
def test_killed_again_and_again_it_ends_as_if_undisturbed(actor, model_type):
    toy, changes = actor
    often = [*changes, f"train.model_type:{model_type}", "train.max_epochs:3", "train.checkpoint_freq:2"]
    whole = train(toy, "whole", often)
    words = ["train", "-C", toy.config, "-s", "killed", *often]
    for update in (1, 4, 3, 5):  # counted anew after each death
        assert fork_training(words, partial(die_in_update, update)) == -signal.SIGKILL
    assert fork_training(words) == 0
    (expected, _), (found, _) = load_state(whole), load_state(toy.folder / "runs" / "toy-killed")
    for part in ("model", "weights", "optimizer", "random"):
        assert equal(expected[part], found[part]), part


def test_permuted_rewards_are_another_run(actor):
    toy, changes = actor
    states = [
        load_state(train(toy, name, changes, "train.max_epochs:1", f"model.permute_rewards:{value}"))[0]
        for name, value in (("right", False), ("permuted", True))
    ]
    assert not equal(states[0]["model"]["algorithm"]["critics"], states[1]["model"]["algorithm"]["critics"])


LEARN = {"support": 2, "critic_pretrain_epochs": 1, "critic_pretrain_lr": 0.01, "critic_lr": 0.01, "tau": 0.05}
LEARN |= {"buffer_size": 20, "lambda_mle": 0.1}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("kind", [{}, {"alpha": "auto"}, {"critic_target": "mc"}], ids=["fixed", "auto", "returns"])
def test_the_late_reward_is_found(kind, seed):
    before, _ = task.make_model("SACNMT", seed)
    before.load_state_dict(task.actor(seed))
    assert task.share(before.eval(), "bad") == 1
    assert task.share(task.learn("SACNMT", seed, 100, **LEARN, **kind), "good") == 1


# Critics that start together with the actor: the returns of branches count at once.
BRANCHED = {**LEARN, "critic_pretrain_epochs": 0, "known_reward": True, "branch_states": 2}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_with_branches_and_known_rewards_it_is_found_in_less_than_a_third_of_the_updates(seed):
    assert task.share(task.learn("SACNMT", seed, 30, **BRANCHED), "good") == 1


def test_known_rewards_alone_are_blind_to_what_comes_later():
    blind = {**BRANCHED, "branch_states": 0, "critic_weight": 0.0}
    assert task.share(task.learn("SACNMT", 1, 30, **blind), "bad") == 1


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_without_a_look_ahead_it_is_not(seed):
    assert task.share(task.learn("SACNMT", seed, 100, **LEARN, gamma=0.0), "bad") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("alpha:auto", "reward_scale:1/alpha"), "reward_scale: is not constant with alpha: auto"),
        (("target_clip:True", "critic_target:mc"), "target_clip: only affects bootstrapped targets"),
    ],
)
def test_options_that_cannot_act_together_are_refused(toy, pysimt, words, message):
    outcome = pysimt("train", "-C", toy.config, "train.model_type:SACNMT", *(f"model.{word}" for word in words))
    assert outcome.status == 2
    assert message in outcome.error
