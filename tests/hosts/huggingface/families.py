"""Tiny models of four families with random weights, each with the conventions of its special ids."""

import functools
from types import SimpleNamespace

import torch

from pysimt_sac.core.batch import Batch
from pysimt_sac.core.vocabulary import BOS, EOS, PAD, UNK
from pysimt_sac.hosts.huggingface.actor import HuggingFaceActor
from pysimt_sac.hosts.huggingface.ids import Ids

N_IDS = 40
SIZES = {
    "vocab_size": N_IDS, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "dropout": 0.1, "init_std": 0.6,
    "max_position_embeddings": 64, "decoder_start_token_id": None, "forced_eos_token_id": None, "use_cache": True,
}  # fmt: skip
FAMILIES = ("marian", "nllb", "mbart", "t5")


def config_of(family):
    """The configuration of a tiny model, the id of its unknown word, and the ids that its decoder starts with."""
    import transformers

    if family == "marian":
        ids = {"pad_token_id": 39, "eos_token_id": 0, "bos_token_id": None, "decoder_start_token_id": 39}
        return transformers.MarianConfig(**{**SIZES, **ids, "decoder_vocab_size": N_IDS}), 1, [39]
    ids = {"pad_token_id": 1, "eos_token_id": 2, "bos_token_id": 0}
    if family == "nllb":
        layers = {"encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "decoder_start_token_id": 2}
        return transformers.M2M100Config(**{**SIZES, **ids, **layers}), 3, [2, 35]
    if family == "mbart":
        return transformers.MBartConfig(**{**SIZES, **ids, "decoder_start_token_id": 35}), 3, [35]
    sizes = {"d_model": 32, "d_kv": 16, "d_ff": 32, "num_layers": 2, "num_heads": 2, "initializer_factor": 3.0}
    return transformers.T5Config(vocab_size=N_IDS, decoder_start_token_id=0, **sizes), 2, [0]


@functools.cache
def family(name, seed=3):
    """A model in double precision, its ids, the actor and a batch; shared, so leave it as it is."""
    import transformers

    config, unk, start = config_of(name)
    torch.manual_seed(seed)
    model = transformers.AutoModelForSeq2SeqLM.from_config(config).double().eval()
    ids = Ids(N_IDS, config.pad_token_id, config.eos_token_id, unk, start)
    batch = make_batch()
    actor = HuggingFaceActor(model, ids, [f"w{number}" for number in range(N_IDS + 1)], lambda *_: [batch])
    source, real = ids.theirs(batch["src"]).t(), batch["src"].ne(PAD).t().long()
    return SimpleNamespace(name=name, model=model, ids=ids, actor=actor, batch=batch, source=source, real=real)


def make_batch(size=6, seed=0):
    """Sentence pairs of random words and lengths."""
    generator = torch.Generator().manual_seed(seed)

    def side(first):
        lengths = torch.randint(2, 7, (size,), generator=generator).tolist()
        rows = [[*first, *torch.randint(UNK, N_IDS + 1, (n,), generator=generator).tolist(), EOS] for n in lengths]
        longest = max(map(len, rows))
        return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows]).t()

    return Batch({"src": side([]), "trg": side([BOS])}, list(range(size)))
