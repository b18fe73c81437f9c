"""Branched SAC: what Q the actor sees and where, who teaches the critics, and how far they are trusted."""

import dataclasses

import pytest
import torch

from pysimt_sac.core.policy import entropy
from pysimt_sac.core.vocabulary import EOS
from pysimt_sac.models import BranchedSAC
from pysimt_sac.rl import losses
from pysimt_sac.rl.branching import policy_at_choices
from tests.hosts.engine.tiny import tiny_batch, tiny_model, tiny_sentences
from tests.rl.tiny import make_setup

AMOUNT, ALPHA = 24, 0.1
OPTIONS: dict[str, object] = {
    "alpha": ALPHA,
    "rollout_max_len": 8,
    "buffer_size": 1,
    "critic_every": 1,
    "known_reward": True,
}
OPTIONS |= {"branch_states": 1, "branch_path": "sample", "lambda_return": 1.0, "lambda_rl": 1.0}
OPTIONS |= {"branch_min_probability": 0.15}  # so that some states leave no choice


@pytest.fixture
def model():
    made = tiny_model(n_words=6, seed=4, out_logic="deep")
    with torch.no_grad():
        made.dec.out2prob.bias[EOS] = 1.0
    return made


def make(model, **options):
    """The algorithm, with random critics."""
    sac = BranchedSAC(make_setup(model, **{**OPTIONS, **options}))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for critic in sac.critics.critics:
            for parameter in critic.parameters():
                parameter.normal_(std=0.4, generator=generator)
    sac.critics.polyak_update(1.0)
    return sac


def batch_of(model):
    return tiny_batch(model, tiny_sentences(AMOUNT, 6, longest=7), tiny_sentences(AMOUNT, 6, seed=1, longest=7))


@pytest.fixture
def experience(model):
    """A branched rollout."""
    sac, kept = make(model), []
    sac.replay.add = kept.append
    sac.replay.sample = lambda: kept[0]
    sac.update(batch_of(model), 1)
    return kept[0]


@pytest.fixture
def update(monkeypatch):
    """One update on a given experience, whatever is rolled out."""

    def run(sac, experience, step=1):
        monkeypatch.setattr("pysimt_sac.models.branched_sac.collect_branched", lambda *_: experience)
        return sac.update(experience.batch, step)

    return run


def weights(sac):
    return [parameter.detach().clone() for critic in sac.critics.critics for parameter in critic.parameters()]


def altered(experience, columns_B):
    """The same with other rewards and returns of some sentences."""
    branches = experience.branches
    states_M1 = columns_B[branches.sentences_M].unsqueeze(1)
    noise_MK = torch.randn(branches.returns_MK.shape, generator=torch.Generator().manual_seed(3))
    changed = branches._replace(returns_MK=torch.where(states_M1, noise_MK, branches.returns_MK))
    potentials_TB = torch.where(columns_B, 0.3 * experience.potentials_TB + 0.1, experience.potentials_TB)
    return dataclasses.replace(experience, branches=changed, potentials_TB=potentials_TB)


def test_critics_never_learn_from_held_out_sentences_and_their_weight_from_no_others(model, experience, update):
    held_out_B = make(model).weight.held_out(experience.source_SB)
    assert 0 < held_out_B.sum() < AMOUNT / 2
    found = {}
    versions = {
        "as is": experience,
        "held out": altered(experience, held_out_B),
        "others": altered(experience, ~held_out_B),
    }
    for name, version in versions.items():
        sac = make(model)
        update(sac, version)
        found[name] = weights(sac), sac.weight.state_dict()
    assert all(map(torch.equal, found["as is"][0], found["held out"][0]))
    assert not torch.equal(found["as is"][1]["covariance"], found["held out"][1]["covariance"])
    assert not any(map(torch.equal, found["as is"][0][:4], found["others"][0][:4]))
    assert found["as is"][1] == found["others"][1]
    assert found["as is"][1]["variance"] > 0
    fixed = []
    for version in (experience, versions["held out"]):  # a given weight lets critics learn from all sentences
        sac = make(model, critic_weight=0.5)
        update(sac, version)
        fixed.append(weights(sac))
    assert not all(map(torch.equal, *fixed))


def test_a_batch_of_held_out_sentences_alone_leaves_the_critics_where_they_are(model, experience, update):
    sac = make(model)
    sac.weight.held_out = lambda source_SB: torch.ones(source_SB.size(1), dtype=torch.bool)
    before = weights(sac)
    loss = update(sac, experience)
    assert all(map(torch.equal, before, weights(sac)))
    assert all(term.isfinite() for term in loss.terms.values())
    assert sac.metrics["critic_loss"] == 0


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("weight", [0.0, 0.4])
def test_q_is_the_reward_plus_the_weighted_future_and_the_return_where_branched(
    model, experience, update, known, weight, monkeypatch
):
    """At all states with a choice, but those where `<eos>` is one of the words and there is no branch."""
    sac, seen, original = make(model, critic_weight=weight, known_reward=known), [], losses.actor_loss
    monkeypatch.setattr(losses, "actor_loss", lambda log_pi, q, alpha: seen.append(q) or original(log_pi, q, alpha))
    update(sac, experience)
    policy, steps, branches = policy_at_choices(experience), experience.steps, experience.branches
    with torch.no_grad():
        future_NA = sac.critics.q_of_actions(sac.critics.readouts(experience), policy.support).amin(0)
    branched = dict(zip(branches.rows_M(steps).tolist(), branches.returns_MK, strict=True))
    expected, left_out = [], 0
    for row, (words, valid) in enumerate(zip(*policy.support, strict=True)):
        if valid.sum() < 2:
            continue
        if row in branched:
            expected.append(branched[row])
        elif EOS in words[valid]:
            left_out += 1
        else:
            reward_K = experience.choices.rewards_TBK[steps.times_N[row], steps.sentences_N[row]]
            expected.append((reward_K if known else 0.0) + weight * future_NA[row])
    assert left_out > 0
    assert len(steps) > len(expected) > len(branched) > 0
    torch.testing.assert_close(seen, [torch.stack(expected).unsqueeze(0)])


@pytest.mark.parametrize(("known", "lambda_return"), [(True, 1.0), (False, 1.0), (True, 0.0)])
def test_the_critics_learn_the_future_or_all_of_the_return(model, experience, update, known, lambda_return):
    """Both losses by hand: of taken words, and of the order of words within branched states."""
    w = 0.3
    sac = make(model, critic_weight=w, known_reward=known, lambda_return=lambda_return)
    policy, steps, branches = policy_at_choices(experience), experience.steps, experience.branches
    with torch.no_grad():
        readouts = sac.critics.readouts(experience)
        taken_IN = sac.critics.q_of_taken(readouts, policy.taken_N)
        tokens_IMK = sac.critics.q_of_words(readouts, branches.rows_M(steps), branches.tokens_MK)
        future_NA = sac.critics.q_of_actions(sac.critics.readouts(experience, True), policy.support, True).amin(0)
    entropy_TB, pi_NA = steps.pad(entropy(policy.log_pi_NA)), policy.log_pi_NA.exp()
    reward_NA = steps.flatten(experience.choices.rewards_TBK)
    values_TB = steps.pad((pi_NA * (reward_NA + w * future_NA - ALPHA * policy.log_pi_NA)).sum(1))
    returns_TB = experience.rewards_TB.clone()
    for time in reversed(range(len(returns_TB) - 1)):
        following_B = returns_TB[time + 1] + ALPHA * entropy_TB[time + 1] if lambda_return else values_TB[time + 1]
        returns_TB[time] += following_B
    known_N = steps.flatten(experience.rewards_TB) if known else torch.zeros(len(steps))
    expected = sum((taken_N + known_N - steps.flatten(returns_TB)).square().mean() for taken_N in taken_IN)
    for critic in range(2):
        for state, valid_K in enumerate(branches.valid_MK):
            future_K = branches.returns_MK[state] - (branches.rewards_MK[state] if known else 0.0)
            error_K = tokens_IMK[critic, state][valid_K] - future_K[valid_K]
            expected += (error_K - error_K.mean()).square().sum() / len(branches.times_M)
    update(sac, experience)
    torch.testing.assert_close(sac.metrics["critic_loss"], expected)


@pytest.mark.parametrize(("lambda_return", "is_current"), [(1.0, False), (0.5, True)])
def test_bootstrapping_needs_the_current_policy(model, experience, lambda_return, is_current):
    """Not the one that has collected the experience, whose log pi is kept with it."""
    sac, kept = make(model, lambda_return=lambda_return), policy_at_choices(experience)
    with torch.no_grad():
        model.dec.out2prob.weight.mul_(3.0)  # sharper than it was
        states = experience.tokens_TB, kept.steps.positions_N, kept.support
        now_NA = sac.actor.policy_on(sac.actor.encode(experience.batch), *states)
    assert not torch.allclose(now_NA, kept.log_pi_NA)
    sac.update_critics(experience, joint=True)
    expected = entropy(now_NA if is_current else kept.log_pi_NA).mean()
    assert float(sac.metrics["entropy"]) == pytest.approx(float(expected))


def test_the_actor_learns_from_the_newest_batch_and_the_critics_from_stored_ones(model, experience):
    sac, learned = make(model), []
    sac.replay.add(experience)
    sac.replay.add = lambda _: None
    original = sac.update_critics
    sac.update_critics = lambda found, joint: learned.append(found) or original(found, joint)
    batch = tiny_batch(model, tiny_sentences(2, 6, seed=8), tiny_sentences(2, 6, seed=9))
    loss = sac.update(batch, 1)
    assert torch.equal(learned[0].tokens_TB, experience.tokens_TB)
    assert loss.n_items == len(sac.collector.last.steps) < len(experience.steps)


def test_beside_the_actor_the_critics_learn_in_one_of_so_many_updates(model):
    sac, batch, learned = make(model, critic_pretrain_updates=3, critic_every=3), batch_of(model), []
    for step in range(1, 10):
        before = weights(sac)
        loss = sac.update(batch, step)
        learned.append(not all(map(torch.equal, before, weights(sac))))
        assert bool(loss.terms) == (step > 3)
    assert learned == [True] * 3 + [False, False, True] * 2


def test_without_a_choice_anywhere_the_actor_has_no_gradient_of_rewards(model):
    loss = make(model, branch_min_probability=0.99).update(batch_of(model), 1)
    gradients = torch.autograd.grad(loss.terms["rl"], [*model.parameters()], allow_unused=True)
    assert loss.terms["rl"].isfinite()
    assert all(gradient is None or gradient.abs().max() < 1e-6 for gradient in gradients)
