"""alpha, the weight of the entropy: fixed, or learnt so that the policy keeps a given entropy."""

import math
from typing import Any

import torch
from torch import Tensor

from pysimt_sac.rl.losses import temperature_loss


class Temperature:
    """Holds alpha. It learns its logarithm, so that it stays above zero, if there is an entropy to aim at."""

    def __init__(
        self,
        alpha: float,
        target_entropy: float | None = None,
        lr: float = 3e-4,
        device: torch.device | str = "cpu",
    ) -> None:
        """alpha: its value, or where it begins; target_entropy: in nats, None keeps alpha as it is."""
        self.target_entropy = target_entropy
        self.fixed = torch.tensor(alpha, device=device)
        if target_entropy is not None:
            self.log_alpha = torch.tensor(math.log(alpha), device=device, requires_grad=True)
            self.optimizer = torch.optim.Adam([self.log_alpha], lr=lr)

    @property
    def learns(self) -> bool:
        """Whether alpha changes."""
        return self.target_entropy is not None

    @property
    def alpha(self) -> Tensor:
        """The current value, without gradient."""
        return self.log_alpha.detach().exp() if self.learns else self.fixed

    def learn(self, log_pi_NA: Tensor) -> None:
        """One step towards the entropy aimed at; nothing if alpha is fixed."""
        if self.target_entropy is None:
            return
        self.optimizer.zero_grad()
        temperature_loss(self.log_alpha.exp(), log_pi_NA, self.target_entropy).backward()
        self.optimizer.step()

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        if not self.learns:
            return {}
        state = {"log_alpha": self.log_alpha.detach(), "optimizer": self.optimizer.state_dict()}
        return {**state, "target_entropy": self.target_entropy}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        if self.learns:
            with torch.no_grad():
                self.log_alpha.copy_(state["log_alpha"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.target_entropy = state["target_entropy"]
