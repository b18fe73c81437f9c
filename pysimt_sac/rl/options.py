"""Options that several algorithms have; what only one of them has is declared in its own file."""

import dataclasses

from pysimt_sac.engine.config.options import option


@dataclasses.dataclass(frozen=True)
class RLOptions:
    """The keys of `[model]` that all reinforcement-learning models have."""

    lambda_rl: float = option(1.0, "weight of the reinforcement loss", minimum=0)
    lambda_mle: float = option(0.1, "weight of the likelihood of the references beside it", minimum=0)
    actor_warmup: int = option(0, "updates over which the actor's learning rate rises to its full value", minimum=0)
    rollout_max_len: int = option(
        50, "most words of a sampled translation; also at most 10 more than its reference", minimum=1
    )
    rollout_dropout: bool = option(False, "sample and rescore with dropout")
    permute_rewards: bool = option(False, "a control: every sentence gets another one's rewards")
    health_freq: int = option(30, "updates between reports of how learning goes", minimum=1)


@dataclasses.dataclass(frozen=True)
class CriticOptions:
    """The keys of `[model]` that all models with critics have."""

    gamma: float = option(1.0, "discount of later rewards", minimum=0, maximum=1)
    support: int = option(32, "sum over this many likeliest words and the taken one; 0: over all words", minimum=0)
    support_least: float = option(
        0.01, "`support`: leave out words that are less likely than this; nobody has tried them", minimum=0, below=1
    )
    critic_lr: float = option(0.0003, "the critics' learning rate beside the actor", above=0)
    critic_beta1: float = option(0.9, "how long the critics' Adam remembers gradients", minimum=0, below=1)
    critic_target: str = option(
        "td",
        "what the critics learn beside the actor: bootstrapped returns, or those that were had, which tell at once "
        "what is charged at a translation's end",
        choices=("td", "mc"),
    )
    critic_gclip: float = option(5.0, "clip the critics' gradient at this norm", above=0)
    critic_init: str = option("actor", "where the critics' embeddings and decoder start", choices=("actor", "random"))
    critics_from: str = option("", "folder of a run whose critics to begin with, such as one that stopped at the gate")
    critic_pretrain_epochs: int = option(5, "epochs in which the critics learn alone", minimum=0)
    critic_pretrain_lr: float = option(0.001, "the critics' learning rate while they learn alone", above=0)
    critic_pretrain_target: str = option(
        "mc", "what they learn then: the returns that were had, or bootstrapped ones", choices=("mc", "td")
    )
    gate_sentences: int = option(
        64, "validation sentences on which the critics are examined before the actor follows them; 0: none", minimum=0
    )


@dataclasses.dataclass(frozen=True)
class BaselineOptions:
    """The keys of `[model]` that models with a learnt baseline have."""

    baseline_lr: float = option(0.001, "learning rate of the learnt baseline, which has an Adam of its own", above=0)
