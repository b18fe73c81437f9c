"""GRPO: its advantages by hand, and RLOO as REINFORCE with its default baseline."""

import pytest
import torch

from pysimt_sac.rl import losses
from tests.models import task


def test_advantages_are_deviations_within_a_group():
    returns_BS = torch.tensor([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]])
    spread = (2 / 3) ** 0.5
    expected = [[-1 / (spread + 1e-4), 0.0, 1 / (spread + 1e-4)], [0.0, 0.0, 0.0]]
    assert torch.allclose(losses.group_advantages(returns_BS, scale=True), torch.tensor(expected))
    assert losses.group_advantages(returns_BS, scale=False).tolist() == [[-1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]


def loss_of(model_type, **options):
    model, corpus = task.make_model(model_type, 1, n_samples=4, **options)
    model.load_state_dict(task.actor(1))
    model.start_training(task.Board())
    model.eval()
    return model.session.algorithm.update(corpus[corpus.batches(1)[0]], 1).terms["rl"].item()


def test_without_scale_it_is_rloo_but_for_a_factor():
    grpo = loss_of("GRPONMT", scale_advantages=False, gradient_dropout=False)
    rloo = loss_of("REINFORCENMT", gradient_dropout=False)
    assert rloo != 0
    assert grpo == pytest.approx(rloo * 3 / 4, rel=1e-4)
