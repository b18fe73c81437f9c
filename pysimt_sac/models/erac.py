"""`ERACNMT`: entropy-regularised actor-critic (Dai et al. 2018).

Like Soft Actor-Critic, the value of a state counts the entropy of the policy there; unlike it, there is one critic, no
memory, and every update learns from what the actor has just sampled. A variance term keeps the Q of words that are
never sampled near the others. The paper's tau is `alpha` here, as in Soft Actor-Critic; `tau` is the speed of the slow
critic.
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


@dataclasses.dataclass(frozen=True)
class ERACOptions:
    """The keys of `[model]` that only this actor-critic has."""

    alpha: float = option(0.045, "weight of the entropy", minimum=0)
    tau: float = option(0.001, "speed of the slow critic", above=0, maximum=1)
    variance_weight: float = option(0.001, "weight of the variance of Q over the words", minimum=0)


@MODELS.register("ERACNMT")
class ERACNMT(RLModel):
    """The actor; the critic is in its `ERACLearner`."""

    option_classes: ClassVar[tuple[type, ...]] = (ModelOptions, RLOptions, RewardOptions, CriticOptions, ERACOptions)

    def make_learner(self) -> "ERACLearner":
        """Built when training begins."""
        return ERACLearner(self)


class ERACLearner(CriticLearner):
    """One update of actor and critic; see the top of this file."""

    def __init__(self, model: ERACNMT) -> None:
        self.options: ERACOptions = model.read_options(ERACOptions)
        super().__init__(model, n_critics=1, tau=self.options.tau)

    @property
    def alpha(self) -> float:
        """The weight of the entropy."""
        return self.options.alpha

    def loss(self, batch: Any, update: int, epoch: int) -> ActorLoss:
        """Play; teach the critic; then the actor's loss."""
        experience = self.player.play(self.model, batch, self.alpha, update)
        choices = self.choices(self.model, experience, gradient=self.stage(epoch) == self.JOINTLY)
        q_INA, q_IN = self.q_of(experience, choices)
        target_N, returns_N = self.wanted(experience, choices, epoch)
        variance = self.options.variance_weight * losses.variance_penalty(q_INA[0])
        self.teach(0.5 * losses.critic_loss(q_IN, target_N) + variance, epoch)
        self.note(q_IN, target_N, returns_N, choices.log_pi_NA)
        return self.actor_loss(choices, q_INA)
