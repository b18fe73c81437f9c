"""The options of the host, and the libraries of its extra, which are imported only when they are needed."""

import dataclasses
import importlib
from typing import Any

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.options import option


@dataclasses.dataclass(frozen=True)
class HuggingFaceOptions:
    """The `[model]` keys of a model of Hugging Face's transformers, which replaces the engine's network."""

    hf_model: str = option(
        "",
        "a sequence-to-sequence model of transformers: a folder of `save_pretrained`, or a name on the model hub; "
        "without weights in the folder it starts at random; its tokenizer replaces `[vocabulary]`",
    )
    source_language: str = option("", "the tokenizer's code of the source language, e.g. `eng_Latn`; none: it has none")
    target_language: str = option("", "the tokenizer's code of the target language, with which translations begin")
    source_prefix: str = option("", "text before every source, e.g. `translate English to German:` (T5), `>>deu<<`")
    gradient_checkpointing: bool = option(False, "compute activations twice instead of storing them: half the memory")
    lora_rank: int = option(0, "train low-rank adapters of this rank only (LoRA, by peft); 0: all weights", minimum=0)
    lora_alpha: float = option(16.0, "LoRA: scale of the adapters, divided by their rank", above=0)
    lora_modules: tuple[str, ...] = option((), "LoRA: the layers that get adapters, by name; none: all linear ones")


def library(name: str) -> Any:
    """Import a library of the extra `hf`, or say how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        missing = error.name or name
        raise UserError(f"needs {missing}", "[model] hf_model", "pip install 'pysimt_sac[hf]'") from error
