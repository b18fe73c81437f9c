"""`RLModel`: what every reinforcement-learning model shares, on either host.

It derives from the host's `SimultaneousNMT`, so that loaders, decoder, search and loop are the host's. An algorithm is
a subclass in a file of its own: it says what the loss of a training batch is (`training_loss`), or has a learner that
does (`make_learner`). The learner is a plain object: nothing of it is in the model's weights, nor seen by the host.
"""

import dataclasses
import functools
import logging
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import torch
from torch import Tensor

from pysimt_sac import host
from pysimt_sac.engine.nmt import real_positions
from pysimt_sac.engine.options import ModelOptions, defaults, option, read_section
from pysimt_sac.engine.output import linear_cross_entropy

if TYPE_CHECKING:
    from pysimt_sac.engine.layers import States
    from pysimt_sac.engine.nmt import SimultaneousNMT as HostModel
else:
    HostModel = host.SimultaneousNMT


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


class Learner(Protocol):
    """What an algorithm's learner offers."""

    def stage(self, epoch: int) -> str:
        """What learns in an epoch, in words."""

    def loss(self, batch: Any, update: int, epoch: int) -> tuple[Tensor, int]:
        """The actor's mean loss and the number of items it is the mean of; all else learns on the way."""

    def health(self, update: int) -> dict[str, float]:
        """Figures to watch."""

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""


class RLModel(HostModel):
    """A translation model whose training loss is its own; validation and translation are the host's."""

    option_classes: ClassVar[tuple[type, ...]] = (ModelOptions, RLOptions)
    learner: Learner | None = None
    _stage = ""

    def set_defaults(self) -> None:
        """Add the options that the host does not know."""
        super().set_defaults()
        for cls in self.option_classes:
            for name, value in defaults(cls).items():
                self.defaults.setdefault(name, value)

    def make_learner(self) -> Learner | None:
        """The algorithm's learner, if it has one."""
        return None

    def register_tensorboard(self, handle: Any) -> None:
        """The host calls this when training begins, and never to translate: now the learner is needed."""
        super().register_tensorboard(handle)
        self.rl_options = read_section(RLOptions, self.opts.model, f"{self.opts.filename} [model]")
        self.learner = self.make_learner()

    def forward(self, batch: Any, uctr: int = 0, ectr: int = 0) -> dict[str, Any]:
        """In training, the algorithm's loss; in validation, the maximum-likelihood loss."""
        if not self.training:
            return super().forward(batch)
        return self.training_loss(batch, uctr, ectr)

    def training_loss(self, batch: Any, update: int, epoch: int) -> dict[str, Any]:
        """The loss of a batch, summed, as `{'loss': tensor, 'n_items': words}`: the learner's, unless overridden."""
        if self.learner is None:
            raise TypeError(f"{type(self).__name__} has neither a learner nor a training loss of its own")
        self.announce(self.learner.stage(epoch))
        mean, n_items = self.learner.loss(batch, update, epoch)
        if update % self.rl_options.health_freq == 0:
            self.report(self.learner.health(update), update)
        return {"loss": mean * n_items, "n_items": n_items}

    def lr_factor(self, update: int) -> float:
        """By what the host shall multiply the learning rate of an update: the warm-up."""
        warmup = self.rl_options.actor_warmup
        return min(1.0, update / warmup) if warmup else 1.0

    # Telling

    def say(self, message: str) -> None:
        """A line for the host's log."""
        say = getattr(self.tboard, "say", None) or logging.getLogger("pysimt").info
        say(message)

    def announce(self, stage: str) -> None:
        """Say what learns now, when that changes."""
        if stage != self._stage:
            self._stage = stage
            self.say(f"Now learning: {stage}")

    def report(self, figures: dict[str, float], update: int) -> None:
        """A line of the log and a point of each curve."""
        self.say("  ".join(f"{name} {value:.3g}" for name, value in figures.items()))
        for name, value in figures.items():
            self.tboard.log_scalar(f"rl_{name}", value, update)

    # Resuming

    def training_state(self) -> dict[str, Any]:
        """The learner's state."""
        learner = {"learner": self.learner.state_dict()} if self.learner else {}
        return {**super().training_state(), "stage": self._stage, **learner}

    def load_training_state(self, state: dict[str, Any]) -> None:
        """Take back what `training_state` gave."""
        super().load_training_state(state)
        self._stage = state["stage"]
        if self.learner:
            self.learner.load_state_dict(state["learner"])

    # The network

    @functools.cached_property
    def trg_vocab_tokens(self) -> list[str]:
        """The target words by their numbers."""
        return [str(self.trg_vocab[number]) for number in range(len(self.trg_vocab))]

    def host_lengths(self, batch: Any, side: str) -> Tensor:
        """The lengths of a side's sentences, in host memory."""
        known = getattr(batch, "lengths", {}).get(side)
        lengths_B: Tensor = batch[side].ne(0).sum(0).cpu() if known is None else known
        return lengths_B

    def states_of(self, batch: Any) -> "States":
        """The encoded source."""
        self.cache_enc_states(batch)
        return self.get_enc_state_dict()

    def log_probs(self, states: "States", ids_TB: Tensor, lengths_B: Tensor | None = None) -> Tensor:
        """Log-probabilities (N, V) of the next word at every real step of `<bos> ... <eos>`, by step, then by sentence.

        The engine's decoder takes all steps in one pass; pysimt's is asked for one after the other.
        """
        if hasattr(self.dec, "unroll"):
            readout_NE, _ = self.readouts(states, ids_TB, lengths_B)
            return self.dec.out2prob(readout_NE).log_softmax(-1)  # type: ignore[no-any-return]
        state, steps = self.dec.f_init(states), []  # type: ignore[func-returns-value]
        for ids_B in ids_TB[:-1]:
            log_p_BV, state = self.dec.f_next(states, self.dec.get_emb(ids_B), state)
            steps.append(log_p_BV)
        return torch.cat(steps).index_select(0, real_positions(ids_TB, lengths_B))

    def nll(self, states: "States", ids_TB: Tensor) -> Tensor:
        """Minus the mean log-probability of the words of `<bos> ... <eos>`."""
        if hasattr(self.dec, "unroll"):
            readout_NE, targets_N = self.readouts(states, ids_TB)
            return linear_cross_entropy(self.dec.out2prob, readout_NE, targets_N) / len(targets_N)
        targets_N = ids_TB[1:].flatten().index_select(0, real_positions(ids_TB))
        return -self.log_probs(states, ids_TB).gather(1, targets_N.unsqueeze(1)).mean()
