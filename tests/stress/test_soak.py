"""A long run of the smallest SAC: its memory, its open files and the size of its state stay as they are."""

import resource
from pathlib import Path

import pytest

from pysimt_sac.hosts.engine.training.trainer import Trainer
from tests.models.runs import changes, train, train_actor
from tests.stress import SCALE

UPDATES, WARM = (10_000, 1000) if SCALE else (240, 80)
MEGABYTES = 1 if SCALE else 4  # of growth; a short run has hardly warmed up


def used(folder):
    """This process's memory in MB, its open files, and the size of the last state in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    state = (folder / "train_state.pt").stat().st_size
    return pages * resource.getpagesize() / 2**20, len(list(Path("/proc/self/fd").iterdir())), state


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell how much memory is used")
def test_nothing_grows(toy, monkeypatch):
    seen, save = {}, Trainer.save

    def watch(self):
        save(self)
        seen[self.progress.update] = used(self.run.folder)

    train_actor(toy)
    monkeypatch.setattr(Trainer, "save", watch)
    words = changes(toy, "SACNMT", "critic_pretrain_updates:4", "buffer_size:5", "support_size:4", "gate_sentences:0")
    length = [
        f"train.max_iterations:{UPDATES}",
        "train.max_epochs:100000",
        "train.batch_size:4",
        "train.patience:10000",
    ]
    train(toy, "soak", words, *length, f"train.checkpoint_freq:{WARM // 2}", "train.eval_freq:40")
    (memory, files, state), after = seen[WARM], seen[UPDATES]
    assert after[0] - memory < MEGABYTES, seen
    assert after[1] == files
    assert abs(after[2] - state) < 2**14, seen  # scores of validations are kept
