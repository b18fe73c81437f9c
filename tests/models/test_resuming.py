"""Every algorithm through the front door: its metrics, and a resumed or killed run ends as an undisturbed one."""

import math
import signal
from functools import partial

import pytest

from pysimt_sac.hosts.engine.checkpoint import load_checkpoint, load_state
from tests.hosts.engine.dying_runs import die_in_update, fork_training
from tests.models.runs import assert_same_state, changes, equal, lines, points, train

CRITICS = ["critic_pretrain_updates:4", "support_size:6", "gate_sentences:4"]
OF_CRITICS = "q q_target return_to_go td_error entropy max_probability critic_loss critic_gradient mle_loss"
OF_LABELS = "unsup_accuracy best_accuracy chance_accuracy unsup_mean unsup_n_1 unsup_n_8_or_more entropy q_spread"
KINDS = {
    "reinforce": ("REINFORCENMT", ["baseline:greedy", "n_samples:2", "entropy_weight:0.01"],
                  "return return_spread entropy baseline mle_loss gradient_entropy reward_bleu"),
    "reinforce, learned": ("REINFORCENMT", ["baseline:learned", "n_samples:1", "kl_weight:0.1"],
                           "return baseline baseline_loss kl gradient_kl"),
    "mixer": ("MIXERNMT", ["mixer_delta:1", "mixer_every:3"], "return baseline baseline_loss sampled_steps"),
    "mrt": ("MRTNMT", ["n_samples:3", "mrt_reference:True", "sampling_temperature:0.7"], "return candidates"),
    "vine": ("VineNMT", [], "branched_states branches likeliest_is_best gain_of_best entropy reward_gleu"),
    "vine, sampled": ("VineNMT", ["branch_path:sample", "branch_continuation:sample", "reward_unit:word"], "branches"),
    "ac": ("ACNMT", [*CRITICS, "actor_tau:0.5", "known_reward:True"], OF_CRITICS),
    "erac": ("ERACNMT", [*CRITICS, "support_size:0"], OF_CRITICS),
    "sac": ("SACNMT", [*CRITICS, "buffer_size:4", "actor_warmup:3"], f"{OF_CRITICS} alpha replay_fill replay_age"),
    "sac, learned alpha": ("SACNMT", [  # no known rewards in the whole vocabulary
        *CRITICS, "alpha:auto", "support_size:0", "known_reward:False", "lambda_return:1"], OF_CRITICS),
    "sac, known reward": ("SACNMT", [*CRITICS, "known_reward:True", "lambda_return:0.9", "kl_weight:0.1"], "kl"),
    "sac, mixed": ("SACNMT", [*CRITICS, "reward:bleu:0.7,unsup:0.3", "known_reward:True"],
                   "unsup_mean reward_bleu reward_unsup"),
    "branched sac": ("BranchedSACNMT", ["buffer_size:4"], f"critic_weight gain_of_best {OF_CRITICS} replay_age"),
    "branched sac, sampled": ("BranchedSACNMT", ["branch_path:sample", "branch_continuation:sample",
                              "lambda_return:0.5", "reward:gleu:0.7,bleu:0.3", "critic_every:1"], "q return_to_go"),
    "vine, rarity": ("VineNMT", ["rarity_weight:1", "reward:gleu:0.7,unsup:0.3"], "rarity_bonus unsup_mean"),
    "sac unsup": ("SACUnsupNMT", ["permute_bonus:True"], f"{OF_LABELS} support_size"),
    "sac unsup, counts": ("SACUnsupNMT", ["bonus:counts"], OF_LABELS),
    "sac unsup, policy": ("SACUnsupNMT", ["bonus:policy"], "unsup_mean q_spread"),
}  # fmt: skip


def settings(toy, kind):
    model_type, options, _ = KINDS[kind]
    return [*changes(toy, model_type, *options), "train.max_epochs:2"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_run_equals_an_undisturbed_one(trained, kind):
    _, options, metrics = KINDS[kind]
    name, words = kind.replace(", ", "-").replace(" ", "-"), settings(trained, kind)
    whole = train(trained, name, words)
    for stop in (2, 7, 1_000_000):
        parts = train(trained, f"{name}-parts", words, f"train.max_iterations:{stop}")
    assert_same_state(whole, parts)
    mle = trained.folder / "runs/toy-mle"
    assert not equal(load_state(whole)[0]["weights"], load_state(mle)[0]["weights"])  # it has learned
    for metric in f"{metrics} length_ratio sampled_bleu greedy_bleu gradient_rl gradient_mle".split():
        values = points(whole, f"rl_{metric}").values()
        assert len(values) >= 2, metric
        assert all(value is not None and math.isfinite(value) for value in values), metric
    checkpoints = [next(folder.glob("*.best.bleu.ckpt")) for folder in (whole, mle)]
    assert set(load_checkpoint(checkpoints[0]).weights) == set(load_checkpoint(checkpoints[1]).weights)  # the actor's
    assert [len(lines(folder, "Gate: explained variance")) for folder in (whole, parts)] == [CRITICS[0] in options] * 2


@pytest.mark.parametrize("kind", ["sac", "branched sac", "sac, mixed", "vine, rarity"])
def test_killed_again_and_again_it_ends_as_if_undisturbed(trained, kind):
    often = [*settings(trained, kind), "train.checkpoint_freq:2"]
    name = f"{kind.replace(', ', '-').replace(' ', '-')}-killed"
    whole = train(trained, f"{name}-never", often)
    words = ["train", "-C", trained.config, "-s", name, *often]
    for update in (1, 4, 3, 5):  # counted anew after each death
        assert fork_training(words, partial(die_in_update, update)) == -signal.SIGKILL
    assert fork_training(words) == 0
    assert_same_state(whole, trained.folder / "runs" / f"toy-{name}")
