"""Metrics that another process or a server computes, such as COMET: the workers of `rewards.remote`."""

from collections.abc import Sequence

import numpy as np

from pysimt_sac.evaluation.metrics import FloatArray, Hypotheses
from pysimt_sac.rewards.remote import Example, RemoteOptions, Worker


class SourcedLine(str):
    """A line of a reference that knows the line that it translates, whichever lines a comparison picks."""

    __slots__ = ("source",)
    source: str

    @classmethod
    def of(cls, line: str, source: str) -> "SourcedLine":
        """Return a line with its source."""
        sourced = cls(line)
        sourced.source = source
        return sourced


class WorkerMetric:
    """The mean of a worker's scores, times 100. Statistics: score and one, of each sentence."""

    higher_is_better = True

    def __init__(self, name: str, worker: str) -> None:
        self.name, self.signature = name, f"100 times the mean of the scores by {worker}"
        self.worker = Worker(RemoteOptions(remote_worker=worker), "--worker")

    def statistics(self, runs: Hypotheses, references: Sequence[str]) -> FloatArray:
        """Score every sentence."""
        sources = [line.source if isinstance(line, SourcedLine) else "" for line in references]
        rows = [
            self.worker.scores([Example(*row) for row in zip(sources, run, map(str, references), strict=True)])
            for run in runs
        ]
        return np.stack((np.array(rows), np.ones((len(runs), len(references)))), axis=-1)

    def score(self, sums: FloatArray) -> FloatArray:
        """Compute the mean."""
        return np.asarray(100 * sums[..., 0] / sums[..., 1])
