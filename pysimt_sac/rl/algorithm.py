"""The interface of an algorithm: it turns a batch into the actor loss, and owns everything else that learns.

An algorithm is a plain object, not a module: nothing in it belongs to the model's weights or is seen by the host's
optimiser. It is built when training starts. A host calls `update` for every batch and minimises the returned loss.
To write one, subclass `Algorithm`, define `update`, and register it; `models/mle.py` is the shortest example.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol

from torch import Tensor

from pysimt_sac.core.batch import Batch
from pysimt_sac.core.registry import MODELS
from pysimt_sac.rl.collector import Collector
from pysimt_sac.rl.replay import ReplayBuffer
from pysimt_sac.rl.setup import ActorOptions, RLOptions, Setup

OF_RANKS = ("collector", "replay", "rarity")  # parts that each process has for itself


class ActorLoss(NamedTuple):
    """The weighted terms of the actor loss, each a mean; without any, the actor does not learn.

    n_items: the steps or words that weigh this process's means beside those of the others.
    """

    terms: dict[str, Tensor]
    n_items: int


class Stateful(Protocol):
    """An object whose state is saved with the run."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state needed to resume."""

    def load_state_dict(self, state: Any) -> Any:
        """Restore the state."""


class Algorithm(ABC):
    """One way to train an actor.

    collector: rolls out and scores hypotheses, in algorithms that sample. replay: their replay buffer, if they have
    one. parts: everything besides the actor that learns or draws random numbers, by name; saved with the run.
    metrics: those of the last update by name, kept on the device until they are reported.
    """

    option_classes: ClassVar[tuple[type, ...]] = (ActorOptions,)
    defaults: ClassVar[dict[str, Any]] = {}  # overrides of the options' declared defaults
    collector: Collector | None = None
    replay: ReplayBuffer | None = None
    updates_without_actor: int = 0  # initial updates in which the actor does not learn yet
    beside_actor: ClassVar[str] = ""  # what learns besides the actor, in words for the log

    def __init__(self, setup: Setup) -> None:
        self.setup, self.actor = setup, setup.actor
        self.common = setup.read(RLOptions)
        self.parts: dict[str, Stateful] = {}
        self.metrics: dict[str, Tensor | float] = {}

    @abstractmethod
    def update(self, batch: Batch, step: int) -> ActorLoss:
        """Update everything that learns besides the actor, and return the actor loss of a batch.

        step: the number of this update, from 1.
        """

    def before_actor_learns(self) -> list[str]:
        """Do something once, before the actor's first update; return lines to log. `rl.gate` tests critics."""
        return []

    def report(self, step: int) -> dict[str, Tensor | float]:
        """Return the metrics of the rollouts and of the last update."""
        metrics = {**(self.collector.metrics if self.collector else {}), **self.metrics}
        return {**metrics, **self.replay.metrics(step)} if self.replay else metrics

    def state_dict(self) -> dict[str, Any]:
        """Return the state of all parts."""
        return {name: part.state_dict() for name, part in self.parts.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state."""
        for name, part in self.parts.items():
            part.load_state_dict(state[name])

    # Several processes: everything that learns is the same in all of them, but what they sample is their own.

    def rank_state(self) -> dict[str, Any]:
        """Return the state that each process has for itself: what it draws, and what it has stored."""
        return {name: self.parts[name].state_dict() for name in OF_RANKS if name in self.parts}

    def load_rank_state(self, state: dict[str, Any]) -> None:
        """Restore the state of `rank_state`."""
        for name, part in state.items():
            self.parts[name].load_state_dict(part)

    def start_afresh(self, seed: int) -> None:
        """Start new random streams and an empty replay buffer: for a process that the saved run did not have."""
        if self.collector:
            self.collector.generator.manual_seed(seed)
        if self.replay:
            self.replay.clear(seed)


def algorithm(name: str) -> Callable[[type[Algorithm]], type[Algorithm]]:
    """Register an algorithm under a `model_type`."""
    return MODELS.register(name)
