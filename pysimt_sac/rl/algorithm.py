"""What every algorithm is: an object that turns a batch into the actor's loss, and owns all else that learns.

An algorithm is a plain object, not a network: nothing of it is in the model's weights, nor seen by the host's
optimiser. It is built when training begins. A host calls `update` for every batch and minimises what it returns.
To write one, derive from `Algorithm`, define `update`, and register it; `models/mle.py` is the shortest example.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol

from torch import Tensor

from pysimt_sac.engine.config.registry import MODELS
from pysimt_sac.engine.data.corpus import Batch
from pysimt_sac.engine.statistics import Figure, combine
from pysimt_sac.rl.collector import Collector
from pysimt_sac.rl.setup import ActorOptions, RLOptions, Setup


class ActorLoss(NamedTuple):
    """The weighted terms of the actor's loss, each a mean over `n_items` steps. No term: the actor does not learn.

    Where a batch is sharded over several ranks, a term is this rank's share of the mean, and it counts its own steps.
    """

    terms: dict[str, Tensor]
    n_items: int


class Stateful(Protocol):
    """Something whose state is saved with the run's."""

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""

    def load_state_dict(self, state: Any) -> Any:
        """Restore it."""


class Algorithm(ABC):
    """One way to train an actor.

    collector: rolls out and scores, in algorithms that sample. parts: all that learns or draws random numbers besides
    the actor, by name; saved and restored with the run.
    metrics: figures of the last update by name, kept on the device until they are reported.
    """

    option_classes: ClassVar[tuple[type, ...]] = (ActorOptions,)
    defaults: ClassVar[dict[str, Any]] = {}  # of options whose declared default does not suit the algorithm
    collector: Collector | None = None
    updates_without_actor: int = 0  # at the beginning, in which only other things learn
    distributed: ClassVar[bool] = False  # whether its losses are shares, see `engine.distributed`

    def __init__(self, setup: Setup) -> None:
        self.setup, self.actor = setup, setup.actor
        self.common = setup.read(RLOptions)
        self.parts: dict[str, Stateful] = {}
        self.metrics: dict[str, Figure] = {}

    @abstractmethod
    def update(self, batch: Batch, update: int, epoch: int) -> ActorLoss:
        """The actor's loss for a batch; everything else learns on the way."""

    def stage(self, epoch: int) -> str:
        """What learns in an epoch, in words."""
        return "actor"

    def begin_stage(self, stage: str) -> list[str]:
        """Called once when a stage begins; returns lines for the log."""
        return []

    def report(self, update: int) -> dict[str, float]:
        """The metrics of the rollouts and of the last update."""
        return combine({**(self.collector.metrics if self.collector else {}), **self.metrics})

    def state_dict(self) -> dict[str, Any]:
        """The state of all parts."""
        return {name: part.state_dict() for name, part in self.parts.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore it."""
        for name, part in self.parts.items():
            part.load_state_dict(state[name])


def algorithm(name: str) -> Callable[[type[Algorithm]], type[Algorithm]]:
    """Register an algorithm under the `model_type` that trains with it."""
    return MODELS.register(name)
