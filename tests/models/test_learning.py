"""Every algorithm learns the task of `task.py` with its own update and networks, if it looks ahead."""

import pytest

from tests.models import task

REINFORCE, MIXER, MRT, VINE = "REINFORCENMT", "MIXERNMT", "MRTNMT", "VineNMT"
AC, ERAC, SAC, BRANCHED = "ACNMT", "ERACNMT", "SACNMT", "BranchedSACNMT"
# Of the words that follow, the critics know the two likeliest and the sampled one: the others' Q means nothing.
CRITIC = {"support_size": 2, "tau": 0.05, "critic_lr": 0.01}
CRITIC |= {"critic_pretrain_updates": 25, "critic_pretrain_lr": 0.01}
CRITIC |= {"lambda_mle": 0.1}  # without it, a critic that reads references takes one kind's good word for the other's
REPLAY = {**CRITIC, "buffer_size": 20}
PLAIN = {**REPLAY, "known_reward": False, "lambda_return": 0.0, "actor_warmup": 0, "support_min_probability": 0.01}
BACKUP = {"tau": 0.3, "critic_pretrain_updates": 50}  # the reward of the end reaches the first word step by step
KINDS = {
    "reinforce": (REINFORCE, 60, {"n_samples": 1, "baseline": "no"}),
    "reinforce, mean": (REINFORCE, 60, {"n_samples": 1, "baseline": "mean", "entropy_weight": 0.01}),
    "reinforce, greedy": (REINFORCE, 60, {"n_samples": 1, "baseline": "greedy"}),
    "reinforce, learned": (REINFORCE, 60, {"n_samples": 1, "baseline": "learned", "baseline_lr": 0.02}),
    "grpo": ("GRPONMT", 60, {"n_samples": 4}),
    "mixer": (MIXER, 60, {"baseline_lr": 0.02}),
    "mrt": (MRT, 60, {"mrt_reference": True}),
    "mrt, samples alone": (MRT, 60, {}),
    "vine": (VINE, 30, {"lambda_mle": 0.1, "actor_warmup": 0}),
    "ac": (AC, 150, {**CRITIC, **BACKUP, "actor_tau": 0.1}),
    "ac, known reward": (AC, 120, {**CRITIC, "actor_tau": 0.1, "known_reward": True, "lambda_return": 0.9}),
    "erac": (ERAC, 150, {**CRITIC, **BACKUP}),
    "erac, lambda 0.9": (ERAC, 120, {**CRITIC, "known_reward": True, "lambda_return": 0.9}),
    "sac": (SAC, 150, {**PLAIN, **BACKUP}),
    "sac, lambda 0.9": (SAC, 100, {**PLAIN, "lambda_return": 0.9}),
    "sac, lambda 1": (SAC, 100, {**PLAIN, "lambda_return": 1.0}),
    "sac, learned alpha": (SAC, 100, {**PLAIN, "alpha": "auto", "lambda_return": 0.9}),
    "sac, known reward": (SAC, 100, {**PLAIN, "known_reward": True}),
    # Critics that start together with the actor: the returns of branches count at once.
    "branched sac": (BRANCHED, 30, {**REPLAY, "critic_pretrain_updates": 0, "lambda_rl": 1.0, "actor_warmup": 0}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_late_reward_is_found(kind):
    model_type, updates, options = KINDS[kind]
    assert task.share(task.learn(model_type, 1, 0, **options), "bad") == 1
    assert task.share(task.learn(model_type, 1, updates, **options), "good") == 1


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "," not in kind])
def test_a_wait_k_policy_of_another_seed_finds_it_with_every_algorithm(kind):
    model_type, updates, options = KINDS[kind]
    assert task.share(task.learn(model_type, 2, 0, **options, **task.WAIT), "bad") == 1
    assert task.share(task.learn(model_type, 2, updates, **options, **task.WAIT), "good") == 1


@pytest.mark.parametrize("kind", ["ac", "erac", "sac", "sac, known reward"])
def test_without_a_look_ahead_it_is_not(kind):
    model_type, updates, options = KINDS[kind]
    assert task.share(task.learn(model_type, 1, updates, **options, gamma=0.0), "bad") == 1


def test_branched_sac_without_branches_and_without_its_critics_is_blind_to_what_comes_later():
    model_type, updates, options = KINDS["branched sac"]
    blind = {**options, "branch_states": 0, "critic_weight": 0.0}
    assert task.share(task.learn(model_type, 1, updates, **blind), "bad") == 1
