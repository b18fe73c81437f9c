"""Choose the length penalty of beam search on the validation set, so that systems can be compared on equal terms.

One search gives all finished hypotheses of every sentence; each penalty ranks them anew. BLEU decides.
"""

import dataclasses
from typing import Any

import torch

from pysimt_sac.core.files import stream_lines
from pysimt_sac.core.metrics import bleu
from pysimt_sac.hosts.engine.data.corpus import read_sentences
from pysimt_sac.hosts.engine.decoding.search import Hypothesis, length_normaliser
from pysimt_sac.hosts.engine.decoding.translation import Translator

PENALTIES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4)


def tune_length(translator: Translator, split: str = "val") -> dict[str, Any]:
    """Set the translator's length penalty to the best one; return it with the BLEU of all of them.

    Of several that are equally good, the first of `PENALTIES` is chosen.
    """
    source = list(stream_lines(translator.source_of(split), "validation text"))
    references = [translator.filters(read_sentences(path)) for path in translator.model.val_refs]
    wanted = translator.search
    translator.search = dataclasses.replace(wanted, n_best=True, lp_alpha=0.0)
    found = translator.translate_lines(source, progress=True)
    scores = {}
    for penalty in PENALTIES:
        ranked = [sorted(own, key=lambda each: -penalised(each, penalty)) for own in found]
        scores[penalty] = bleu(translator.filters(translator.best_texts(ranked)), references)
    best = max(PENALTIES, key=scores.__getitem__)
    translator.search = dataclasses.replace(wanted, lp_alpha=best)
    return {"lp_alpha": best, "BLEU": {str(penalty): round(score, 4) for penalty, score in scores.items()}}


def penalised(hypothesis: Hypothesis, penalty: float) -> float:
    """Return the score of a hypothesis with a length penalty, given that without one."""
    n_words = len(hypothesis.words)
    return hypothesis.score * max(1, n_words) / float(length_normaliser(torch.tensor(float(n_words)), penalty))
