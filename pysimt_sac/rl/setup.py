"""The inputs of an algorithm: the actor and the run's configuration."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pysimt_sac.core.actor import Actor
from pysimt_sac.core.filters import FilterChain
from pysimt_sac.core.options import option, read_section
from pysimt_sac.core.sections import TrainOptions

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class ActorOptions:
    """The `[model]` keys shared by all algorithms."""

    actor_warmup: int = option(0, "updates over which the actor's learning rate rises to its full value", minimum=0)


@dataclasses.dataclass(frozen=True)
class RLOptions:
    """The `[model]` keys shared by all reinforcement-learning models."""

    lambda_rl: float = option(1.0, "weight of the reinforcement loss", minimum=0)
    lambda_mle: float = option(0.1, "weight of the references' negative log-likelihood beside it", minimum=0)
    rollout_max_len: int = option(50, "most words of a rollout; also at most 10 more than its reference has", minimum=1)
    gradient_dropout: bool = option(
        True, "dropout in the actor's gradient passes, of rewards and of likelihood; rollouts never have it"
    )
    kl_weight: float = option(
        0.0, "weight of the KL divergence from the pre-trained actor at sampled states", minimum=0
    )
    permute_rewards: bool = option(False, "a control: every sentence gets another one's rewards")
    health_freq: int = option(0, "updates between reports of the algorithm's metrics; 0: as `disp_freq`", minimum=0)


RL_OPTIONS = (ActorOptions, RLOptions)


@dataclasses.dataclass(frozen=True)
class Setup:
    """The inputs that an algorithm is built from."""

    actor: Actor
    section: Mapping[str, Any]  # `[model]` of the configuration
    filename: str  # of the configuration
    seed: int
    train: TrainOptions
    filters: FilterChain  # those of validation, which turn the model's units into words
    log: Callable[[str], None]

    def read(self, options: type[T]) -> T:
        """Read the options of a class from `[model]`."""
        return read_section(options, self.section, self.where)

    @property
    def where(self) -> str:
        """The section, for error messages."""
        return f"{self.filename} [model]"
