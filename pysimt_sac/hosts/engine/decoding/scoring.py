"""Log-probabilities of given translations."""

from typing import Any

import torch
from torch import Tensor

from pysimt_sac.core.vocabulary import EOS
from pysimt_sac.hosts.engine.data.corpus import ParallelCorpus
from pysimt_sac.hosts.engine.nmt import SimultaneousNMT, real_positions
from pysimt_sac.network.output import linear_log_probs


@torch.no_grad()
def log_probabilities(model: SimultaneousNMT, corpus: ParallelCorpus, device: torch.device) -> list[float]:
    """Return the log-probability of each target of a corpus, `<eos>` included, given its source, in corpus order."""
    found = [0.0] * len(corpus)
    decoder: Any = model.dec
    for batch in corpus.loader():
        batch.device(device)
        ids_TB: Tensor = batch[model.tl]
        positions_N = real_positions(batch.lengths[model.tl]).to(device)
        readout_NE = decoder.readouts(model.encode(batch), ids_TB[:-1], positions_N)
        tokens_N = ids_TB[1:].flatten().index_select(0, positions_N)
        _, log_p_N, _ = linear_log_probs(decoder.out2prob, readout_NE, tokens_N, EOS)
        totals_B = torch.zeros(batch.size, dtype=torch.float64, device=device)
        totals_B.index_add_(0, positions_N % batch.size, log_p_N.double())
        for index, log_p in zip(batch.indices, totals_B.tolist(), strict=True):
            found[index] = log_p
    return found
