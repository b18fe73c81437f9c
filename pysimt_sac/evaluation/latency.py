"""Latency of simultaneous translation, from the record of what was read and written.

`-f wk` and `-f sgs` write such a record, `OUT.SPLIT.wait3.acts`: one line per sentence, 0 (or R) for a word read,
1 (or W) for a target word written; `<eos>` counts on both sides. g_t is the number of words read before word t is
written, |x| and |y| the numbers of all words read and written, tau the first t with g_t = |x|.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import kind_of, read_lines
from pysimt_sac.evaluation.metrics import FloatArray
from pysimt_sac.evaluation.tables import Table

READ_WRITE = str.maketrans("RW", "01")


@dataclass(frozen=True)
class Latency:
    """Means over sentences; all lower is better."""

    average_proportion: float
    average_lagging: float
    differentiable_average_lagging: float


def actions_beside(hypothesis: Path) -> Path | None:
    """Return the record of a hypothesis file's actions, if there is one: a.test.wait3.acts for a.test.wait3.gs."""
    stem = hypothesis.name.removesuffix(".raw").removesuffix(".gs")
    path = hypothesis.with_name(f"{stem}.acts")
    return path if kind_of(path) == "file" else None


def find_latencies(hypotheses: Mapping[str, Sequence[Path | None]]) -> dict[str, Latency]:
    """Return the mean latency of each system's runs, where there are records beside the hypothesis files."""
    records = {
        name: [record for path in paths if path and (record := actions_beside(path))]
        for name, paths in hypotheses.items()
    }
    return {name: mean([read_latency(path) for path in paths]) for name, paths in records.items() if paths}


def mean(latencies: Sequence[Latency]) -> Latency:
    """Return the mean of some latencies."""
    return Latency(*np.mean([tuple(vars(latency).values()) for latency in latencies], axis=0).tolist())


def latency_table(latencies: Mapping[str, Latency], title: str = "") -> Table:
    """Return a table with a row for each system."""
    rows = tuple((name, *(f"{value:.3f}" for value in vars(found).values())) for name, found in latencies.items())
    note = "AP: the share of the source read when a word is written; AL, DAL: words behind; `<eos>` counts"
    return Table(header=("latency", "AP ↓", "AL ↓", "DAL ↓"), rows=rows, title=title, notes=(note,))


def read_latency(path: Path) -> Latency:
    """Read a record of actions; an empty line, of an empty sentence, does not count."""
    lines = read_lines(path, "record of actions")
    delays = [delays_of(line, number, path) for number, line in enumerate(lines, 1) if line.strip()]
    if not delays:
        raise UserError("has no actions", path)
    return mean([latency_of(*found) for found in delays])


def delays_of(line: str, number: int, path: Path) -> tuple[FloatArray, int]:
    """Return g_t of every word written, and |x|."""
    actions = line.translate(READ_WRITE).split()
    if set(actions) != {"0", "1"} or actions[0] != "0":
        raise UserError(f"line {number} is no record of actions", path, "0 reads a word, 1 writes one: 0 0 0 1 0 1 1")
    read = np.cumsum([action == "0" for action in actions])
    return read[[action == "1" for action in actions]].astype(float), int(read[-1])


def latency_of(g_T: FloatArray, n_read: int) -> Latency:
    """Return the latency of a sentence (Cho and Esipova, 2016; Ma et al., 2019; Cherry and Foster, 2019).

    AP = sum_t g_t / (|x| |y|); AL = 1/tau sum_{t <= tau} [g_t - (t - 1) |x| / |y|]; DAL = 1/|y| sum_t [g'_t -
    (t - 1) |x| / |y|] with g'_t = max(g_t, g'_{t-1} + |x| / |y|), so that writing a word takes its time, too.
    """
    lags_T = g_T - n_read / len(g_T) * np.arange(len(g_T))
    tau = int(np.argmax(g_T == n_read)) + 1 if g_T[-1] == n_read else len(g_T)
    slowest_T = np.maximum.accumulate(lags_T)  # g'_t - (t - 1) |x| / |y|
    return Latency(float(g_T.mean() / n_read), float(lags_T[:tau].mean()), float(slowest_T.mean()))
