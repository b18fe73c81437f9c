"""`SACNMT`: Soft Actor-Critic for translation (the paper's SAC BLEU, or any other reward).

The stages of the paper in one run: the actor comes from `pretrained_file`; for `critic_pretrain_epochs` the critics
learn alone; then both learn together. Every update plays the new batch into the replay memory, draws a batch from
there, and takes one step of the critics (towards r + gamma V of their slow copies) and one of the actor.
"""

import dataclasses
from typing import Any, ClassVar

import torch
from torch import Tensor

from pysimt_sac.engine.options import ModelOptions, option, read_section
from pysimt_sac.engine.registry import MODELS
from pysimt_sac.models.base import RLModel, RLOptions
from pysimt_sac.rewards import RewardOptions
from pysimt_sac.rl import losses
from pysimt_sac.rl.ensemble import CriticEnsemble
from pysimt_sac.rl.player import Player
from pysimt_sac.rl.replay import Experience, Replay
from pysimt_sac.rl.rollout import network_mode
from pysimt_sac.rl.steps import Steps
from pysimt_sac.rl.temperature import Temperature


@dataclasses.dataclass(frozen=True)
class SACOptions:
    """The keys of `[model]` that only Soft Actor-Critic has."""

    alpha: float | str = option(0.01, "weight of the entropy, or learnt", choices=("auto",), minimum=0)
    target_entropy: float = option(1.0, "`alpha: auto`: the entropy per word to keep, in nats", above=0)
    alpha_lr: float = option(0.0003, "`alpha: auto`: its learning rate", above=0)
    gamma: float = option(1.0, "discount of later rewards", minimum=0, maximum=1)
    tau: float = option(0.005, "speed of the critics' slow copies", above=0, maximum=1)
    support: int = option(32, "sum over this many likeliest words and the taken one; 0: over all words", minimum=0)
    target_clip: bool = option(False, "keep the critics' targets within what can still be earned")
    buffer_size: int = option(1000, "batches in the replay memory", minimum=1)
    updates_per_batch: int = option(1, "steps of the critics for every batch that is played", minimum=1)
    n_critics: int = option(2, "critics; the smallest of their values counts", minimum=1)
    critic_lr: float = option(0.0003, "the critics' learning rate beside the actor", above=0)
    critic_pretrain_lr: float = option(0.001, "the critics' learning rate while they learn alone", above=0)
    critic_pretrain_epochs: int = option(5, "epochs in which the critics learn alone", minimum=0)
    critic_pretrain_target: str = option("mc", "what they learn then: returns, or bootstrapped", choices=("mc", "td"))
    critic_init: str = option("actor", "where the critics' embeddings and decoder start", choices=("actor", "random"))
    critic_gclip: float = option(5.0, "clip the critics' gradient at this norm", above=0)


@MODELS.register("SACNMT")
class SACNMT(RLModel):
    """The actor. Everything else that learns is in its `SACLearner` and never in a checkpoint."""

    option_classes: ClassVar[tuple[type, ...]] = (ModelOptions, RLOptions, RewardOptions, SACOptions)

    def make_learner(self) -> "SACLearner":
        """Critics, replay and the rest, built when training begins."""
        return SACLearner(self)


class SACLearner:
    """One update of Soft Actor-Critic; see the top of this file."""

    def __init__(self, model: SACNMT) -> None:
        values, where = model.opts.model, f"{model.opts.filename} [model]"
        self.model = model
        self.options = read_section(SACOptions, values, where)
        self.common = read_section(RLOptions, values, where)
        device, seed = next(model.parameters()).device, int(model.opts.train["seed"])
        learnt = self.options.alpha == "auto"
        start = 0.01 if learnt else float(self.options.alpha)
        self.temperature = Temperature(
            start, self.options.target_entropy if learnt else None, self.options.alpha_lr, device
        )
        rewards = read_section(RewardOptions, values, where)
        self.player = Player(
            rewards, self.common.rollout_max_len, self.common.rollout_dropout, self.common.permute_rewards, seed
        )
        self.replay = Replay(self.options.buffer_size, seed)
        shape = read_section(ModelOptions, values, where)
        self.critics = CriticEnsemble(shape, len(model.trg_vocab), self.options.n_critics, device)
        if self.options.critic_init == "actor":
            self.critics.start_from(model.dec)
        self.figures: dict[str, Tensor | float] = {}

    def stage(self, epoch: int) -> str:
        """What learns in an epoch."""
        return "critics alone" if epoch <= self.options.critic_pretrain_epochs else "actor and critics"

    def loss(self, batch: Any, update: int, epoch: int) -> tuple[Tensor, int]:
        """The actor's loss per step, and of how many steps it is the mean; the critics have learnt on the way."""
        alone = self.stage(epoch) == "critics alone"
        self.replay.add(self.player.play(self.model, batch, float(self.temperature.alpha), update))
        for _ in range(self.options.updates_per_batch - 1):
            self.learn(self.draw(batch), with_actor=False, alone=alone)
        return self.learn(self.draw(batch), with_actor=not alone, alone=alone)

    def draw(self, batch: Any) -> Experience:
        """An experience from the memory, on the device of the batch."""
        experience, device = self.replay.sample(), batch[self.model.tl].device
        moved = {name: value.to(device) for name, value in experience.tensors().items()}
        return dataclasses.replace(experience, **moved)  # type: ignore[arg-type]

    def learn(self, experience: Experience, with_actor: bool, alone: bool) -> tuple[Tensor, int]:
        """One step of the critics and the temperature; the actor's loss, or a zero that is tied to nothing."""
        model, alpha = self.model, self.temperature.alpha
        batch, words_TB = experience.batch(model.sl, model.tl), experience.words_TB
        lengths_B = experience.lengths_B.cpu()
        steps = Steps.of(lengths_B, words_TB.device)
        taken_N = steps.flatten(words_TB[1:])
        with network_mode(model, self.common.rollout_dropout), torch.set_grad_enabled(with_actor):
            states = model.states_of(batch)
            log_p_NV = model.log_probs(states, words_TB, lengths_B)
            mle = model.nll(states, experience.reference_RB) if with_actor else None
        k = self.options.support
        support = losses.find_support(log_p_NV, taken_N, k) if k else None
        log_pi_NA = losses.restricted_policy(log_p_NV, support) if support else losses.policy(log_p_NV)
        target_N = self.targets(experience, steps, log_pi_NA.detach(), support, alpha, alone)
        readouts = self.critics.readouts(experience, steps)
        q_INA = self.critics.q_of_actions(readouts, support) if with_actor else None
        q_IN = self.critics.q_of_taken(readouts, taken_N)
        critic_loss = losses.critic_loss(q_IN, target_N)
        lr = self.options.critic_pretrain_lr if alone else self.options.critic_lr
        critic_norm = self.critics.learn(critic_loss, lr, self.options.critic_gclip)
        # Returns do not come from the slow copies, so that these need not be slow until bootstrapping begins.
        returns = alone and self.options.critic_pretrain_target == "mc"
        self.critics.follow(1.0 if returns else self.options.tau)
        self.note_critics(q_IN.detach(), target_N, critic_loss.detach(), critic_norm, log_pi_NA.detach())
        if q_INA is None or mle is None:
            return torch.zeros((), device=words_TB.device, requires_grad=True), len(steps)
        self.temperature.learn(log_pi_NA)
        actor = self.common.lambda_rl * losses.actor_loss(log_pi_NA, q_INA, alpha)
        likelihood = self.common.lambda_mle * mle
        self.figures.update({"actor_loss": actor.detach(), "mle_loss": likelihood.detach(), "alpha": alpha})
        return actor + likelihood, len(steps)

    @torch.no_grad()
    def targets(
        self, experience: Experience, steps: Steps, log_pi_NA: Tensor, support: Any, alpha: Tensor, alone: bool
    ) -> Tensor:
        """What Q(s_t, a_t) shall be: the return that was had, or r_t + gamma V(s_{t+1}) of the slow critics."""
        options = self.options
        rewards_N = steps.flatten(experience.rewards_TB)
        if alone and options.critic_pretrain_target == "mc":
            return losses.soft_returns(rewards_N, losses.entropy(log_pi_NA), steps, options.gamma, alpha)
        readouts = self.critics.readouts(experience, steps, slow=True)
        values_N = losses.soft_value(self.critics.q_of_actions(readouts, support, slow=True), log_pi_NA, alpha)
        target_N = losses.td_target(rewards_N, steps.following(values_N), steps.ends_N, options.gamma)
        if not options.target_clip:
            return target_N
        left_N = self.common.rollout_max_len - 1 - steps.times_N
        most_N = alpha * left_N.clamp(min=0) * torch.tensor(float(len(self.model.trg_vocab))).log()
        before_N = steps.flatten(experience.potentials_before_TB)
        return losses.clip_target(target_N, before_N, steps.of_sentences(experience.scale_B), most_N)

    def note_critics(self, q_IN: Tensor, target_N: Tensor, loss: Tensor, norm: Tensor, log_pi_NA: Tensor) -> None:
        """Keep what a person wants to see of the last step, on the device until it is asked for."""
        lowest_N = q_IN.amin(0)
        self.figures = {
            "critic_loss": loss,
            "critic_gradient": norm,
            "q": lowest_N.mean(),
            "q_target": target_N.mean(),
            "td_error": (lowest_N - target_N).abs().mean(),
            "explained_variance": losses.explained_variance(lowest_N, target_N),
            "entropy": losses.entropy(log_pi_NA).mean(),
            "peak_probability": log_pi_NA.exp().amax(-1).mean(),
        }

    def health(self, update: int) -> dict[str, float]:
        """All figures of the last update, by name."""
        replay = {"replay_fill": len(self.replay) / self.replay.size, "replay_age": self.replay.mean_age(update)}
        return {**self.player.figures, **{name: float(value) for name, value in self.figures.items()}, **replay}

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        parts = {"player": self.player, "replay": self.replay, "critics": self.critics, "alpha": self.temperature}
        return {name: part.state_dict() for name, part in parts.items()}  # type: ignore[attr-defined]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.player.load_state_dict(state["player"])
        self.replay.load_state_dict(state["replay"])
        self.critics.load_state_dict(state["critics"])
        self.temperature.load_state_dict(state["alpha"])
