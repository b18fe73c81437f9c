"""Plain text in and out of a model: apply the preparation of its training text, and undo it."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.filters import join_hyphens
from pysimt_sac.corpora.segmentation import JOINED_BY, make_segmenter
from pysimt_sac.corpora.tokenisation import Style, tokeniser
from pysimt_sac.hosts.engine.config.parser import parse_direction
from pysimt_sac.hosts.engine.data.text_preparation import SidePreparation, TextPreparation, preparation_of_folder

if TYPE_CHECKING:
    from pysimt_sac.hosts.engine.checkpoint import Checkpoint


class PlainSide:
    """Prepares lines of one language and restores plain text from prepared lines. where: the record's file."""

    def __init__(self, side: SidePreparation, where: object) -> None:
        self.side = side
        self.tokenise = tokeniser(side.language, Style(side.steps, side.split_hyphens))
        self.segment: Callable[[Iterable[str]], list[str]] = list
        if side.segmentation:
            self.segment = make_segmenter(side.segmentation, where)
        self.detokenizer: Any = None
        if "tokenise" in side.steps:
            from sacremoses import MosesDetokenizer

            self.detokenizer = MosesDetokenizer(side.language)

    def prepare(self, lines: Iterable[str]) -> list[str]:
        """Prepare lines like the training text, one for one."""
        return [" ".join(line.split()) for line in self.segment(self.tokenise(line) for line in lines)]

    def restore(self, lines: Iterable[str]) -> list[str]:
        """Restore plain text from prepared lines, one for one."""
        return [self.restore_line(line) for line in lines]

    def restore_line(self, line: str) -> str:
        """Undo the steps in reverse order. Lowercased text stays lowercase; otherwise capitalise the first letter."""
        if self.side.segmentation:
            line = JOINED_BY[self.side.segmentation.kind](line)
        if self.side.split_hyphens:
            line = join_hyphens(line)
        if self.detokenizer:
            line = self.detokenizer.detokenize(line.split())
        line = " ".join(line.splitlines())
        return line if "lowercase" in self.side.steps else line[:1].upper() + line[1:]


class PlainText:
    """Both sides of a model's text."""

    def __init__(self, preparation: TextPreparation, where: object) -> None:
        self.source, self.target = PlainSide(preparation.source, where), PlainSide(preparation.target, where)

    def prepare(self, lines: Sequence[str]) -> list[str]:
        """Prepare source sentences as the model expects them."""
        return self.source.prepare(lines)

    def restore(self, lines: Sequence[str]) -> list[str]:
        """Restore translations to plain text."""
        return self.target.restore(lines)


def preparation_for(checkpoint: "Checkpoint", folder: Path) -> TextPreparation:
    """Read the preparation of a checkpoint's text from a folder's record, and check that it can be applied."""
    sides = parse_direction(checkpoint.options["model"].get("direction"), str(checkpoint.path))
    found = preparation_of_folder(folder, checkpoint.options["data"].get("train_set"), sides, checkpoint.path)
    PlainText(found, folder)
    return found


def plain_text_of(checkpoint: "Checkpoint", folder: Path | None = None) -> PlainText:
    """Return the plain-text conversion for a checkpoint, by a folder's record or else by the checkpoint's own."""
    found = preparation_for(checkpoint, folder) if folder else checkpoint.preparation
    if found is None:
        hint = "give the folder of its prepared corpus with --prepare FOLDER, or attach it once: pysimt-sac attach"
        raise UserError("does not record how its text was prepared", checkpoint.path, hint)
    return PlainText(found, folder or checkpoint.path)
