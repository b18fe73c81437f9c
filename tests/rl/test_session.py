"""What a training session shows on the console."""

import pytest

from tests.models import task


def test_the_reward_has_the_weights_of_its_parts():
    model, corpus = task.make_model("REINFORCENMT", 1, reward="bleu:1,length:0.1")
    model.start_training(task.Board())
    model.train()(corpus[corpus.batches(0)[0]], uctr=1)
    model.session.reported = {"reward_bleu": 0.35, "reward_length": -0.2}
    assert model.session.pop_metrics()["reward"] == pytest.approx(0.35 - 0.1 * 0.2)
