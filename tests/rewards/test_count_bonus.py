"""The unsupervised reward as a count bonus: against enumeration, its control, and as a reward of any word."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch

from pysimt_sac.rewards import SourceTexts, Translations
from pysimt_sac.rewards.count_bonus import BonusOptions, CountBonus, count_bonus, expected_bonus, permute_within
from tests.rewards.rewarders import make_rewarder, rewards_of

K, M = 3, 4
TOKENS = ["<pad>", "<bos>", "<eos>", "<unk>", "a", "b", "c", "d"]


@pytest.mark.parametrize("n", range(5))
def test_the_bonus_is_the_mean_label_reward_of_one_more_draw(n):
    """Over all labels of n draws and of one more, with q the frequencies of the labels of all of them."""
    earned = [
        math.log(labels.count(labels[-1]) / (n + 1)) - math.log(1 / K)
        for labels in itertools.product(range(K), repeat=n + 1)
    ]
    assert count_bonus(n, K) == pytest.approx(np.mean(earned))


def test_it_falls_from_log_k_with_the_draws():
    found = [count_bonus(n, 4) for n in range(60)]
    assert found[:5] == pytest.approx([1.386, 0.866, 0.616, 0.469, 0.372], abs=1e-3)
    assert all(one > other for one, other in itertools.pairwise(found))
    assert found[-1] == pytest.approx(3 / (2 * 59), rel=0.05)


@pytest.mark.parametrize("rho", [0.0, 0.02, 0.3, 1.0])
def test_the_expected_bonus_is_that_of_all_samples(rho):
    expected = 0.0
    for drawn in itertools.product([True, False], repeat=M):
        probability = math.prod(rho if is_drawn else 1 - rho for is_drawn in drawn)
        expected += probability * count_bonus(sum(drawn), K)
    assert expected_bonus(torch.tensor([rho]), M, K).item() == pytest.approx(expected, abs=1e-6)


def test_the_permuted_control_pays_every_word_the_same_on_average():
    values_NK = torch.tensor([[1.0, 2.0, 99.0], [4.0, 8.0, 0.0]])
    valid_NK = torch.tensor([[True, True, False], [True, True, True]])
    generator, groups_N = torch.Generator().manual_seed(1), torch.tensor([0, 0])
    found = [permute_within(values_NK, valid_NK, groups_N, generator) for _ in range(4000)]
    assert {tuple(sorted(each[valid_NK].tolist())) for each in found} == {(0.0, 1.0, 2.0, 4.0, 8.0)}
    centred = torch.stack(found)[:, valid_NK] - values_NK[valid_NK].mean()
    assert len({tuple(row) for row in centred.tolist()}) == math.factorial(5)
    assert centred.mean(0).abs().max() < 4 * 2.9 / math.sqrt(len(found))  # four standard errors
    assert all(each[0, 2] == 99 for each in found)
    apart = permute_within(values_NK, valid_NK, torch.tensor([5, 3]), generator)
    assert sorted(apart[0, :2].tolist()) == [1, 2]


def samples(texts, sources, references=None):
    """Hypotheses of sources, which are given by number."""
    source = SourceTexts(torch.tensor([[4, 5]]), TOKENS)  # the sources "a" and "b"
    words = [text.split() for text in texts]
    return Translations(words, references or [["x"] * 2] * len(texts), [True] * len(texts), (), source, sources)


def test_the_reward_is_the_mean_bonus_of_the_words_whatever_their_source_has_drawn():
    part = CountBonus(BonusOptions(n_labels=K))
    part.learn(samples(["a b", "a a", "c"], [0, 0, 1]))
    g = [count_bonus(n, K) / math.log(K) for n in range(4)]
    found = part(samples(["a d", "a b c", "c", "<unk>", ""], [0, 0, 1, 0, 0], [["x"] * 2] * 5))
    assert found[0].tolist() == pytest.approx([g[3] / 2, (g[3] + 1) / 2, (g[3] + 1) / 2])
    assert found[1].tolist() == pytest.approx([g[3] / 2, (g[3] + g[1]) / 2, *[(g[3] + g[1] + 1) / 3] * 2])
    assert found[2].tolist() == pytest.approx([g[1] / 2] * 2)  # of source 1
    assert found[3].tolist() == [0, 0]
    assert found[4].tolist() == [0]
    part.learn(samples(["b"], [0]))
    assert part(samples(["a"], [0]))[0][0] == 0.5  # the samples before are forgotten


def test_sources_without_samples_earn_nothing():
    assert CountBonus(BonusOptions())(samples(["a b"], [1]))[0].tolist() == [0, 0, 0]


def test_a_mixture_means_what_it_says():
    """Both parts are from 0 to 1, so that the weights compare; the scale multiplies both alike."""
    rewarder, drawn = make_rewarder(reward="bleu:0.7,unsup:0.3"), samples(["a b", "a b", "b b"], [0, 0, 0])
    mean = rewarder.learn(drawn)["unsup_mean"]
    counts = Counter("ab ab bb".replace(" ", ""))
    assert mean == pytest.approx(np.mean([count_bonus(counts[word], 4) for word in "ababbb"]))
    found, alone = rewarder(drawn), make_rewarder(reward="bleu")(drawn)
    part = np.stack(rewarder.parts["unsup"](drawn)).T
    assert part.min() >= 0
    assert part.max() <= 1
    assert found.potentials_TB == pytest.approx(0.7 * alone.potentials_TB + 0.3 * part)
    assert rewards_of(found).sum(0) == pytest.approx(2 * found.potentials_TB[-1])


def test_a_word_that_was_never_drawn_has_a_reward_too():
    rewarder = make_rewarder(reward="unsup", reward_scale=1.0)
    ids_TB = torch.tensor([[1, 4, 4, 2]]).t()
    source = SourceTexts(torch.tensor([[4]]), TOKENS)
    translations = Translations.from_ids(ids_TB, ids_TB, TOKENS, source)
    rewarder.learn(translations)
    candidates = torch.tensor([[[4, 5]], [[4, 2]], [[0, 0]]])
    found = rewarder.next_rewards(translations, candidates, torch.tensor([9]))
    drawn, never = (count_bonus(n, 4) / math.log(4) / 2 for n in (2, 0))
    assert found[:, 0] == pytest.approx(np.array([[drawn, never], [drawn, 0], [0, 0]]))


def test_what_was_counted_can_be_restored():
    one, other = (make_rewarder(reward="unsup") for _ in range(2))
    one.learn(samples(["a b", "c"], [0, 1]))
    other.load_state_dict(one.state_dict())
    assert (one(samples(["a d"], [0])).potentials_TB == other(samples(["a d"], [0])).potentials_TB).all()
