"""Validation during training: loss on references, and scores of translations."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from pysimt_sac.core.batch import Batch
from pysimt_sac.core.distributed import world
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.filters import FilterChain
from pysimt_sac.core.metrics import Metric, RegisteredMetric
from pysimt_sac.core.registry import METRICS
from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.hosts.engine.data.corpus import ParallelCorpus, read_sentences
from pysimt_sac.hosts.engine.decoding.greedy import greedy_stream
from pysimt_sac.hosts.engine.decoding.search import Hypothesis, beam_search
from pysimt_sac.hosts.engine.preparation import out_of_memory_as_user_error
from pysimt_sac.hosts.engine.training.console import progress_bar
from pysimt_sac.hosts.engine.training.interrupts import Interrupted
from pysimt_sac.hosts.engine.training.randomness import random_states, restore_random_states

N_SAMPLES = 3
Interruptible = Callable[[Iterable[Batch | None]], Iterator[Batch | None]]


class Validator:
    """Reads the validation set once and scores a model on it on demand."""

    def __init__(self, model: Any, options: TrainOptions, device: torch.device) -> None:
        self.model, self.options, self.device = model, options, device
        where = f"{model.opts.filename} [train] eval_metrics"
        self.metrics: dict[str, RegisteredMetric] = {
            name.upper(): METRICS.get(name, where) for name in options.eval_metrics
        }
        self.filters = FilterChain(options.eval_filters, f"{model.opts.filename} [train] eval_filters")
        self.loss_corpus: ParallelCorpus = model.load_data("val", options.batch_size, mode="eval")
        self.translates = set(self.metrics) != {"LOSS"}
        self.hypotheses: list[str] = []  # of the last validation
        if self.translates:
            self.source_corpus: ParallelCorpus = model.load_data("val", options.eval_batch_size, mode="beam")
            self.references = [self.filters(read_sentences(path)) for path in model.val_refs]
            for path, reference in zip(model.val_refs, self.references, strict=True):
                if len(reference) != len(self.source_corpus):
                    what = f"has {len(reference)} lines, the source has {len(self.source_corpus)}"
                    raise UserError(what, path, "the sides of a corpus must be parallel")

    def higher_better(self, name: str) -> bool:
        """Return whether a higher score of a metric is better."""
        return self.metrics[name.upper()].higher_better

    @torch.no_grad()
    def __call__(self, interruptible: Interruptible) -> list[Metric]:
        """Return all scores, in the order of `eval_metrics`.

        `interruptible` may stop it between batches; it will be repeated from the start, with the same random numbers.
        """
        before, scores = random_states(), dict[str, float]()
        self.model.eval()
        try:
            with out_of_memory_as_user_error("validation", "lower eval_batch_size or eval_beam"):
                if "LOSS" in self.metrics:
                    loss = self.model.test_performance(self.batches(self.loss_corpus, interruptible, "validation loss"))
                    scores.update({metric.name: metric.score for metric in loss})
                if self.translates:
                    hypotheses = self.hypotheses = self.filters(self.translate(interruptible))
                    scores.update(world.broadcast_from_main(lambda: self.scores_of(hypotheses)))
        except Interrupted:
            restore_random_states(before)
            raise
        finally:
            self.model.train()
        for name, score in scores.items():
            if not math.isfinite(score):
                hint = "the model has diverged: lower lr" if name == "LOSS" else "check that metric"
                raise UserError(f"the validation's {name} is {score}", self.model.opts.filename, hint)
        return [Metric(name, scores[name], higher_better=self.higher_better(name)) for name in self.metrics]

    def samples(self) -> list[tuple[str, str]]:
        """Return the last translations of some sentences across the set, with their references."""
        pairs = list(zip(self.hypotheses, self.references[0], strict=True)) if self.hypotheses else []
        return [pairs[len(pairs) * (2 * n + 1) // (2 * N_SAMPLES)] for n in range(min(N_SAMPLES, len(pairs)))]

    def scores_of(self, hypotheses: list[str]) -> dict[str, float]:
        """Return the scores of translations, by metric."""
        scored = {name: metric for name, metric in self.metrics.items() if name != "LOSS"}
        return {name: float(metric.compute(hypotheses, self.references)) for name, metric in scored.items()}

    def batches(self, corpus: ParallelCorpus, interruptible: Interruptible, description: str) -> Iterator[Batch]:
        """Yield this rank's batches of a corpus on the device, with a progress bar."""
        bar = progress_bar(corpus.local_batches(), total=-(-len(corpus.batches()) // world.size), desc=description)
        for batch in interruptible(bar):
            if batch is not None:
                batch.device(self.device)
                yield batch

    def translate(self, interruptible: Interruptible) -> list[str]:
        """Translate the validation set; return the unfiltered translations in order."""
        lines: dict[int, str] = {}
        for batch, found in self.search(self.batches(self.source_corpus, interruptible, "validation translations")):
            for index, hypothesis in zip(batch.indices, found, strict=True):
                lines[index] = self.model.trg_vocab.idxs_to_sent(hypothesis.words)
        lines = {index: line for part in world.gather(lines) for index, line in part.items()}
        return [lines[index] for index in range(len(self.source_corpus))]

    def search(self, batches: Iterator[Batch]) -> Iterator[tuple[Batch, list[Hypothesis]]]:
        """Yield each batch with its translations, by the configured search."""
        longest = self.options.eval_max_len
        if self.model.opts.model["translator_type"] != "bs":
            yield from greedy_stream(self.model, batches, longest)
            return
        for batch in batches:
            yield batch, [found[0] for found in beam_search(self.model, batch, self.options.eval_beam, longest)]
