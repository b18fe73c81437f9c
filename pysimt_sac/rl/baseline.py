"""A learnt baseline: what a translation will earn, told from the decoder's state before each of its words.

It is a linear function of detached states, so that it changes nothing in the actor. Because it has an optimiser of its
own, Adam, the weight of its error in a common loss (0.01 in MIXER) would change nothing: `baseline_lr` stands for it.
"""

from typing import Any

import torch
from torch import Tensor, nn

from pysimt_sac.rl import losses


class LearntBaseline:
    """b_t = w h_t + c, which begins at 0."""

    def __init__(self, size: int, lr: float, device: torch.device) -> None:
        self.layer = nn.Linear(size, 1).to(device)
        nn.init.zeros_(self.layer.weight)
        nn.init.zeros_(self.layer.bias)
        self.optimizer = torch.optim.Adam(self.layer.parameters(), lr=lr)

    def __call__(self, states_NH: Tensor) -> Tensor:
        """What is expected in some states, (N)."""
        expected_N: Tensor = self.layer(states_NH.detach()).squeeze(1)
        return expected_N

    def learn(self, expected_N: Tensor, returns_N: Tensor) -> Tensor:
        """One step towards what came of these states; the error before it."""
        loss = losses.baseline_loss(expected_N, returns_N)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        return {"layer": self.layer.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.layer.load_state_dict(state["layer"])
        self.optimizer.load_state_dict(state["optimizer"])
