"""The embedded engine as a host: its network as an `Actor`, and the shell that its training loop trains."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from pysimt_sac.core.actor import Actor
from pysimt_sac.core.batch import Batch
from pysimt_sac.core.options import defaults
from pysimt_sac.core.registry import MODELS, Registry
from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.hosts.choice import HUGGING_FACE, network_of
from pysimt_sac.hosts.engine.actor import EngineActor
from pysimt_sac.hosts.engine.config.parser import Options, check_config, check_trust, find_model, read_config
from pysimt_sac.hosts.engine.nmt import SimultaneousNMT
from pysimt_sac.hosts.engine.training.console import logger
from pysimt_sac.rl.algorithm import Algorithm
from pysimt_sac.rl.session import Log, Session, TrainedByAlgorithm


class EngineShell(TrainedByAlgorithm, SimultaneousNMT):
    """The engine's model, trained by an algorithm; validation and translation are the base's."""

    algorithm: ClassVar[type[Algorithm]]

    def set_defaults(self) -> None:
        """Add the algorithm's options."""
        super().set_defaults()
        for cls in self.algorithm.option_classes:
            self.defaults.update(defaults(cls))
        self.defaults.update(self.algorithm.defaults)

    def start_training(self, log: Log) -> None:
        """Build the algorithm."""
        self.session = Session(self.algorithm, self.as_actor(), self.opts, log, self.is_trained)

    def as_actor(self) -> Actor:
        """Return the network as an actor."""
        return EngineActor.of(self)

    def forward(self, batch: Batch, uctr: int = 0, ectr: int = 0) -> dict[str, Any]:
        """Return the algorithm's loss in training, else the negative log-likelihood."""
        if not self.training or self.session is None:
            return super().forward(batch)
        return self.session.training_loss(batch, uctr)


SHELLS: Registry[type[EngineShell]] = Registry("network")  # of other networks than the engine's, by their name


def model_class(registered: Any, network: str = "") -> type[SimultaneousNMT]:
    """Return the model class that the engine trains for a registered model or algorithm. network: if not its own."""
    if issubclass(registered, Algorithm):
        shell = SHELLS.get(network) if network else EngineShell
        return type(registered.__name__, (shell,), {"algorithm": registered})
    return MODELS.get(network) if network else registered  # type: ignore[no-any-return]


def read_training(
    config: Path, overrides: Sequence[str], trusted: bool = True
) -> tuple[Options, TrainOptions, SimultaneousNMT]:
    """Read and check a configuration, and build its model without layers; print warnings to the console.

    trusted: run the Python files that the configuration names; otherwise refuse them.
    """
    options = read_config(config, overrides)
    if not trusted:
        check_trust(options)
    train_options, warnings = check_config(options)
    for warning in warnings:
        logger.warning(f"Warning: {warning}")
    return options, train_options, build_model(options)


def build_model(options: Options) -> SimultaneousNMT:
    """Build the model that a configuration names, without its layers."""
    registered = find_model(str(options.train["model_type"]), f"{options.filename} [train] model_type")
    network = HUGGING_FACE if network_of(options.train, options.model) == HUGGING_FACE else ""
    return model_class(registered, network)(opts=options)
