"""Distances between domains."""

import math

import pytest

from pysimt_sac.core.files import read_lines
from pysimt_sac.corpora.demo import generate
from pysimt_sac.evaluation.lexical.domain import NeuralOptions, domain_distances


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


def test_a_small_neural_model_learns_and_repeats_itself():
    captions = generate(seed=1)
    english = {split: [caption.english for caption in captions[split]] for split in ("train", "test", "test_ood")}
    sets = [("test", english["test"][:60]), ("test_ood", english["test_ood"][:60])]
    options = NeuralOptions(size=24, epochs=4)
    first = domain_distances(english["train"][:600], sets, neural=options)
    near, far = (one.neural_perplexity for one in first.sets)
    assert 5 < near < far < 250  # of some 400 words
    again = domain_distances(english["train"][:600], sets, neural=options)
    assert [one.neural_perplexity for one in again.sets] == [near, far]


def test_neural_perplexity_by_hand():
    import torch

    from pysimt_sac.evaluation.lexical.neural import END, UNKNOWN, NeuralModel

    model = NeuralModel(["a b", "a b", "c"], size=4, epochs=1, seed=1)
    assert set(model.ids) == {"a", "b"}  # c was seen once: the unknown word's example
    a, b = model.ids["a"], model.ids["b"]
    total = 0.0
    for ids in ([1, a, b, END], [1, b, UNKNOWN, END]):
        scores = model.network(torch.tensor([ids])).log_softmax(-1)
        total += sum(scores[place, word].item() for place, word in enumerate(ids[1:]))
    assert model.perplexity(["a b", "b never"]) == pytest.approx(math.exp(-total / 6), rel=1e-5)
