"""A corpus so small that training on it takes a second: `toy` is a folder of its own for every test that asks.

The task is to say a sentence of twelve words backwards, in capitals.
"""

import importlib.util
import io
import os
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plain_corpus import PlainCorpus

# Before torch is imported, here and in the processes that tests start: no test is large enough for two threads, and
# the embedded engine is tested with it, whatever else is installed.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("PYSIMT_SAC_HOST", "embedded")

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
CONFIG = """\
[train]
model_type: SimultaneousNMT
seed: 1
lr: 0.01
batch_size: 20
max_epochs: 2
eval_metrics: bleu,loss
eval_freq: 0
eval_max_len: 10
checkpoint_freq: 0
n_checkpoints: 0
disp_freq: 2
save_path: {folder}/runs

[model]
direction: src:Text -> trg:Text
emb_dim: 8
enc_dim: 16
dec_dim: 16
dropout_emb: 0.1

[data]
train_set: {{'src': '{folder}/train.src', 'trg': '{folder}/train.trg'}}
val_set: {{'src': '{folder}/val.src', 'trg': '{folder}/val.trg'}}
test_set: {{'src': '{folder}/test.src', 'trg': '{folder}/test.trg'}}

[vocabulary]
src: {folder}/vocab.src
trg: {folder}/vocab.trg
"""


@dataclass(frozen=True)
class Toy:
    """A folder with a parallel corpus, its vocabularies, and a configuration that trains on it."""

    folder: Path
    config: Path
    src: Path
    trg: Path
    val_src: Path
    val_trg: Path
    test_src: Path
    test_trg: Path
    src_vocab: Path
    trg_vocab: Path

    @property
    def run_folder(self) -> Path:
        """Where a run of the configuration goes; it is not there before."""
        return self.folder / "runs" / "toy"

    @property
    def final_checkpoint(self) -> Path:
        """The last checkpoint of a run of the configuration."""
        (path,) = self.run_folder.glob("*-final.ckpt")
        return path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the slow tests, so that no process is left alone with one at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    """A toy of its own for a test."""
    return make_toy(tmp_path / "toy")


@pytest.fixture(scope="session")
def trained_toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A toy with a checkpoint after one epoch, shared: tests leave both as they are."""
    from pysimt_sac.cli import main

    toy = make_toy(tmp_path_factory.mktemp("trained") / "toy")
    assert main(["train", "-C", str(toy.config), "train.max_epochs:1", "train.eval_freq:-1"]) == 0
    return toy


@pytest.fixture(scope="session")
def plain_corpus(tmp_path_factory: pytest.TempPathFactory) -> "PlainCorpus":
    """A prepared corpus and a model trained on it, shared: tests leave them as they are."""
    from tests.plain_corpus import make_plain_corpus

    return make_plain_corpus(tmp_path_factory.mktemp("plain") / "corpus")


@pytest.fixture(scope="session")
def sentencepiece_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small SentencePiece model of the plain corpus's sentences."""
    package = pytest.importorskip("sentencepiece", reason="the extra `sentencepiece` is not installed")
    from tests.plain_corpus import SENTENCES

    folder = tmp_path_factory.mktemp("sentencepiece")
    (folder / "text").write_text("\n".join(line.lower() for line in SENTENCES["en"] + SENTENCES["de"]))
    package.SentencePieceTrainer.train(
        input=str(folder / "text"), model_prefix=str(folder / "m"), vocab_size=60, model_type="bpe", minloglevel=2
    )
    return folder / "m.model"


@pytest.fixture(scope="session")
def research_data() -> Path:
    """The folder with the paper, its data and a checkpoint, which lies beside the project on some machines."""
    folder = Path(os.environ.get("PYSIMT_SAC_SHARED") or Path(__file__).parents[2] / "shared")
    if not (folder / "data").is_dir():
        pytest.skip(f"no research data in {folder}: set PYSIMT_SAC_SHARED to their folder")
    return folder


def write_split(folder: Path, name: str, size: int, rng: random.Random) -> None:
    """Sentences of two to six words, and their translations."""
    sentences = [rng.choices(WORDS, k=rng.randint(2, 6)) for _ in range(size)]
    (folder / f"{name}.src").write_text("".join(" ".join(words) + "\n" for words in sentences))
    (folder / f"{name}.trg").write_text("".join(" ".join(words[::-1]).upper() + "\n" for words in sentences))


def make_toy(folder: Path) -> Toy:
    """A fresh toy corpus and configuration."""
    from pysimt_sac.corpora.vocabulary_builder import count_words, keep_frequent, write_vocabulary

    folder.mkdir()
    rng = random.Random(1)
    for name, size in (("train", 200), ("val", 12), ("test", 6)):
        write_split(folder, name, size, rng)
    for side in ("src", "trg"):
        lines = (folder / f"train.{side}").read_text().splitlines()
        write_vocabulary(folder / f"vocab.{side}", keep_frequent(count_words(lines)))
    config = folder / "toy.conf"
    config.write_text(CONFIG.format(folder=folder))
    fields = {"": "train", "val_": "val", "test_": "test"}
    files = {f"{field}{side}": folder / f"{name}.{side}" for field, name in fields.items() for side in ("src", "trg")}
    return Toy(folder, config, src_vocab=folder / "vocab.src", trg_vocab=folder / "vocab.trg", **files)


@pytest.fixture(scope="session")
def generate() -> ModuleType:
    """docs/generate.py, which is not part of the package."""
    return load_script("docs/generate.py")


def load_script(path: str) -> ModuleType:
    """A script of the repository that is not part of the package, as a module."""
    script = Path(__file__).parents[1] / path
    spec = importlib.util.spec_from_file_location(script.stem, script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one line that says what is wrong; anything but exactly one is a failure."""
        lines = [line for line in self.err.splitlines() if ": error: " in line]
        assert len(lines) == 1, self.err
        assert self.err.rstrip().endswith(lines[0]), self.err
        assert "Traceback" not in self.err
        return lines[0]


@pytest.fixture
def pysimt(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """`pysimt train ...` and its like, in this process."""
    from pysimt_sac.cli import main

    def run(*words: object) -> Outcome:
        capfd.readouterr()
        try:
            status = main([str(word) for word in words])
        except SystemExit as stop:  # argparse's way to say no
            status = stop.code if isinstance(stop.code, int) else 1
        return Outcome(status, *capfd.readouterr())

    return run


@pytest.fixture
def translate_stdin(pysimt: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """`pysimt translate ...` with these bytes as standard input."""

    def run(content: bytes, *words: object) -> Outcome:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        return pysimt("translate", *words)

    return run
