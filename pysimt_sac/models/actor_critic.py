"""`ACNMT`: actor-critic for sequence prediction (Bahdanau et al. 2017).

Translations are sampled from the *delayed actor*, a slow copy p' of the actor. One critic, which reads the reference,
learns Q towards r + E_p' Q', with Q' its own slow copy; a penalty keeps the Q of words that are never sampled near the
others. The actor maximises its expected Q. There is no entropy and no memory: every update plays its own batch.
"""

import dataclasses
from typing import Any, ClassVar

from pysimt_sac.engine.config.options import ModelOptions, option
from pysimt_sac.engine.config.registry import MODELS
from pysimt_sac.models.base import RLModel
from pysimt_sac.rewards import RewardOptions
from pysimt_sac.rl import losses
from pysimt_sac.rl.learner import ActorLoss, CriticLearner
from pysimt_sac.rl.options import CriticOptions, RLOptions
from pysimt_sac.rl.targets import SlowActor


@dataclasses.dataclass(frozen=True)
class ACOptions:
    """The keys of `[model]` that only this actor-critic has."""

    tau: float = option(0.001, "speed of the slow critic", above=0, maximum=1)
    actor_tau: float = option(0.001, "speed of the delayed actor, which samples", above=0, maximum=1)
    spread_weight: float = option(0.001, "weight of the penalty on the spread of Q over the words", minimum=0)


@MODELS.register("ACNMT")
class ACNMT(RLModel):
    """The actor; its slow copy and the critic are in its `ACLearner`."""

    option_classes: ClassVar[tuple[type, ...]] = (ModelOptions, RLOptions, RewardOptions, CriticOptions, ACOptions)

    def make_learner(self) -> "ACLearner":
        """Built when training begins."""
        return ACLearner(self)


class ACLearner(CriticLearner):
    """One update of actor and critic; see the top of this file."""

    def __init__(self, model: ACNMT) -> None:
        self.options: ACOptions = model.read_options(ACOptions)
        super().__init__(model, n_critics=1, tau=self.options.tau)
        self.delayed = SlowActor(model)
        self.parts["delayed_actor"] = self.delayed

    def loss(self, batch: Any, update: int, epoch: int) -> ActorLoss:
        """Play by the delayed actor; teach the critic; then the actor's loss."""
        self.delayed.follow(self.options.actor_tau)  # what the actor learnt in the update before
        experience = self.player.play(self.delayed.model, batch, float(self.alpha), update)
        delayed = self.choices(self.delayed.model, experience, gradient=False)
        target_N, returns_N = self.wanted(experience, delayed, epoch)
        choices = self.choices(self.model, experience, gradient=self.stage(epoch) == self.JOINTLY)
        q_INA, q_IN = self.q_of(experience, choices)
        penalty = self.options.spread_weight * losses.spread_penalty(q_INA[0])
        self.teach(losses.critic_loss(q_IN, target_N) + penalty, epoch)
        self.note(q_IN, target_N, returns_N, choices.log_pi_NA)
        return self.actor_loss(choices, q_INA)
