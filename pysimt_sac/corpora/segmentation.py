"""Split words into subword units with subword-nmt's BPE codes or a SentencePiece model, and join them again."""

import base64
import binascii
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import require_file, why
from pysimt_sac.core.filters import join_bpe, join_sentencepiece
from pysimt_sac.corpora.bpe import Segmenter, check_codes, frequent_units, read_codes
from pysimt_sac.hosts.engine.data.text_preparation import Segmentation, read_model

JOINED_BY: dict[str, Callable[[str], str]] = {"bpe": join_bpe, "sentencepiece": join_sentencepiece}
FILE_NAMES = {"bpe": "bpe", "sentencepiece": "spm"}


def kind_of_model(path: Path) -> str:
    """Return `bpe` or `sentencepiece`, by the first byte: a SentencePiece model begins with the field of its pieces."""
    try:
        with open(require_file(path, "file of BPE codes"), "rb") as stream:
            return "sentencepiece" if stream.read(1) == b"\n" else "bpe"
    except OSError as error:
        raise UserError(f"cannot be read: {why(error)}", path) from error


def check_model(path: Path) -> str:
    """Check that a model is usable and return its kind."""
    kind = kind_of_model(path)
    if kind == "bpe":
        read_codes(path)
    else:
        SentencePieceSegmenter(read_model(path, kind), path)
    return kind


class SentencePieceSegmenter:
    """Segments lines with a SentencePiece model, given in base64."""

    def __init__(self, model: str, where: object) -> None:
        try:
            from sentencepiece import SentencePieceProcessor
        except ImportError as error:
            hint = "pip install 'pysimt_sac[sentencepiece]'"
            raise UserError("needs the package sentencepiece, which is not installed", where, hint) from error
        try:
            self.processor: Any = SentencePieceProcessor(model_proto=base64.b64decode(model, validate=True))
        except (RuntimeError, binascii.Error) as error:
            raise UserError("is not a SentencePiece model", where, "is it the output of spm_train?") from error

    def __call__(self, lines: Iterable[str]) -> list[str]:
        """Segment lines."""
        return [" ".join(self.processor.encode(line, out_type=str)) for line in lines]


def make_segmenter(segmentation: Segmentation, where: object) -> Callable[[Iterable[str]], list[str]]:
    """Make the segmenter that a record describes. where: the record's file."""
    if segmentation.kind == "sentencepiece":
        return SentencePieceSegmenter(segmentation.model, where)
    threshold, units = segmentation.threshold, None
    if threshold and segmentation.units:
        units = frequent_units(segmentation.units.split("\n"), threshold, where)
    return Segmenter(check_codes(segmentation.model.split("\n"), where), units)
