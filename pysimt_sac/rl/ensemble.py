"""Several critics, their slow copies and their optimiser, as one thing."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pysimt_sac.engine.config.options import ModelOptions
from pysimt_sac.rl.critics import Critic
from pysimt_sac.rl.losses import Support
from pysimt_sac.rl.replay import Experience
from pysimt_sac.rl.steps import Steps
from pysimt_sac.rl.targets import SlowCopy


class CriticEnsemble:
    """I critics that see the same and begin differently."""

    def __init__(
        self,
        options: ModelOptions,
        n_vocab: int,
        n_critics: int,
        tau: float,
        device: torch.device,
        beta1: float = 0.9,
    ) -> None:
        """tau: the part of the way by which the slow copies follow. beta1: how long Adam remembers gradients."""
        self.tau = tau
        self.critics = [Critic(options, n_vocab).to(device) for _ in range(n_critics)]
        self.slow = [SlowCopy(critic) for critic in self.critics]
        self.parameters = [parameter for critic in self.critics for parameter in critic.parameters()]
        self.optimizer = torch.optim.Adam(self.parameters, betas=(beta1, 0.999), fused=True)

    def start_from(self, actor_dec: nn.Module) -> None:
        """Take the actor's embeddings and decoder, in the slow copies, too."""
        for critic, slow in zip(self.critics, self.slow, strict=True):
            critic.start_from(actor_dec)
            slow.follow(1.0)

    def readouts(self, experience: Experience, steps: Steps, slow: bool = False) -> list[Tensor]:
        """What each critic's output layer sees (N, E)."""
        networks: Sequence[Critic] = [copy.network for copy in self.slow] if slow else self.critics
        lengths_B = experience.reference_RB.ne(0).sum(0).cpu()
        return [network(experience.reference_RB, lengths_B, experience.words_TB, steps) for network in networks]

    def q_of_taken(self, readouts: list[Tensor], taken_N: Tensor) -> Tensor:
        """Q_i(s_t, a_t), (I, N)."""
        pairs = zip(self.critics, readouts, strict=True)
        return torch.stack([critic.q_of(readout, taken_N) for critic, readout in pairs])

    def q_of_actions(
        self, readouts: list[Tensor], support: Support | None, slow: bool = False, gradient: bool = False
    ) -> Tensor:
        """Q_i(s_t, a) of a support's words, or of all words, (I, N, A)."""
        networks: Sequence[Critic] = [copy.network for copy in self.slow] if slow else self.critics
        pairs = zip(networks, readouts, strict=True)
        with torch.set_grad_enabled(gradient):
            if support is None:
                return torch.stack([network.q_of_all(readout) for network, readout in pairs])
            return torch.stack([network.q_of(readout, support.words_NK) for network, readout in pairs])

    def learn(self, loss: Tensor, lr: float, gclip: float) -> Tensor:
        """One step down the critics' loss; the gradient's norm."""
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.parameters, gclip)
        self.optimizer.step()
        return norm

    def follow(self, tau: float | None = None) -> None:
        """Let the slow copies follow, by another part of the way if one is given."""
        for copy in self.slow:
            copy.follow(self.tau if tau is None else tau)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        return {
            "critics": [critic.state_dict() for critic in self.critics],
            "slow": [copy.network.state_dict() for copy in self.slow],
            "optimizer": self.optimizer.state_dict(),
        }

    def take(self, state: dict[str, Any]) -> None:
        """Begin with another ensemble's critics, or with the first of them; the optimiser begins anew."""
        if len(state["critics"]) < len(self.critics):
            raise ValueError(f"{len(state['critics'])} critics, not {len(self.critics)}")
        for critic, slow, theirs, their_slow in zip(
            self.critics, self.slow, state["critics"], state["slow"], strict=False
        ):
            critic.load_state_dict(theirs)
            slow.network.load_state_dict(their_slow)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        for critic, own in zip(self.critics, state["critics"], strict=True):
            critic.load_state_dict(own)
        for copy, own in zip(self.slow, state["slow"], strict=True):
            copy.network.load_state_dict(own)
        self.optimizer.load_state_dict(state["optimizer"])
