"""The workload: the paper's model on sentences like Multi30K's, and its number of operations."""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pysimt_sac.core.vocabulary import SPECIAL_TOKENS
from pysimt_sac.hosts.engine.config.parser import Options
from pysimt_sac.hosts.engine.nmt import SimultaneousNMT

# Measure the engine even if pysimt is installed for comparison; must be set before models are imported.
os.environ["PYSIMT_SAC_HOST"] = "embedded"

PAPER_MODEL = {
    "direction": "src:Text -> trg:Text",
    "emb_dim": 200,
    "enc_dim": 320,
    "dec_dim": 320,
    "n_encoders": 2,
    "enc_bidirectional": True,
    "att_type": "mlp",
    "att_bottleneck": "hid",
    "tied_emb": "2way",
    "out_logic": "deep",
    "dropout_emb": 0.4,
    "dropout_ctx": 0.5,
    "dropout_out": 0.5,
    "max_len": None,
    "bucket_by": "src",
    "sampler_type": "bucket",
}
PAPER_TRAINING = {"seed": 1, "batch_size": 64, "lr": 0.0004, "l2_reg": 1e-5, "gclip": 1.0, "optimizer": "adam"}


@dataclass(frozen=True)
class Corpus:
    """A parallel corpus on disk with its vocabularies."""

    name: str
    train: dict[str, str]
    test: dict[str, str]
    vocabulary: dict[str, str]

    def options(self, **model_changes) -> Options:
        data = {"train_set": dict(self.train), "val_set": dict(self.test), "test_set": dict(self.test)}
        model = {**PAPER_MODEL, **model_changes}
        sections = {"train": dict(PAPER_TRAINING), "model": model, "data": data, "vocabulary": dict(self.vocabulary)}
        return Options("benchmark.conf", sections)

    def model(self, **model_changes) -> SimultaneousNMT:
        model = SimultaneousNMT(self.options(**model_changes))
        model.setup()
        model.reset_parameters()
        return model


def shared_folder() -> Path | None:
    """Return the folder with the research data, if it exists."""
    place = os.environ.get("PYSIMT_SAC_SHARED") or Path(__file__).parents[2] / "shared"
    return Path(place) if Path(place).is_dir() else None


def find_corpus(folder: Path, n_sentences: int = 29_000) -> Corpus:
    """Return Multi30K EN-DE as the paper prepared it, or generated sentences of its lengths and vocabulary sizes."""
    shared = shared_folder()
    if shared:
        root = shared / "data/multi30k/paper/en-de"
        ending = {"src": "lc.norm.tok.en", "trg": "lc.norm.tok.bpe.de"}
        vocabulary = {"src": f"{root}/train.lc.norm.tok.vocab.en", "trg": f"{root}/train.lc.norm.tok.bpe.vocab.de"}
        splits = [
            {side: f"{root}/{split}.{ending[side]}" for side in ending} for split in ("train", "test_2016_flickr")
        ]
        return Corpus("Multi30K EN-DE", *splits, vocabulary)
    return generate(folder, n_sentences)


def generate(folder: Path, n_sentences: int, sizes: tuple[int, int] = (9797, 6405)) -> Corpus:
    """Generate random words with lengths as in Multi30K: about 13 source words and 14 target units, correlated."""
    rng = np.random.default_rng(1)
    paths: dict[str, str] = {}
    for split, size in (("train", n_sentences), ("test", 1000)):
        source = np.clip(rng.gamma(9.0, 1.45, size).round(), 4, 40).astype(int)
        target = np.clip((source * rng.normal(1.08, 0.18, size)).round(), 3, 50).astype(int)
        for side, lengths, n_vocab in zip(("src", "trg"), (source, target), sizes, strict=True):
            path = folder / f"{split}.{side}"
            ranks = (rng.zipf(1.3, int(lengths.sum())) - 1) % (n_vocab - 4)
            words = iter(ranks.tolist())
            path.write_text("".join(" ".join(f"w{next(words)}" for _ in range(n)) + "\n" for n in lengths.tolist()))
            paths[f"{split}.{side}"] = str(path)
    vocabulary = {}
    for side, n_vocab in zip(("src", "trg"), sizes, strict=True):
        tokens = [*SPECIAL_TOKENS, *(f"w{number}" for number in range(n_vocab - 4))]
        vocabulary[side] = str(folder / f"vocab.{side}")
        entries = ", ".join(f'"{token}": "{index} 0"' for index, token in enumerate(tokens))
        Path(vocabulary[side]).write_text("{" + entries + "}")
    splits = [{side: paths[f"{split}.{side}"] for side in ("src", "trg")} for split in ("train", "test")]
    return Corpus("generated, like Multi30K", *splits, vocabulary)


def temporary_folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="pysimt_sac_bench_")


def update_flops(
    batch: int, n_source: int, n_target: int, n_target_real: int, v: int = 6405, e: int = 200, h: int = 320
) -> float:
    """Return the FLOPs of the matrix products of one update, forward and backward (three products each).

    n_source, n_target: positions computed (batch times length); n_target_real: those that are not padding. Products
    with the zero states before the first word are not counted, since they are not computed; nor is the attention.
    """
    encoder = 2 * 3 * h * (e + h) + 2 * 3 * h * (2 * h + h)  # two layers, two directions, three gates
    projections = 2 * (2 * h * h)  # keys and values
    recurrence = 3 * h * (e + h) + h * h + 3 * h * (h + h)  # first cell, query, second cell
    output = (2 * h + e) * e + e * v
    first_states = 4 * 3 * h * h + 3 * h * h  # encoder's layers and directions, first cell
    products = n_source * (encoder + projections) + n_target * recurrence + n_target_real * output
    products -= batch * first_states
    return 3 * 2.0 * products
