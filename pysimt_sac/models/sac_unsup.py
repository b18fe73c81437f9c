"""`SACUnsupNMT`: Soft Actor-Critic with the unsupervised reward (the paper's SAC unsuper). There is no critic.

Every sampled word gets a random label, stored with it in the replay memory, from where a discriminator learns labels
(`rewards.discriminator`); what it knows is the reward, so that rare choices earn more. Q is an oracle:

- `oracle: gold`: on words that the actor finds likely, the taken and the reference's word,
  Q(s_t,a) = 1[a = ref_t] 1[y_{t-1} = ref_{t-1}] + beta u(x,a), u = log K - H(q(.|x,a)).
- `oracle: return`: the labels' rewards themselves: - (G_t - b_t) log pi(a_t), G_t their discounted sum from t on, b_t
  the mean of the other sentences' at the same step.
"""

import dataclasses
from typing import Any, ClassVar

import torch
from torch import Tensor

from pysimt_sac.engine.config.options import ModelOptions, option
from pysimt_sac.engine.config.registry import MODELS
from pysimt_sac.errors import UserError
from pysimt_sac.models.base import RLModel
from pysimt_sac.rewards import Numbers, RewardOptions
from pysimt_sac.rl import losses
from pysimt_sac.rl.learner import ActorLoss, Learner
from pysimt_sac.rl.losses import Support
from pysimt_sac.rl.options import RLOptions
from pysimt_sac.rl.replay import Experience, Replay
from pysimt_sac.rl.rollout import network_mode
from pysimt_sac.rl.steps import Steps

LIKELIEST = 48  # no more words than this can have a probability of 0.02


@dataclasses.dataclass(frozen=True)
class SACUnsupOptions:
    """The keys of `[model]` that only unsupervised Soft Actor-Critic has."""

    oracle: str = option(
        "gold", "what Q is: the reference's word and what is rare, or the labels' rewards", choices=("gold", "return")
    )
    oracle_beta: float = option(0.3, "`gold`: weight of what is rare", minimum=0)
    oracle_support: float = option(0.02, "`gold`: least probability of the words that are compared", above=0, below=1)
    oracle_gamma: float = option(0.99, "`return`: discount of later rewards", minimum=0, maximum=1)
    alpha: float = option(0.01, "weight of the entropy", minimum=0)
    buffer_size: int = option(1000, "batches in the replay memory", minimum=1)


@MODELS.register("SACUnsupNMT")
class SACUnsupNMT(RLModel):
    """The actor. The discriminator and the memory are in its `SACUnsupLearner`."""

    option_classes: ClassVar[tuple[type, ...]] = (ModelOptions, RLOptions, RewardOptions, SACUnsupOptions)

    def set_defaults(self) -> None:
        """The reward is the unsupervised one, as it is, unless the configuration says otherwise."""
        super().set_defaults()
        self.defaults.update(reward="unsup", reward_scale=1.0)

    def make_learner(self) -> "SACUnsupLearner":
        """Built when training begins."""
        return SACUnsupLearner(self)


class SACUnsupLearner(Learner):
    """One update; see the top of this file."""

    def __init__(self, model: SACUnsupNMT) -> None:
        super().__init__(model)
        self.options: SACUnsupOptions = model.read_options(SACUnsupOptions)
        if "unsup" not in self.player.rewarder.parts:
            where = f"{model.opts.filename} [model] reward"
            raise UserError("lacks the part `unsup`", where, "write `unsup`, or use SACNMT for other rewards")
        self.discriminator = self.player.rewarder.parts["unsup"]
        self.replay = Replay(self.options.buffer_size, self.seed)
        self.parts["replay"] = self.replay

    def loss(self, batch: Any, update: int, epoch: int) -> ActorLoss:
        """Play the batch; let the discriminator and the actor learn from one that the memory gives."""
        self.replay.add(self.player.play(self.model, batch, self.options.alpha, update))
        experience = self.on_device(self.replay.sample())
        model, words_TB, lengths_B = self.model, experience.words_TB, experience.lengths_B.cpu()
        steps = Steps.of(lengths_B, words_TB.device)
        with network_mode(model, self.common.rollout_dropout):
            states = model.states_of(experience.batch(model.sl, model.tl))
            experience = self.player.appraise(model, states, experience)
            if self.options.oracle == "gold":
                numbers = self.player.numbers(model, states, experience.source_SB, words_TB, experience.z_TB)
                reinforcement = self.follow_oracle(experience, states, steps, lengths_B, numbers)
            else:
                reinforcement = self.follow_returns(experience, states, steps, lengths_B)
            nll = model.nll(states, experience.reference_RB)
        self.figures["mle_loss"] = nll.detach()
        return ActorLoss({"rl": self.common.lambda_rl * reinforcement, "mle": self.common.lambda_mle * nll}, len(steps))

    def follow_oracle(
        self, experience: Experience, states: Any, steps: Steps, lengths_B: Tensor, numbers: Numbers
    ) -> Tensor:
        """The actor's loss with the oracle's Q."""
        wanted_N = steps.flatten(following_words(experience))
        words_N2 = torch.stack((steps.flatten(experience.words_TB[1:]), wanted_N), 1)
        log_pi_NK, support = self.model.policy(
            states, experience.words_TB, lengths_B, words_N2, LIKELIEST, self.options.oracle_support
        )
        embedding_NKE = self.model.dec.get_emb(support.words_NK)
        certainty_NK = self.discriminator.certainty_of(
            numbers, steps.sentences_N, support.words_NK, embedding_NKE.detach()
        )
        aligned_N = steps.flatten(aligned_steps(experience))
        q_NK = oracle_q(support, wanted_N, aligned_N, certainty_NK, self.options.oracle_beta)
        self.note(log_pi_NK, q_NK, support)
        return losses.actor_loss(log_pi_NK, q_NK.unsqueeze(0), self.options.alpha)

    def follow_returns(self, experience: Experience, states: Any, steps: Steps, lengths_B: Tensor) -> Tensor:
        """The actor's loss with the labels' own rewards."""
        taken_N1 = steps.flatten(experience.words_TB[1:]).unsqueeze(1)
        log_pi_NV, _ = self.model.policy(states, experience.words_TB, lengths_B, taken_N1.squeeze(1), k=0)
        rewards_N = steps.flatten(experience.rewards_TB)
        entropies_N = losses.entropy(log_pi_NV)
        returns_N = losses.soft_returns(rewards_N, entropies_N.detach(), steps, self.options.oracle_gamma, alpha=0.0)
        advantages_N = returns_N - mean_of_others(returns_N, steps)
        self.figures |= {"return": returns_N.mean(), "entropy": entropies_N.detach().mean()}
        chosen_N = log_pi_NV.gather(1, taken_N1).squeeze(1)
        reinforcement = losses.reinforce_loss(chosen_N, advantages_N, len(steps))
        return reinforcement - self.options.alpha * entropies_N.mean()

    @torch.no_grad()
    def note(self, log_pi_NK: Tensor, q_NK: Tensor, support: Support) -> None:
        """Keep what a person wants to see of the last step."""
        missing_NK = ~support.valid_NK
        spread_N = q_NK.masked_fill(missing_NK, -torch.inf).amax(1) - q_NK.masked_fill(missing_NK, torch.inf).amin(1)
        self.figures |= {
            "entropy": losses.entropy(log_pi_NK).mean(),
            "peak_probability": log_pi_NK.exp().amax(-1).mean(),
            "compared_words": support.valid_NK.sum(1).float().mean(),
            "q_spread": spread_N.mean(),  # 0: the reward would not reach the actor
        }

    def health(self, update: int) -> dict[str, float]:
        """All figures of the last update, by name."""
        replay = {"replay_fill": len(self.replay) / self.replay.size, "replay_age": self.replay.mean_age(update)}
        return {**super().health(update), **replay}


def following_words(experience: Experience) -> Tensor:
    """ref_t at every step (T, B): the reference's word there; 0 behind its end."""
    return as_long_as(experience.words_TB[1:], experience.reference_RB[1:])


def aligned_steps(experience: Experience) -> Tensor:
    """1[y_{t-1} = ref_{t-1}] at every step (T, B); both begin with `<bos>`."""
    before_TB = experience.words_TB[:-1]
    return before_TB == as_long_as(before_TB, experience.reference_RB)


def as_long_as(words_TB: Tensor, other_RB: Tensor) -> Tensor:
    """The other words with as many rows, cut or filled with 0."""
    rows = min(len(words_TB), len(other_RB))
    fitted_TB = torch.zeros_like(words_TB)
    fitted_TB[:rows] = other_RB[:rows]
    return fitted_TB


def oracle_q(support: Support, wanted_N: Tensor, aligned_N: Tensor, certainty_NK: Tensor, beta: float) -> Tensor:
    """Q(s_t,a) = 1[a = ref_t] 1[y_{t-1} = ref_{t-1}] + beta u(x,a), (N, K)."""
    gold_NK = (support.words_NK == wanted_N.unsqueeze(1)) & aligned_N.unsqueeze(1)
    return gold_NK.to(certainty_NK.dtype) + beta * certainty_NK


def mean_of_others(returns_N: Tensor, steps: Steps) -> Tensor:
    """b_t: the mean return of the other sentences that have a step t; 0 for one that is alone there."""
    sums_T = returns_N.new_zeros(steps.shape[0]).index_add(0, steps.times_N, returns_N)
    counts_T = returns_N.new_zeros(steps.shape[0]).index_add(0, steps.times_N, torch.ones_like(returns_N))
    others_N = counts_T[steps.times_N] - 1
    return (sums_T[steps.times_N] - returns_N) / others_N.clamp(min=1) * (others_N > 0)
