"""Distances between domains. The n-gram model: by hand, and against KenLM."""

import math
import random

import pytest

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import read_lines
from pysimt_sac.corpora.demo import read_captions
from pysimt_sac.evaluation.domain import END, NgramModel, domain_distances, estimate_discounts


def test_a_bigram_model_by_hand():
    # Sentences: <s> a b </s> and <s> a </s>. Bigrams: <s>a 2, ab 1, b</s> 1, a</s> 1; too few for estimated discounts,
    # so 0.5, 1 and 1.5 are taken from counts of 1, 2 and more.
    model = NgramModel(["a b", "a"], order=2)
    assert model.estimated == [False, False]
    # Unigrams count preceding words: a 1 (<s>), b 1 (a), </s> 2 (b, a); 4 in all; 0.5 + 0.5 + 1 = 2 is left over, and
    # goes to a, b, </s> and the unknown word in equal parts.
    unigram = {"a": 0.5 / 4 + 2 / 4 / 4, "b": 0.5 / 4 + 2 / 4 / 4, END: 1 / 4 + 2 / 4 / 4, "?": 2 / 4 / 4}
    for word, expected in unigram.items():
        assert model.probability(word, []) == pytest.approx(expected)
    assert sum(unigram.values()) == 1
    # After a: b 1 and </s> 1, of each 0.5 is left over.
    assert model.probability("b", ["a"]) == pytest.approx(0.5 / 2 + 1 / 2 * unigram["b"])
    assert model.probability("a", ["a"]) == pytest.approx(1 / 2 * unigram["a"])
    # After <s>: a 2, of which 1 is left over.
    assert model.probability("a", ["<s>"]) == pytest.approx(1 / 2 + 1 / 2 * unigram["a"])
    # After a word that was never seen: as without any.
    assert model.probability("b", ["?"]) == pytest.approx(unigram["b"])
    found = model.perplexity(["a ?"])
    after_begin, unknown = 1 / 2 + unigram["a"] / 2, unigram["?"] / 2
    product = after_begin * unknown * unigram[END]
    assert found[0] == pytest.approx(product ** (-1 / 3))
    assert found[1] == pytest.approx((after_begin * unigram[END]) ** (-1 / 2))


def test_discounts_by_hand():
    counts = [1] * 10 + [2] * 4 + [3] * 3 + [4] * 2 + [9]
    y = 10 / 18
    expected = (1 - 2 * y * 4 / 10, 2 - 3 * y * 3 / 4, 3 - 4 * y * 2 / 3)
    assert estimate_discounts(counts) == pytest.approx(expected)
    assert estimate_discounts([1, 2, 4]) is None  # nothing occurs three times
    assert estimate_discounts([1] * 10 + [2] * 2 + [3] * 30 + [4]) is None  # the second would be negative


def zipf_text(sentences, seed):
    rng = random.Random(seed)
    words = [f"w{number}" for number in range(60)]
    weights = [1 / (number + 1) for number in range(60)]
    return [" ".join(rng.choices(words, weights, k=rng.randint(1, 9))) for _ in range(sentences)]


def test_an_empty_line_of_the_training_text_is_a_sentence():
    # Bigrams: <s>a 1, a</s> 1, <s></s> 2. Unigrams: a 1 (after <s>), </s> 2 (after a and <s>).
    model = NgramModel(["a", "", " "], order=2)
    end = 1 / 3 + (0.5 + 1) / 3 / 3  # discounts of 0.5 for a and 1 for </s>; the rest goes to a, </s> and <unk>
    assert model.probability(END, []) == pytest.approx(end)
    assert model.probability(END, ["<s>"]) == pytest.approx(1 / 3 + (0.5 + 1) / 3 * end)


@pytest.mark.parametrize("history", [(), ("<s>",), ("w0",), ("<s>", "w1"), ("w3", "w0"), ("never", "seen")])
def test_probabilities_sum_to_one(history):
    model = NgramModel(zipf_text(300, seed=1), 3)
    everything = [*model.vocabulary, "an unknown word"]
    assert math.fsum(model.probability(word, history) for word in everything) == pytest.approx(1)


def test_kenlm_gives_the_same_perplexities():
    # Of KenLM, on the files that `pysimt-sac prepare demo` writes:
    # lmplz -o 3 < train.en > model.arpa; query -v summary model.arpa < test_ood.en
    english = {split: [caption.english for caption in captions] for split, captions in read_captions().items()}
    found = NgramModel(english["train"], 3).perplexity(english["test_ood"])
    assert found[0] == pytest.approx(16.867258040091425, rel=1e-5)
    assert found[1] == pytest.approx(15.11168897327596, rel=1e-5)


@pytest.mark.parametrize("word", ["<s>", "</s>", "<unk>"])
def test_reserved_words_in_the_training_text_are_rejected(word):
    with pytest.raises(UserError, match=rf"line 2 of the training text has {word}.*remove it: sed 's#{word}##g'"):
        NgramModel(["a b", f"a {word} b"])
    NgramModel([f"a{word}"]).perplexity([word])  # a part of a word, or in a test set


def test_a_training_text_without_words_is_rejected():
    for lines in ([], ["", "  "]):
        with pytest.raises(UserError, match="no words"):
            NgramModel(lines)
    with pytest.raises(UserError, match="not an n-gram order"):
        NgramModel(["a"], 0)


def test_unknown_words_by_hand():
    found = domain_distances(["a b c", "a b"], [("near", ["a b", "c"]), ("far", ["a x x", "y"])])
    near, far = found.sets
    assert (near.unknown_words, near.unknown_types, near.unknown_rate) == (0, 0, 0)
    assert (far.words, far.types, far.unknown_words, far.unknown_types) == (4, 3, 3, 2)
    assert far.unknown_rate == 3 / 4
    assert far.unknown_type_rate == 2 / 3
    assert found.training_types == 3
    assert near.perplexity == near.perplexity_known < far.perplexity


@pytest.mark.parametrize("language", ["en", "de"])
def test_multi30k_has_the_papers_order(research_data, language):
    """The paper's table: 2016 nearest to the training text, 2017 and COCO farther, and near each other."""

    def lines(split):
        return read_lines(research_data / f"data/multi30k/paper/en-de/{split}.lc.norm.tok.{language}")

    names = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
    found = domain_distances(lines("train"), [(name, lines(name)) for name in names])
    flickr_2016, flickr_2017, coco = (one.perplexity for one in found.sets)
    assert flickr_2016 < 0.7 * min(flickr_2017, coco)
    assert max(flickr_2017, coco) < 1.2 * min(flickr_2017, coco)
