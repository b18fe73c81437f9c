"""Mixtures, scales, telescoping, the permuted control, and the user's own rewards."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.options import defaults, option, read_section
from pysimt_sac.core.registry import REWARDS
from pysimt_sac.rewards import REWARD_OPTIONS, RewardOptions, Translations, by_step, permute, reward
from pysimt_sac.rewards.base import parse_mixture
from pysimt_sac.rewards.incremental import ShapingOptions
from tests.rewards.random_texts import random_translations
from tests.rewards.rewarders import make_rewarder, rewards_of


@pytest.mark.parametrize("name", ["bleu", "gleu", "chrf", "ter", "length", "bleu:0.7,chrf:0.3"])
@pytest.mark.parametrize("shaping", ["padded", "bp", "final"])
@pytest.mark.parametrize("penalised", ["end", "step"])
def test_rewards_sum_up_to_the_scaled_score_and_nothing_is_earned_after_the_end(name, shaping, penalised):
    translations = random_translations(100)
    rewarder = make_rewarder(reward=name, shaping=shaping, length_penalty=0.01, length_penalty_at=penalised)
    found = rewarder(translations)
    score_B = sum(rewarder.weights[part] * scores_B for part, scores_B in found.parts.items())
    for column, n_steps in enumerate(translations.steps):
        rewards_T = rewards_of(found)[:, column]
        assert rewards_T[:n_steps].sum() == pytest.approx(found.scale_B[column] * score_B[column], abs=1e-12)
        assert not rewards_T[n_steps:].any()
        assert found.scale_B[column] == len(translations.references[column])


def test_a_mixture_is_the_weighted_sum_and_keeps_its_parts_apart():
    translations = random_translations(20)
    mixed = make_rewarder(reward="bleu:0.7, chrf:0.3")(translations)
    bleu, chrf = (make_rewarder(reward=name)(translations) for name in ("bleu", "chrf"))
    np.testing.assert_allclose(mixed.potentials_TB, 0.7 * bleu.potentials_TB + 0.3 * chrf.potentials_TB, atol=1e-12)
    assert list(mixed.parts) == ["bleu", "chrf"]
    assert mixed.parts["chrf"].tolist() == chrf.potentials_TB[-1].tolist()


def test_a_reward_that_counts_words_does_so_for_whole_hypotheses_too():
    class WordGleu(REWARDS.get("gleu", "")):
        counts_words = True

    translations = Translations([["a@@", "b", "c"]], [["a@@", "b", "d"]], [True])
    rewarder = make_rewarder(reward="gleu", reward_unit="word", eval_filters="de-bpe")
    expected = rewarder(translations).parts["gleu"].tolist()
    rewarder = make_rewarder(reward="gleu", reward_unit="piece", eval_filters="de-bpe")
    rewarder.parts["gleu"] = WordGleu(ShapingOptions())
    assert rewarder(translations).parts["gleu"].tolist() == expected
    assert rewarder.scores(translations)[0].tolist() == expected


def test_scales():
    translations = Translations([["a"], ["b"]], [["a", "b"], ["a", "b", "c"]], [True, True])

    def scale(value):
        return make_rewarder(reward_scale=value)(translations).scale_B.tolist()

    assert scale("ref") == [2, 3]
    assert scale(10.0) == [10, 10]


@pytest.mark.parametrize("text", ["", "bleu,bleu", "bleu:x", ":1", "bleu,,chrf", "bleu:inf"])
def test_what_is_no_mixture_is_refused(text):
    with pytest.raises(UserError, match="is not a list of rewards"):
        parse_mixture(text, "[model]")


def test_a_misspelt_reward_is_named_with_the_nearest_one():
    with pytest.raises(UserError, match=r"a\.conf \[model\] reward: unknown reward 'blue' .*'bleu'"):
        make_rewarder(where="a.conf [model]", reward="blue")


def test_options_are_read_from_a_configuration():
    options = read_section(RewardOptions, {"reward": "ter", "reward_scale": 5, "shaping": "final"}, "[model]")
    assert options == RewardOptions(reward="ter", reward_scale=5.0)
    with pytest.raises(UserError, match="'reff' is not one of ref or a finite number"):
        read_section(RewardOptions, {"reward_scale": "reff"}, "[model]")


def test_every_option_of_our_rewards_is_declared_once():
    declared = [name for cls in REWARD_OPTIONS for name in defaults(cls)]
    assert len(declared) == len(set(declared))
    for name in ("bleu", "gleu", "chrf", "ter", "length", "unsup"):
        assert set(defaults(REWARDS.get(name).options_class)) <= set(declared)


def test_each_part_is_given_its_own_options(registry):
    @dataclasses.dataclass(frozen=True)
    class MineOptions:
        mine_weight: float = option(2.0, "what it is worth")

    @reward("mine")
    class Mine:
        options_class = MineOptions

        def __init__(self, options):
            self.options = options

        def __call__(self, translations):
            return [self.options.mine_weight for _ in translations.ended]

    @reward("plain")
    class Plain(Mine):
        options_class = RewardOptions

        def __call__(self, translations):
            return [self.options.reward == "mine,plain,bleu" for _ in translations.ended]

    rewarder = make_rewarder(reward="mine,plain,bleu", shaping="final", length_penalty=0.0, mine_weight=5)
    found = rewarder(Translations([["a"]], [["a"]], [True]))
    assert {name: values.tolist() for name, values in found.parts.items()} == {"mine": [5], "plain": [1], "bleu": [1]}
    assert found.potentials_TB.tolist() == [[0], [7]]


def test_a_reward_without_options_of_its_own_is_given_those_of_all(registry):
    @reward("scale")
    class Scale:
        def __init__(self, options):
            self.scale = options.reward_scale

        def __call__(self, translations):
            return [self.scale for _ in translations.ended]

    found = make_rewarder(reward="scale", reward_scale=3.0)(Translations([["a"]], [["a"]], [True]))
    assert found.parts["scale"].tolist() == [3]


def test_samples_are_wanted_by_rewards_that_learn_alone():
    assert make_rewarder(reward="bleu,unsup", unsup_samples=7).n_samples == 7
    assert make_rewarder(reward="bleu").n_samples == 0


def test_permuted_rewards_are_those_of_other_sentences_at_the_same_part_of_their_length():
    translations = Translations([["a"], ["a", "b", "c"]], [["a", "b"], ["a", "b", "c"]], [True, True])
    found = make_rewarder(reward_scale=1.0)(translations)
    swapped = permute(found, translations.steps, [1, 0])
    potentials = found.potentials_TB
    assert swapped.potentials_TB[:, 0].tolist() == [potentials[1, 1], *[potentials[3, 1]] * 3]
    assert swapped.potentials_TB[:, 1].tolist() == [potentials[0, 0]] * 2 + [potentials[1, 0]] * 2
    assert rewards_of(swapped).sum(0) == pytest.approx(potentials[-1, ::-1])
    same = permute(found, translations.steps, [0, 1])
    assert (same.potentials_TB == found.potentials_TB).all()


def test_the_users_own_reward_is_a_function_in_a_file(tmp_path, registry):
    path = tmp_path / "mine.py"
    path.write_text(
        "from pysimt_sac.rewards import reward\n"
        "@reward('different_words')\n"
        "def different_words(translations):\n"
        "    return [len(set(words)) / len(words) for words in translations.hypotheses]\n"
    )
    rewarder = make_rewarder(reward="different_words", reward_modules=(str(path),), reward_scale=1.0)
    found = rewarder(Translations([["a", "a"], ["a", "b"]], [["x"], ["y"]], [True, False]))
    assert rewards_of(found).tolist() == [[0, 0], [0, 1], [0.5, 0]]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([1.0], "for 1 sentences, not 2"),
        ([[0.0], [0.0, 1.0]], "returned 1 numbers for a sentence of 3 steps"),
        ([math.nan, 1.0], "not a finite number"),
        ([1j, 1.0], "returned '1j', which is not a real number"),
        ([10**400, 1.0], "returned '1000.*', which is not a real number"),
        (["0.5", 1.0], "returned '0.5', which is not a real number"),
        (["aaa", 1.0], "returned 'aaa', which is not a real number"),
        ([[0.1, 0.2, "0.3"], 1.0], "which is not a real number"),
        ([[0.1, 0.2, [0.3]], 1.0], "returned something that is not a number"),
        ([[[0.1], [0.2], [0.3]], 1.0], "returned 3 numbers for a sentence of 3 steps, in several dimensions"),
        (np.full((3, 2), "1"), "which is not a real number"),
        (None, "returned 'None', not a list with an entry for each sentence"),
        ({0: 1.0, 1: 1.0}, "not a list with an entry for each sentence"),
        (np.zeros((2, 2)), r"\(2, 2\), not \(steps, sentences\) = \(3, 2\)"),
    ],
)
def test_a_wrong_answer_of_a_reward_is_explained(answer, message):
    with pytest.raises(UserError, match=message):
        by_step(answer, [3, 2], "reward 'mine'")


def test_a_reward_may_learn_and_remember(registry):
    @reward("novelty")
    class Novelty:
        """A sentence is worth one over the number of times it was seen."""

        def __init__(self, options):
            self.seen = {}

        def __call__(self, translations):
            return [1 / (1 + self.seen.get(" ".join(words), 0)) for words in translations.hypotheses]

        def learn(self, translations):
            for words in translations.hypotheses:
                self.seen[" ".join(words)] = self.seen.get(" ".join(words), 0) + 1
            return {"sentences": len(self.seen)}

        def state_dict(self):
            return {"seen": self.seen}

        def load_state_dict(self, state):
            self.seen = state["seen"]

    translations = Translations([["a"]], [["a"]], [True])
    rewarder = make_rewarder(reward="bleu,novelty")
    assert rewarder.learn(translations) == {"novelty_sentences": 1}
    assert rewarder(translations).parts["novelty"].tolist() == [0.5]
    resumed = make_rewarder(reward="bleu,novelty")
    resumed.load_state_dict(rewarder.state_dict())
    assert resumed(translations).parts["novelty"].tolist() == [0.5]


def test_translations_from_tensors():
    tokens = ["<pad>", "<bos>", "<eos>", "<unk>", "a", "b"]
    sampled = torch.tensor([[1, 1], [4, 5], [2, 3], [0, 4]])
    references = torch.tensor([[1, 1], [5, 4], [2, 4], [0, 2]])
    found = Translations.from_ids(sampled, references, tokens)
    assert found == Translations([["a"], ["b", "<unk>", "a"]], [["b"], ["a", "a"]], [True, False])
    assert found.steps == [2, 3]
