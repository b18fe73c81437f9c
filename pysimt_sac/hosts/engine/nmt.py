"""`SimultaneousNMT`: encoder, attention, decoder and the maximum-likelihood loss, under pysimt's names.

The training loop calls `forward`, searches call `encode` and `stepper`. Where an algorithm trains the network, the
model is a wrapper derived from this class (`pysimt_sac.hosts.engine.shell`).
"""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pysimt_sac.core.actor import Encoded
from pysimt_sac.core.batch import Batch
from pysimt_sac.core.distributed import world
from pysimt_sac.core.errors import UserError, did_you_mean
from pysimt_sac.core.files import kind_of
from pysimt_sac.core.metrics import Metric
from pysimt_sac.core.options import defaults, read_section
from pysimt_sac.core.registry import MODELS
from pysimt_sac.core.sections import ModelOptions, RecipeOptions
from pysimt_sac.core.vocabulary import EOS, PAD, Vocabulary
from pysimt_sac.hosts.choice import network_of, wait_of
from pysimt_sac.hosts.engine.checkpoint import Checkpoint
from pysimt_sac.hosts.engine.config.parser import Options, parse_direction
from pysimt_sac.hosts.engine.data.corpus import ParallelCorpus, Text, find_files, read_sentences
from pysimt_sac.network.layers import ConditionalGRUDecoder, RecurrentEncoder, set_precision
from pysimt_sac.network.output import linear_cross_entropy, linear_log_probs
from pysimt_sac.network.stepper import RecurrentStepper
from pysimt_sac.rl.session import Log, TrainingStage


def real_positions(lengths_B: Tensor) -> Tensor:
    """Return the positions of real steps of `<bos> ... <eos>` in a flattened (T-1, B) array; lengths: on the CPU."""
    return (torch.arange(1, int(lengths_B.max())).unsqueeze(1) < lengths_B).flatten().nonzero().squeeze(1)


@MODELS.register("SimultaneousWaitKNMT")
@MODELS.register("SimultaneousNMT")
class SimultaneousNMT(nn.Module):
    """A translation model with a recurrent encoder and a conditional GRU decoder.

    wait: the k of a wait-k search, at first the k of training; None: searches read the whole source.
    """

    option_classes: ClassVar[tuple[type, ...]] = (ModelOptions,)

    def __init__(self, opts: Options, vocabs: dict[str, Vocabulary] | None = None) -> None:
        super().__init__()
        self.opts = opts
        self.set_defaults()
        self.opts.model = {**self.defaults, **opts.model}
        self.options = read_section(ModelOptions, self.opts.model, f"{opts.filename} [model]")
        self.recipe = read_section(RecipeOptions, self.opts.model, f"{opts.filename} [model]")
        self.wait = wait_of(opts.train, opts.model, opts.filename)
        if self.wait is not None:
            self.check_waiting()
        self.sl, self.tl = parse_direction(self.options.direction, opts.filename)
        self.vocabs = vocabs or {
            side: Vocabulary.read(opts.vocabulary[side], self.options.short_list) for side in (self.sl, self.tl)
        }
        self.src_vocab, self.trg_vocab = self.vocabs[self.sl], self.vocabs[self.tl]
        if self.options.tied_emb == "3way" and self.src_vocab.tokens != self.trg_vocab.tokens:
            sizes = f"{len(self.src_vocab)} and {len(self.trg_vocab)} words, and not the same"
            raise UserError(
                f"3way needs one vocabulary for both sides; these have {sizes}", f"{opts.filename} [model] tied_emb"
            )
        self.aux_loss: dict[str, Tensor] = {}

    @classmethod
    def of_checkpoint(cls, checkpoint: Checkpoint, options: Options) -> "SimultaneousNMT":
        """Build the model of a checkpoint, without its layers."""
        return cls(opts=options, vocabs=find_vocabularies(checkpoint, options))

    def record(self) -> dict[str, Any]:
        """Return what checkpoints store for `of_checkpoint`, in their history, instead of vocabularies: nothing."""
        return {}

    @property
    def is_trained(self) -> bool:
        """Whether training starts from a model that translates already."""
        return bool(self.opts.train.get("pretrained_file"))

    def set_defaults(self) -> None:
        """Fill `self.defaults`; derived models add the defaults of their own options."""
        self.defaults: dict[str, Any] = {}
        for cls in self.option_classes:
            self.defaults.update(copy.deepcopy(defaults(cls)))
        if "WaitK" in network_of(self.opts.train, self.opts.model):
            self.defaults["translator_type"] = "wk"

    def check_waiting(self) -> None:
        """Refuse what reads ahead: a wait-k model must not."""
        for key, needed in {"enc_bidirectional": False, "translator_type": "wk"}.items():
            if (given := getattr(self.options, key)) != needed:
                place = f"{self.opts.filename} [model] {key}"
                raise UserError(f"{given} reads ahead, which wait-k models do not", place, f"set it to {needed}")

    def setup(self, is_train: bool = True) -> None:
        """Create the layers."""
        encoder = RecurrentEncoder(self.options, len(self.src_vocab))
        self.encoders = nn.ModuleDict({self.sl: encoder})
        self.dec = ConditionalGRUDecoder(self.options, len(self.trg_vocab), {self.sl: encoder.ctx_size})
        self.dec.wait = self.wait
        if self.options.tied_emb == "3way":
            encoder.emb.weight = self.dec.emb.weight
        set_precision(self, self.recipe.precision)

    def reset_parameters(self) -> None:
        """Initialise matrices Kaiming-normal and padding embeddings to zero; vectors keep their layers' defaults."""
        for parameter in self.parameters():
            if parameter.requires_grad and parameter.dim() > 1:
                nn.init.kaiming_normal_(parameter)
        with torch.no_grad():
            for layer in (*self.encoders.values(), self.dec):
                layer.emb.weight[PAD].fill_(0)  # type: ignore[union-attr, index]

    # Data

    def split_files(self, split: str) -> dict[str, Any]:
        """Return the files of a split, from `[data] SPLIT_set`."""
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
        """Make a corpus with batches as configured."""
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

    def encode(self, batch: dict[str, Tensor]) -> Encoded:
        """Return the source's states and mask, by encoder."""
        lengths = getattr(batch, "lengths", {})
        return {name: encoder(batch[name], lengths.get(name)) for name, encoder in self.encoders.items()}

    def stepper(self, states: Encoded, suppress_unk: bool = False, normalise: bool = True) -> RecurrentStepper:
        """Return a stepper of the decoder, for searches."""
        return RecurrentStepper(self.dec, states, suppress_unk, normalise, self.wait)

    def forward(self, batch: Batch, uctr: int = 0, ectr: int = 0) -> dict[str, Any]:
        """Return the loss of a batch: the references' summed negative log-likelihood, label-smoothed in training."""
        ids_TB = batch[self.tl]
        positions_N = real_positions(batch.lengths[self.tl]).to(ids_TB.device, non_blocking=True)
        readout_NE = self.dec.readouts(self.encode(batch), ids_TB[:-1], positions_N)
        targets_N = ids_TB[1:].flatten().index_select(0, positions_N)
        smoothing = self.recipe.label_smoothing if self.training else 0.0
        loss = linear_cross_entropy(self.dec.out2prob, readout_NE, targets_N, smoothing)
        return {"loss": loss, "n_items": len(targets_N)}

    def log_p_of_targets(self, batch: Batch) -> Tensor:
        """Return the log-probability (B) of each target, `<eos>` included."""
        ids_TB = batch[self.tl]
        positions_N = real_positions(batch.lengths[self.tl]).to(ids_TB.device)
        readout_NE = self.dec.readouts(self.encode(batch), ids_TB[:-1], positions_N)
        tokens_N = ids_TB[1:].flatten().index_select(0, positions_N)
        _, log_p_N, _ = linear_log_probs(self.dec.out2prob, readout_NE, tokens_N, EOS)
        totals_B = torch.zeros(batch.size, dtype=torch.float64, device=ids_TB.device)
        return totals_B.index_add_(0, positions_N % batch.size, log_p_N.double())

    def test_performance(self, loader: Iterator[Batch]) -> list[Metric]:
        """Compute the mean loss per word of a data set."""
        total, n_items = torch.zeros((), dtype=torch.float64), 0
        for batch in loader:
            out = self.forward(batch)
            total += out["loss"].double().cpu()
            n_items += out["n_items"]
        sums = world.gather((float(total), n_items))
        total_loss, n_items = sum(total for total, _ in sums), sum(n_items for _, n_items in sums)
        return [Metric("LOSS", total_loss / max(1, n_items), higher_better=False)]

    # Called by the training loop

    def start_training(self, log: Log) -> None:
        """Build what training needs besides the network; never called for translation."""

    def lr_factor(self, update: int) -> float:
        """Return the factor of an update's learning rate; derived models may warm up."""
        return 1.0

    @property
    def learning(self) -> str:
        """What is learning now, in words, if that is not simply the model."""
        return ""

    def stages(self) -> list[TrainingStage]:
        """Return the stages of a run of `max_epochs` epochs, for `--check` to try."""
        return [TrainingStage("", 1, 1)]

    def figures(self) -> dict[str, float] | None:
        """Return the five key metrics since the last report, if there are new ones; None: those of the loss."""
        return None

    def rank_state(self) -> dict[str, Any]:
        """Return what each process has for itself beside its random states: nothing."""
        return {}

    def load_rank_state(self, state: dict[str, Any] | None) -> None:
        """Restore the state of `rank_state`."""

    def training_state(self) -> dict[str, Any]:
        """Return what a resumed run needs beyond the weights; derived models add to it."""
        return {}

    def load_training_state(self, state: dict[str, Any]) -> None:
        """Restore `training_state`."""


def find_vocabularies(checkpoint: Checkpoint, options: Options) -> dict[str, Vocabulary] | None:
    """Return a checkpoint's vocabularies; None if the user names files instead, or for pysimt's, which have none."""
    overridden = options.vocabulary != checkpoint.options["vocabulary"]
    sides = parse_direction(options.model.get("direction"), options.filename)
    if not overridden and set(sides) <= set(checkpoint.vocabularies):
        return checkpoint.vocabularies
    for side in sides:
        path = options.vocabulary.get(side)
        if not (isinstance(path, str | Path) and kind_of(Path(path)) == "file"):
            hint = f"name it with -x vocabulary.{side}:FILE, or translate in the folder where the model was trained"
            raise UserError(f"the vocabulary file {path} does not exist", checkpoint.path, hint)
    return None


def network_class(registered: Any) -> type[SimultaneousNMT]:
    """Return the network of a `model_type`: itself, or, for an algorithm, the network that algorithms train."""
    is_network = isinstance(registered, type) and issubclass(registered, SimultaneousNMT)
    return registered if is_network else SimultaneousNMT
