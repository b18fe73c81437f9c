"""A reproduction so small that it takes seconds: eight sentences, two systems, their comparison, tables and page."""

import os
import signal
import subprocess
import sys
from pathlib import Path

CAPTIONS = [
    ("A man is sleeping.", "Ein Mann schläft."),
    ("A woman is singing.", "Eine Frau singt."),
    ("A dog is running.", "Ein Hund läuft."),
    ("A man is singing.", "Ein Mann singt."),
    ("A woman is running.", "Eine Frau läuft."),
    ("A dog is sleeping near a bank.", "Ein Hund schläft bei einer Bank."),
    ("A man is running near a bank.", "Ein Mann läuft bei einem Ufer."),
    ("Two dogs are running.", "Zwei Hunde laufen."),
]
TESTS = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
SIZES = {"train": 40, "val": 4, **dict.fromkeys(TESTS, 6)}
LISTED = ["bank | bank | a dog is sleeping near a bank . | ein hund schläft bei einer bank . | 1.jpg"]
MATRIX = """\
title = "Tiny"
corpus = "multi30k"
pairs = ["en-de"]

[data]
tests = ["test_2016_flickr", "test_2017_flickr", "test_2017_mscoco"]
reference = "{data}/{pair}/{set}.lc.norm.tok.{target}.dehyph"
training = "{data}/{pair}/train.lc.norm.tok.{target}"
ambiguous = "{mlt}/{pair}/{set}.mlt.tsv"
overrides = [
    "vars.root:{data}", "vars.tl:{target}", "model.emb_dim:8", "model.enc_dim:8", "model.dec_dim:8",
    "model.n_encoders:1", "train.batch_size:8", "train.eval_max_len:12", "train.checkpoint_freq:3", "train.disp_freq:2",
    "train.tensorboard_dir:",
]
sentences = 40

[decoding]
beam = 2
greedy = false

[scoring]
baselines = ["MLE"]
shuffles = 50
bootstrap = 10

[[system]]
name = "MLE"
config = "mle"
overrides = ["train.max_epochs:4", "model.lr_warmup:2"]

[[system]]
name = "SAC BLEU"
config = "sac_bleu"
start = "MLE"
overrides = ["train.max_iterations:8", "train.eval_freq:4"]
"""


def write(path: Path, lines) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def make_inputs(folder: Path) -> None:
    """Raw files, MLT's lists and a matrix."""
    for split, size in SIZES.items():
        pairs = [CAPTIONS[number % len(CAPTIONS)] for number in range(size)]
        for side, language in enumerate(("en", "de")):
            write(folder / f"raw/{split}.{language}", [pair[side] for pair in pairs])
    write(folder / "mlt/ENDE_MLTD_full.txt", ["bank bank 1000", "bank ufer 1001", "bank ufer 1002"])
    for name in ("test2016", "test2017flickr", "test2017mscoco"):
        write(folder / f"mlt/test_sets/ende_{name}.txt", LISTED)
    write(folder / "matrix.toml", MATRIX.splitlines())


def words(folder: Path, out: str, *more: str) -> list[str]:
    """The words of the command."""
    given = ["reproduce", "en-de", "--raw", folder / "raw", "--mlt", folder / "mlt", "--matrix", folder / "matrix.toml"]
    return [str(word) for word in (*given, "--out", folder / out, "--seeds", "1", "--jobs", "2", *more)]


def start(folder: Path, out: str, *more: str) -> subprocess.Popen:
    """The command as a process of its own."""
    command = [sys.executable, "-m", "pysimt_sac", *words(folder, out, *more)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def kill(process: subprocess.Popen, with_children: bool) -> None:
    """SIGKILL, to the process alone or to all that it has started, too."""
    victims = [process.pid, *(children(process.pid) if with_children else [])]
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    process.wait()
    assert process.stderr is not None
    process.stderr.close()
