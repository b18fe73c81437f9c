"""The discriminator of the unsupervised reward: it predicts the random labels of sampled words.

It is fitted in every update on that update's samples, from the same initial weights: what it has memorised of them is
all it can know. The network has two layers on the source's mean encoder state and the word's embedding, both detached.
With `log_frequencies` in its place, the table that memorises perfectly, nothing is learned.
"""

import dataclasses
import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from pysimt_sac.core.options import option
from pysimt_sac.core.vocabulary import PAD

SIZE = 100  # of both layers, as in the paper
DRAWS = {"n_1": (1, 1), "n_2_to_3": (2, 3), "n_4_to_7": (4, 7), "n_8_or_more": (8, math.inf)}


@dataclasses.dataclass(frozen=True)
class DiscriminatorOptions:
    """The `[model]` keys of the network."""

    discriminator_lr: float = option(0.006, "learning rate of the discriminator", above=0)
    discriminator_steps: int = option(35, "steps that fit the discriminator to the samples of an update", minimum=1)


class LabelledDraws(NamedTuple):
    """The P different pairs of a source and a word in the samples of a batch, and how often each label came with them.

    keys_P: sorted numbers of the pairs, source * n_words + word.
    """

    keys_P: Tensor
    labels_PK: Tensor
    n_words: int

    @classmethod
    def of(cls, tokens_TC: Tensor, z_TC: Tensor, n_samples: int, n_labels: int, n_words: int) -> "LabelledDraws":
        """Count the words of samples `<bos> ... <eos>`, those of a source adjacent, and their labels z."""
        real_TC = tokens_TC[1:].ne(PAD)
        sources_C = torch.arange(tokens_TC.size(1), device=tokens_TC.device) // n_samples
        keys_N = (sources_C * n_words + tokens_TC[1:])[real_TC]
        keys_P, pairs_N = keys_N.unique(return_inverse=True)
        labels_PK = torch.zeros(len(keys_P) * n_labels, device=keys_P.device)
        labels_PK.index_add_(0, pairs_N * n_labels + z_TC[real_TC], torch.ones_like(keys_N, dtype=labels_PK.dtype))
        return cls(keys_P, labels_PK.view(-1, n_labels), n_words)

    @property
    def sources_P(self) -> Tensor:
        """The source of each pair."""
        return self.keys_P // self.n_words

    @property
    def words_P(self) -> Tensor:
        """The word of each pair."""
        return self.keys_P % self.n_words

    def numbers(self, sources_N: Tensor, words_NK: Tensor) -> Tensor:
        """Return how often words were drawn for their sources (N, K)."""
        keys_NK = sources_N.unsqueeze(1) * self.n_words + words_NK
        places_NK = torch.searchsorted(self.keys_P, keys_NK).clamp(max=len(self.keys_P) - 1)
        drawn_NK = self.labels_PK.sum(1).long()[places_NK]
        return drawn_NK * self.keys_P[places_NK].eq(keys_NK)

    def log_frequencies(self) -> Tensor:
        """Return log q(z|x,a) (P, K) of a table that has memorised all labels; those that never came are very small."""
        return (self.labels_PK / self.labels_PK.sum(1, keepdim=True)).clamp(min=1e-9).log()


class Discriminator(nn.Module):
    """log q(z|x,a), by two layers; uniform at first."""

    def __init__(self, source_size: int, word_size: int, n_labels: int) -> None:
        super().__init__()
        self.of_source = nn.Linear(source_size, SIZE)  # the first layer: on both inputs, each multiplied once
        self.of_word = nn.Linear(word_size, SIZE, bias=False)
        self.middle = nn.Linear(SIZE, SIZE)
        self.outer = nn.Linear(SIZE, n_labels)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, source_BC: Tensor, sources_P: Tensor, embedding_PE: Tensor) -> Tensor:
        """Return log q (P, K) of words, given by their embeddings, and their sources."""
        inner = torch.relu(self.of_source(source_BC)[sources_P] + self.of_word(embedding_PE))
        return self.outer(torch.relu(self.middle(inner))).log_softmax(-1)  # type: ignore[no-any-return]


def fit_discriminator(
    draws: LabelledDraws, source_BC: Tensor, embedding_PE: Tensor, options: DiscriminatorOptions
) -> Discriminator:
    """Return a discriminator that has learned the labels of these draws; none of its gradient reaches its inputs."""
    source_BC, embedding_PE = source_BC.detach(), embedding_PE.detach()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(1)  # torch.manual_seed would seed GPUs as well, and not be undone
        sizes = source_BC.size(1), embedding_PE.size(1), draws.labels_PK.size(1)
        network = Discriminator(*sizes).to(source_BC.device)
    optimizer = torch.optim.Adam(network.parameters(), lr=options.discriminator_lr)
    with torch.enable_grad():
        for _ in range(options.discriminator_steps):
            log_q_PK = network(source_BC, draws.sources_P, embedding_PE)
            optimizer.zero_grad()
            (-(draws.labels_PK * log_q_PK).sum() / draws.labels_PK.sum()).backward()
            optimizer.step()
    return network


def certainty(log_q: Tensor) -> Tensor:
    """Return u(x,a) = log K - H(q(.|x,a)), the mean of the label reward over q: 0 if q is uniform, at most log K."""
    return math.log(log_q.size(-1)) + (log_q.exp() * log_q).sum(-1)


@torch.no_grad()
def label_metrics(draws: LabelledDraws, log_q_PK: Tensor) -> dict[str, Tensor | float]:
    """Return the accuracy on the labels, by chance and at best, and the mean of log q(z|x,a) - log p(z) by draws n."""
    n_labels, n_P, n = draws.labels_PK.size(1), draws.labels_PK.sum(1), draws.labels_PK.sum()
    right_P = draws.labels_PK.gather(1, log_q_PK.argmax(1, keepdim=True)).squeeze(1)
    rewards_P = (draws.labels_PK * (log_q_PK + math.log(n_labels))).sum(1)
    found: dict[str, Tensor | float] = {
        "unsup_accuracy": right_P.sum() / n,
        "best_accuracy": draws.labels_PK.amax(1).sum() / n,
        "chance_accuracy": 1 / n_labels,
        "unsup_mean": rewards_P.sum() / n,
    }
    for name, (least, most) in DRAWS.items():
        chosen_P = (n_P >= least) & (n_P <= most)
        found[f"unsup_{name}"] = (rewards_P * chosen_P).sum() / (n_P * chosen_P).sum().clamp(min=1)
    return found
