"""The flat layout of real steps, on three sentences by hand."""

import torch

from pysimt_sac.engine.network.nmt import real_positions
from pysimt_sac.rl.steps import Steps

# <bos> a <eos> | <bos> a b <eos> | <bos> <eos>: two, three and one steps
WORDS = torch.tensor([[1, 1, 1], [5, 5, 2], [2, 6, 0], [0, 2, 0]])
STEPS = Steps.of(torch.tensor([3, 4, 2]))


def test_by_hand():
    assert STEPS.shape == (3, 3)
    assert len(STEPS) == 6
    assert STEPS.positions_N.tolist() == [0, 1, 2, 3, 4, 7]
    assert STEPS.sentences_N.tolist() == [0, 1, 2, 0, 1, 1]
    assert STEPS.times_N.tolist() == [0, 0, 0, 1, 1, 2]
    assert STEPS.next_N.tolist() == [3, 4, 6, 6, 5, 6]
    assert STEPS.ends_N.tolist() == [False, False, True, True, False, True]


def test_the_order_is_that_of_the_models_log_probabilities():
    assert torch.equal(STEPS.positions_N, real_positions(WORDS))
    assert STEPS.flatten(WORDS[1:]).tolist() == [5, 5, 2, 2, 6, 2]


def test_padding_and_flattening_undo_each_other():
    values = torch.arange(1.0, 7.0)
    padded = STEPS.pad(values)
    assert padded.tolist() == [[1, 2, 3], [4, 5, 0], [0, 6, 0]]
    assert torch.equal(STEPS.flatten(padded), values)


def test_following_values_and_values_of_sentences():
    assert STEPS.following(torch.arange(1.0, 7.0)).tolist() == [4, 5, 0, 0, 6, 0]
    assert STEPS.of_sentences(torch.tensor([7.0, 8.0, 9.0])).tolist() == [7, 8, 9, 7, 8, 8]
