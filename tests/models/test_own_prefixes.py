"""The control without reward: where the actor samples the reference itself, it is maximum likelihood."""

import dataclasses

import pytest

from tests.models import task


def start(**options):
    """The algorithm with the task's actor, and a batch."""
    model, corpus = task.make_model("OwnPrefixesNMT", 1, lambda_mle=1.0, **options)
    model.load_state_dict(task.actor(1))
    model.start_training(task.Board())
    return model.eval().session.algorithm, corpus[corpus.batches(1)[0]]


def test_on_samples_that_are_the_references_it_is_maximum_likelihood(monkeypatch):
    algorithm, batch = start(gradient_dropout=False)
    collect = algorithm.collector.collect
    monkeypatch.setattr(
        algorithm.collector,
        "collect",
        lambda *args: dataclasses.replace(collect(*args), tokens_TB=batch["trg"]),
    )
    terms = algorithm.update(batch, 1).terms
    assert terms["rl"].item() == pytest.approx(terms["mle"].item(), rel=1e-5)
    assert algorithm.metrics["aligned"] == 1


def test_rewards_do_not_matter():
    losses = []
    for scale in (1.0, 100.0):
        algorithm, batch = start(reward_scale=scale)
        losses.append({name: term.item() for name, term in algorithm.update(batch, 1).terms.items()})
    assert losses[0] == losses[1]
