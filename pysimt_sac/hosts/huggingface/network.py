"""A model of transformers as the engine's network: what the training loop, the searches and the checkpoints ask for."""

import warnings
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pysimt_sac.core.actor import Encoded
from pysimt_sac.core.batch import Batch
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.options import read_section
from pysimt_sac.core.registry import MODELS
from pysimt_sac.core.sections import ModelOptions
from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import Vocabulary
from pysimt_sac.hosts.choice import HUGGING_FACE
from pysimt_sac.hosts.engine.checkpoint import Checkpoint
from pysimt_sac.hosts.engine.config.parser import Options
from pysimt_sac.hosts.engine.nmt import SimultaneousNMT
from pysimt_sac.hosts.engine.shell import SHELLS, EngineShell
from pysimt_sac.hosts.huggingface.actor import HuggingFaceActor
from pysimt_sac.hosts.huggingface.options import HuggingFaceOptions, library
from pysimt_sac.hosts.huggingface.stepper import HuggingFaceStepper
from pysimt_sac.hosts.huggingface.text import ModelText, TokenizerVocabulary, loaded
from pysimt_sac.rl.session import Log

FILES = "hf_files"  # a key of a checkpoint's history
WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")


@MODELS.register(HUGGING_FACE)
class HuggingFaceNMT(SimultaneousNMT):
    """A sequence-to-sequence model of transformers; by itself it is trained by maximum likelihood."""

    option_classes: ClassVar[tuple[type, ...]] = (ModelOptions, HuggingFaceOptions)

    def __init__(
        self, opts: Options, vocabs: dict[str, Vocabulary] | None = None, text: ModelText | None = None
    ) -> None:
        """text: the model's, if it is not to be read from `hf_model`."""
        given = read_section(HuggingFaceOptions, opts.model, f"{opts.filename} [model]")
        text = text or ModelText(given)
        super().__init__(opts, {side: TokenizerVocabulary(text, side) for side in ("src", "trg")})
        self.settings, self.text = given, text

    @classmethod
    def of_checkpoint(cls, checkpoint: Checkpoint, options: Options) -> "HuggingFaceNMT":
        """Build the model of a checkpoint, which has its configuration and tokenizer."""
        given = read_section(HuggingFaceOptions, options.model, f"{options.filename} [model]")
        return cls(options, text=ModelText.unpack(given, checkpoint.history.get(FILES), checkpoint.path))

    def record(self) -> dict[str, Any]:
        """Return the configuration and the tokenizer."""
        return {FILES: self.text.pack()}

    @property
    def is_trained(self) -> bool:
        """Whether training starts from a model that translates already."""
        folder = Path(self.text.folder)
        return super().is_trained or not folder.is_dir() or any((folder / name).exists() for name in WEIGHTS)

    def setup(self, is_train: bool = True) -> None:
        """Load the model; to translate, only its layers, whose weights are in a checkpoint."""
        transformers, folder = library("transformers"), self.text.folder
        auto = transformers.AutoModelForSeq2SeqLM
        if is_train and super().is_trained is False and self.is_trained:
            model = loaded(lambda: auto.from_pretrained(folder, dtype=torch.float32, trust_remote_code=False), folder)
        else:
            model = loaded(lambda: auto.from_config(self.text.config), folder).float()
        if len(model.get_output_embeddings().weight) != self.text.config.vocab_size:
            raise UserError("its output layer and its vocabulary differ in size", f"[model] hf_model: {folder}")
        if self.settings.gradient_checkpointing:
            model.activation_checkpointing_enable()
        self.peft_model = [with_adapters(model, self.settings)] if self.settings.lora_rank else []
        self.hf = model

    def reset_parameters(self) -> None:
        """Do nothing: transformers has initialised what it has not loaded."""

    def as_actor(self) -> HuggingFaceActor:
        """Return the model as an actor."""

        def load_batches(split: str, batch_size: int) -> list[Batch]:
            return list(self.load_data(split, batch_size, mode="eval").loader())

        actor = HuggingFaceActor(self.hf, self.text.ids, self.text.tokens, load_batches, self.recipe.precision)
        actor.source_prefix = self.text.options.source_prefix
        return actor

    def encode(self, batch: dict[str, Tensor]) -> Encoded:
        """Return the source's states and mask."""
        return self.as_actor().encode(batch)  # type: ignore[arg-type]

    def stepper(self, states: Encoded, suppress_unk: bool = False, normalise: bool = True) -> HuggingFaceStepper:  # type: ignore[override]
        """Return a stepper of the decoder, for searches."""
        return HuggingFaceStepper(self.hf, self.text.ids, states, suppress_unk)

    def forward(self, batch: Batch, uctr: int = 0, ectr: int = 0) -> dict[str, Any]:
        """Return the loss of a batch: the references' summed negative log-likelihood, label-smoothed in training."""
        steps = Steps.of(batch.lengths[self.tl], batch[self.tl].device)
        smoothing = self.recipe.label_smoothing if self.training else 0.0
        actor = self.as_actor()
        return {"loss": actor.summed_nll(actor.encode(batch), batch[self.tl], steps, smoothing), "n_items": len(steps)}

    def log_p_of_targets(self, batch: Batch) -> Tensor:
        """Return the log-probability (B) of each target, `<eos>` included."""
        steps, actor = Steps.of(batch.lengths[self.tl], batch[self.tl].device), self.as_actor()
        log_p_N = actor.taken_words(actor.encode(batch), batch[self.tl], steps).log_p_N
        return log_p_N.new_zeros(batch.size, dtype=torch.float64).index_add_(0, steps.sentences_N, log_p_N.double())


def with_adapters(model: nn.Module, options: HuggingFaceOptions) -> Any:
    """Add low-rank adapters to a model, in place, and freeze all else; return peft's view of it."""
    peft = library("peft")
    config = peft.LoraConfig(
        task_type="SEQ_2_SEQ_LM",
        r=options.lora_rank,
        lora_alpha=options.lora_alpha,
        target_modules=list(options.lora_modules) or "all-linear",
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of peft's, about a name in transformers
            return peft.get_peft_model(model, config)
    except ValueError as error:
        reason = str(error).partition("\n")[0][:200]
        raise UserError(reason, "[model] lora_modules", "name layers of this model, e.g. q_proj,v_proj") from error


@SHELLS.register(HUGGING_FACE)
class HuggingFaceShell(EngineShell, HuggingFaceNMT):
    """The model, trained by an algorithm."""

    def as_actor(self) -> HuggingFaceActor:  # type: ignore[override]
        """Return the model as an actor."""
        return HuggingFaceNMT.as_actor(self)

    def start_training(self, log: Log) -> None:
        """Start, unless rewards could not tell where words begin."""
        super().start_training(log)
        if self.session and self.session.algorithm.collector and not any("▁" in token for token in self.text.tokens):
            what = "its tokenizer does not mark words with ▁, so rewards cannot count them"
            raise UserError(what, f"[model] hf_model: {self.settings.hf_model}", "take a model with SentencePiece")
