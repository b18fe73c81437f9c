"""Log-probabilities of given translations."""

import torch

from pysimt_sac.hosts.engine.data.corpus import ParallelCorpus
from pysimt_sac.hosts.engine.nmt import SimultaneousNMT


@torch.no_grad()
def log_probabilities(model: SimultaneousNMT, corpus: ParallelCorpus, device: torch.device) -> list[float]:
    """Return the log-probability of each target of a corpus, `<eos>` included, given its source, in corpus order."""
    found = [0.0] * len(corpus)
    for batch in corpus.loader():
        batch.device(device)
        for index, log_p in zip(batch.indices, model.log_p_of_targets(batch).tolist(), strict=True):
            found[index] = log_p
    return found
