"""`SACNMT`: Soft Actor-Critic for translation (the paper's SAC BLEU, or any other reward).

The stages of the paper in one run: the actor comes from `pretrained_file`; for `critic_pretrain_epochs` the critics
learn alone; then both learn together. Every update plays the new batch into the replay memory, draws a batch from
there, and takes one step of the critics (towards r + gamma V of their slow copies) and one of the actor.
"""

import dataclasses
from typing import Any, ClassVar

import torch
from torch import Tensor

from pysimt_sac.engine.config.options import ModelOptions, option
from pysimt_sac.engine.config.registry import MODELS
from pysimt_sac.models.base import RLModel
from pysimt_sac.rewards import RewardOptions
from pysimt_sac.rl import losses
from pysimt_sac.rl.learner import ActorLoss, Choices, CriticLearner
from pysimt_sac.rl.options import CriticOptions, RLOptions
from pysimt_sac.rl.replay import Experience, Replay, bytes_needed
from pysimt_sac.rl.temperature import Temperature


@dataclasses.dataclass(frozen=True)
class SACOptions:
    """The keys of `[model]` that only Soft Actor-Critic has."""

    alpha: float | str = option(0.01, "weight of the entropy, or learnt", choices=("auto",), minimum=0)
    target_entropy: float | None = option(
        None, "`alpha: auto`: the entropy per word to keep, in nats; none: what the pre-trained actor has", above=0
    )
    alpha_lr: float = option(0.0003, "`alpha: auto`: its learning rate", above=0)
    tau: float = option(0.005, "speed of the critics' slow copies", above=0, maximum=1)
    n_critics: int = option(2, "critics; the smallest of their values counts", minimum=1)
    target_clip: bool = option(False, "keep the critics' targets within what can still be earned")
    buffer_size: int = option(1000, "batches in the replay memory", minimum=1)
    updates_per_batch: int = option(1, "steps of the critics for every batch that is played", minimum=1)


@MODELS.register("SACNMT")
class SACNMT(RLModel):
    """The actor. Everything else that learns is in its `SACLearner` and never in a checkpoint."""

    option_classes: ClassVar[tuple[type, ...]] = (ModelOptions, RLOptions, RewardOptions, CriticOptions, SACOptions)

    def make_learner(self) -> "SACLearner":
        """Critics, replay and the rest, built when training begins."""
        return SACLearner(self)


class SACLearner(CriticLearner):
    """One update of Soft Actor-Critic; see the top of this file."""

    def __init__(self, model: SACNMT) -> None:
        self.options: SACOptions = model.read_options(SACOptions)
        super().__init__(model, self.options.n_critics, self.options.tau)
        learnt = self.options.alpha == "auto"
        start = 0.01 if learnt else float(self.options.alpha)
        self.temperature = Temperature(start, learnt, self.options.target_entropy, self.options.alpha_lr, self.device)
        self.replay = Replay(self.options.buffer_size, self.seed)
        self.parts |= {"replay": self.replay, "temperature": self.temperature}
        longest = self.common.rollout_max_len
        most = bytes_needed(self.options.buffer_size, int(model.opts.train["batch_size"]), longest, longest, longest)
        model.say(f"Replay memory: at most {most / 1e6:.0f} MB, if sentences have up to {longest} words")

    @property
    def alpha(self) -> Tensor:
        """The weight of the entropy."""
        return self.temperature.alpha

    def loss(self, batch: Any, update: int, epoch: int) -> ActorLoss:
        """Play the batch, and learn from what the memory gives."""
        self.replay.add(self.player.play(self.model, batch, float(self.alpha), update))
        jointly = self.stage(epoch) == self.JOINTLY
        for _ in range(self.options.updates_per_batch - 1):
            self.learn(self.on_device(self.replay.sample()), epoch, with_actor=False)
        return self.learn(self.on_device(self.replay.sample()), epoch, with_actor=jointly)

    def learn(self, experience: Experience, epoch: int, with_actor: bool) -> ActorLoss:
        """One step of the critics and the temperature; the actor's loss."""
        choices = self.choices(self.model, experience, gradient=with_actor)
        experience = self.player.appraise(self.model, choices.states, experience)
        steps, log_pi_NA = choices.steps, choices.log_pi_NA
        target_N, returns_N = self.wanted(experience, choices, epoch)
        readouts = self.critics.readouts(experience, steps)
        # Before the critics' step: one pass of theirs serves their own loss and the actor's.
        q_INA = self.critics.q_of_actions(readouts, choices.support) if with_actor else None
        q_IN = self.critics.q_of_taken(readouts, choices.taken_N)
        self.teach(losses.critic_loss(q_IN, target_N), epoch)
        self.note(q_IN, target_N, returns_N, log_pi_NA)
        self.figures["alpha"] = self.alpha
        loss = self.actor_loss(choices, q_INA)
        if with_actor:
            self.temperature.learn(log_pi_NA)
        else:
            self.temperature.observe(log_pi_NA)
        return loss

    def targets(self, experience: Experience, choices: Choices) -> Tensor:
        """r_t + gamma V(s_{t+1}) of the slow critics, within what can still be earned if that is wanted."""
        target_N, steps = super().targets(experience, choices), choices.steps
        if not self.options.target_clip:
            return target_N
        left_N = self.common.rollout_max_len - 1 - steps.times_N
        most_N = self.alpha * left_N.clamp(min=0) * torch.tensor(float(len(self.model.trg_vocab))).log()
        before_N = steps.flatten(experience.potentials_before_TB)
        return losses.clip_target(target_N, before_N, steps.of_sentences(experience.scale_B), most_N)

    def health(self, update: int) -> dict[str, float]:
        """All figures of the last update, by name."""
        replay = {"replay_fill": len(self.replay) / self.replay.size, "replay_age": self.replay.mean_age(update)}
        return {**super().health(update), **replay}
