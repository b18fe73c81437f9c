"""Translation with a checkpoint: whole splits into files, or sentences as they arrive."""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import torch
from tqdm import tqdm

from pysimt_sac.core.batch import Batch
from pysimt_sac.core.distributed import world
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import (
    Decode,
    decode_line,
    decode_plain_line,
    kind_of,
    raw_lines,
    require_writable,
    stream_lines,
    why,
    write_lines,
)
from pysimt_sac.core.filters import FilterChain
from pysimt_sac.core.options import read_section
from pysimt_sac.core.registry import load_plugin_modules
from pysimt_sac.core.sections import SearchOptions, TrainOptions
from pysimt_sac.hosts.choice import network_of
from pysimt_sac.hosts.engine.checkpoint import Checkpoint, load_checkpoint, load_checkpoint_of_run, load_weights
from pysimt_sac.hosts.engine.config.parser import Options, find_model, parse_direction, plugin_modules
from pysimt_sac.hosts.engine.data.corpus import ParallelCorpus, Text, check_length, find_files
from pysimt_sac.hosts.engine.data.moved_files import as_overrides, relocated
from pysimt_sac.hosts.engine.decoding.greedy import greedy_stream
from pysimt_sac.hosts.engine.decoding.input_check import InputCheck
from pysimt_sac.hosts.engine.decoding.search import Hypothesis, beam_search, sample
from pysimt_sac.hosts.engine.nmt import network_class
from pysimt_sac.hosts.engine.preparation import build_layers, out_of_memory_as_user_error
from pysimt_sac.text.plain_text import PlainText
from pysimt_sac.text.preparation import TextPreparation, preparation_of_folder

MOST_AT_ONCE = 1000  # lines of a stream that are translated together


def load_best(named: str | Path, last: bool = False) -> Checkpoint:
    """Load a checkpoint by its path, or of a run's folder the best one, or the last if that is wanted."""
    path = Path(named).expanduser()
    return load_checkpoint_of_run(path, last) if kind_of(path) == "folder" else load_checkpoint(path)


def checkpoint_to_use(folder: Path) -> Path:
    """Return the path of the checkpoint that `translate` uses for a run's folder."""
    return load_best(folder).path


def load_model(checkpoint: Checkpoint, device: torch.device, overrides: Sequence[str] = ()) -> Any:
    """Load the model of a checkpoint, ready to translate."""
    options = Options.from_dict(checkpoint.options, overrides)
    options.filename = str(checkpoint.path)
    model_class = find_model_class(checkpoint, options, overrides)
    model = model_class.of_checkpoint(checkpoint, options)
    build_layers(model, is_train=False)
    load_weights(model, checkpoint.weights, checkpoint.path)
    model.wait = None  # as in pysimt, a wait-k model reads whole sources unless it is told to wait
    return model.to(device).eval()


def find_model_class(checkpoint: Checkpoint, options: Options, overrides: Sequence[str]) -> Any:
    """Return a checkpoint's model class. Python files are run if the user names them, not if the checkpoint does."""
    files, where = plugin_modules(options), f"{checkpoint.path} model_type"
    name = str(options.train.get("model_type", ""))
    if any(word.startswith("model.plugin_modules:") for word in overrides):
        load_plugin_modules(files)
    try:
        network = find_model(network_of(options.train, options.model), where)  # refuses what only pysimt can translate
        return network_class(network if options.model.get("hf_model") else find_model(name, where))
    except UserError as error:
        if not files:
            raise
        hint = f"if you trust it, add -x model.plugin_modules:{','.join(files)}"
        raise UserError(f"its model {name} is defined in a Python file, {', '.join(files)}", where, hint) from error


def moved_files(checkpoint: Checkpoint, folder: Path) -> list[str]:
    """Return overrides for the files of a checkpoint's configuration that are now below a folder."""
    found = relocated(checkpoint.options, folder)
    if checkpoint.vocabularies:
        del found["vocabulary"]
    return as_overrides(found)


def preparation_for(checkpoint: Checkpoint, folder: Path) -> TextPreparation:
    """Read the preparation of a checkpoint's text from a folder's record."""
    sides = parse_direction(checkpoint.options["model"].get("direction"), str(checkpoint.path))
    return preparation_of_folder(folder, checkpoint.options["data"].get("train_set"), sides, checkpoint.path)


def plain_text_of(checkpoint: Checkpoint, folder: Path | None = None) -> PlainText:
    """Return the plain-text conversion for a checkpoint, by a folder's record or else by the checkpoint's own."""
    found = preparation_for(checkpoint, folder) if folder else checkpoint.preparation
    if found is None and checkpoint.options["model"].get("hf_model"):  # its tokenizer reads plain text
        return PlainText.as_it_is()
    if found is None:
        hint = "give the folder of its prepared corpus with --prepare FOLDER, or attach it once: pysimt-sac attach"
        raise UserError("does not record how its text was prepared", checkpoint.path, hint)
    return PlainText(found, folder or checkpoint.path)


class Translator:
    """A model with a search. plain: takes and returns plain text, instead of prepared and filtered text.

    wait: the k of wait-k greedy search.
    """

    wait: int | None = None

    def __init__(
        self,
        model: Any,
        search: SearchOptions,
        device: torch.device,
        use_filters: bool = True,
        plain: PlainText | None = None,
    ) -> None:
        self.model, self.search, self.device, self.plain = model, search, device, plain
        train = read_section(TrainOptions, model.opts.train, f"{model.opts.filename} [train]")
        self.filters = FilterChain(train.eval_filters if use_filters else (), f"{model.opts.filename} eval_filters")

    def wait_for(self, k: int) -> None:
        """Search by wait-k: write the first word after k of the source, and read one more before each further word."""
        if self.model.options.enc_bidirectional:
            raise UserError("reads its sources in both directions, which wait-k cannot", self.model.opts.filename)
        self.wait = self.model.wait = k

    def hypotheses(self, batches: Iterable[Batch], first: int = 0) -> Iterator[tuple[Batch, list[list[Hypothesis]]]]:
        """Yield each batch with the hypotheses of its sentences, best first. first: the first sentence's number."""
        search = self.search

        def on_device() -> Iterator[Batch]:
            for batch in batches:
                batch.device(self.device)
                yield batch

        with out_of_memory_as_user_error(f"batches of {search.batch_size} sentences", "lower -b, -k or -m"):
            if search.func in ("gs", "wk"):
                for batch, found in greedy_stream(self.model, on_device(), search.max_len, search.suppress_unk):
                    yield batch, [[hypothesis] for hypothesis in found]
                return
            for batch in on_device():
                yield batch, self.search_batch(batch, first)

    def search_batch(self, batch: Batch, first: int) -> list[list[Hypothesis]]:
        """Translate a batch by beam search or by sampling."""
        search, common = self.search, (self.search.max_len, self.search.suppress_unk)
        if search.func == "bs":
            return beam_search(self.model, batch, search.beam_size, *common, search.lp_alpha, search.n_best)
        top_k = min(search.top_k, len(self.model.trg_vocab))
        drawn = sample(self.model, batch, *common, search.temperature, top_k, search.seed, first)
        return [[hypothesis] for hypothesis in drawn]

    def translate_lines(self, lines: Sequence[str], progress: bool = False, first: int = 0) -> list[list[Hypothesis]]:
        """Return the hypotheses of prepared lines, in order; an empty line has none.

        first: how many sentences came before, in other texts.
        """
        sentences = [line for line in lines if line.strip()]
        if not sentences:
            return [[] for _ in lines]
        text = Text(sentences, self.model.src_vocab, is_target=False)
        seed = int(self.model.opts.train.get("seed") or 0)
        corpus = ParallelCorpus({str(self.model.sl): text}, self.search.batch_size, seed=seed)
        loader, n_batches = corpus.loader(start=world.rank, step=world.size), -(-len(corpus.batches()) // world.size)
        disable = None if progress and world.is_main else True
        results: dict[int, list[Hypothesis]] = {}
        for batch, found in self.hypotheses(tqdm(loader, total=n_batches, leave=False, disable=disable), first):
            results.update(zip(batch.indices, found, strict=True))
        results = {index: found for part in world.gather(results) for index, found in part.items()}
        in_order = (results[index] for index in range(len(sentences)))
        return [next(in_order) if line.strip() else [] for line in lines]

    def prepare(self, lines: Sequence[str]) -> Sequence[str]:
        """Return the lines as the model reads them."""
        return self.plain.source.prepare(lines) if self.plain else lines

    def text(self, hypothesis: Hypothesis) -> str:
        """Return a hypothesis in words."""
        return str(self.model.trg_vocab.idxs_to_sent(hypothesis.words))

    def best_texts(self, results: list[list[Hypothesis]]) -> list[str]:
        """Return the best hypothesis of each sentence as the model produced it; empty where there is none."""
        return [self.text(found[0]) if found else "" for found in results]

    def readable(self, texts: Sequence[str]) -> list[str]:
        """Return hypotheses in readable form; an empty one stays empty."""
        return self.plain.target.restore(texts) if self.plain else self.filters(texts)

    def output_files(self, split: str, prefix: str) -> dict[str, Path]:
        """Return the output files of a split's translations; without filters, two have the same text."""
        stem = f"{prefix}.{split}.{f'wait{self.wait}.gs' if self.wait else self.search.suffix}"
        files = {"raw": Path(f"{stem}.raw"), "filtered": Path(stem)}
        if self.search.n_best:
            files["n-best"] = Path(f"{stem}.nbest")
        if self.wait:
            files["actions"] = Path(f"{prefix}.{split}.wait{self.wait}.acts")
        return files

    def translate_splits(
        self, splits: Sequence[str], prefix: str, warn: Callable[[str], None] = lambda _: None
    ) -> Iterator[Path]:
        """Translate splits of the configuration into files; yield their paths."""
        yield from self.translate_files({split: self.source_of(split) for split in splits}, prefix, warn)

    def translate_files(
        self, sources: Mapping[str, Path], prefix: str, warn: Callable[[str], None] = lambda _: None
    ) -> Iterator[Path]:
        """Translate files, by the names of their outputs; yield the paths written. An empty line stays empty.

        All is checked before the first is translated.
        """
        texts = {}
        for name, source in sources.items():
            lines = list(stream_lines(source, "text file", decode_plain_line if self.plain else decode_line))
            for number, line in enumerate(lines, 1):
                check_length(line, number, source)
            texts[name] = self.prepare(lines)
            for path in self.output_files(name, prefix).values():
                require_writable(path)
        check = InputCheck(self.model.src_vocab)
        for warning in filter(None, map(check, texts.values())):
            warn(warning)
        for name, prepared in texts.items():
            yield from self.write(self.translate_lines(prepared, progress=True), name, prefix, prepared)

    def source_of(self, split: str) -> Path:
        """Return a split's source; refuse one that is no longer where it was in training, and say what to do."""
        path = self.model.split_files(split).get(self.model.sl)
        if not isinstance(path, str | Path):
            raise UserError(f"no file for {self.model.sl!r}", f"{self.model.opts.filename} [data] {split}_set")
        found = find_files(path)[0]
        if not kind_of(found):
            override = f"-x data.{split}_set.{self.model.sl}:FILE"
            hint = f"if the data has moved, say where it is with --data FOLDER or {override}"
            raise UserError("no such corpus file", path, hint)
        return found

    def write(
        self, results: list[list[Hypothesis]], split: str, prefix: str, sources: Sequence[str] = ()
    ) -> Iterator[Path]:
        """Write the translations of a split; yield the paths written. Only rank 0 writes."""
        if not world.is_main:
            return
        best = self.best_texts(results)
        contents = {"raw": best, "filtered": self.readable(best), "n-best": list(self.n_best_lines(results))}
        contents["actions"] = [self.actions(*pair) for pair in zip(sources, results, strict=True)] if self.wait else []
        for kind, path in self.output_files(split, prefix).items():
            write_lines(path, contents[kind])
            yield path

    def actions(self, source: str, found: list[Hypothesis]) -> str:
        """Return what wait-k did for a sentence, as pysimt writes it: 0 reads a word, 1 writes one; `<eos>` counts."""
        assert self.wait
        n_read, n_written = len(source.split()) + 1, min(len(found[0].words) + 1, self.search.max_len) if found else 0
        later = max(0, min(n_read - self.wait, n_written - 1))
        return " ".join("0" * min(self.wait, n_read) + "10" * later + "1" * (n_written - later))

    def n_best_lines(self, results: list[list[Hypothesis]]) -> Iterator[str]:
        """Yield all hypotheses, one per line, as `number ||| text ||| score`."""
        for number, found in enumerate(results):
            texts = [self.text(hypothesis) for hypothesis in found]
            texts = self.plain.target.restore(texts) if self.plain else texts
            for text, hypothesis in zip(texts, found, strict=True):
                yield f"{number} ||| {text} ||| {hypothesis.score:.6f}"

    def translate_stream(
        self, lines: IO[bytes], write: Callable[[str], None], warn: Callable[[str], None] = lambda _: None
    ) -> None:
        """Translate lines as they arrive and write each translation at once; an empty line stays empty.

        warn: called once, as soon as the lines prove unlike the training text.
        """
        check, n_before = InputCheck(self.model.src_vocab), 0
        for group in lines_at_hand(lines, self.search.batch_size, decode_plain_line if self.plain else decode_line):
            prepared = self.prepare(group)
            if warning := check(prepared):
                warn(warning)
            for line in self.readable(self.best_texts(self.translate_lines(prepared, first=n_before))):
                write(line)
            n_before += sum(bool(line.strip()) for line in prepared)


def lines_at_hand(stream: IO[bytes], most: int, decode: Decode = decode_line) -> Iterator[list[str]]:
    """Yield groups of at most `most` arrived lines: one by one from a person, full groups from a file."""
    most = min(most, MOST_AT_ONCE)
    arrived: queue.Queue[str | UserError | None] = queue.Queue(maxsize=4 * most)

    def read() -> None:
        try:
            for number, raw in enumerate(raw_lines(stream, "standard input"), 1):
                line = decode(raw.removesuffix(b"\n"), number, "standard input", "FILE")
                check_length(line, number, "standard input")
                arrived.put(line)
            arrived.put(None)
        except UserError as error:
            arrived.put(error)
        except OSError as error:
            arrived.put(UserError(f"cannot be read: {why(error)}", "standard input"))

    threading.Thread(target=read, daemon=True).start()
    while True:
        group: list[str] = []
        item = arrived.get()
        while isinstance(item, str):
            group.append(item)
            if len(group) == most or arrived.empty():
                break
            item = arrived.get()
        if group:
            yield group
        if isinstance(item, UserError):
            raise item
        if item is None:
            return
