"""The unsupervised reward: how well a discriminator predicts random labels, so that rare choices earn more.

Every sampled word a of a source x gets a random label z, one of K, which is stored with it. The discriminator predicts
the label from source and word; the reward is r_z = log q(z|x,a) - log p(z), with p uniform, for the *stored* label. It
can memorise the label of a choice made once; a choice made n times comes with all labels, and earns about (K-1)/(2n).
A uniform discriminator gives exactly 0.

`discriminator: network` has two layers on the word's embedding and the source's mean encoder state, both detached, so
that its gradient does not reach the actor. `discriminator: counts` counts the labels of each source and word instead.
"""

import dataclasses
import math
from typing import Any

import torch
from torch import Tensor, nn

from pysimt_sac.core.distributed import optimizer_step
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.options import option
from pysimt_sac.core.states import load_optimizer
from pysimt_sac.core.vocabulary import PAD
from pysimt_sac.rewards.base import Floats, RolloutTensors, Translations, reward
from pysimt_sac.rewards.choices import ChoiceCounts

SEEN = {"once": (1, 1), "2_to_9": (2, 9), "10_or_more": (10, math.inf)}
RANKS = {"frequent": (0, 100), "usual": (100, 1000), "rare": (1000, math.inf)}


@dataclasses.dataclass(frozen=True)
class UnsupervisedOptions:
    """The `[model]` keys of the unsupervised reward."""

    n_labels: int = option(4, "`unsup`: random labels that the discriminator tells apart", minimum=2)
    discriminator: str = option(
        "network", "`unsup`: what learns the labels, or counts them", choices=("network", "counts")
    )
    discriminator_dim: int = option(100, "`unsup`: size of the network's two layers", minimum=1)
    discriminator_lr: float = option(0.0001, "`unsup`: the network's learning rate", above=0)


def label_reward(log_q_NK: Tensor, z_N: Tensor) -> Tensor:
    """Return r_z = log q(z|x,a) - log p(z), with p uniform over K labels, (N)."""
    return log_q_NK.gather(1, z_N.unsqueeze(1)).squeeze(1) + math.log(log_q_NK.size(1))


def certainty(log_q_NK: Tensor) -> Tensor:
    """Return u(x,a) = log K - H(q(.|x,a)): 0 if the discriminator is uniform, log K if it is certain, (N)."""
    return math.log(log_q_NK.size(1)) + (log_q_NK.exp() * log_q_NK).sum(1)


class LabelNetwork(nn.Module):
    """log q(z|x,a) from the source's mean state and the word's embedding, by two layers. Initially uniform."""

    def __init__(self, input_size: int, size: int, n_labels: int) -> None:
        super().__init__()
        self.inner = nn.Linear(input_size, size)
        self.middle = nn.Linear(size, size)
        self.outer = nn.Linear(size, n_labels)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, source_NC: Tensor, embedding_NE: Tensor) -> Tensor:
        """Return log q (N, K)."""
        inner = torch.relu(self.inner(torch.cat((source_NC, embedding_NE), -1)))
        return self.outer(torch.relu(self.middle(inner))).log_softmax(-1)  # type: ignore[no-any-return]


@reward("unsup")
class UnsupervisedReward:
    """The discriminator as a reward; needs the `tensors` of translations."""

    options_class = UnsupervisedOptions
    counts_pieces = True  # every piece has its own label, whatever the `reward_unit`

    def __init__(self, options: UnsupervisedOptions) -> None:
        self.options, self.n_labels = options, options.n_labels
        self.network: LabelNetwork | None = None
        self.saved: dict[str, Any] | None = None  # state of a network, loaded once its device is known
        self.choices = ChoiceCounts(options.n_labels)

    def __call__(self, translations: Translations) -> Floats:
        """Return the cumulative sum of r_z at every step (T, B)."""
        tensors = labelled_tensors(translations)
        real_TB, z_TB = tensors.tokens_TB[1:].ne(PAD), tensors.z_TB
        assert z_TB is not None
        rewards_TB = torch.zeros(real_TB.shape, device=real_TB.device)
        rewards_TB[real_TB] = label_reward(self.log_q_of_taken(tensors), z_TB[real_TB])
        return rewards_TB.cumsum(0).double().cpu().numpy()

    def observe(self, translations: Translations) -> None:
        """Count new choices; each counts once, however often it is replayed."""
        tensors = labelled_tensors(translations)
        assert tensors.z_TB is not None
        real_TB = tensors.tokens_TB[1:].ne(PAD)
        tokens_N, z_N = tensors.tokens_TB[1:][real_TB], tensors.z_TB[real_TB]
        self.choices.add(tensors.source_SB, sentences(real_TB), tokens_N, z_N)

    def learn(self, translations: Translations) -> dict[str, float]:
        """Take one step towards the stored labels; return accuracy, and rewards by rarity of the choice."""
        tensors = labelled_tensors(translations)
        real_TB = tensors.tokens_TB[1:].ne(PAD)
        assert tensors.z_TB is not None
        z_N = tensors.z_TB[real_TB]
        if self.options.discriminator == "network":
            loss = nn.functional.nll_loss(self.log_q_of_taken(tensors, learning=True), z_N)
            optimizer_step(self.optimizer, loss, len(z_N))
        return self.metrics(tensors, real_TB, z_N)

    # For the oracle of `models.sac_unsup`

    @torch.no_grad()
    def certainty_of(
        self, tensors: RolloutTensors, columns_N: Tensor, tokens_NK: Tensor, embedding_NKE: Tensor
    ) -> Tensor:
        """Return u(x,a) of K words at each of N steps (N, K); columns_N: their sentences in the batch."""
        n_words = tokens_NK.size(1)
        every_N = columns_N.repeat_interleave(n_words)
        log_q = self.log_q(tensors, every_N, tokens_NK.flatten(), embedding_NKE.flatten(0, 1))
        return certainty(log_q).view_as(tokens_NK)

    def log_q_of_taken(self, tensors: RolloutTensors, learning: bool = False) -> Tensor:
        """Return log q (N, K) of the taken words at all real steps, by step, then by sentence."""
        real_TB = tensors.tokens_TB[1:].ne(PAD)
        tokens_N, embedding_NE = tensors.tokens_TB[1:][real_TB], tensors.embedding_TBE[real_TB]
        with torch.set_grad_enabled(learning):
            return self.log_q(tensors, sentences(real_TB), tokens_N, embedding_NE)

    def log_q(self, tensors: RolloutTensors, columns_N: Tensor, tokens_N: Tensor, embedding_NE: Tensor) -> Tensor:
        """Return log q (N, K) of given words of given sentences of a batch."""
        if self.options.discriminator == "counts":
            return self.choices.log_q(tensors.source_SB, columns_N, tokens_N)
        source_BC = tensors.source_BC.detach()
        if self.network is None:
            self.build(source_BC.size(1) + embedding_NE.size(1), source_BC.device)
        assert self.network is not None
        return self.network(source_BC[columns_N], embedding_NE.detach())  # type: ignore[no-any-return]

    def build(self, input_size: int, device: torch.device) -> None:
        """Build the network once its input size is known; its initial weights are always the same."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(1)  # torch.manual_seed would seed GPUs as well, and not be undone
            self.network = LabelNetwork(input_size, self.options.discriminator_dim, self.n_labels).to(device)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=self.options.discriminator_lr)
        if self.saved is not None:
            self.network.load_state_dict(self.saved["weights"])
            load_optimizer(self.optimizer, self.saved["optimizer"])
            self.saved = None

    @torch.no_grad()
    def metrics(self, tensors: RolloutTensors, real_TB: Tensor, z_N: Tensor) -> dict[str, float]:
        """Return the accuracy of the labels (chance: 1/K), and the mean reward by rarity of the choice."""
        log_q_NK, tokens_N = self.log_q_of_taken(tensors), tensors.tokens_TB[1:][real_TB]
        rewards_N = label_reward(log_q_NK, z_N)
        seen_N = self.choices.seen(tensors.source_SB, sentences(real_TB), tokens_N)
        found = {"accuracy": float((log_q_NK.argmax(1) == z_N).float().mean()), "mean": float(rewards_N.mean())}
        found["words_per_source"] = self.choices.words_per_source
        for bins, values_N, kind in ((SEEN, seen_N, "seen"), (RANKS, tokens_N, "rank")):
            for name, (low, high) in bins.items():
                chosen_N = (values_N >= low) & (values_N <= high if kind == "seen" else values_N < high)
                if bool(chosen_N.any()):
                    found[f"{kind}_{name}"] = float(rewards_N[chosen_N].mean())
        return found

    def state_dict(self) -> dict[str, Any]:
        """Return the state needed to resume."""
        state: dict[str, Any] = {"choices": self.choices.state_dict()}
        if self.network is not None:
            state["network"] = {"weights": self.network.state_dict(), "optimizer": self.optimizer.state_dict()}
        elif self.saved is not None:
            state["network"] = self.saved
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state."""
        self.choices.load_state_dict(state["choices"])
        self.network, self.saved = None, state.get("network")


def sentences(real_TB: Tensor) -> Tensor:
    """Return the sentence of each real step, (N)."""
    return real_TB.nonzero()[:, 1]


def labelled_tensors(translations: Translations) -> RolloutTensors:
    """Return the tensors of translations with labelled words; refuse others."""
    if translations.tensors is None or translations.tensors.z_TB is None:
        raise UserError("needs labelled words, which exist only in training", "reward 'unsup'")
    return translations.tensors
