"""The embedded engine as a host: its network as an `Actor`, and the shell that its training loop trains."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from pysimt_sac.core.batch import Batch
from pysimt_sac.core.options import defaults
from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.hosts.engine.actor import EngineActor
from pysimt_sac.hosts.engine.config.parser import Options, check_config, find_model, read_config
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
        self.session = Session(self.algorithm, EngineActor.of(self), self.opts, log)

    def forward(self, batch: Batch, uctr: int = 0, ectr: int = 0) -> dict[str, Any]:
        """Return the algorithm's loss in training, else the negative log-likelihood."""
        if not self.training or self.session is None:
            return super().forward(batch)
        return self.session.training_loss(batch, uctr)


def model_class(registered: Any) -> type[SimultaneousNMT]:
    """Return the model class that the engine trains for a registered model or algorithm."""
    if issubclass(registered, Algorithm):
        return type(registered.__name__, (EngineShell,), {"algorithm": registered})
    return registered  # type: ignore[no-any-return]


def read_training(config: Path, overrides: Sequence[str]) -> tuple[Options, TrainOptions, SimultaneousNMT]:
    """Read and check a configuration, and build its model without layers; print warnings to the console."""
    options = read_config(config, overrides)
    train_options, warnings = check_config(options)
    for warning in warnings:
        logger.warning(f"Warning: {warning}")
    return options, train_options, build_model(options)


def build_model(options: Options) -> SimultaneousNMT:
    """Build the model that a configuration names, without its layers."""
    name = str(options.train["model_type"])
    return model_class(find_model(name, f"{options.filename} [train] model_type"))(opts=options)
