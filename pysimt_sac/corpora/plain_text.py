"""Plain text in and out of a model: the steps of its text's preparation, and their inverse."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pysimt_sac.corpora.segmentation import JOINED_BY, make_segmenter
from pysimt_sac.corpora.tokenisation import Style, tokeniser
from pysimt_sac.engine.config.parser import parse_direction
from pysimt_sac.engine.data.filters import join_hyphens
from pysimt_sac.engine.data.text_preparation import SidePreparation, TextPreparation, preparation_of_folder
from pysimt_sac.errors import UserError

if TYPE_CHECKING:
    from pysimt_sac.engine.checkpoint import Checkpoint


class PlainSide:
    """Prepares lines of one language, and makes plain text of prepared ones. where: the record's file."""

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
        """The lines as the training text has them; always as many."""
        return [" ".join(line.split()) for line in self.segment(self.tokenise(line) for line in lines)]

    def restore(self, lines: Iterable[str]) -> list[str]:
        """Plain text of prepared lines; always as many."""
        return [self.restore_line(line) for line in lines]

    def restore_line(self, line: str) -> str:
        """Undo the steps in the opposite order. What was lowercased stays so; else a sentence begins with a capital."""
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
        """Sources as the model expects them."""
        return self.source.prepare(lines)

    def restore(self, lines: Sequence[str]) -> list[str]:
        """Translations as people write them."""
        return self.target.restore(lines)


def preparation_for(checkpoint: "Checkpoint", folder: Path) -> TextPreparation:
    """How a folder's record says that the text of a checkpoint's model was prepared; tried, so that it will work."""
    sides = parse_direction(checkpoint.options["model"].get("direction"), str(checkpoint.path))
    found = preparation_of_folder(folder, checkpoint.options["data"].get("train_set"), sides, checkpoint.path)
    PlainText(found, folder)
    return found


def plain_text_of(checkpoint: "Checkpoint", folder: Path | None = None) -> PlainText:
    """Plain text for a checkpoint's model, by the record of a folder or by its own."""
    found = preparation_for(checkpoint, folder) if folder else checkpoint.preparation
    if found is None:
        todo = "name the folder of its prepared corpus with --prepare FOLDER, or do so once: pysimt-sac attach"
        raise UserError("does not tell how its text was prepared", checkpoint.path, todo)
    return PlainText(found, folder or checkpoint.path)
