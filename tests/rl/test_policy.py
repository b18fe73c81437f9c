"""The policy without `<pad>` and `<bos>`, its support and its entropy, on a few words by hand."""

import math

import pytest
import torch

from pysimt_sac.core.policy import entropy, find_support, full_policy, policy_on_support, restricted_policy

LOG = math.log


def test_the_policy_leaves_out_padding_and_beginning():
    log_p = torch.tensor([[0.3, 0.2, 0.1, 0.25, 0.15]]).log()
    found = full_policy(log_p).exp()
    assert found[0].tolist() == pytest.approx([0, 0, 0.2, 0.5, 0.3])
    assert entropy(full_policy(log_p)).item() == pytest.approx(-sum(p * LOG(p) for p in (0.2, 0.5, 0.3)), abs=1e-6)


def test_the_policy_stands_even_where_nearly_all_weight_is_on_padding():
    logits = torch.tensor([[60.0, 60.0, 1.0, 2.0, 1.0]])
    assert full_policy(logits.log_softmax(-1)).exp()[0, 2:].tolist() == pytest.approx(
        torch.tensor([1.0, 2.0, 1.0]).softmax(0).tolist(), abs=1e-5
    )


def test_the_support_is_the_likeliest_words_and_the_taken_one():
    p = torch.tensor([[0.4, 0.3, 0.05, 0.1, 0.15], [0.4, 0.3, 0.05, 0.1, 0.15]])
    support = find_support(p.log(), torch.tensor([2, 3]), k=2)
    assert support.tokens_NK.tolist() == [[4, 3, 2], [4, 3, 3]]
    assert support.valid_NK.tolist() == [[True, True, True], [True, True, False]]
    found = restricted_policy(p.log(), support).exp()
    assert found[0].tolist() == pytest.approx([0.5, 1 / 3, 1 / 6])
    assert found[1].tolist() == pytest.approx([0.6, 0.4, 0.0])
    expected = -(0.6 * LOG(0.6) + 0.4 * LOG(0.4))
    assert entropy(restricted_policy(p.log(), support))[1].item() == pytest.approx(expected)


def test_unlikely_words_may_be_left_out_of_the_support_but_not_the_taken_one():
    p = torch.tensor([[0.0, 0.0, 0.6, 0.3, 0.1], [0.0, 0.0, 0.6, 0.3, 0.1]])
    support = find_support(p.log(), torch.tensor([4, 2]), k=2, least=0.4)
    assert support.tokens_NK.tolist() == [[2, 3, 4], [2, 3, 2]]
    assert support.valid_NK.tolist() == [[True, False, True], [True, False, False]]
    shifted = find_support(p.log() + 7, torch.tensor([4, 3]), k=2, least=0.4)  # logits will do
    assert shifted.valid_NK.tolist() == [[True, False, True], [True, True, False]]


def test_a_word_counts_once_in_the_support_however_often_it_was_taken():
    """The sampled word and the reference's: both likely, both unlikely and equal, different, one of them `<pad>`."""
    p = torch.tensor([[0.0, 0.0, 0.5, 0.3, 0.15, 0.05]]).expand(5, -1)
    taken_N2 = torch.tensor([[2, 2], [5, 5], [2, 5], [5, 0], [0, 0]])
    support = find_support(p.log(), taken_N2, k=2)
    counted = [words[valid].tolist() for words, valid in zip(*support, strict=True)]
    assert counted == [[2, 3], [2, 3, 5], [2, 3, 5], [2, 3, 5], [2, 3]]
    narrow = find_support(p.log(), taken_N2, k=2, least=0.4)
    assert [words[valid].tolist() for words, valid in zip(*narrow, strict=True)] == [[2], [2, 5], [2, 5], [2, 5], [2]]
    assert restricted_policy(p.log(), support).exp()[0].max().item() == pytest.approx(0.5 / 0.8)


def test_the_policy_on_a_support_needs_neither_other_words_nor_normalised_scores():
    logits = torch.randn(6, 9, generator=torch.Generator().manual_seed(0))
    support = find_support(logits, torch.tensor([2, 3, 4, 5, 6, 7]), k=3)
    alone = policy_on_support(logits.gather(1, support.tokens_NK), support)
    whole = restricted_policy(logits.log_softmax(-1), support)
    torch.testing.assert_close(alone[support.valid_NK], whole[support.valid_NK])


def test_entropy():
    assert entropy(torch.tensor([[0.5, 0.25, 0.25], [0.8, 0.1, 0.1]]).log()).tolist() == pytest.approx(
        [0.5 * LOG(2) + 0.5 * LOG(4), -(0.8 * LOG(0.8) + 0.2 * LOG(0.1))]
    )
