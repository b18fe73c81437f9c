"""Translating with a checkpoint: whole splits into files, or sentences as they come."""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import torch
from tqdm import tqdm

from pysimt_sac.engine.checkpoint import Checkpoint, load_weights
from pysimt_sac.engine.config import Options, find_model
from pysimt_sac.engine.corpus import Batch, ParallelCorpus, Text
from pysimt_sac.engine.filters import FilterChain
from pysimt_sac.engine.options import TrainOptions, read_section
from pysimt_sac.engine.registry import load_plugin_modules
from pysimt_sac.engine.search import Hypothesis, beam_search, greedy_search, sample
from pysimt_sac.engine.vocabulary import Vocabulary
from pysimt_sac.errors import UserError
from pysimt_sac.files import write_lines


@dataclass(frozen=True)
class SearchOptions:
    """How to look for translations; the command line's `translate` options."""

    func: str = "gs"
    beam_size: int = 6
    lp_alpha: float = 0.0
    suppress_unk: bool = False
    n_best: bool = False
    max_len: int = 100
    batch_size: int = 16
    temperature: float = 1.0
    top_k: int = 0
    seed: int = 0

    @property
    def suffix(self) -> str:
        """How output files are called after the search."""
        return f"beam{self.beam_size}" if self.func == "bs" else self.func


def load_model(checkpoint: Checkpoint, device: torch.device, overrides: Iterable[str] = ()) -> Any:
    """The model of a checkpoint, ready to translate."""
    options = Options.from_dict(checkpoint.options, overrides)
    options.filename = str(checkpoint.path)
    load_plugin_modules(options.model.get("plugin_modules") or ())
    model_class = find_model(str(options.train.get("model_type", "")), f"{checkpoint.path} model_type")
    model = model_class(opts=options, vocabs=find_vocabularies(checkpoint, options))
    model.setup(is_train=False)
    load_weights(model, checkpoint.weights, checkpoint.path)
    return model.to(device).eval()


def find_vocabularies(checkpoint: Checkpoint, options: Options) -> dict[str, Vocabulary] | None:
    """The vocabularies a checkpoint carries, unless the user names files in their place; pysimt's carry none."""
    overridden = options.vocabulary != checkpoint.options["vocabulary"]
    if checkpoint.vocabularies and not overridden:
        return checkpoint.vocabularies
    for side, path in options.vocabulary.items():
        if not Path(path).is_file():
            todo = f"name it with -x vocabulary.{side}:FILE, or translate in the folder where the model was trained"
            raise UserError(f"the vocabulary {path} is not there", checkpoint.path, todo)
    return None


class Translator:
    """A model with a way to search."""

    def __init__(self, model: Any, search: SearchOptions, device: torch.device, use_filters: bool = True) -> None:
        self.model, self.search, self.device = model, search, device
        train = read_section(TrainOptions, model.opts.train, f"{model.opts.filename} [train]")
        self.filters = FilterChain(train.eval_filters if use_filters else (), f"{model.opts.filename} eval_filters")

    def hypotheses(self, batch: Batch) -> list[list[Hypothesis]]:
        """The hypotheses of each sentence, best first."""
        search = self.search
        batch.device(self.device)
        if search.func == "bs":
            return beam_search(
                self.model, batch, search.beam_size, search.max_len, search.lp_alpha, search.suppress_unk, search.n_best
            )
        if search.func == "sample":
            drawn = sample(
                self.model, batch, search.max_len, search.suppress_unk, search.temperature, search.top_k, search.seed
            )
            return [[hypothesis] for hypothesis in drawn]
        return [[found] for found in greedy_search(self.model, batch, search.max_len, search.suppress_unk)]

    def translate(self, corpus: ParallelCorpus, progress: bool = True) -> list[list[Hypothesis]]:
        """The hypotheses of all sentences, in the corpus's order."""
        results: list[list[Hypothesis]] = [[] for _ in range(len(corpus))]
        loader = corpus.loader()
        bar = tqdm(loader, total=len(corpus.batches()), unit="batch", leave=False, disable=None if progress else True)
        for batch in bar:
            for index, found in zip(batch.indices, self.hypotheses(batch), strict=True):
                results[index] = found
        return results

    def text(self, hypothesis: Hypothesis) -> str:
        """A hypothesis in words."""
        return str(self.model.trg_vocab.idxs_to_sent(hypothesis.words))

    def translate_split(self, split: str, prefix: str) -> list[Path]:
        """Translate a split of the configuration into files; the paths written."""
        corpus = self.model.load_data(split, self.search.batch_size, mode="beam")
        results = self.translate(corpus)
        stem = f"{prefix}.{split}.{self.search.suffix}"
        written = [Path(f"{stem}.raw")]
        best = [self.text(found[0]) for found in results]
        write_lines(written[0], best)
        if self.filters:
            written.append(Path(stem))
            write_lines(written[-1], self.filters(best))
        if self.search.n_best:
            written.append(Path(f"{stem}.nbest"))
            lines = [
                f"{number} ||| {self.text(hypothesis)} ||| {hypothesis.score:.6f}"
                for number, found in enumerate(results)
                for hypothesis in found
            ]
            write_lines(written[-1], lines)
        return written

    def translate_stream(self, lines: TextIO, write: Callable[[str], None]) -> None:
        """Translate lines as they come and write each translation at once; an empty line stays empty."""
        number = 0
        for group in lines_at_hand(lines, self.search.batch_size):
            words = [line for line in group if line.strip()]
            found: Iterator[str] = iter(())
            if words:
                text = Text(words, self.model.src_vocab, is_target=False, name="standard input")
                corpus = self.model.make_corpus({self.model.sl: text}, self.search.batch_size)
                results = [self.text(hypotheses[0]) for hypotheses in self.translate(corpus, progress=False)]
                found = iter(self.filters(results))
            for line in group:
                number += 1
                write(next(found) if line.strip() else "")


def lines_at_hand(stream: TextIO, most: int) -> Iterator[list[str]]:
    """Groups of the lines that have arrived, at most so many: one by one from a person, full groups from a file."""
    arrived: queue.Queue[str | Exception | None] = queue.Queue(maxsize=4 * most)

    def read() -> None:
        try:
            for line in stream:
                arrived.put(line.rstrip("\n"))
            arrived.put(None)
        except (OSError, UnicodeDecodeError) as error:
            arrived.put(error)

    threading.Thread(target=read, daemon=True).start()
    while True:
        group: list[str] = []
        item = arrived.get()
        while isinstance(item, str):
            group.append(item)
            try:
                item = arrived.get_nowait() if len(group) < most else "full"
            except queue.Empty:
                item = "full"
            if item == "full":
                break
        if group:
            yield group
        if isinstance(item, Exception):
            raise UserError(f"cannot be read: {item}", "standard input", "it must be UTF-8 text")
        if item is None:
            return
