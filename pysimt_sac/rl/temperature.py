"""alpha, the weight of the entropy: fixed, or learnt so that the policy keeps a given entropy."""

import math
from typing import Any

import torch
from torch import Tensor

from pysimt_sac.rl.losses import entropy, temperature_loss


class Temperature:
    """Holds alpha; if it is learnt, by its logarithm, so that it stays above zero."""

    def __init__(
        self,
        alpha: float,
        learns: bool = False,
        target_entropy: float | None = None,
        lr: float = 3e-4,
        device: torch.device | str = "cpu",
    ) -> None:
        """alpha: its value, or where it begins. target_entropy: in nats; None: what `observe` sees before `learn`."""
        self.learns = learns
        self.fixed = torch.tensor(alpha, device=device)
        if learns:
            self.log_alpha = torch.tensor(math.log(alpha), device=device, requires_grad=True)
            self.optimizer = torch.optim.Adam([self.log_alpha], lr=lr)
            self.target = torch.tensor(target_entropy or 0.0, device=device)
            self.observed = -1 if target_entropy else 0  # policies seen so far; -1: the target is given

    @property
    def alpha(self) -> Tensor:
        """The current value, without gradient."""
        return self.log_alpha.detach().exp() if self.learns else self.fixed

    @torch.no_grad()
    def observe(self, log_pi_NA: Tensor) -> None:
        """Let the entropy to aim at be the mean of all policies seen here, unless it is given."""
        if self.learns and self.observed >= 0:
            self.observed += 1
            self.target.lerp_(entropy(log_pi_NA).mean().to(self.target.dtype), 1 / self.observed)

    def learn(self, log_pi_NA: Tensor) -> None:
        """One step towards the entropy aimed at; nothing if alpha is fixed."""
        if not self.learns:
            return
        if self.observed == 0:
            self.observe(log_pi_NA)
        self.optimizer.zero_grad()
        temperature_loss(self.log_alpha.exp(), log_pi_NA, self.target).backward()
        self.optimizer.step()

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        if not self.learns:
            return {}
        tensors = {"log_alpha": self.log_alpha.detach(), "target": self.target}
        return {**tensors, "observed": self.observed, "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        if self.learns:
            with torch.no_grad():
                self.log_alpha.copy_(state["log_alpha"])
                self.target.copy_(state["target"])
            self.observed = state["observed"]
            self.optimizer.load_state_dict(state["optimizer"])
