"""`VineNMT`: the all-action policy gradient on branched rollouts. There is no critic.

At some states of a greedy path where the policy is uncertain, each of its likeliest words is continued to the end of
the hypothesis; the returns of these continuations are Q(s, a) (the vine of TRPO, Schulman et al. 2015). The actor
maximises sum_a pi(a|s) [Q(s,a) - V(s)] over the words of each branched state, plus the likelihood of the references.

With `rarity_weight`, Q of a word that the reference wants is higher if it is a rare translation (`rl.rarity`).
"""

from typing import ClassVar

from pysimt_sac.core.batch import Batch
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.policy import entropy
from pysimt_sac.rewards import REWARD_OPTIONS
from pysimt_sac.rewards.count_bonus import PermuteOptions
from pysimt_sac.rl import losses
from pysimt_sac.rl.algorithm import ActorLoss, Algorithm, algorithm
from pysimt_sac.rl.branching import BranchOptions, branch_metrics, collect_branched
from pysimt_sac.rl.collector import Collector
from pysimt_sac.rl.rarity import RarityBonus, RarityOptions
from pysimt_sac.rl.setup import RL_OPTIONS, Setup


@algorithm("VineNMT")
class Vine(Algorithm):
    """All-action policy gradient on branched rollouts."""

    option_classes = (*RL_OPTIONS, *REWARD_OPTIONS, BranchOptions, RarityOptions, PermuteOptions)
    defaults: ClassVar[dict[str, object]] = {
        "actor_warmup": 50,
        "lambda_mle": 1.0,
        "reward": "gleu",
        "reward_unit": "word",
    }

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.options = setup.read(BranchOptions)
        if not self.options.branch_states:
            raise UserError("must be at least 1: there is nothing else to learn from", f"{setup.where} branch_states")
        self.collector: Collector = Collector(setup)
        self.parts = {"collector": self.collector}
        self.rarity = RarityBonus.build(setup)
        if self.rarity:
            self.parts["rarity"] = self.rarity
        elif setup.read(PermuteOptions).permute_bonus:
            raise UserError("has nothing to permute", f"{setup.where} permute_bonus", "set rarity_weight as well")

    def update(self, batch: Batch, step: int) -> ActorLoss:
        """Roll out and branch the path, and return the all-action policy-gradient loss of the branches."""
        actor, common = self.actor, self.common
        experience = collect_branched(actor, batch, self.collector, self.options, step)
        branches = experience.branches
        assert branches is not None
        with actor.training_mode(common.gradient_dropout):
            encoded = actor.encode(batch)
            nll = actor.nll(encoded, batch[actor.target])
            states = experience.tokens_TB, branches.positions_M(batch.size), branches.support
            log_pi_MK = actor.policy_on(encoded, *states)
        q_MK = branches.returns_MK
        if self.rarity:
            bonus_MK = self.rarity(actor, batch, experience, self.collector.generator)
            q_MK = q_MK + bonus_MK
            self.metrics["rarity_bonus"] = losses.mean(bonus_MK[branches.valid_MK])
        reinforcement = losses.all_action_loss(log_pi_MK, q_MK)
        self.metrics |= {"mle_loss": nll.detach(), **branch_metrics(branches)}
        if len(log_pi_MK):
            self.metrics["entropy"] = entropy(log_pi_MK.detach()).mean()
        terms = {"rl": common.lambda_rl * reinforcement, "mle": common.lambda_mle * nll}
        return ActorLoss(terms, int((batch.lengths[actor.target] - 1).sum()))
