"""Critics: Q(s, a), target networks, targets and optimiser step.

A critic has the actor's architecture, but encodes the *reference*, and its output layer is linear. Q(s, a) is the sum
of a separate head for V(s) and of what the word adds. Otherwise the output weights of words would have to carry the
value of states, and words of early positions, where more reward is still to come, would look better everywhere. One
forward pass over a batch gives the input of the output layer; Q of the taken words, of a support or of all words is
computed from it. Critics have no dropout, and use the engine's layers in either host.
"""

import copy
import dataclasses
import math
import re
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from pysimt_sac.core.distributed import world
from pysimt_sac.core.policy import Support, entropy
from pysimt_sac.core.sections import ModelOptions, RecipeOptions
from pysimt_sac.core.states import load_optimizer
from pysimt_sac.core.statistics import Figure, explained_variance_of, largest_of, mean_of
from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import PAD
from pysimt_sac.network.layers import ConditionalGRUDecoder, RecurrentEncoder, set_precision
from pysimt_sac.network.output import linear_rows
from pysimt_sac.rl import losses
from pysimt_sac.rl.critic_options import CriticOptions
from pysimt_sac.rl.estimators import FutureWeight
from pysimt_sac.rl.policy import PolicyAtSteps
from pysimt_sac.rl.replay import Branches, Experience
from pysimt_sac.rl.setup import Setup

M = TypeVar("M", bound=nn.Module)


class Clip(NamedTuple):
    """The limits of critic targets: a reward's potentials stay within `bounds`, a rollout within `max_steps`."""

    bounds: tuple[float, float]
    max_steps: int


class Critic(nn.Module):
    """Q(s, a) of all words, given the reference and the prefix. Initially Q = 0."""

    def __init__(self, options: ModelOptions, n_vocab: int) -> None:
        super().__init__()
        options = dataclasses.replace(options, dropout_emb=0.0, dropout_ctx=0.0, dropout_enc=0.0, dropout_out=0.0)
        self.encoder = RecurrentEncoder(options, n_vocab)
        self.dec = ConditionalGRUDecoder(options, n_vocab, {"ref": self.encoder.ctx_size})
        if options.tied_emb == "3way":
            self.encoder.emb.weight = self.dec.emb.weight
        self.value = nn.Linear(self.dec.out2prob.in_features, 1)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Initialise as the actor, but with `hid2out` and the biases after it at zero, so that Q = 0."""
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.kaiming_normal_(parameter)
        self.encoder.emb.weight[PAD].zero_()
        self.dec.emb.weight[PAD].zero_()
        for start in (self.dec.hid2out.weight, self.dec.hid2out.bias, self.dec.out2prob.bias, self.value.bias):
            start.zero_()

    @torch.no_grad()
    def start_from(self, actor_dec: nn.Module) -> list[str]:
        """Copy embeddings and decoder from the actor, and return the names of the copied weights; Q stays 0."""
        own = self.dec.state_dict()
        taken = []
        for name, weight in actor_dec.state_dict().items():
            name = re.sub(r"^att\.[^.]+\.", "att.ref.", name)
            fits = name in own and own[name].shape == weight.shape
            if fits and not name.startswith("hid2out.") and name != "out2prob.bias":
                own[name].copy_(weight)
                taken.append(name)
        self.encoder.emb.weight.copy_(self.dec.emb.weight)
        return taken

    def forward(self, reference_TB: Tensor, reference_lengths_B: Tensor, tokens_TB: Tensor, steps: Steps) -> Tensor:
        """Return the input of the output layer (N, E) at every real step.

        Both word arrays have the layout `<bos> ... <eos>`; the encoder reads `... <eos>`, like a source.
        """
        states = self.encoder(reference_TB[1:], reference_lengths_B - 1)
        return self.dec.readouts({"ref": states}, tokens_TB[:-1], steps.positions_N)

    def q_of(self, readout_NE: Tensor, words: Tensor) -> Tensor:
        """Return Q of one word (N) or of K words (N, K) per step."""
        value_N1: Tensor = self.value(readout_NE)
        return linear_rows(self.dec.out2prob, readout_NE, words) + (
            value_N1 if words.dim() > 1 else value_N1.squeeze(1)
        )

    def q_of_all(self, readout_NE: Tensor) -> Tensor:
        """Return Q of all words, (N, V)."""
        return self.dec.out2prob(readout_NE) + self.value(readout_NE)  # type: ignore[no-any-return]


class TargetNetwork(Generic[M]):
    """A copy of a network, updated by Polyak averaging; never trained by gradient, never in training mode."""

    def __init__(self, network: M) -> None:
        self.network = copy.deepcopy(network).eval().requires_grad_(False)
        self.target, self.online = list(self.network.parameters()), list(network.parameters())

    def polyak_update(self, tau: float) -> None:
        """Update target <- (1 - tau) target + tau online."""
        polyak_update(self.target, self.online, tau)

    def state_dict(self) -> dict[str, Any]:
        """Return the target network's weights."""
        return self.network.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state."""
        self.network.load_state_dict(state)


@torch.no_grad()
def polyak_update(target: Sequence[Tensor], online: Sequence[Tensor], tau: float) -> None:
    """Update target <- (1 - tau) target + tau online, in place, for all tensors in one operation."""
    torch._foreach_lerp_(tuple(target), tuple(online), tau)


class CriticEnsemble:
    """I critics, trained on the same data from different initialisations, with target networks and optimiser."""

    def __init__(
        self,
        shape: ModelOptions,
        options: CriticOptions,
        n_vocab: int,
        n_critics: int,
        tau: float,
        device: torch.device,
    ) -> None:
        """tau: rate of the target networks' Polyak averaging."""
        self.options, self.tau = options, tau
        self.critics = [Critic(shape, n_vocab).to(device) for _ in range(n_critics)]
        self.targets = [TargetNetwork(critic) for critic in self.critics]
        self.parameters = [parameter for critic in self.critics for parameter in critic.parameters()]
        self.optimizer = torch.optim.Adam(self.parameters, betas=(options.critic_beta1, 0.999), fused=True)

    @classmethod
    def build(cls, setup: Setup, options: CriticOptions, n_critics: int, tau: float) -> "CriticEnsemble":
        """Build critics of the actor's shape, initialised from its decoder."""
        actor = setup.actor
        critics = cls(setup.read(ModelOptions), options, len(actor.tokens), n_critics, tau, actor.device)
        for critic in critics.critics:
            set_precision(critic, setup.read(RecipeOptions).precision)
        if options.critic_init == "actor":
            for critic in critics.critics:
                critic.start_from(actor.decoder)
            critics.polyak_update(1.0)
        return critics

    def readouts(self, experience: Experience, steps: Steps, target: bool = False) -> list[Tensor]:
        """Return the output layer's input (N, E) in each critic, or in each target network."""
        lengths_B = experience.reference_RB.ne(PAD).sum(0).cpu()
        networks = self.networks(target)
        return [network(experience.reference_RB, lengths_B, experience.tokens_TB, steps) for network in networks]

    def networks(self, target: bool) -> list[Critic]:
        """Return the critics, or their target networks."""
        return [copied.network for copied in self.targets] if target else self.critics

    def q_of_taken(self, readouts: list[Tensor], taken_N: Tensor) -> Tensor:
        """Return Q_i(s_t, a_t) of the taken words (I, N)."""
        pairs = zip(self.critics, readouts, strict=True)
        return torch.stack([critic.q_of(readout, taken_N) for critic, readout in pairs])

    def q_of_actions(self, readouts: list[Tensor], support: Support | None, target: bool = False) -> Tensor:
        """Return Q_i(s_t, a) of a support's words, or of all words (I, N, A)."""
        pairs = zip(self.networks(target), readouts, strict=True)
        if support is None:
            return torch.stack([network.q_of_all(readout) for network, readout in pairs])
        return torch.stack([network.q_of(readout, support.tokens_NK) for network, readout in pairs])

    def q_of_words(self, readouts: list[Tensor], rows_M: Tensor, tokens_MK: Tensor) -> Tensor:
        """Return Q_i of given words at given steps (I, M, K)."""
        pairs = zip(self.critics, readouts, strict=True)
        return torch.stack([critic.q_of(readout[rows_M], tokens_MK) for critic, readout in pairs])

    @torch.no_grad()
    def bootstrapped_targets(
        self,
        experience: Experience,
        policy: PolicyAtSteps,
        gamma: float,
        alpha: float | Tensor,
        known_NA: float | Tensor = 0.0,
        clip: Clip | None = None,
    ) -> Tensor:
        """Return r_t + gamma V(s_{t+1}), with V from the target networks and the policy (Eq. 7 and 8).

        known_NA: the known part of Q, which is not learned.
        """
        steps = policy.steps
        q_INA = self.q_of_actions(self.readouts(experience, steps, target=True), policy.support, target=True)
        next_values_N = steps.following(losses.soft_value(known_NA + q_INA, policy.log_pi_NA, alpha))
        target_N = losses.td_target(steps.flatten(experience.rewards_TB), next_values_N, steps.ends_N, gamma)
        if clip is None:
            return target_N
        n_vocab = self.critics[0].dec.out2prob.out_features
        most_entropy_N = alpha * (clip.max_steps - 1 - steps.times_N).clamp(min=0) * math.log(n_vocab)
        before_N, scale_N = steps.flatten(experience.potentials_before_TB), steps.of_sentences(experience.scale_B)
        return losses.clip_target(target_N, before_N, scale_N, most_entropy_N, clip.bounds)

    def branch_loss(
        self,
        weight: FutureWeight,
        branches: Branches,
        steps: Steps,
        readouts: list[Tensor],
        held_out_B: Tensor,
        known_reward: bool,
    ) -> Tensor:
        """Return the loss that teaches critics to rank a state's words; update `weight` on held-out sentences."""
        predicted_IMK = self.q_of_words(readouts, branches.rows_M(steps), branches.tokens_MK)
        future_MK = branches.returns_MK - branches.rewards_MK if known_reward else branches.returns_MK
        held_M = held_out_B[branches.sentences_M]
        weight.update(predicted_IMK[:, held_M], future_MK[held_M], branches.valid_MK[held_M])
        return losses.within_state_loss(predicted_IMK[:, ~held_M], future_MK[~held_M], branches.valid_MK[~held_M])

    def step(self, loss: Tensor, lr: float) -> Tensor:
        """Take one optimiser step; return the gradient norm before clipping."""
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.zero_grad()
        world.backward(loss, self.parameters)
        norm = nn.utils.clip_grad_norm_(self.parameters, self.options.critic_gclip)
        self.optimizer.step()
        return norm

    def polyak_update(self, tau: float | None = None) -> None:
        """Update the target networks, with `tau` instead of the usual rate if it is given."""
        for copied in self.targets:
            copied.polyak_update(self.tau if tau is None else tau)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of critics, target networks and optimiser."""
        return {
            "critics": [critic.state_dict() for critic in self.critics],
            "targets": [copied.state_dict() for copied in self.targets],
            "optimizer": self.optimizer.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state."""
        for network, weights in zip(self.critics, state["critics"], strict=True):
            network.load_state_dict(weights)
        for copied, weights in zip(self.targets, state["targets"], strict=True):
            copied.load_state_dict(weights)
        load_optimizer(self.optimizer, state["optimizer"])


@torch.no_grad()
def monte_carlo_returns(experience: Experience, policy: PolicyAtSteps, gamma: float, alpha: float | Tensor) -> Tensor:
    """Return the soft Monte Carlo return of every step of an experience."""
    rewards_N = policy.steps.flatten(experience.rewards_TB)
    return losses.soft_returns(rewards_N, entropy(policy.log_pi_NA), policy.steps, gamma, alpha)


@torch.no_grad()
def critic_metrics(q_IN: Tensor, target_N: Tensor, returns_N: Tensor, log_pi_NA: Tensor) -> dict[str, Figure]:
    """Compare Q with its targets and with the realised returns; values stay on the device until reported."""
    q_N = q_IN.amin(0)
    explained = explained_variance_of if world.sharded else losses.explained_variance
    return {
        "q": mean_of(q_N),
        "q_target": mean_of(target_N),
        "return": mean_of(returns_N),
        "max_q": largest_of(q_N.abs()),
        "max_return": largest_of(returns_N.abs()),
        "td_error": mean_of((q_N - target_N).abs()),
        "explained_variance": explained(q_N, returns_N),
        "entropy": mean_of(entropy(log_pi_NA)),
        "max_probability": mean_of(log_pi_NA.exp().amax(-1)),
    }
