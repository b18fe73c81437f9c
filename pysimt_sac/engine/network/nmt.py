"""`SimultaneousNMT`: encoder, attention, decoder and the maximum-likelihood loss, under pysimt's names.

Everything that trains or translates goes through this class: the training loop calls `forward`, the searches call
`encode` and the decoder. Reinforcement-learning models derive from it (see `pysimt_sac.models.base`).
"""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pysimt_sac.engine.config.options import ModelOptions, RecipeOptions, defaults, read_section
from pysimt_sac.engine.config.parser import Options, parse_direction
from pysimt_sac.engine.config.registry import MODELS
from pysimt_sac.engine.data.corpus import Batch, ParallelCorpus, Text, find_files, read_sentences
from pysimt_sac.engine.data.vocabulary import BOS, PAD, Vocabulary
from pysimt_sac.engine.metrics import Metric
from pysimt_sac.engine.network.layers import ConditionalGRUDecoder, RecurrentEncoder, States
from pysimt_sac.engine.network.output import linear_cross_entropy
from pysimt_sac.errors import UserError, did_you_mean


def real_positions(ids_TB: Tensor, lengths_B: Tensor | None = None) -> Tensor:
    """Where (in a flattened T-1 by B array) the steps are whose next word is not padding."""
    if lengths_B is None:
        return ids_TB[1:].flatten().ne(PAD).nonzero().squeeze(1)
    steps_T1 = torch.arange(1, len(ids_TB)).unsqueeze(1)
    return (steps_T1 < lengths_B).flatten().nonzero().squeeze(1).to(ids_TB.device, non_blocking=True)


@MODELS.register("SimultaneousNMT")
class SimultaneousNMT(nn.Module):
    """A translation model with a recurrent encoder and a conditional GRU decoder."""

    option_classes: ClassVar[tuple[type, ...]] = (ModelOptions,)

    def __init__(self, opts: Options, vocabs: dict[str, Vocabulary] | None = None) -> None:
        super().__init__()
        self.opts = opts
        self.set_defaults()
        self.opts.model = {**self.defaults, **opts.model}
        self.options = read_section(ModelOptions, self.opts.model, f"{opts.filename} [model]")
        self.recipe = read_section(RecipeOptions, self.opts.model, f"{opts.filename} [model]")
        self.sl, self.tl = parse_direction(self.options.direction, opts.filename)
        self.vocabs = vocabs or {
            side: Vocabulary.read(opts.vocabulary[side], self.options.short_list) for side in (self.sl, self.tl)
        }
        self.src_vocab, self.trg_vocab = self.vocabs[self.sl], self.vocabs[self.tl]
        if self.options.tied_emb == "3way" and len(self.src_vocab) != len(self.trg_vocab):
            sizes = f"{len(self.src_vocab)} and {len(self.trg_vocab)} words"
            raise UserError(
                f"3way needs one vocabulary for both sides; these have {sizes}", f"{opts.filename} [model] tied_emb"
            )
        self.aux_loss: dict[str, Tensor] = {}
        self.tboard: Any = None
        self._states: States = {}

    def set_defaults(self) -> None:
        """Fill `self.defaults`; derived models add the defaults of their own options."""
        self.defaults: dict[str, Any] = {}
        for cls in self.option_classes:
            self.defaults.update(copy.deepcopy(defaults(cls)))

    def setup(self, is_train: bool = True) -> None:
        """Create the layers."""
        encoder = RecurrentEncoder(self.options, len(self.src_vocab))
        self.encoders = nn.ModuleDict({self.sl: encoder})
        self.dec = ConditionalGRUDecoder(self.options, len(self.trg_vocab), {self.sl: encoder.ctx_size})
        if self.options.tied_emb == "3way":
            encoder.emb.weight = self.dec.emb.weight

    def reset_parameters(self) -> None:
        """Kaiming-normal matrices, zero embedding of the padding; vectors keep what their layers gave them."""
        for parameter in self.parameters():
            if parameter.requires_grad and parameter.dim() > 1:
                nn.init.kaiming_normal_(parameter)
        with torch.no_grad():
            for layer in (*self.encoders.values(), self.dec):
                layer.emb.weight[PAD].fill_(0)  # type: ignore[union-attr, index]

    # Data

    def split_files(self, split: str) -> dict[str, Any]:
        """The files of a split, from `[data] SPLIT_set`."""
        key = f"{split}_set"
        if key not in self.opts.data:
            known = [name.removesuffix("_set") for name in self.opts.data if name.endswith("_set")]
            raise UserError(f"unknown split {split!r}", f"{self.opts.filename} [data]", did_you_mean(split, known))
        files = self.opts.data[key]
        if not isinstance(files, dict):
            raise UserError(f"{files!r} is not a dictionary of files", f"{self.opts.filename} [data] {key}")
        return files

    def load_data(self, split: str, batch_size: int, mode: str = "train") -> ParallelCorpus:
        """Read a split. mode: `train`, `eval` (source and target, in order) or `beam` (source alone)."""
        files = self.split_files(split)
        sides = {}
        for side in (self.sl,) if mode == "beam" else (self.sl, self.tl):
            if not isinstance(files.get(side), str | Path):
                raise UserError(f"no file for {side!r}", f"{self.opts.filename} [data] {split}_set")
            path = find_files(files[side])[0]
            sides[side] = Text(read_sentences(path), self.vocabs[side], side == self.tl, path)
        return self.make_corpus(sides, batch_size, training=mode == "train")

    def make_corpus(self, sides: dict[str, Text], batch_size: int, training: bool = False) -> ParallelCorpus:
        """Batches as the options ask for them."""
        options = self.options
        bucket_by = options.bucket_by if training or options.bucket_by in sides else None
        return ParallelCorpus(
            sides,
            batch_size,
            batch_tokens=self.recipe.batch_tokens if training else 0,
            training=training,
            bucket_by=bucket_by,
            bucket_order=options.bucket_order if training else None,
            sampler_type=options.sampler_type,
            max_len=options.max_len,
            seed=int(self.opts.train.get("seed") or 0),
        )

    @property
    def val_refs(self) -> list[Path]:
        """The reference files of the validation set."""
        return find_files(self.split_files("val")[self.tl])

    # The network

    def encode(self, batch: dict[str, Tensor]) -> States:
        """The source's states and mask, by encoder."""
        lengths = getattr(batch, "lengths", {})
        return {name: encoder(batch[name], lengths.get(name)) for name, encoder in self.encoders.items()}

    def cache_enc_states(self, batch: dict[str, Tensor]) -> None:
        """Encode and remember: the first half of pysimt's protocol."""
        self._states = self.encode(batch)

    def get_enc_state_dict(self, up_to: int = 1_000_000) -> States:
        """What `cache_enc_states` remembered, of the first `up_to` words."""
        return {name: (states[:up_to], mask[:up_to]) for name, (states, mask) in self._states.items()}

    def get_bos(self, batch_size: int) -> Tensor:
        """The first word of every hypothesis."""
        return torch.full((batch_size,), BOS, dtype=torch.long)

    def readouts(self, states: States, ids_TB: Tensor, lengths_B: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """All real steps of `<bos> ... <eos>` at once: what the output layer sees (N, E), and the next words (N)."""
        real_N = real_positions(ids_TB, lengths_B)
        return self.dec.readouts(states, ids_TB[:-1], real_N), ids_TB[1:].flatten().index_select(0, real_N)

    def forward(self, batch: Batch, uctr: int = 0, ectr: int = 0) -> dict[str, Any]:
        """The loss of a batch: minus the log-probability of the references, summed over their words.

        In training, with label smoothing.
        """
        readout_NE, targets_N = self.readouts(self.encode(batch), batch[self.tl], batch.lengths[self.tl])
        smoothing = self.recipe.label_smoothing if self.training else 0.0
        loss = linear_cross_entropy(self.dec.out2prob, readout_NE, targets_N, smoothing)
        return {"loss": loss, "n_items": len(targets_N)}

    def test_performance(self, loader: Iterator[Batch]) -> list[Metric]:
        """The mean loss per word of a data set."""
        total, n_items = torch.zeros((), dtype=torch.float64), 0
        for batch in loader:
            out = self.forward(batch)
            total += out["loss"].double().cpu()
            n_items += out["n_items"]
        return [Metric("LOSS", float(total) / max(1, n_items), higher_better=False)]

    # What the training loop asks of every model

    def register_tensorboard(self, handle: Any) -> None:
        """Called once, when training begins."""
        self.tboard = handle

    def lr_factor(self, update: int) -> float:
        """By what the loop multiplies the learning rate of an update; derived models may warm up."""
        return 1.0

    def training_state(self) -> dict[str, Any]:
        """What a resumed run needs beyond the weights; derived models add to it."""
        return {}

    def load_training_state(self, state: dict[str, Any]) -> None:
        """Take back what `training_state` gave."""
