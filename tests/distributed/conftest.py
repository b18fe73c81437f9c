"""An actor to start from, trained once for all tests of this folder."""

import pytest

from tests.conftest import make_toy
from tests.distributed.processes import run

# Two layers and every dropout, all of which draw random numbers for the whole batch; 200 sentences are six batches and
# one of two sentences, which three processes do not divide.
NETWORK = [
    "train.batch_size:33",
    "model.n_encoders:2",
    *(f"model.dropout_{place}:0.2" for place in ("emb", "ctx", "enc", "out")),
]


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A toy corpus with an actor in runs/toy-actor."""
    toy = make_toy(tmp_path_factory.mktemp("distributed") / "toy")
    run(1, toy.folder / "out", "train", "-C", toy.config, "-s", "actor", "train.max_epochs:8", *NETWORK)
    return toy
