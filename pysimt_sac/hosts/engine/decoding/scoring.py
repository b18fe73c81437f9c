"""Log-probabilities of given translations."""

from typing import Any

import torch
from torch import Tensor

from pysimt_sac.core.batch import Batch
from pysimt_sac.core.vocabulary import EOS
from pysimt_sac.hosts.engine.data.corpus import ParallelCorpus
from pysimt_sac.hosts.engine.nmt import SimultaneousNMT, real_positions
from pysimt_sac.network.output import linear_log_probs


@torch.no_grad()
def log_probabilities(model: SimultaneousNMT, batch: Batch) -> Tensor:
    """Return the log-probability (B) of each target, `<eos>` included, given its source."""
    ids_TB: Tensor = batch[model.tl]
    positions_N = real_positions(batch.lengths[model.tl]).to(ids_TB.device)
    decoder: Any = model.dec
    readout_NE = decoder.readouts(model.encode(batch), ids_TB[:-1], positions_N)
    tokens_N = ids_TB[1:].flatten().index_select(0, positions_N)
    _, log_p_N, _ = linear_log_probs(decoder.out2prob, readout_NE, tokens_N, EOS)
    totals_B = torch.zeros(ids_TB.size(1), dtype=torch.float64, device=ids_TB.device)
    return totals_B.index_add_(0, positions_N % ids_TB.size(1), log_p_N.double())


def score_corpus(model: SimultaneousNMT, corpus: ParallelCorpus, device: torch.device) -> list[float]:
    """Return the log-probabilities of all targets of a corpus, in corpus order."""
    found = [0.0] * len(corpus)
    for batch in corpus.loader():
        batch.device(device)
        for index, log_p in zip(batch.indices, log_probabilities(model, batch).tolist(), strict=True):
            found[index] = log_p
    return found
