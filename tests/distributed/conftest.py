"""An actor to start from, trained once for all tests of this folder."""

import pytest

from tests.conftest import make_toy
from tests.distributed.processes import run

# 200 sentences are six batches and one of two sentences, which three processes cannot divide. Each process draws its
# own dropout: runs of different numbers of processes are compared without it.
NETWORK = ["train.batch_size:33", "model.n_encoders:2", "model.dropout_emb:0"]
DROPOUT = [f"model.dropout_{place}:0.2" for place in ("emb", "ctx", "enc", "out")]


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A toy corpus with an actor in runs/toy-actor."""
    toy = make_toy(tmp_path_factory.mktemp("distributed") / "toy")
    run(1, toy.folder / "out", "train", "-C", toy.config, "-s", "actor", "train.max_epochs:3", *NETWORK)
    return toy
