"""What the curves of a run mean, for readers of the page.

`DIAGNOSTICS` are those of an algorithm that tell most, in the order of the page; all others are folded away there.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Diagnostic:
    """A curve that is always shown, how to read it, and a value worth comparing with."""

    title: str
    note: str
    guide: float | None = None


GRADIENT_RATIO = "gradient_ratio"  # computed from the norms of both terms

DIAGNOSTICS = {
    "rl_sampled_bleu": Diagnostic(
        "BLEU of rollouts",
        "The hypotheses of a training batch that the algorithm learns from, whatever its reward is. One batch at a "
        "time, so it is noisy. It should rise, or at least not fall; if it rises and validation does not, the policy "
        "fits the training sentences only.",
    ),
    "rl_length_ratio": Diagnostic(
        "Length ratio of rollouts",
        "Words of the hypotheses per word of the references, over the last batches; 1 is right. If it drifts away, the "
        "policy has learned that short or long translations earn more, not better ones.",
        1.0,
    ),
    "rl_entropy": Diagnostic(
        "Entropy of the policy",
        "In nats per step: how undecided the policy is. A slow fall is learning; near 0 it explores nothing, and "
        "rollouts teach it nothing more. Algorithms measure it over different steps and words: compare directions, "
        "not levels.",
    ),
    "rl_mle_loss": Diagnostic(
        "Negative log-likelihood of the references",
        "Per word of training batches. It rises as reinforcement moves the policy away from the references: a little "
        "is the price of the reward, a steep rise is divergence.",
    ),
    "rl_explained_variance": Diagnostic(
        "Variance of returns that the critics explain",
        "1: Q predicts every return; 0: no better than their mean; below 0: worse. The actor follows Q, which is noise "
        "to it as long as this is near 0. Only algorithms with critics have it.",
        0.0,
    ),
    GRADIENT_RATIO: Diagnostic(
        "Gradient norm, reinforcement / likelihood",
        "How strongly each of the two terms pulls at the actor. Far below 1 the run is continued maximum likelihood; "
        "far above 1 the references no longer hold the policy. Set by lambda_rl and lambda_mle.",
        1.0,
    ),
}

# The other curves: every run's, then the algorithms'.
MEANINGS = {
    "train_LOSS": "per word of single batches, as it was minimised",
    "epoch_LOSS": "per word, as it was minimised",
    "gradient_norm": "before clipping",
    "lr": "as it was used, warm-up and decay included",
    "rl_greedy_bleu": "of greedy hypotheses for a training batch",
    "rl_truncated": "part of the rollouts that were cut off before their end",
    "rl_return": "mean return of the rollouts: the sum of the rewards that followed a step",
    "rl_return_spread": "standard deviation of the returns",
    "rl_q": "mean value that the critics give to the words taken; compare with the return",
    "rl_q_target": "mean of what the critics are trained to predict",
    "rl_max_q": "largest Q in a batch; far above the largest return, Q diverges",
    "rl_max_return": "largest return in a batch",
    "rl_td_error": "mean distance between Q and its target",
    "rl_critic_loss": "what the critics minimise",
    "rl_critic_gradient": "norm of the critics' gradient",
    "rl_critic_weight": "w in Q = r + w f: how much of the critics' prediction is used",
    "rl_alpha": "temperature: weight of the entropy",
    "rl_max_probability": "mean probability of the likeliest word",
    "rl_gradient_rl": "norm of the reinforcement term's gradient",
    "rl_gradient_mle": "norm of the likelihood term's gradient",
    "rl_gradient_kl": "norm of the gradient of the divergence from the first policy",
    "rl_branched_states": "states of a batch at which several words were continued to the end",
    "rl_branches": "continuations of these states",
    "rl_likeliest_is_best": "part of the branched states at which the likeliest word had the highest return",
    "rl_gain_of_best": "by how much the best word's return exceeds the likeliest word's",
    "rl_replay_fill": "part of the replay buffer that is in use",
    "rl_replay_age": "mean age of the experience in the replay buffer, in updates",
    "rl_baseline": "mean of what is subtracted from returns",
    "rl_baseline_loss": "error of the learned baseline",
    "rl_sampled_steps": "part of the words that were sampled, not taken from the reference",
    "rl_candidates": "hypotheses per sentence",
    "rl_support_size": "words per step among which the policy is improved",
    "rl_q_spread": "how much Q differs between these words",
    "rl_unsup_accuracy": "how often the discriminator guesses the label of a word",
    "rl_chance_accuracy": "how often it would by chance",
}
REWARD = "mean over the rollouts, before reward_scale"


def meaning(name: str) -> str:
    """What a curve shows, if that is known."""
    return REWARD if name.startswith("rl_reward_") else MEANINGS.get(name, "")
