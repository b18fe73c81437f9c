"""Scalars and small models that some algorithms learn: temperature, weight of the critics, baseline."""

import dataclasses
import math
from typing import Any

import torch
from torch import Tensor, nn

from pysimt_sac.core.distributed import optimizer_step, world
from pysimt_sac.core.options import option
from pysimt_sac.core.policy import entropy
from pysimt_sac.core.states import load_optimizer
from pysimt_sac.rl import losses


@dataclasses.dataclass(frozen=True)
class BaselineOptions:
    """The `[model]` keys shared by models with a learned baseline."""

    baseline_lr: float = option(0.001, "learning rate of the learned baseline, which has an Adam of its own", above=0)


class Temperature:
    """alpha, the weight of the entropy: fixed, or with `auto` learned so that the policy keeps its initial entropy.

    The learned parameter is log alpha, so that alpha stays positive. The target is the mean entropy of the policy until
    the actor starts to learn, or in its first update.
    """

    START, LR = 0.01, 3e-4  # of a learned alpha

    def __init__(self, alpha: float | str, device: torch.device) -> None:
        self.learned = alpha == "auto"
        start = self.START if self.learned else float(alpha)
        self.fixed = torch.tensor(start, device=device)
        if self.learned:
            self.log_alpha = torch.tensor(math.log(start), device=device, requires_grad=True)
            self.optimizer = torch.optim.Adam([self.log_alpha], lr=self.LR)
            self.target_entropy, self.n_observed = torch.zeros((), device=device), 0

    @property
    def alpha(self) -> Tensor:
        """The current value, without gradient."""
        return self.log_alpha.detach().exp() if self.learned else self.fixed

    def update(self, log_pi_NA: Tensor, actor_learns: bool) -> None:
        """Take one step towards the target entropy; before the actor learns, average the policy's entropy into it."""
        if not self.learned:
            return
        if not actor_learns or not self.n_observed:
            self.n_observed += 1
            mean = world.all_reduce(entropy(log_pi_NA.detach()).mean()) / world.size
            self.target_entropy.lerp_(mean.to(self.target_entropy.dtype), 1 / self.n_observed)
        if actor_learns:
            loss = losses.temperature_loss(self.log_alpha.exp(), log_pi_NA, self.target_entropy)
            optimizer_step(self.optimizer, loss, len(log_pi_NA))

    def state_dict(self) -> dict[str, Any]:
        """Return the state needed to resume."""
        if not self.learned:
            return {}
        tensors = {"log_alpha": self.log_alpha.detach(), "target_entropy": self.target_entropy}
        return {**tensors, "n_observed": self.n_observed, "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state."""
        if self.learned:
            with torch.no_grad():
                self.log_alpha.copy_(state["log_alpha"])
                self.target_entropy.copy_(state["target_entropy"])
            self.n_observed = state["n_observed"]
            load_optimizer(self.optimizer, state["optimizer"])


class FutureWeight:
    """w in Q = r + w f: how far to trust the critics' f, by regression of the realised future d on f.

    w = cov(f, d) / var(f) within branched states, on sentences held out from the critics (one in eight); running means
    that start at 0, clipped to [0, 1]. A critic that cannot rank words gets no weight.
    """

    HELD_OUT, DECAY = 8, 0.98

    def __init__(self, weight: float | str, has_branches: bool, device: torch.device) -> None:
        """weight: fixed, or `auto`, which is 1 if there are no branches to fit it on."""
        self.fixed = float(weight) if weight != "auto" else None if has_branches else 1.0
        self.covariance, self.variance = (torch.zeros((), device=device) for _ in range(2))

    @property
    def value(self) -> float | Tensor:
        """The current weight."""
        if self.fixed is not None:
            return self.fixed
        return (self.covariance / self.variance.clamp(min=1e-12)).clamp(0.0, 1.0)

    def held_out(self, source_SB: Tensor) -> Tensor:
        """Return which sentences (B) are held out from the critics; a source is always in or always out."""
        if self.fixed is not None:
            return torch.zeros(source_SB.size(1), dtype=torch.bool, device=source_SB.device)
        places_S1 = torch.arange(1, len(source_SB) + 1, device=source_SB.device).unsqueeze(1)
        return (source_SB * places_S1).sum(0) % self.HELD_OUT == 0

    @torch.no_grad()
    def update(self, predicted_IMK: Tensor, realised_MK: Tensor, valid_MK: Tensor) -> None:
        """Update the running means with held-out branches."""
        if self.fixed is not None:
            return
        predicted_MK = losses.centred(predicted_IMK.amin(0), valid_MK)
        realised_MK = losses.centred(realised_MK, valid_MK)
        sums = (
            (predicted_MK * realised_MK).sum(),
            predicted_MK.square().sum(),
            predicted_MK.new_full((), len(realised_MK)),
        )
        covariance, variance, n_states = world.all_reduce(torch.stack(sums))
        rate = (1 - self.DECAY) * n_states.clamp(max=1)  # without states nothing changes
        self.covariance.lerp_(covariance / n_states.clamp(min=1), rate)
        self.variance.lerp_(variance / n_states.clamp(min=1), rate)

    def state_dict(self) -> dict[str, Any]:
        """Return the running means."""
        return {"covariance": self.covariance, "variance": self.variance}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the running means; an empty state leaves them unchanged."""
        if state:
            self.covariance.copy_(state["covariance"])
            self.variance.copy_(state["variance"])


class LearnedBaseline:
    """A state-dependent baseline b_t = w h_t + c on detached decoder states; it starts at 0.

    It has its own Adam, which is invariant to the weight of the baseline loss (0.01 in MIXER): `baseline_lr` takes its
    place.
    """

    def __init__(self, size: int, lr: float, device: torch.device) -> None:
        self.layer = nn.Linear(size, 1).to(device)
        nn.init.zeros_(self.layer.weight)
        nn.init.zeros_(self.layer.bias)
        self.optimizer = torch.optim.Adam(self.layer.parameters(), lr=lr)

    def __call__(self, states_NH: Tensor) -> Tensor:
        """Predict the returns (N)."""
        predicted_N: Tensor = self.layer(states_NH.detach()).squeeze(1)
        return predicted_N

    def update(self, predicted_N: Tensor, returns_N: Tensor) -> Tensor:
        """Take one step towards the realised returns; return the loss before it."""
        loss = losses.baseline_loss(predicted_N, returns_N)
        optimizer_step(self.optimizer, loss, len(returns_N))
        return loss.detach()

    def state_dict(self) -> dict[str, Any]:
        """Return the state needed to resume."""
        return {"layer": self.layer.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state."""
        self.layer.load_state_dict(state["layer"])
        load_optimizer(self.optimizer, state["optimizer"])
