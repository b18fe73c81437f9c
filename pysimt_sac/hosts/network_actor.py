"""The common base of both hosts' actors: networks, vocabularies and training mode."""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, Self

import torch
from torch import Tensor, nn

from pysimt_sac.core.actor import Encoded
from pysimt_sac.core.batch import Batch
from pysimt_sac.core.errors import UserError

LoadBatches = Callable[[str, int], Sequence[Any]]  # (split, batch size) -> its batches, in order


class NetworkActor:
    """Encoders and decoder as one module, `networks`, with the entries `encoders` and `dec`."""

    piece_filters: Sequence[str] = ()
    source_prefix: str = ""

    def __init__(
        self,
        networks: nn.ModuleDict,
        source: str,
        target: str,
        tokens: Sequence[str],
        load_batches: LoadBatches,
        source_tokens: Sequence[str] = (),
    ) -> None:
        self.networks, self.source, self.target, self.tokens = networks, source, target, tokens
        self.load_batches, self.source_tokens = load_batches, source_tokens

    def with_networks(self, networks: nn.ModuleDict) -> Self:
        """Return the same actor with other weights."""
        other = copy.copy(self)
        other.networks = networks
        return other

    @property
    def device(self) -> torch.device:
        """The device of the networks."""
        return next(self.networks.parameters()).device

    @property
    def decoder(self) -> Any:
        """The decoder."""
        return self.networks["dec"]

    @contextmanager
    def training_mode(self, dropout: bool) -> Iterator[None]:
        """Switch dropout on or off inside the context; restore the previous mode on exit."""
        before = self.decoder.training
        self.networks.train(dropout)
        try:
            yield
        finally:
            self.networks.train(before)

    def embed(self, words: Tensor) -> Tensor:
        """Embed target words."""
        return self.decoder.get_emb(words)  # type: ignore[no-any-return]

    def attended(self, encoded: Encoded, tokens_TB: Tensor) -> Tensor:
        """Refuse: a Transformer's heads attend to several source words at each step."""
        what = "needs to know which source word a step attends to, which only recurrent models tell"
        raise UserError(what, "[model] rarity_weight", "set it to 0")

    def validation_batches(self, n_sentences: int, batch_size: int = 32) -> Iterator[Batch]:
        """Yield about `n_sentences` sentence pairs, spread evenly over the validation set."""
        batches = self.load_batches("val", batch_size)
        n_batches = -(-n_sentences // batch_size)
        for batch in islice(batches, 0, None, max(1, len(batches) // n_batches)):
            batch.device(self.device)
            yield Batch({str(side): values for side, values in batch.items()})
