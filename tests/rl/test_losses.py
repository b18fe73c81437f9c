"""Every equation on three actions by hand; and where gradients go, and where they do not."""

import math

import pytest
import torch

from pysimt_sac.core.policy import Support, find_support, full_policy, restricted_policy
from pysimt_sac.core.steps import Steps
from pysimt_sac.rl import losses

LOG = math.log
PI = torch.tensor([[0.5, 0.25, 0.25], [0.8, 0.1, 0.1]])
LOG_PI = PI.log()
Q = torch.tensor([[[1.0, 2.0, 4.0], [0.0, 1.0, 0.0]], [[3.0, 1.0, 2.0], [1.0, 0.0, 0.0]]])  # two critics, two steps
ALPHA = 0.1
H0 = 0.5 * LOG(2) + 0.5 * LOG(4)
H1 = -(0.8 * LOG(0.8) + 0.2 * LOG(0.1))


def test_a_support_of_all_words_is_the_whole_policy():
    log_p = torch.randn(6, 9, generator=torch.Generator().manual_seed(0)).log_softmax(-1)
    q = torch.randn(2, 6, 9, generator=torch.Generator().manual_seed(1))
    support = find_support(log_p, torch.tensor([2, 3, 4, 5, 6, 7]), k=50)
    q_support = q.gather(2, support.tokens_NK.expand(2, -1, -1))
    for equation in (losses.actor_loss, lambda log_pi, q, alpha: losses.soft_value(q, log_pi, alpha)):
        whole = equation(full_policy(log_p), q, ALPHA)
        torch.testing.assert_close(equation(restricted_policy(log_p, support), q_support, ALPHA), whole)


def test_soft_value():
    # the smaller of the two critics: 1, 1, 2 and 0, 0, 0
    expected = [0.5 * 1 + 0.25 * 1 + 0.25 * 2 + ALPHA * H0, ALPHA * H1]
    assert losses.soft_value(Q, LOG_PI, ALPHA).tolist() == pytest.approx(expected)


def test_expectations_are_sums_not_means_over_the_vocabulary():
    many = torch.full((1, 1000), 1 / 1000).log()
    assert losses.soft_value(torch.ones(2, 1, 1000), many, 0.0).item() == pytest.approx(1.0, abs=1e-4)


# <bos> a <eos> and <bos> a b: one has ended and one was cut off; both have two steps. A third has one step.
STEPS = Steps.of(torch.tensor([3, 3, 2]))
REWARDS = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])  # first steps of the three, second steps of two
VALUES = torch.tensor([99.0, 99.0, 99.0, 7.0, 8.0])  # a first step's own value and entropy are in no return
ENTROPIES = torch.tensor([9.0, 9.0, 9.0, 0.5, 1.0])


@pytest.mark.parametrize(
    ("lambda_return", "after"),
    [
        (0.0, [7, 8]),  # the soft Bellman backup
        (1.0, [4 + 0.05, 5 + 0.1]),  # the Monte Carlo return and its entropy
        (0.25, [0.75 * 7 + 0.25 * 4.05, 0.75 * 8 + 0.25 * 5.1]),
    ],
)
def test_lambda_returns_by_hand(lambda_return, after):
    found = losses.lambda_returns(REWARDS, VALUES, ENTROPIES, STEPS, 0.5, ALPHA, lambda_return)
    assert found.tolist() == pytest.approx([1 + 0.5 * after[0], 2 + 0.5 * after[1], 3, 4, 5])


@pytest.mark.parametrize("lambda_return", [0.0, 0.3, 1.0])
def test_all_lambda_returns_agree_if_the_values_are_those_of_the_path(lambda_return):
    steps = Steps.of(torch.tensor([5, 3, 2, 4]))
    rewards, entropies = torch.rand(2, len(steps), generator=torch.Generator().manual_seed(0)).unbind()
    returns = losses.lambda_returns(rewards, torch.zeros_like(rewards), entropies, steps, 0.9, ALPHA, 1.0)
    # on one sampled path, V(s) is the return from s and the entropy at s
    found = losses.lambda_returns(rewards, returns + ALPHA * entropies, entropies, steps, 0.9, ALPHA, lambda_return)
    torch.testing.assert_close(found, returns)


def test_soft_bellman_backups_converge_to_the_exact_soft_values_of_a_chain():
    """Three states in a row, two words in each: the second ends the hypothesis, as does the last state."""
    policy = torch.tensor([[0.7, 0.3], [0.4, 0.6], [0.5, 0.5]], dtype=torch.float64)
    rewards = torch.tensor([[0.1, 1.0], [-0.2, 0.5], [2.0, 0.3]], dtype=torch.float64)
    exact = torch.zeros(3, 2, dtype=torch.float64)
    value = torch.tensor(0.0, dtype=torch.float64)
    for state in (2, 1, 0):  # backwards: Q(s, a) = r + gamma V(s'), V(s) = sum_a pi(a) [Q - alpha log pi(a)]
        exact[state] = rewards[state] + 0.9 * torch.stack((value, torch.zeros_like(value)))
        value = (policy[state] * (exact[state] - ALPHA * policy[state].log())).sum()
    # all paths: word 0 until some state, then word 1; or word 0 throughout
    paths = [[1], [0, 1], [0, 0, 1], [0, 0, 0]]
    steps = Steps.of(torch.tensor([len(path) + 1 for path in paths]))
    states, taken = (torch.zeros(len(steps), dtype=torch.long) for _ in range(2))
    for row, (time, sentence) in enumerate(zip(steps.times_N.tolist(), steps.sentences_N.tolist(), strict=True)):
        states[row], taken[row] = time, paths[sentence][time]
    q = torch.zeros(3, 2, dtype=torch.float64)
    for _ in range(4):
        values = losses.soft_value(q[states].unsqueeze(0), policy.log()[states], ALPHA)
        soft = torch.zeros_like(values), steps, 0.9, ALPHA
        targets = losses.lambda_returns(rewards[states, taken], values, *soft, lambda_return=0.0)
        q = q.index_put((states, taken), targets)
    torch.testing.assert_close(q, exact, rtol=0, atol=1e-5)


def test_without_discount_and_entropy_the_return_is_what_is_left_of_the_score():
    steps = Steps.of(torch.tensor([4, 3]))
    potentials_TB = torch.tensor([[0.1, 0.5], [0.4, 0.2], [0.3, 0.2]])
    before_TB = torch.cat((torch.zeros(1, 2), potentials_TB[:-1]))
    rewards = steps.flatten(potentials_TB - before_TB)
    zeros = torch.zeros_like(rewards)
    found = losses.lambda_returns(rewards, zeros, zeros, steps, 1.0, ALPHA, lambda_return=1.0)
    torch.testing.assert_close(found, steps.flatten(potentials_TB[-1] - before_TB))


# Two branched states: of the second, the third word is none. Two critics.
VALID = torch.tensor([[True, True, True], [True, True, False]])
FUTURE = torch.tensor([[1.0, 2.0, 6.0], [4.0, 2.0, 9.0]])
PREDICTED = torch.tensor([[[0.0, 3.0, 3.0], [5.0, 3.0, 7.0]], [[1.0, 1.0, 1.0], [1.0, 5.0, 7.0]]])


def test_centred_values():
    assert losses.centred(FUTURE, VALID).tolist() == [[-2, -1, 3], [1, -1, 0]]
    assert losses.centred(PREDICTED, VALID)[0].tolist() == [[-2, 1, 1], [1, -1, 0]]
    assert losses.centred(torch.tensor([[3.0, 4.0]]), torch.tensor([[False, False]])).tolist() == [[0, 0]]


def test_within_state_loss_by_hand():
    # errors: 0 2 -2 | 0 0, and 2 1 -3 | -3 3
    assert losses.within_state_loss(PREDICTED, FUTURE, VALID).item() == pytest.approx((8 + 14 + 18) / 2)
    shifted = PREDICTED + torch.tensor([[[7.0], [-3.0]]])  # V(s) is not its concern
    torch.testing.assert_close(losses.within_state_loss(shifted, FUTURE, VALID), torch.tensor(20.0))
    nothing = torch.zeros(2, 0, 3), torch.zeros(0, 3), torch.zeros(0, 3, dtype=torch.bool)
    assert losses.within_state_loss(*nothing).item() == 0


def test_critic_loss_is_the_sum_of_the_critics_mean_squared_errors():
    q = torch.tensor([[1.0, 2.0], [0.0, 5.0]])
    assert losses.critic_loss(q, torch.tensor([1.0, 4.0])).item() == pytest.approx(4 / 2 + (1 + 1) / 2)


def test_critic_loss_without_steps_moves_nothing():
    q = torch.zeros(2, 0, requires_grad=True)
    loss = losses.critic_loss(q, torch.zeros(0))
    loss.backward()
    assert loss.item() == 0


def test_penalties_on_the_spread_of_q():
    q = torch.tensor([[1.0, 2.0, 6.0], [0.0, 0.0, 0.0]])  # mean 3: 4 + 1 + 9 = 14
    assert losses.spread_penalty(q).item() == pytest.approx(14 / 2)
    assert losses.variance_penalty(q).item() == pytest.approx(14 / 3 / 2)


def test_penalties_on_the_spread_of_q_count_each_word_of_a_support_once():
    words = torch.tensor([[4, 5, 6, 5], [4, 5, 6, 7]])  # the first state's last place repeats a word
    support = Support(words, torch.tensor([[True, True, True, False], [True, True, False, False]]))
    q = torch.tensor([[1.0, 2.0, 6.0, 2.0], [1.0, 3.0, 50.0, 70.0]])  # 14 over 3 words; 1 + 1 = 2 over 2
    assert losses.spread_penalty(q, support).item() == pytest.approx((14 + 2) / 2)
    assert losses.variance_penalty(q, support).item() == pytest.approx((14 / 3 + 2 / 2) / 2)


def test_actor_loss():
    first = 0.5 * (ALPHA * LOG(0.5) - 1) + 0.25 * (ALPHA * LOG(0.25) - 1) + 0.25 * (ALPHA * LOG(0.25) - 2)
    assert losses.actor_loss(LOG_PI, Q, ALPHA).item() == pytest.approx((first - ALPHA * H1) / 2)


def test_all_action_loss_and_its_gradient_by_hand():
    q = torch.tensor([[1.0, 2.0, 4.0], [0.0, 1.0, 0.0]])
    logits = LOG_PI.clone().requires_grad_()
    loss = losses.all_action_loss(logits.log_softmax(-1), q)
    assert loss.item() == pytest.approx(0, abs=1e-6)  # sum_a pi (Q - V) is 0; what counts is the gradient
    (gradient,) = torch.autograd.grad(loss, logits)
    # d/dlogit_a of - sum_b pi_b Q_b is - pi_a (Q_a - V); V is 0.5 + 0.5 + 1 and 0.1, the mean is over two states
    advantages = torch.tensor([[-1.0, 0.0, 2.0], [-0.1, 0.9, -0.1]])
    torch.testing.assert_close(gradient, -PI * advantages / 2)
    nothing = torch.zeros(0, 3)
    assert losses.all_action_loss(nothing.requires_grad_(), nothing).item() == 0


def test_kl_divergence_by_hand():
    uniform = torch.full((2, 3), 1 / 3).log()
    expected = ((LOG(3) - H0) + (LOG(3) - H1)) / 2
    assert losses.kl_divergence(LOG_PI, uniform).item() == pytest.approx(expected, rel=1e-5)
    assert losses.kl_divergence(LOG_PI, LOG_PI).item() == pytest.approx(0, abs=1e-7)
    policy, other = LOG_PI.clone().requires_grad_(), uniform.clone().requires_grad_()
    losses.kl_divergence(policy.log_softmax(-1), other).backward()
    assert policy.grad.abs().max() > 0
    assert other.grad is None


def test_the_likelihood_at_sampled_states_by_hand():
    log_p = LOG_PI.clone().requires_grad_()
    loss = losses.reference_loss(log_p, torch.tensor([2, 1]), torch.tensor([True, False]))
    assert loss.item() == pytest.approx(-LOG_PI[0, 2].item() / 2)
    loss.backward()
    assert log_p.grad.tolist() == [[0, 0, -0.5], [0, 0, 0]]
    behind_the_reference = losses.reference_loss(log_p, torch.tensor([0, 0]), torch.tensor([True, True]))
    assert behind_the_reference.item() == 0


def test_the_actors_optimum_is_the_boltzmann_policy():
    q = torch.tensor([[[1.0, 0.5, 0.2]]])
    logits = torch.zeros(1, 3, requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=0.05)
    for _ in range(400):
        optimizer.zero_grad()
        losses.actor_loss(logits.log_softmax(-1), q, 0.5).backward()
        optimizer.step()
    torch.testing.assert_close(logits.softmax(-1), (q[0] / 0.5).softmax(-1), atol=1e-3, rtol=0)


def test_temperature_loss_and_its_direction():
    alpha = torch.tensor(ALPHA, requires_grad=True)
    loss = losses.temperature_loss(alpha, LOG_PI, target_entropy=1.0)
    assert loss.item() == pytest.approx(ALPHA * ((H0 - 1) + (H1 - 1)) / 2)
    (gradient,) = torch.autograd.grad(loss, alpha)
    assert gradient.item() == pytest.approx((H0 + H1) / 2 - 1)  # entropy below the aim: alpha rises


# Whole translations: three sentences of two, two and one steps (see STEPS), or three candidates


def test_leave_one_out_is_the_mean_of_the_others():
    found = losses.leave_one_out(torch.tensor([[1.0, 2.0, 6.0], [0.0, 0.0, 3.0]]))
    assert found.tolist() == [[4, 3.5, 1.5], [1.5, 1.5, 0]]
    assert losses.leave_one_out(torch.tensor([[7.0], [8.0]])).tolist() == [[0], [0]]


def test_baseline_loss():
    assert losses.baseline_loss(torch.tensor([1.0, 2.0]), torch.tensor([2.0, 5.0])).item() == (1 + 9) / 2


def test_reinforce_loss_and_its_gradient_by_hand():
    logits = leaf(LOG_PI)
    log_pi = logits.log_softmax(-1)[[0, 1], [2, 0]]  # the third action, then the first
    advantages = leaf(torch.tensor([2.0, -1.0]))
    loss = losses.reinforce_loss(log_pi, advantages, n_items=4)
    assert loss.item() == pytest.approx(-(2 * LOG(0.25) - LOG(0.8)) / 4)
    loss.backward()
    # d log pi(a) / d logits = 1[a] - pi
    assert logits.grad[0].tolist() == pytest.approx([2 * 0.5 / 4, 2 * 0.25 / 4, -2 * 0.75 / 4])
    assert logits.grad[1].tolist() == pytest.approx([0.2 / 4, -0.1 / 4, -0.1 / 4])
    assert advantages.grad is None


def test_mixer_learns_by_likelihood_before_the_border_and_by_reward_behind_it():
    log_p, log_pi = torch.tensor([0.5, 0.4, 0.2]).log(), torch.tensor([0.6, 0.5, 0.25]).log()
    sampled = torch.tensor([False, True, True])
    cross_entropy, reinforcement = losses.mixer_losses(log_p, log_pi, torch.tensor([9.0, 2.0, -1.0]), sampled, 3)
    assert cross_entropy.item() == pytest.approx(LOG(2) / 3)
    assert reinforcement.item() == pytest.approx(-(2 * LOG(0.5) - LOG(0.25)) / 3, abs=1e-7)


def test_risk_by_hand():
    # sentence 0 has candidates of probability 0.25 and 0.04, to the power 1/2: 0.5 and 0.2; sentence 1 has one
    log_pi = leaf(torch.tensor([0.25, 0.5, 0.04]).log())
    returns, sentences = torch.tensor([1.0, 3.0, 2.0]), torch.tensor([0, 1, 0])
    loss = losses.risk_loss(log_pi, returns, sentences, n_sentences=2, sharpness=0.5)
    expected = (0.5 * 1 + 0.2 * 2) / 0.7
    assert loss.item() == pytest.approx(-(expected + 3) / 2)
    loss.backward()
    # d/d log p(y) = sharpness Q(y) (expected R - R(y)), over two sentences
    wanted = [0.5 * 5 / 7 * (expected - 1) / 2, 0, 0.5 * 2 / 7 * (expected - 2) / 2]
    assert log_pi.grad.tolist() == pytest.approx(wanted, abs=1e-7)


def test_risk_of_improbable_candidates_is_finite():
    log_pi = leaf(torch.tensor([-1e6, -2e6]))
    losses.risk_loss(log_pi, torch.tensor([1.0, 0.0]), torch.tensor([0, 0]), 1, 0.005).backward()
    assert log_pi.grad.isfinite().all()


def test_explained_variance():
    realised = torch.tensor([1.0, 2.0, 3.0])
    assert losses.explained_variance(realised + 5, realised).item() == pytest.approx(1)
    assert losses.explained_variance(torch.full((3,), 2.0), realised).item() == pytest.approx(0)
    assert losses.explained_variance(-realised, realised).item() == pytest.approx(-3)
    assert losses.explained_variance(realised, torch.ones(3)).isnan()


def test_ranking_accuracy():
    realised = torch.tensor([[1.0, 2.0, 3.0], [1.0, 1.0, 2.0]])  # five pairs differ
    assert losses.ranking_accuracy(realised * 2 - 7, realised).item() == 1
    assert losses.ranking_accuracy(-realised, realised).item() == 0
    predicted = torch.tensor([[1.0, 3.0, 2.0], [1.0, 9.0, 1.0]])  # right: 1-2, 1-3; half: 4-6
    assert losses.ranking_accuracy(predicted, realised).item() == pytest.approx(2.5 / 5)


# Gradients


def leaf(values):
    return values.clone().requires_grad_()


def test_the_critics_loss_moves_the_critics_alone():
    q, target = leaf(torch.tensor([[1.0, 2.0]])), leaf(torch.tensor([0.0, 0.0]))
    losses.critic_loss(q, target).backward()
    assert q.grad.tolist() == [[1, 2]]
    assert target.grad is None


def test_the_actors_loss_moves_the_actor_alone():
    logits, q = leaf(LOG_PI), leaf(Q)
    losses.actor_loss(logits.log_softmax(-1), q, ALPHA).backward()
    assert q.grad is None
    # d/dx_b of sum_a pi [alpha log pi - q] = pi_b (f_b - mean f) with f = alpha log pi - q, over two steps
    f = ALPHA * LOG_PI - Q.amin(0)
    expected = PI * (f - (PI * f).sum(-1, keepdim=True)) / 2
    torch.testing.assert_close(logits.grad, expected)


def test_the_temperatures_loss_moves_the_temperature_alone():
    log_pi, alpha = leaf(LOG_PI), leaf(torch.tensor(ALPHA))
    losses.temperature_loss(alpha, log_pi, 1.0).backward()
    assert alpha.grad is not None
    assert log_pi.grad is None


def test_words_outside_the_support_get_no_gradient_and_no_gradient_is_nan():
    logits = leaf(torch.tensor([[5.0, 4.0, 1.0, 2.0, 3.0, 0.5], [5.0, 4.0, 1.0, 2.0, 3.0, 0.5]]))
    log_p = logits.log_softmax(-1)
    support = find_support(log_p, torch.tensor([5, 4]), k=2)  # words 4, 3, 5; then 4, 3
    q = torch.tensor([1.0, 0.0, 2.0]).expand(2, 2, 3)
    losses.actor_loss(restricted_policy(log_p, support), q, ALPHA).backward()
    torch.testing.assert_close(logits.grad[:, :3], torch.zeros(2, 3))
    assert logits.grad[0, 3:].abs().min() > 0
    assert logits.grad[1, 5] == 0  # valid only where it was taken
    whole = leaf(logits.detach())
    losses.actor_loss(full_policy(whole.log_softmax(-1)), torch.zeros(2, 2, 6), ALPHA).backward()
    assert whole.grad.isfinite().all()
    assert whole.grad[:, :2].abs().max() < 1e-6
