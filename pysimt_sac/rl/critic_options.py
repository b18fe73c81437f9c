"""Options shared by all models with critics: when they learn, their targets and their learning rates."""

import dataclasses
from typing import NamedTuple

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.options import option

ALONE, WITH_ACTOR = "critics alone", "actor and critics"  # stages


class Stage(NamedTuple):
    """What learns in an epoch, and how the critics learn."""

    name: str
    trains_actor: bool
    critic_lr: float
    target: str  # of the critics: `td`, `mc` or `branch`

    @property
    def monte_carlo(self) -> bool:
        """Whether critic targets are Monte Carlo returns instead of bootstrapped."""
        return self.target != "td"


@dataclasses.dataclass(frozen=True)
class CriticOptions:
    """The `[model]` keys shared by all models with critics."""

    gamma: float = option(1.0, "discount factor", minimum=0, maximum=1)
    support: int = option(
        32,
        "sum over this many likeliest words and the taken one; 0: over all words. SACNMT with `known_reward` or "
        "`branch_states` sums over `branch_words` instead",
        minimum=0,
    )
    support_min_probability: float = option(
        0.01, "`support`: leave out words less likely than this; their Q is untrained", minimum=0, below=1
    )
    critic_lr: float = option(0.0003, "the critics' learning rate in joint training", above=0)
    critic_beta1: float = option(0.9, "beta1 of the critics' Adam", minimum=0, below=1)
    critic_target: str = option(
        "td",
        "the critics' targets in joint training: bootstrapped (`td`) or Monte Carlo returns (`mc`), which show at once "
        "what a hypothesis's end costs; those of branched states only (`branch`)",
        choices=("td", "mc", "branch"),
    )
    known_reward: bool = option(
        False, "Q(s,a) = r(s,a) + f(s,a): compute the reward of every word, and let the critics learn the future f only"
    )
    critic_gclip: float = option(5.0, "clip the critics' gradient at this norm", above=0)
    critic_init: str = option("actor", "where the critics' embeddings and decoder start", choices=("actor", "random"))
    critic_pretrain_epochs: int = option(5, "epochs in which the critics learn alone", minimum=0)
    critic_pretrain_lr: float = option(0.001, "the critics' learning rate while they learn alone", above=0)
    critic_pretrain_target: str = option("mc", "the critics' targets while they learn alone", choices=("mc", "td"))
    gate_sentences: int = option(
        256, "validation sentences on which the critics are examined before the actor follows them; 0: none", minimum=0
    )

    @property
    def support_of_step(self) -> tuple[int, float]:
        """The arguments k and least of `rl.policy.find_support`."""
        return self.support, self.support_min_probability

    @property
    def bootstraps(self) -> bool:
        """Whether any stage has bootstrapped targets."""
        return self.critic_target == "td" or (self.critic_pretrain_epochs > 0 and self.critic_pretrain_target == "td")

    def stage(self, epoch: int) -> Stage:
        """Return the stage of an epoch: critics alone for `critic_pretrain_epochs`, then actor and critics."""
        if epoch <= self.critic_pretrain_epochs:
            return Stage(ALONE, False, self.critic_pretrain_lr, self.critic_pretrain_target)
        return Stage(WITH_ACTOR, True, self.critic_lr, self.critic_target)

    def check_no_branch_target(self) -> None:
        """Refuse `critic_target: branch`, for algorithms or settings without branched rollouts."""
        if self.critic_target == "branch":
            hint = "use SACNMT with branch_states above 0, or critic_target: mc"
            raise UserError("there are no branched states to learn from", "[model] critic_target: branch", hint)
