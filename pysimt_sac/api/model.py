"""A trained model that translates and scores."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict, Unpack, overload

import torch

import pysimt_sac.hosts.huggingface.network
import pysimt_sac.models  # noqa: F401 - registers our models
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.options import read_section
from pysimt_sac.core.sections import SearchOptions
from pysimt_sac.hosts.engine.checkpoint import Checkpoint
from pysimt_sac.hosts.engine.data.corpus import ParallelCorpus, Text, check_length
from pysimt_sac.hosts.engine.decoding.search import Hypothesis
from pysimt_sac.hosts.engine.decoding.translation import Translator, load_best, load_model, plain_text_of
from pysimt_sac.hosts.engine.device import choose_device
from pysimt_sac.hosts.engine.preparation import out_of_memory_as_user_error
from pysimt_sac.text.plain_text import PlainText

NO_TARGETS = "give one target for each source"


class SearchWords(TypedDict, total=False):
    """Options that `Model.translate` shares with `pysimt translate`."""

    max_len: int
    batch_size: int
    lp_alpha: float
    suppress_unk: bool


class Translation(NamedTuple):
    """One of several translations of a sentence, with its length-normalised log-probability."""

    text: str
    score: float


def load(path: str | Path, *, prepare: str | Path | None = None, device: str = "auto") -> "Model":
    """Load a checkpoint, or the best one in a run's folder.

    prepare: the folder of the prepared corpus that the model was trained on, if the checkpoint does not record how to
    prepare plain text; device: auto, cpu, gpu or cuda:N.
    """
    chosen = choose_device(device)
    checkpoint = load_best(path)
    plain = plain_text_of(checkpoint, Path(prepare)) if prepare else None
    return Model(checkpoint, load_model(checkpoint, chosen), chosen, plain)


class Model:
    """A trained model, from `load`."""

    def __init__(
        self, checkpoint: Checkpoint, network: Any, device: torch.device, plain: PlainText | None = None
    ) -> None:
        self.path = checkpoint.path
        self.checkpoint, self.network, self.device, self._plain = checkpoint, network, device, plain

    def __repr__(self) -> str:
        return f"Model({str(self.path)!r})"

    @property
    def plain(self) -> PlainText:
        """The preparation of plain text for this model; raises an error if it was not recorded."""
        if self._plain is None:
            self._plain = plain_text_of(self.checkpoint)
        return self._plain

    @overload
    def translate(
        self,
        texts: Sequence[str],
        beam: int = 1,
        n_best: Literal[1] = 1,
        raw: bool = True,
        **search: Unpack[SearchWords],
    ) -> list[str]: ...

    @overload
    def translate(
        self, texts: Sequence[str], beam: int = 1, n_best: int = 1, raw: bool = True, **search: Unpack[SearchWords]
    ) -> list[str] | list[list[Translation]]: ...

    def translate(
        self, texts: Sequence[str], beam: int = 1, n_best: int = 1, raw: bool = True, **search: Unpack[SearchWords]
    ) -> list[str] | list[list[Translation]]:
        """Translate sentences, in order; empty ones stay empty.

        beam: hypotheses kept by beam search; 1 is greedy search, the default of `pysimt translate`, too. n_best: if
        above 1, return this many translations of each sentence with their scores, best first. raw: plain text in and
        out; otherwise prepared text in, and out the result of `eval_filters`. `max_len`, `batch_size`, `lp_alpha`,
        `suppress_unk`: as in `pysimt translate`.
        """
        check_texts(texts, "texts")
        given = {"func": "bs" if beam > 1 else "gs", "beam_size": beam, "n_best": n_best > 1, **search}
        options = read_section(SearchOptions, given, {"beam_size": "beam"})
        if not 1 <= n_best <= beam:
            raise UserError(f"{n_best} must be at least 1, and at most the beam size of {beam}", "n_best")
        translator = Translator(self.network, options, self.device, plain=self.plain if raw else None)
        found = translator.translate_lines(translator.prepare(list(texts)))
        if n_best == 1:
            return translator.readable(translator.best_texts(found))
        return [best_translations(translator, hypotheses[:n_best]) for hypotheses in found]

    def score(
        self, sources: Sequence[str], targets: Sequence[str], raw: bool = True, batch_size: int = 16
    ) -> list[float]:
        """Return the natural log-probability of each target given its source, summed over its units and `<eos>`.

        raw: plain text; otherwise text prepared as for training, on both sides.
        """
        check_texts(sources, "sources")
        check_texts(targets, "targets")
        read_section(SearchOptions, {"batch_size": batch_size}, {})
        if len(sources) != len(targets):
            raise UserError(f"{len(sources)} and {len(targets)}", "sources, targets", NO_TARGETS)
        if not sources:
            return []
        if raw:
            sources, targets = self.plain.source.prepare(sources), self.plain.target.prepare(targets)
        model = self.network
        sides = {
            model.sl: Text(sources, model.src_vocab, is_target=False),
            model.tl: Text(targets, model.trg_vocab, is_target=True),
        }
        found = [0.0] * len(sources)
        with out_of_memory_as_user_error(f"batches of {batch_size} sentences", "lower batch_size"), torch.no_grad():
            for batch in ParallelCorpus(sides, batch_size).loader():
                batch.device(self.device)
                for index, log_p in zip(batch.indices, model.log_p_of_targets(batch).tolist(), strict=True):
                    found[index] = log_p
        return found


def check_texts(texts: Sequence[str], name: str) -> None:
    """Refuse anything but a list of sentences."""
    if isinstance(texts, str):
        raise UserError("is one string, not a list of sentences", name, "put it into a list: [text]")
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str):
            raise UserError(f"number {number} is {text!r}, not a sentence", name)
        check_length(text, number, name)


def best_translations(translator: Translator, hypotheses: list[Hypothesis]) -> list[Translation]:
    """Return the hypotheses of one sentence as readable text, with their scores."""
    texts = translator.readable([translator.text(hypothesis) for hypothesis in hypotheses])
    return [Translation(text, hypothesis.score) for text, hypothesis in zip(texts, hypotheses, strict=True)]
