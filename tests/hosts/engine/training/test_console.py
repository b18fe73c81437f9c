"""What training shows: a header, aligned figures, validations; everything else is in the log file."""

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from pathlib import Path

import pytest

from tests.models.runs import train_actor

ESCAPE = "\033["
ROW = re.compile(r" +\d+ +\d+( +[-\d.e+]+){5}")


def log_of(folder):
    (path,) = folder.glob("*.log")
    return path.read_text()


def on_terminal(words, columns, **environment):
    """All that training writes to a terminal of so many columns."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    child = os.fork()
    if child == 0:
        try:
            from pysimt_sac.cli import main

            os.environ.update({"TERM": "xterm", **environment})
            os.dup2(follower, 2)
            sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115 - until the process ends
            os._exit(main([str(word) for word in words]))
        finally:
            os._exit(99)
    os.close(follower)
    told = b""
    while True:
        try:
            told += os.read(leader, 10_000)
        except OSError:  # the child has closed it
            break
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, told
    return told.decode()


def test_the_console_is_short_and_the_log_has_it_all(toy, pysimt):
    outcome = pysimt("train", "-C", toy.config)
    assert outcome.status == 0
    told, log = outcome.err.splitlines(), log_of(toy.run_folder)
    for detail in (
        "[vocabulary]",
        "dropout_emb: 0.1",
        "RecurrentEncoder",
        "Epoch 1 - update       2 => loss:",
        "Epoch 1 done",
    ):
        assert detail in log
        assert detail not in outcome.err
    assert told[0].startswith("model:    SimultaneousNMT, 0.01M parameters; ")
    assert "seed 1" in told[0]
    assert told[1] == "data:     200 sentence pairs in 10 batches; 16 -> 16 words"
    assert told[2] == (
        "changed:  batch_size=20, lr=0.01, eval_metrics=bleu,loss, eval_freq=0, eval_max_len=10, "
        "emb_dim=8, enc_dim=16, dec_dim=16, dropout_emb=0.1"
    )
    assert told[3].startswith("log:      ")
    assert Path(told[3].split()[1]).read_text() == log
    assert told[4].split() == ["epoch", "update", "loss", "perplexity", "|gradient|", "lr", "words/s"]
    rows = [line for line in told if ROW.fullmatch(line)]
    assert [row.split()[:2] for row in rows] == [[str(1 + (n > 10)), str(n)] for n in range(2, 21, 2)]
    assert {len(line) for line in (told[4], *rows)} == {80}
    assert re.fullmatch(r"Validation 1: BLEU [\d.]+ best, LOSS [\d.]+ best; patience 20, up to \d+ s left", told[10])
    assert not set(ESCAPE + "\r") & set(outcome.err.replace("[", ""))
    assert len([line for line in told if not line.startswith("Warning")]) == 4 + 1 + 10 + 2 + 2


def test_verbose_shows_all_of_the_log(toy, pysimt):
    told = pysimt("train", "-C", toy.config, "--verbose").err.splitlines()
    assert told == [line[20:] for line in log_of(toy.run_folder).splitlines()]
    assert "[vocabulary]" in told


def test_each_validation_shows_three_translations_beside_the_first_ones_and_the_references(toy, pysimt):
    """A resumed run still knows the first ones; included files are named instead of what they say."""
    (toy.folder / "mine.conf").write_text("[include]\nbase: toy.conf\n\n[train]\nlr: 0.02\n")
    first = pysimt("train", "-C", toy.folder / "mine.conf", "train.max_epochs:1").err.splitlines()
    assert first[2:4] == ["recipe:   toy.conf", "changed:  lr=0.02"]
    pysimt("train", "-C", toy.folder / "mine.conf", "train.max_epochs:2")
    kinds = ("before", "now", "reference")
    lines = log_of(toy.folder / "runs/mine").splitlines()
    shown = [line[20:].split(":", 1) for line in lines if line[20:].split(":")[0] in kinds]
    assert [kind for kind, _ in shown] == [*kinds] * 6
    texts = [text.strip() for _, text in shown]
    assert texts[1::3][:3] == ["(the same)"] * 3
    assert texts[0:9:3] == texts[9::3]
    references = toy.val_trg.read_text().splitlines()
    assert texts[2:9:3] == [references[n] for n in (2, 6, 10)]


def test_without_tensorboard_a_run_has_its_other_curves(toy, pysimt, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    words = ["train.max_iterations:2", f"train.tensorboard_dir:{toy.folder}/board"]
    outcome = pysimt("train", "-C", toy.config, *words)
    assert outcome.status == 0
    assert "pip install 'pysimt_sac[tensorboard]'" in outcome.err
    (curves,) = toy.run_folder.glob("*.scalars.jsonl")
    assert "train_LOSS" in curves.read_text()


def test_an_actor_that_was_validated_with_other_metrics_is_its_best_by_its_own_first(toy, pysimt):
    assert pysimt("train", "-C", toy.config, "-s", "actor", "train.max_epochs:1").status == 0
    words = [f"train.pretrained_file:{toy.folder}/runs/toy-actor", "train.eval_metrics:chrf", "train.max_iterations:1"]
    assert re.search(
        r"Loaded 26 of 26 weights from .*\.best\.bleu\.ckpt", pysimt("train", "-C", toy.config, *words).err
    )


def test_quiet_leaves_validations_warnings_and_the_end(toy, pysimt):
    words = ["train.max_epochs:3", "model.lr_warmup:3"]
    told = pysimt("train", "-C", toy.config, "--quiet", *words).err.splitlines()
    kinds = [line.split(":")[0] for line in told]
    assert kinds[:6] == ["Warning", "Validation 1", "Validation 2", "Validation 3", "Training ended", "Best checkpoint"]
    assert set(kinds[6:]) <= {"Warning"}
    finished = pysimt("train", "-C", toy.config, "--quiet", *words).err
    assert "is finished: 3 epochs done" in finished


def test_both_at_once_make_no_sense(toy, pysimt):
    assert pysimt("train", "-C", toy.config, "--quiet", "--verbose").status == 2


@pytest.mark.parametrize("columns", [80, 120])
def test_a_terminal_has_colours_and_a_bar_and_no_line_is_too_long(toy, columns):
    told = on_terminal(["train", "-C", toy.config, "model.lr_warmup:3"], columns, NO_COLOR="")
    assert f"{ESCAPE}1mValidation 1: BLEU" in told
    assert f"{ESCAPE}33mWarning: [model] lr_warmup has no effect" in told
    assert re.search(r"epoch 1/2: +\d+%.*\d+/10 \[.*<.*whole run: up to \d+ s", told)
    plain = re.sub(r"\033\[\d*m|\033\[A", "", told)
    lines = [line for line in re.split(r"[\r\n]+", plain) if not line.strip().endswith(".log")]  # a path is one word
    assert max(map(len, lines)) <= columns
    assert re.search(r"\n {10}\w+=", plain)


def test_who_does_not_want_colours_has_none(toy):
    told = on_terminal(["train", "-C", toy.config], 80, NO_COLOR="1")
    assert f"{ESCAPE}1m" not in told
    assert "Validation 1: BLEU" in told
    quiet = on_terminal(["train", "-C", toy.config, "-s", "quiet", "--quiet"], 80, NO_COLOR="1")
    assert "Training ended" in quiet
    assert not re.search(r"epoch \d/|update|model:", quiet)


# Reinforcement


CRITICS = [
    "train.model_type:SACNMT",
    "model.critic_pretrain_updates:10",
    "model.gate_sentences:8",
    "model.health_freq:2",
]


def test_critics_alone_are_named_and_have_their_own_figures(toy, pysimt):
    actor = train_actor(toy)
    outcome = pysimt("train", "-C", toy.config, "-s", "sac", actor, *CRITICS)
    assert outcome.status == 0
    told, log = outcome.err, log_of(toy.folder / "runs/toy-sac")
    assert "start:    Loaded 26 of 26 weights from" in told
    alone, beside = told.split("Now learning: critics alone\n")[1].split("Now learning: actor and critics\n")
    assert re.split(r"  +", alone.splitlines()[0].strip())[1:] == [
        "update",
        "critic loss",
        "expl. var.",
        "Q",
        "return length ratio",
    ]
    assert "greedy BLEU       reward length ratio      entropy sampled BLEU" in beside
    assert ROW.fullmatch(alone.splitlines()[1])
    assert "loss:   0.000" not in log
    assert "Epoch 1 - update       2 => learning: critics alone  |gradient|" in log
    assert "Epoch 1 done: learned: critics alone" in log
    assert "replay_fill" in log
    assert "replay_fill" not in told


@pytest.mark.parametrize(
    ("model", "more", "headings"),
    [
        ("REINFORCENMT", ["model.health_freq:2"], ["greedy BLEU", "reward", "length ratio", "entropy", "sampled BLEU"]),
        ("SACUnsupNMT", ["model.health_freq:2"], ["greedy BLEU", "reward", "length ratio", "entropy", "label acc."]),
        ("MLENMT", [], ["loss", "perplexity", "|gradient|", "lr", "words/s"]),
    ],
)
def test_every_algorithm_has_five_figures(toy, pysimt, model, more, headings):
    words = [f"train.model_type:{model}", "train.max_iterations:4", "train.eval_freq:-1", *more]
    told = pysimt("train", "-C", toy.config, train_actor(toy), *words).err
    expected = f"{'epoch':>6} {'update':>8}" + "".join(f" {heading:>12}" for heading in headings)
    assert expected in told.splitlines()
