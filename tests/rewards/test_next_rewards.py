"""r(s,a) of several next words of every state: what each would have earned, had it been taken."""

import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pysimt_sac.rewards import Translations, reward
from pysimt_sac.rewards.bleu import BleuOptions, BleuReward
from tests.rewards.random_texts import PIECES, words_of
from tests.rewards.rewarders import make_rewarder, rewards_of
from tests.rewards.test_gleu import plain_gleu

TOKENS = ["<pad>", "<bos>", "<eos>", "<unk>", *(piece for piece in PIECES if piece != "<unk>")]
PAD, BOS, EOS = 0, 1, 2
REWARDS = ["bleu", "gleu", "chrf", "ter", "length", "bleu:0.7,chrf:-0.3,gleu:2"]


def make(name, unit, **options):
    return make_rewarder(["de-bpe", "de-hyphen"], reward=name, reward_unit=unit, **options)


def from_ids(hypotheses, references, tokens=TOKENS):
    """Translations of lists of numbers; a hypothesis has its `<eos>`, unless it was cut off."""
    sampled, wanted = (
        torch.nn.utils.rnn.pad_sequence([torch.tensor([BOS, *row]) for row in rows])
        for rows in (hypotheses, [[*row, EOS] for row in references])
    )
    return Translations.from_ids(sampled, wanted, tokens)


def random_batch(n_sentences, n_candidates, seed):
    """Translations, candidates of any kind, and limits that some hypotheses have reached."""
    rng = random.Random(seed)
    hypotheses, references, limits = [], [], []
    for _ in range(n_sentences):
        reference = rng.choices(range(3, len(TOKENS)), k=rng.randint(1, 7))
        words = [word if rng.random() < 0.7 else rng.randrange(3, len(TOKENS)) for word in reference]
        words = (words + rng.choices(range(3, len(TOKENS)), k=3))[: rng.randint(0, 9)]
        ended = not words or rng.random() < 0.7
        hypotheses.append(words + [EOS] * ended)
        references.append(reference)
        limits.append(len(hypotheses[-1]) + rng.choice([0, 0, 1, 5]) * ended)
    translations = from_ids(hypotheses, references)
    shape = (max(translations.steps), n_sentences, n_candidates)
    candidates = torch.tensor(rng.choices(range(len(TOKENS)), k=int(np.prod(shape)))).view(shape)
    return translations, candidates, torch.tensor(limits)


def explicit(rewarder, translations, candidates, limits):
    """The same, one call for each candidate: the hypothesis is extended, and its growth at that step taken."""
    found = np.zeros(candidates.shape)
    for (step, sentence, number), word in np.ndenumerate(candidates.numpy()):
        if step >= translations.steps[sentence] or word in (PAD, BOS):
            continue
        hypothesis, ended = translations.hypotheses[sentence][:step], True
        if word != EOS:
            hypothesis, ended = [*hypothesis, TOKENS[word]], step + 1 < limits[sentence]
        earned = rewarder(Translations([hypothesis], [translations.references[sentence]], [ended]))
        before = earned.potentials_TB[step - 1, 0] if step else 0.0
        found[step, sentence, number] = earned.scale_B[0] * (earned.potentials_TB[step, 0] - before)
    return found


@pytest.mark.parametrize("name", REWARDS)
@pytest.mark.parametrize("shaping", ["padded", "bp", "final"])
@pytest.mark.parametrize("unit", ["piece", "word"])
@pytest.mark.parametrize("penalised", ["end", "step"])
def test_every_candidate_earns_what_the_extended_hypothesis_earns(name, shaping, unit, penalised):
    rewarder = make(name, unit, shaping=shaping, length_penalty=0.01, length_penalty_at=penalised)
    translations, candidates, limits = random_batch(12, 3, seed=1)
    found = rewarder.next_rewards(translations, candidates, limits)
    np.testing.assert_allclose(found, explicit(rewarder, translations, candidates, limits), atol=1e-12)
    assert np.count_nonzero(found) > 10


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(REWARDS), st.sampled_from(["padded", "bp", "final"]), st.booleans())
def test_the_same_for_any_texts(seed, name, shaping, in_words):
    rewarder = make(name, "word" if in_words else "piece", shaping=shaping)
    translations, candidates, limits = random_batch(3, 3, seed)
    found = rewarder.next_rewards(translations, candidates, limits)
    np.testing.assert_allclose(found, explicit(rewarder, translations, candidates, limits), atol=1e-12)


numbers = st.lists(st.integers(3, len(TOKENS) - 1), max_size=8)


@settings(max_examples=150, deadline=None)
@given(numbers, numbers, st.lists(st.integers(2, len(TOKENS) - 1), min_size=1, max_size=5), st.integers(1, 10))
def test_gleu_of_any_texts_against_the_plain_one(hypothesis, reference, words, limit):
    translations = from_ids([[*hypothesis, EOS]], [reference])
    candidates = torch.tensor(words).expand(translations.steps[0], 1, -1)
    found = make("gleu", "word", reward_scale=1.0).next_rewards(translations, candidates, torch.tensor([limit]))

    def score(pieces, terminal):
        return plain_gleu(words_of(pieces, whole=terminal), words_of([TOKENS[word] for word in reference]))

    for (step, _, number), growth in np.ndenumerate(found):
        state, word = translations.hypotheses[0][:step], words[number]
        after = score(state, True) if word == EOS else score([*state, TOKENS[word]], step + 1 >= limit)
        assert growth == pytest.approx(after - score(state, False), abs=1e-12)


@pytest.mark.parametrize("name", [*REWARDS, "ter:-1,length:2"])
@pytest.mark.parametrize("unit", ["piece", "word"])
def test_the_taken_words_earn_what_was_earned(name, unit):
    rewarder = make(name, unit)
    translations, candidates, limits = random_batch(40, 1, seed=2)
    taken = torch.zeros_like(candidates)
    for column, (words, ended) in enumerate(zip(translations.hypotheses, translations.ended, strict=True)):
        ids = [TOKENS.index(word) for word in words] + [EOS] * ended
        taken[: len(ids), column, 0] = torch.tensor(ids)
        limits[column] += ended  # what `<eos>` has ended was not cut off
    expected = rewards_of(rewarder(translations))
    np.testing.assert_allclose(rewarder.next_rewards(translations, taken, limits)[..., 0], expected, atol=1e-12)


def test_by_hand():
    # Reference "a b c": 6 n-grams. After "a": "b" adds two; "c" one; `<eos>` nothing, nor an unknown word.
    tokens = ["<pad>", "<bos>", "<eos>", "<unk>", "a", "b", "c"]
    a, b, c = 4, 5, 6
    candidates = torch.tensor([[[a, c, EOS, PAD]], [[b, c, EOS, 3]], [[c, a, EOS, BOS]]])
    translations = from_ids([[a, b, EOS]], [[a, b, c]], tokens)
    found = make("gleu", "piece").next_rewards(translations, candidates, torch.tensor([9]))[:, 0]
    np.testing.assert_allclose(found, 3 * np.array([[1, 1, 0, 0], [2, 1, 0, 0], [3, 0, 0, 0]]) / 6, atol=1e-12)
    # BLEU's brevity penalty makes `<eos>` after two words of three cost something.
    bleu = make("bleu", "piece", length_penalty=0.0, reward_scale=1.0)
    found = bleu.next_rewards(translations, candidates, torch.tensor([9]))[:, 0]
    two, final = (2 / 3 * 2 / 3 * 1 / 2) ** 0.25, np.exp(1 - 3 / 2)
    assert found[2, 2] == pytest.approx(final - two)
    assert found[2, 0] == pytest.approx(1 - two)


def test_the_last_step_allowed_is_terminal():
    translations = from_ids([[4, 4]], [[4, 4, 4]])
    candidates = torch.tensor([[[4, 5]], [[4, 5]]])
    rewarder = make("bleu", "piece", shaping="final", length_penalty=0.0)
    assert not rewarder.next_rewards(translations, candidates, torch.tensor([3])).any()
    at_the_limit = rewarder.next_rewards(translations, candidates, torch.tensor([2]))[:, 0]
    assert at_the_limit[0].tolist() == [0, 0]
    assert (at_the_limit[1] > 0).all()


def test_nothing_is_asked_of_what_is_behind_the_end():
    translations = from_ids([[EOS], [4, 5, EOS]], [[4], [4, 5]])
    candidates = torch.full((3, 2, 1), 4)
    found = make("gleu", "piece").next_rewards(translations, candidates, torch.tensor([9, 9]))
    assert found[0, 0, 0] > 0
    assert not found[1:, 0].any()
    assert not make("gleu", "word").next_rewards(translations, torch.zeros_like(candidates), torch.tensor([9, 9])).any()


def test_the_scale_is_that_of_the_rewards():
    translations, candidates, limits = random_batch(5, 2, seed=3)
    plain, scaled = (
        make("gleu", "word", reward_scale=scale).next_rewards(translations, candidates, limits) for scale in (1.0, 10.0)
    )
    np.testing.assert_allclose(scaled, 10 * plain)


@pytest.mark.parametrize("unit", ["piece", "word"])
def test_a_reward_of_the_users_own_is_called_with_the_extended_hypotheses(registry, unit):
    bleu = BleuReward(BleuOptions())

    @reward("mine")
    def mine(translations):
        return bleu(translations)

    @reward("cut")
    def cut(translations):
        return [float(not ended) for ended in translations.ended]

    translations, candidates, limits = random_batch(30, 3, seed=4)
    slow, fast = (
        make(name, unit).next_rewards(translations, candidates, limits) for name in ("mine:0.5,gleu", "bleu:0.5,gleu")
    )
    np.testing.assert_allclose(slow, fast, atol=1e-12)
    found = make("cut", unit).next_rewards(translations, candidates, limits)
    np.testing.assert_allclose(found, explicit(make("cut", unit), translations, candidates, limits), atol=1e-12)
    assert np.count_nonzero(found) > 10


def test_candidates_need_a_vocabulary():
    with pytest.raises(ValueError, match="from_ids"):
        make("bleu", "piece").next_rewards(
            Translations([["a"]], [["a"]], [True]), torch.zeros(2, 1, 1), torch.tensor([3])
        )
