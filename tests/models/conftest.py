"""An actor to start from, trained once for all tests of this folder."""

import pytest

from tests.conftest import Toy, make_toy
from tests.models.runs import train_actor


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A toy corpus with an actor in runs/toy-mle; further runs need names of their own."""
    toy = make_toy(tmp_path_factory.mktemp("models") / "toy")
    train_actor(toy)
    return toy
