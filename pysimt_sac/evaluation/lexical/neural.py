"""A small GRU language model. Imports torch, so import it only where needed.

One layer with tied embeddings, trained with Adam until the perplexity of held-out lines (every 20th) stops falling.
Words seen once in training are replaced by `<unk>`.
"""

import copy
from collections import Counter
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from pysimt_sac.core.errors import UserError

PAD, BEGIN, END, UNKNOWN = range(4)
HELD_OUT = 20
BATCH = 32
LEARNING_RATE = 2e-3
DROPOUT = 0.3
MAX_GRADIENT_NORM = 1.0


class GruNetwork(nn.Module):
    """Predicts the next word."""

    def __init__(self, words: int, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, size, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=0.05)
        self.recurrent = nn.GRU(size, size, batch_first=True)
        self.dropout = nn.Dropout(DROPOUT)
        self.bias = nn.Parameter(torch.zeros(words))

    def forward(self, ids: Tensor) -> Tensor:
        """Compute next-word logits (non-padding positions, vocabulary) for `ids` (sentences, positions)."""
        states, _ = self.recurrent(self.dropout(self.embedding(ids[:, :-1])))
        kept: Tensor = self.dropout(states)[ids[:, 1:] != PAD]
        return kept @ self.embedding.weight.T + self.bias


class NeuralModel:
    """A language model trained on the lines given to its constructor; reproducible from its seed."""

    def __init__(self, lines: Sequence[str], size: int, epochs: int, seed: int) -> None:
        counts = Counter(word for line in lines for word in line.split())
        if not counts:
            raise UserError("the training text has no words")
        self.ids = {word: number for number, (word, count) in enumerate(counts.most_common(), 4) if count > 1}
        coded = [self.encode(line) for line in lines if line.strip()]
        held_out = coded[::HELD_OUT]
        training = [line for number, line in enumerate(coded) if number % HELD_OUT] or coded
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.network = GruNetwork(len(self.ids) + 4, size)
            self.train(training, held_out, epochs)

    def encode(self, line: str) -> list[int]:
        """Return the word ids of a sentence, with begin and end tokens."""
        return [BEGIN, *(self.ids.get(word, UNKNOWN) for word in line.split()), END]

    def train(self, training: list[list[int]], held_out: list[list[int]], epochs: int) -> None:
        """Train, and keep the weights that do best on the held-out lines."""
        optimizer = torch.optim.Adam(self.network.parameters(), lr=LEARNING_RATE)
        best, best_weights = float("inf"), copy.deepcopy(self.network.state_dict())
        for _ in range(epochs):
            self.network.train()
            groups = list(batches(training))
            for place in torch.randperm(len(groups)).tolist():
                optimizer.zero_grad()
                loss, words = self.loss(groups[place])
                (loss / words).backward()
                nn.utils.clip_grad_norm_(self.network.parameters(), MAX_GRADIENT_NORM)
                optimizer.step()
            found = self.coded_perplexity(held_out)
            if found >= best:
                break
            best, best_weights = found, copy.deepcopy(self.network.state_dict())
        self.network.load_state_dict(best_weights)

    def loss(self, group: Tensor) -> tuple[Tensor, int]:
        """Compute the summed negative log-likelihood and the number of words of a batch."""
        targets = group[:, 1:][group[:, 1:] != PAD]
        return nn.functional.cross_entropy(self.network(group), targets, reduction="sum"), len(targets)

    @torch.no_grad()
    def coded_perplexity(self, lines: list[list[int]]) -> float:
        """Compute the perplexity of sentences given as ids."""
        self.network.eval()
        losses = [self.loss(group) for group in batches(lines)]
        total = sum(loss.double() for loss, _ in losses)
        return float(torch.exp(torch.as_tensor(total) / sum(words for _, words in losses)))

    def perplexity(self, lines: Sequence[str]) -> float:
        """Compute the perplexity of sentences, end tokens included."""
        return self.coded_perplexity([self.encode(line) for line in lines])


def batches(lines: list[list[int]]) -> Iterator[Tensor]:
    """Yield batches of sentences of similar length, padded at the end."""
    ordered = sorted(lines, key=len)
    for start in range(0, len(ordered), BATCH):
        group = ordered[start : start + BATCH]
        longest = len(group[-1])
        yield torch.tensor([line + [PAD] * (longest - len(line)) for line in group])
