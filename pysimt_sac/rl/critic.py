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
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from pysimt_sac.core.distributed import optimizer_step
from pysimt_sac.core.options import option
from pysimt_sac.core.policy import Support, entropy
from pysimt_sac.core.sections import ModelOptions, RecipeOptions
from pysimt_sac.core.states import load_optimizer
from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import PAD
from pysimt_sac.network.layers import ConditionalGRUDecoder, RecurrentEncoder, set_precision
from pysimt_sac.network.output import linear_rows
from pysimt_sac.rl import losses
from pysimt_sac.rl.replay import Experience
from pysimt_sac.rl.setup import Setup

M = TypeVar("M", bound=nn.Module)


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
    def start_from(self, actor: nn.ModuleDict) -> list[str]:
        """Copy what fits of the actor's weights, and return the names of the copied ones; Q stays 0.

        The encoder of the source becomes that of the reference, with the embeddings of target words.
        """
        own, taken = self.state_dict(), []
        for name, weight in actor.state_dict().items():
            name = re.sub(r"^encoders\.[^.]+\.", "encoder.", re.sub(r"^dec\.att\.[^.]+\.", "dec.att.ref.", name))
            fits = name in own and own[name].shape == weight.shape and not name.startswith("encoder.emb.")
            if fits and not name.startswith("dec.hid2out.") and name != "dec.out2prob.bias":
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


@dataclasses.dataclass(frozen=True)
class BaseCriticOptions:
    """The `[model]` keys shared by all models with critics; `gclip` and `l2_reg` of `[train]` hold for critics, too."""

    gamma: float = option(1.0, "discount factor", minimum=0, maximum=1)
    lambda_return: float = option(
        0.0,
        "the critics' targets: 0 bootstraps after one step, 1 is the Monte Carlo return, between them lambda-returns",
        minimum=0,
        maximum=1,
    )
    known_reward: bool = option(
        False, "Q(s,a) = r(s,a) + f(s,a): compute the reward of every word, and let the critics learn the future f only"
    )
    tau: float = option(0.005, "Polyak averaging of the target networks", above=0, maximum=1)
    critic_lr: float = option(0.0003, "the critics' learning rate in joint training", above=0)
    critic_pretrain_updates: int = option(0, "updates in which the critics learn alone, before the actor", minimum=0)
    critic_pretrain_lr: float = option(0.001, "the critics' learning rate while they learn alone", above=0)


@dataclasses.dataclass(frozen=True)
class CriticOptions(BaseCriticOptions):
    """Those, and the keys of expectations over words; branched SAC has its own."""

    support_size: int = option(
        32, "sum over this many likeliest words and the taken one; 0: over the whole vocabulary", minimum=0
    )
    support_min_probability: float = option(
        0.01, "leave out words of the support less likely than this: their Q is untrained", minimum=0, below=1
    )

    @property
    def support(self) -> tuple[int, float]:
        """The arguments k and least of `core.policy.find_support`."""
        return self.support_size, self.support_min_probability


class CriticEnsemble:
    """I critics, trained on the same data from different initialisations, with target networks and optimiser."""

    def __init__(
        self,
        shape: ModelOptions,
        options: BaseCriticOptions,
        n_vocab: int,
        n_critics: int,
        device: torch.device,
        gclip: float = math.inf,
        weight_decay: float = 0.0,
        beta1: float = 0.9,
    ) -> None:
        """gclip: the gradient norm is clipped at it. beta1: of Adam."""
        self.options, self.gclip = options, gclip
        self.critics = [Critic(shape, n_vocab).to(device) for _ in range(n_critics)]
        self.targets = [TargetNetwork(critic) for critic in self.critics]
        named = [pair for critic in self.critics for pair in critic.named_parameters()]
        weights, biases = ([part for name, part in named if ("bias" in name) == wanted] for wanted in (False, True))
        groups: list[dict[str, Any]] = [{"params": weights, "weight_decay": weight_decay}, {"params": biases}]
        self.optimizer = torch.optim.Adam(groups, betas=(beta1, 0.999), fused=True)

    @classmethod
    def build(cls, setup: Setup, options: BaseCriticOptions, n_critics: int, beta1: float = 0.9) -> "CriticEnsemble":
        """Build critics of the actor's shape that start from its weights."""
        actor, train = setup.actor, setup.train
        shape, precision = setup.read(ModelOptions), setup.read(RecipeOptions).precision
        clip = train.gclip or math.inf
        critics = cls(shape, options, len(actor.tokens), n_critics, actor.device, clip, train.l2_reg, beta1)
        for critic in critics.critics:
            set_precision(critic, precision)
            critic.start_from(actor.networks)
        critics.polyak_update(1.0)
        return critics

    def readouts(self, experience: Experience, target: bool = False) -> list[Tensor]:
        """Return the output layer's input (N, E) in each critic, or in each target network."""
        lengths_B = experience.batch.lengths[experience.sides[1]]
        networks = self.networks(target)
        inputs = experience.reference_RB, lengths_B, experience.tokens_TB, experience.steps
        return [network(*inputs) for network in networks]

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

    def step(self, loss: Tensor, n_items: int, joint: bool = True) -> Tensor:
        """Take one optimiser step on a loss, a mean over `n_items`; return the gradient norm before clipping.

        joint: beside the actor; otherwise the critics learn alone.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = self.options.critic_lr if joint else self.options.critic_pretrain_lr
        return optimizer_step(self.optimizer, loss, n_items, self.gclip)

    def polyak_update(self, tau: float | None = None) -> None:
        """Update the target networks, with `tau` instead of the usual rate if it is given."""
        for copied in self.targets:
            copied.polyak_update(self.options.tau if tau is None else tau)

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
def critic_metrics(q_IN: Tensor, target_N: Tensor, returns_N: Tensor, log_pi_NA: Tensor) -> dict[str, Tensor | float]:
    """Compare Q with its targets and with the realised returns; values stay on the device until reported."""
    q_N = q_IN.amin(0)
    return {
        "q": q_N.mean(),
        "q_target": target_N.mean(),
        "return_to_go": returns_N.mean(),
        "max_q": q_N.abs().amax(),
        "max_return": returns_N.abs().amax(),
        "td_error": (q_N - target_N).abs().mean(),
        "explained_variance": losses.explained_variance(q_N, returns_N),
        "entropy": entropy(log_pi_NA).mean(),
        "max_probability": log_pi_NA.exp().amax(-1).mean(),
    }
