"""Weights & Biases as a listener of a run's curves; WANDB_MODE=offline keeps everything in the run's folder."""

import math
from pathlib import Path
from typing import Any

from pysimt_sac.core.errors import UserError


class WandbTracker:
    """One run of a project; a resumed run goes on under the same id."""

    def __init__(self, project: str, folder: Path, exp_id: str, config: dict[str, Any]) -> None:
        try:
            import wandb  # heavy, and rarely needed
        except ImportError as error:
            raise UserError("needs wandb", "[model] wandb_project", "pip install 'pysimt_sac[wandb]'") from error
        quiet = wandb.Settings(silent=True, console="off", disable_git=True, disable_code=True)
        try:
            self.run: Any = wandb.init(
                project=project,
                dir=str(folder),
                id=exp_id,
                name=folder.name,
                config=config,
                resume="allow",
                settings=quiet,
            )
        except wandb.Error as error:
            hint = "log in with `wandb login`, or set WANDB_MODE=offline"
            raise UserError(f"does not start: {error}", "[model] wandb_project", hint) from error
        self.run.define_metric("*", step_metric="update")

    def __call__(self, name: str, value: float, step: int) -> None:
        """Add a point to a curve."""
        if math.isfinite(value):
            self.run.log({name: value, "update": step})

    def close(self) -> None:
        """End the run."""
        self.run.finish()
