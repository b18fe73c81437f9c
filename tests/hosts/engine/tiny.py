"""Tiny models and batches made in memory, for tests that need no files."""

import numpy as np
import torch

from pysimt_sac.core.vocabulary import SPECIAL_TOKENS, Vocabulary
from pysimt_sac.hosts.engine.config.parser import Options
from pysimt_sac.hosts.engine.data.corpus import Text
from pysimt_sac.hosts.engine.nmt import SimultaneousNMT


def tiny_vocabulary(n_words):
    tokens = [*SPECIAL_TOKENS, *(f"w{number}" for number in range(n_words))]
    return Vocabulary(tokens, [0] * len(tokens))


def tiny_model(n_words=5, seed=0, spread=0.6, model_class=SimultaneousNMT, **options):
    """A random model; `spread` is the standard deviation of its weights, larger ones make peaked distributions."""
    sizes = {"emb_dim": 4, "enc_dim": 5, "dec_dim": 6, "direction": "src:Text -> trg:Text", "bucket_by": "src"}
    sections = {"train": {"seed": 1}, "model": {**sizes, **options}, "data": {}, "vocabulary": {}}
    vocabs = {"src": tiny_vocabulary(n_words), "trg": tiny_vocabulary(n_words)}
    model = model_class(opts=Options("tiny.conf", sections), vocabs=vocabs)
    model.setup()
    model.reset_parameters()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=spread, generator=generator)
    return model.eval()


def tiny_sentences(n_sentences, n_words=5, seed=0, longest=6):
    generator = torch.Generator().manual_seed(seed)

    def draw(most):
        return int(torch.randint(1, most + 1, (), generator=generator))

    return [" ".join(f"w{draw(n_words) - 1}" for _ in range(draw(longest))) for _ in range(n_sentences)]


def tiny_batch(model, sources, targets=None):
    """A batch of these sentences, in this order."""
    sides = {"src": Text(sources, model.src_vocab, is_target=False)}
    if targets is not None:
        sides["trg"] = Text(targets, model.trg_vocab, is_target=True)
    corpus = model.make_corpus(sides, len(sources))
    return corpus[np.arange(len(sources))]
