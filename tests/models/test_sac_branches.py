"""Soft Actor-Critic with known rewards and branches: what Q the actor sees, who teaches the critics, what holds it."""

import dataclasses

import pytest
import torch

from pysimt_sac.core.policy import entropy
from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import EOS
from pysimt_sac.models import SAC
from pysimt_sac.rl import losses
from pysimt_sac.rl.branching import policy_at_choices
from tests.hosts.engine.tiny import tiny_batch, tiny_model, tiny_sentences
from tests.models import task
from tests.models.runs import points, train, train_actor
from tests.rl.tiny import make_setup

AMOUNT = 24
OPTIONS = {"alpha": 0.1, "rollout_max_len": 8, "buffer_size": 1, "critic_pretrain_epochs": 0, "gate_sentences": 0}
OPTIONS |= {"critic_init": "random", "known_reward": True, "branch_states": 2, "branch_path": "sample", "tau": 0.25}
OPTIONS |= {"branch_min_probability": 0.15}  # so that some states leave no choice


@pytest.fixture
def model():
    made = tiny_model(n_words=6, seed=4, out_logic="deep")
    with torch.no_grad():
        made.dec.out2prob.bias[EOS] = 1.0
    return made


def make(model, seed=0, **options):
    """The algorithm, with random critics."""
    sac = SAC(make_setup(model, **{**OPTIONS, **options}))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in sac.critics.parameters:
            parameter.normal_(std=0.4, generator=generator)
    sac.critics.polyak_update(1.0)
    return sac


def batch_of(model):
    return tiny_batch(model, tiny_sentences(AMOUNT, 6, longest=7), tiny_sentences(AMOUNT, 6, seed=1, longest=7))


def collect(model):
    """An experience with branches, of which some sentences are held out."""
    sac, kept = make(model), []
    sac.replay.add = kept.append
    sac.replay.sample = lambda: kept[-1]
    sac.update(batch_of(model), 1, 1)
    return kept[0]


def update(sac, experience, monkeypatch):
    """One update on this experience, whatever is rolled out."""
    monkeypatch.setattr("pysimt_sac.models.sac.collect_experience", lambda *_: experience)
    return sac.update(experience.batch("src", "trg"), update=1, epoch=1)


def weights(sac):
    return [parameter.detach().clone() for parameter in sac.critics.parameters]


def altered(experience, columns_B):
    """The same with other rewards and returns of some sentences."""
    branches = experience.branches
    states_M1 = columns_B[branches.sentences_M].unsqueeze(1)
    noise_MK = torch.randn(branches.returns_MK.shape, generator=torch.Generator().manual_seed(3))
    changed = branches._replace(returns_MK=torch.where(states_M1, noise_MK, branches.returns_MK))
    potentials_TB = torch.where(columns_B, 0.3 * experience.potentials_TB + 0.1, experience.potentials_TB)
    return dataclasses.replace(experience, branches=changed, potentials_TB=potentials_TB)


# Held-out sentences


def test_critics_never_learn_from_held_out_sentences_and_their_weight_from_no_others(model, monkeypatch):
    experience = collect(model)
    held_out_B = make(model).future_weight.held_out(experience.source_SB)
    assert 0 < held_out_B.sum() < AMOUNT / 2
    found = {}
    versions = {
        "as is": experience,
        "held out": altered(experience, held_out_B),
        "others": altered(experience, ~held_out_B),
    }
    for name, version in versions.items():
        sac = make(model)
        update(sac, version, monkeypatch)
        found[name] = weights(sac), sac.future_weight.state_dict()
    assert all(map(torch.equal, found["as is"][0], found["held out"][0]))
    assert not torch.equal(found["as is"][1]["covariance"], found["held out"][1]["covariance"])
    assert not any(map(torch.equal, found["as is"][0][:4], found["others"][0][:4]))
    assert found["as is"][1] == found["others"][1]
    assert found["as is"][1]["variance"] > 0


def test_a_batch_of_held_out_sentences_alone_leaves_the_critics_where_they_are(model, monkeypatch):
    experience, sac = collect(model), make(model)
    sac.future_weight.held_out = lambda source_SB: torch.ones(source_SB.size(1), dtype=torch.bool)
    before = weights(sac)
    loss = update(sac, experience, monkeypatch)
    assert all(map(torch.equal, before, weights(sac)))
    assert all(term.isfinite() for term in loss.terms.values())
    assert sac.metrics["critic_loss"] == 0


def test_a_given_weight_lets_them_learn_from_all(model, monkeypatch):
    experience = collect(model)
    held_out_B = make(model).future_weight.held_out(experience.source_SB)
    found = []
    for version in (experience, altered(experience, held_out_B)):
        sac = make(model, critic_weight=0.5)
        update(sac, version, monkeypatch)
        found.append(weights(sac))
    assert not all(map(torch.equal, *found))


# Q


def q_of_actor(sac, experience, monkeypatch):
    """The Q that the actor's loss sees, at the states that it sees; and the critics' f before their step."""
    seen, original = [], losses.actor_loss
    policy = policy_at_choices(experience)
    with torch.no_grad():
        future_INA = sac.critics.q_of_actions(sac.critics.readouts(experience, policy.steps), policy.support)
    monkeypatch.setattr(losses, "actor_loss", lambda log_pi, q, alpha: seen.append(q) or original(log_pi, q, alpha))
    update(sac, experience, monkeypatch)
    monkeypatch.setattr(losses, "actor_loss", original)
    rows_N, _ = policy.states(undecided=True)
    return seen[0], future_INA, rows_N


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("weight", [0.0, 0.4, 1.0])
def test_q_is_the_reward_plus_the_weighed_future_and_the_return_where_branched(model, monkeypatch, known, weight):
    experience, sac = collect(model), make(model, critic_weight=weight, known_reward=known)
    found_INA, future_INA, rows_N = q_of_actor(sac, experience, monkeypatch)
    steps, branches = Steps.of(experience.lengths_B), experience.branches
    assert 0 < len(rows_N) < len(steps)
    branched = dict(zip(branches.rows_M(steps).tolist(), range(len(branches.times_M)), strict=True))
    n_branched = 0
    for place, row in enumerate(rows_N.tolist()):
        time, sentence = int(steps.times_N[row]), int(steps.sentences_N[row])
        if row in branched:
            expected_IK = branches.returns_MK[branched[row]].expand(2, -1)
            n_branched += 1
        else:
            reward_K = experience.choices.rewards_TBK[time, sentence]
            expected_IK = (reward_K if known else 0.0) + weight * future_INA[:, row]
        torch.testing.assert_close(found_INA[:, place], expected_IK)
    assert n_branched == len(branched) > 0
    assert n_branched < len(rows_N)


@pytest.mark.parametrize(("known", "target"), [(True, "mc"), (False, "mc"), (True, "branch")])
def test_the_critics_learn_the_future_or_all_of_the_return(model, monkeypatch, known, target):
    """Both losses by hand: of taken words, and of the order of words within branched states."""
    experience, sac = collect(model), make(model, critic_weight=1.0, known_reward=known, critic_target=target)
    policy, branches = policy_at_choices(experience), experience.branches
    with torch.no_grad():
        readouts = sac.critics.readouts(experience, policy.steps)
        taken_IN = sac.critics.q_of_taken(readouts, policy.taken_N)
        tokens_IMK = sac.critics.q_of_words(readouts, branches.rows_M(policy.steps), branches.tokens_MK)
    rewards_N = policy.steps.flatten(experience.rewards_TB)
    entropies_N = -(policy.log_pi_NA.exp() * policy.log_pi_NA).sum(1)
    returns_N = losses.soft_returns(rewards_N, entropies_N, policy.steps, gamma=1.0, alpha=0.1)
    known_N = rewards_N if known else torch.zeros_like(rewards_N)
    learns = branches.rows_M(policy.steps) if target == "branch" else slice(None)
    expected = sum((taken_N + known_N - returns_N)[learns].square().mean() for taken_N in taken_IN)
    for critic in range(2):
        for state, valid_K in enumerate(branches.valid_MK):
            future_K = branches.returns_MK[state] - (branches.rewards_MK[state] if known else 0.0)
            error_K = tokens_IMK[critic, state][valid_K] - future_K[valid_K]
            expected += (error_K - error_K.mean()).square().sum() / len(branches.times_M)
    update(sac, experience, monkeypatch)
    torch.testing.assert_close(sac.metrics["critic_loss"], expected)


@pytest.mark.parametrize(
    ("options", "is_current"),
    [
        ({"critic_target": "mc"}, False),
        ({"critic_target": "td"}, True),
        ({"critic_target": "mc", "alpha": "auto"}, True),
    ],
)
def test_bootstrapping_and_a_learned_temperature_see_the_policy_of_today(model, monkeypatch, options, is_current):
    """Not the one that has collected the experience, whose log pi is kept with it."""
    experience, sac = collect(model), make(model, **options)
    with torch.no_grad():
        model.dec.out2prob.weight.mul_(3.0)  # sharper than it was
    kept = policy_at_choices(experience)
    batch = experience.batch("src", "trg")
    with torch.no_grad(), sac.actor.training_mode(dropout=False):
        states = experience.tokens_TB, kept.steps.positions_N, kept.support
        now_NA = sac.actor.policy_on(sac.actor.encode(batch), *states)
    expected_NA = now_NA if is_current else kept.log_pi_NA
    assert not torch.allclose(now_NA, kept.log_pi_NA)
    update(sac, experience, monkeypatch)
    assert float(sac.metrics["entropy"]) == pytest.approx(float(entropy(expected_NA).mean()))


def test_bootstrapped_targets_have_the_known_reward_of_the_next_state(model, monkeypatch):
    experience, sac = collect(model), make(model, critic_weight=0.3)
    policy = policy_at_choices(experience)
    with torch.no_grad():
        readouts = sac.critics.readouts(experience, policy.steps, target=True)
        future_NA = sac.critics.q_of_actions(readouts, policy.support, target=True).amin(0)
    values_N = (policy.log_pi_NA.exp() * (
        policy.steps.flatten(experience.choices.rewards_TBK) + future_NA - 0.1 * policy.log_pi_NA
    )).sum(1)  # fmt: skip
    values_TB, rewards_TB = policy.steps.pad(values_N), experience.rewards_TB
    following_TB = torch.cat((values_TB[1:], torch.zeros_like(values_TB[:1])))
    expected_N = policy.steps.flatten(rewards_TB + following_TB)
    targets, original = [], losses.critic_loss
    monkeypatch.setattr(losses, "critic_loss", lambda q, target: targets.append(target) or original(q, target))
    update(sac, experience, monkeypatch)
    torch.testing.assert_close(targets[0], expected_N)


def test_without_a_choice_anywhere_the_actor_has_no_gradient_of_rewards(model):
    sac = make(model, branch_min_probability=0.99, gradient_dropout=False)
    loss = sac.update(batch_of(model), 1, 1)
    gradients = torch.autograd.grad(loss.terms["rl"], [*model.parameters()], allow_unused=True)
    assert loss.terms["rl"].isfinite()
    assert all(gradient is None or gradient.abs().max() < 1e-6 for gradient in gradients)


# What holds the actor


@torch.no_grad()
def divergence(model, seed):
    """KL from the pre-trained policy over the first words of all sources."""
    start, _ = task.make_model("SACNMT", seed)
    start.load_state_dict(task.actor(seed))
    policies = []
    for each in (model, start.eval()):
        sources = tiny_batch(each, task.SOURCES, ["bad0"] * len(task.SOURCES))
        stepper = each.stepper(each.encode(sources))
        policies.append(stepper.log_probs(torch.ones(len(task.SOURCES), 1, dtype=torch.long)).squeeze(1)[:, EOS:])
    return float(losses.kl_divergence(*policies))


def test_the_divergence_from_the_pre_trained_actor_is_kept_small():
    settings = {"critic_pretrain_epochs": 0, "known_reward": True, "branch_states": 2, "branch_path": "sample"}
    free, held = (
        divergence(task.learn("SACNMT", 1, 30, **settings, critic_lr=0.01, kl_weight=weight), 1)
        for weight in (0.0, 5.0)
    )
    assert free > 0.5
    assert held < 0.2 * free


def test_it_is_measured_from_the_actor_that_training_began_with_resumed_or_not(toy):
    changes = ["train.model_type:SACNMT", "train.batch_size:40", "model.health_freq:1", "model.rollout_max_len:8"]
    changes += ["model.critic_pretrain_epochs:0", "model.gate_sentences:0", "model.kl_weight:1"]
    changes += ["model.gradient_dropout:False", "train.lr:0.01", train_actor(toy)]
    for stop in (1, 4):
        folder = train(toy, "sac", changes, f"train.max_iterations:{stop}")
    norms = points(folder, "rl_gradient_kl")
    assert norms[1] < 1e-5  # at the actor itself; it is far from random weights, or from what it is later
    assert min(norms[update] for update in (2, 3, 4)) > 1e-2
    divergences = points(folder, "rl_kl")
    assert abs(divergences[1]) < 1e-6 < 1e-4 < min(divergences[update] for update in (2, 3, 4))
