"""Text through a model's own tokenizer, and the files of a model that a checkpoint carries along."""

import base64
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.vocabulary import BOS, EOS, SPECIAL_TOKENS, UNK, Vocabulary
from pysimt_sac.hosts.huggingface.ids import Ids
from pysimt_sac.hosts.huggingface.options import HuggingFaceOptions, library

T = TypeVar("T")
FILE_NAME = re.compile(r"\w[\w.-]*\.(json|jsonl|model|spm|txt|jinja)")


def loaded(load: Callable[[], T], name: object) -> T:
    """Call one of transformers' loaders, whose failures are the user's to mend."""
    try:
        return load()
    except (OSError, ValueError, KeyError, TypeError, ImportError) as error:
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        hint = "name a folder of save_pretrained, with its tokenizer, or a model of the hub"
        raise UserError(f"cannot be loaded: {reason[:200]}", f"[model] hf_model: {name}", hint) from error


class ModelText:
    """Configuration and tokenizer of a model: its ids, and text to and from ours."""

    def __init__(self, options: HuggingFaceOptions, folder: str | Path = "") -> None:
        """folder: where the files are, if not where the options say."""
        transformers = library("transformers")
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        self.options, self.folder = options, str(folder or options.hf_model)
        where = f"[model] hf_model: {options.hf_model}"
        arguments = {"trust_remote_code": False}
        self.config: Any = loaded(
            lambda: transformers.AutoConfig.from_pretrained(self.folder, **arguments), self.folder
        )
        if not self.config.is_encoder_decoder:
            raise UserError(
                f"is a {self.config.model_type} model, without an encoder", where, "name an encoder-decoder"
            )
        self.tokenizer: Any = loaded(
            lambda: transformers.AutoTokenizer.from_pretrained(self.folder, **arguments), self.folder
        )
        if self.config.vocab_size != (getattr(self.config, "decoder_vocab_size", None) or self.config.vocab_size):
            raise UserError("has a vocabulary for each side", where, "use a model with one for both")
        pad, eos, unk = (getattr(self.tokenizer, f"{name}_token_id") for name in ("pad", "eos", "unk"))
        if None in (pad, eos, unk) or len({pad, eos, unk}) < 3:
            what = f"its tokenizer has no three ids for padding, end and unknown words, but {pad}, {eos} and {unk}"
            raise UserError(what, where)
        self.ids = Ids(self.config.vocab_size, pad, eos, unk, self.start_ids(where))
        self.tokens = self.shown_tokens()

    def start_ids(self, where: str) -> list[int]:
        """Return the decoder's first ids: its start, and the target language where the model has languages."""
        options, tokenizer = self.options, self.tokenizer
        start = self.config.decoder_start_token_id
        has_languages = hasattr(tokenizer, "src_lang")
        for key, language in (("source", options.source_language), ("target", options.target_language)):
            if bool(language) != has_languages:
                what = "names a language, and the tokenizer has none" if language else "is missing: it has languages"
                raise UserError(what, f"{where}, {key}_language", "e.g. source_language: eng_Latn" * has_languages)
        if not has_languages:
            return [start]
        tokenizer.src_lang = self.language_token(options.source_language, where)[0]
        _, target = self.language_token(options.target_language, where)
        return [start, target] if start == tokenizer.eos_token_id else [target]

    def language_token(self, language: str, where: str) -> tuple[str, int]:
        """Return a language as the tokenizer's `src_lang`, and its id."""
        for token in (language, f"__{language}__"):
            number = self.tokenizer.convert_tokens_to_ids(token)
            if number not in (None, self.tokenizer.unk_token_id):
                return language, int(number)
        known = [token for token in self.tokenizer.all_special_tokens if re.fullmatch(r"[a-z_]{2,}[A-Za-z_]*", token)]
        raise UserError(f"its tokenizer has no language {language!r}", where, f"e.g. {', '.join(known[:5])}")

    def shown_tokens(self) -> list[str]:
        """Return the pieces by our id, with SentencePiece's `▁` before a word; special ones have no text."""
        special = {*self.tokenizer.all_special_ids, *self.ids.start.tolist()}
        numbers = self.ids.to_theirs_V.tolist()
        texts = self.tokenizer.convert_ids_to_tokens([min(number, len(self.tokenizer) - 1) for number in numbers])
        pairs = zip(numbers, texts, strict=True)
        shown = ["" if number in special or number >= len(self.tokenizer) else text for number, text in pairs]
        return [*SPECIAL_TOKENS, *shown[len(SPECIAL_TOKENS) :]]

    def pack(self) -> dict[str, str]:
        """Return the files that the model needs besides its weights, for a checkpoint."""
        with tempfile.TemporaryDirectory() as place:
            self.save(place)
            files = sorted(path for path in Path(place).iterdir() if FILE_NAME.fullmatch(path.name))
            return {path.name: base64.b64encode(path.read_bytes()).decode() for path in files}

    def save(self, folder: str | Path) -> None:
        """Write configuration and tokenizer as transformers does."""
        self.config.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    @classmethod
    def unpack(cls, options: HuggingFaceOptions, files: Any, where: object) -> "ModelText":
        """Return what `pack` has stored; a checkpoint may come from a stranger."""
        known = isinstance(files, Mapping) and all(
            isinstance(text, str) and FILE_NAME.fullmatch(str(name)) for name, text in files.items()
        )
        if not (known and "config.json" in files):
            raise UserError(
                "lacks the configuration and the tokenizer of its model", where, "use an earlier checkpoint"
            )
        with tempfile.TemporaryDirectory() as place:
            for name, text in files.items():
                (Path(place) / name).write_bytes(base64.b64decode(text))
            return cls(options, place)


class TokenizerVocabulary(Vocabulary):
    """One side of a model's text as the engine's vocabulary: sentences are plain text."""

    reads_plain_text = True

    def __init__(self, text: ModelText, name: str) -> None:
        super().__init__(text.tokens, [0] * len(text.tokens), name)
        self.text = text

    def sent_to_idxs(self, line: str, explicit_bos: bool = False, explicit_eos: bool = True) -> list[int]:
        """Return the ids of a sentence: of a translation if it is to begin with `<bos>`, else of a source."""
        text, ours = self.text, self.text.ids.to_ours
        if explicit_bos:
            numbers = text.tokenizer(text_target=line, add_special_tokens=False).input_ids
            return [BOS, *(max(ours.get(number, UNK), UNK) for number in numbers), *[EOS] * explicit_eos]
        prefix = f"{text.options.source_prefix} ".lstrip()
        # A special token spelled out in the text is never padding or an end.
        return [ours.get(number, UNK) or UNK for number in text.tokenizer(prefix + line).input_ids]

    def idxs_to_sent(self, numbers: Iterable[int], debug: bool = False) -> str:
        """Return the plain text of a translation up to its `<eos>`."""
        kept: list[int] = []
        for number in numbers:
            if number == EOS and not debug:
                break
            kept.append(self.text.ids.theirs_by_ours[number])
        decoded = self.text.tokenizer.decode(kept, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return " ".join(str(decoded).split())

    def state(self) -> dict[str, Sequence[Any]]:  # type: ignore[override]
        """Return nothing: a checkpoint has the tokenizer itself."""
        return {"tokens": [], "counts": []}
