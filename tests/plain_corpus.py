"""A small corpus of plain text, prepared by the real command, and a model trained on it: from text to text."""

from dataclasses import dataclass
from pathlib import Path

from pysimt_sac.cli import main, main_sac

SENTENCES = {
    "en": [
        "A man in a T-shirt is sleeping.",
        'Two women say "hello".',
        "The dog's ball is red.",
        "A boy, a girl and a dog.",
        "People are sitting near a well-known bank.",
    ],
    "de": [
        "Ein Mann in einem T-Shirt schläft.",
        'Zwei Frauen sagen "Hallo".',
        "Der Ball des Hundes ist rot.",
        "Ein Junge, ein Mädchen und ein Hund.",
        "Menschen sitzen bei einer bekannten Bank.",
    ],
    "fr": [
        "Un homme en t-shirt dort.",
        'Deux femmes disent "bonjour".',
        "La balle de l'homme est rouge.",
        "Un garçon, une fille et un chien.",
        "Des gens sont assis près d'une banque.",
    ],
}
SIZES = {"train": 40, "val": 5, "test_2016_flickr": 5}
CONFIG = """\
[train]
model_type: SimultaneousNMT
seed: 1
lr: 0.01
batch_size: 10
max_epochs: 30
patience: 30
eval_metrics: bleu,loss
eval_filters: de-bpe,de-hyphen
eval_freq: 0
eval_max_len: 30
save_path: {folder}/runs

[model]
direction: src:Text -> trg:Text
emb_dim: 16
enc_dim: 24
dec_dim: 24

[data]
train_set: {{'src': '{data}/train.lc.norm.tok.en', 'trg': '{data}/train.lc.norm.tok.bpe.de'}}
val_set: {{'src': '{data}/val.lc.norm.tok.en', 'trg': '{data}/val.lc.norm.tok.de.dehyph'}}
test_set: {{'src': '{data}/test_2016_flickr.lc.norm.tok.en', 'trg': '{data}/test_2016_flickr.lc.norm.tok.bpe.de'}}

[vocabulary]
src: {data}/train.lc.norm.tok.vocab.en
trg: {data}/train.lc.norm.tok.bpe.vocab.de
"""


@dataclass(frozen=True)
class PlainCorpus:
    """Where everything is. data: the prepared folder of the pair."""

    folder: Path
    raw: Path
    data: Path
    config: Path

    @property
    def run(self) -> Path:
        """The run's folder."""
        return self.folder / "runs/plain"

    @property
    def checkpoint(self) -> Path:
        """The best one."""
        (found,) = self.run.glob("*.best.bleu.ckpt")
        return found


def write_raw(folder: Path, languages: tuple[str, ...] = ("en", "de"), more: tuple[str, ...] = ()) -> Path:
    """Multi30K as people download it, but small. more: test sets besides the usual one."""
    folder.mkdir(parents=True)
    for language in languages:
        for split, size in {**SIZES, **dict.fromkeys(more, 3)}.items():
            lines = [SENTENCES[language][number % 5] for number in range(size)]
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def make_plain_corpus(folder: Path) -> PlainCorpus:
    """Prepare and train, by the real commands."""
    raw, out = write_raw(folder / "raw"), folder / "data"
    words = ["--bpe-merges", "60", "--jobs", "1", "--pair", "en-de"]
    assert main_sac(["prepare", "multi30k", "--raw", str(raw), "--out", str(out), *words]) == 0
    config = folder / "plain.conf"
    config.write_text(CONFIG.format(folder=folder, data=out / "en-de"), encoding="utf-8")
    assert main(["train", "-C", str(config), "--quiet"]) == 0
    return PlainCorpus(folder, raw, out / "en-de", config)
