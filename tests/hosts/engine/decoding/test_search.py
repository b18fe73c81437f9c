"""Searches against exhaustive enumeration, against each other, and in every batch composition."""

import itertools
import math

import pytest
import torch

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.sections import SearchOptions
from pysimt_sac.core.vocabulary import BOS, EOS, PAD, UNK
from pysimt_sac.hosts.engine.decoding.greedy import greedy_search, greedy_stream
from pysimt_sac.hosts.engine.decoding.search import Hypothesis, beam_search, sample
from pysimt_sac.hosts.engine.decoding.translation import Translator
from tests.hosts.engine.tiny import tiny_batch, tiny_model, tiny_sentences

MAX_LEN = 4
WAIT = {"enc_bidirectional": False, "translator_args": {"k": 2}}


@pytest.fixture(params=range(6))
def model(request):
    return tiny_model(n_words=2, seed=request.param, spread=1.0, out_logic="deep")


def log_probability(model, batch, words):
    """Of one word sequence for a batch of one sentence, by `f_next` alone."""
    states, h, total = model.encode(batch), None, 0.0
    for now, after in zip([BOS, *words[:-1]], words, strict=True):
        log_p, h = model.dec.f_next(states, model.dec.get_emb(torch.tensor([now])), h)
        total += log_p[0, after].item()
    return total


def exhaustive(model, batch, lp_alpha=0.0):
    """Every hypothesis of at most MAX_LEN steps with its normalised score, best first."""
    vocabulary = [UNK, *range(4, len(model.trg_vocab))]
    found = []
    for length in range(MAX_LEN + 1):
        for words in itertools.product(vocabulary, repeat=length):
            steps = list(words) + ([EOS] if length < MAX_LEN else [])
            n_words = max(1, length)
            divisor = ((5 + n_words) / 6) ** lp_alpha if lp_alpha else n_words
            found.append((list(words), log_probability(model, batch, steps) / divisor))
    return sorted(found, key=lambda pair: -pair[1])


@pytest.mark.parametrize("lp_alpha", [0.0, 0.8])
def test_a_beam_of_full_width_is_exhaustive_search(model, lp_alpha):
    with torch.no_grad():
        batch = tiny_batch(model, ["w0 w1"])
        truth = exhaustive(model, batch, lp_alpha)
        (n_best,) = beam_search(model, batch, beam_size=500, max_len=MAX_LEN, lp_alpha=lp_alpha, n_best=True)
        (quick,) = beam_search(model, batch, beam_size=500, max_len=MAX_LEN, lp_alpha=lp_alpha)
    assert len(n_best) == len(truth)
    assert [score for _, score in n_best] == pytest.approx([score for _, score in truth], abs=1e-4)
    assert n_best[0].words == quick[0].words == truth[0][0]
    assert len({tuple(hypothesis.words) for hypothesis in n_best}) == len(truth)


def test_a_beam_of_one_is_greedy_search(model):
    batch = tiny_batch(model, tiny_sentences(6, n_words=2))
    beams = beam_search(model, batch, beam_size=1, max_len=10)
    for (hypothesis,), greedy in zip(beams, greedy_search(model, batch, 10), strict=True):
        assert hypothesis.words == greedy.words


SEARCHES = {
    "greedy": lambda model, batch: greedy_search(model, batch, 12),
    "beam": lambda model, batch: [found[0] for found in beam_search(model, batch, 4, 12)],
    "n-best": lambda model, batch: [found[-1] for found in beam_search(model, batch, 4, 12, n_best=True)],
}


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_batch_composition_and_order_never_change_an_output(search):
    # In double precision: a random recurrent network may blow rounding errors up until they matter.
    model = tiny_model(n_words=6, seed=34, spread=1.6, out_logic="deep").double()
    sentences = tiny_sentences(9, n_words=6, longest=9)
    together = search(model, tiny_batch(model, sentences))
    backwards = search(model, tiny_batch(model, sentences[::-1]))[::-1]
    alone = [search(model, tiny_batch(model, [sentence]))[0] for sentence in sentences]
    assert len({len(hypothesis.words) for hypothesis in together}) > 2
    for variants in zip(together, backwards, alone, strict=True):
        assert len({tuple(hypothesis.words) for hypothesis in variants}) == 1


@pytest.mark.parametrize("kind", ["usual", "other attention", "wait-k"])
def test_batches_that_join_others_under_way_are_translated_as_if_alone(kind):
    options = {"usual": {}, "other attention": {"att_activ": "relu"}, "wait-k": WAIT}[kind]
    model = tiny_model(n_words=6, seed=5, spread=1.6, out_logic="deep", **options).double()
    sentences = tiny_sentences(9, n_words=6, longest=9)
    batches = [tiny_batch(model, sentences[start : start + 3]) for start in (0, 3, 6)]
    found = list(greedy_stream(model, iter(batches), 12))
    assert [batch for batch, _ in found] == batches
    alone = [greedy_search(model, batch, 12) for batch in batches]
    assert [[h.words for h in hypotheses] for _, hypotheses in found] == [[h.words for h in each] for each in alone]
    assert len({len(h.words) for hypotheses in alone for h in hypotheses}) > 2


def test_the_record_of_wait_k_says_what_was_read_and_written():
    search = SearchOptions("wk", max_len=6)
    translator = Translator(tiny_model(n_words=6, **WAIT), search, torch.device("cpu"))
    translator.wait_for(2)
    assert translator.actions("w0 w1 w2", [Hypothesis([5, 6], 0.0)]) == "0 0 1 0 1 0 1"  # with both `<eos>`
    assert translator.actions("w0", [Hypothesis([5] * 6, 0.0)]) == "0 0 1 1 1 1 1 1"  # cut off at six words
    assert translator.actions("w0 w1 w2 w3", [Hypothesis([], 0.0)]) == "0 0 1"
    with pytest.raises(UserError, match="reads its sources in both directions"):
        Translator(tiny_model(), search, torch.device("cpu")).wait_for(2)


def test_sampling_does_not_depend_on_the_batch_either():
    model = tiny_model(n_words=6, seed=4)
    batch = tiny_batch(model, tiny_sentences(9, n_words=6))
    drawn = sample(model, batch, 12, seed=5)
    assert drawn == sample(model, batch, 12, seed=5)
    assert drawn != sample(model, batch, 12, seed=6)
    some = tiny_batch(model, tiny_sentences(9, n_words=6)[3:5])
    some.indices = [3, 4]
    assert [h.words for h in sample(model, some, 12, seed=5)] == [h.words for h in drawn[3:5]]
    some.indices = [0, 1]  # of a corpus that is a part of a larger one
    assert [h.words for h in sample(model, some, 12, seed=5, first_index=3)] == [h.words for h in drawn[3:5]]


def test_samples_follow_the_policy():
    model = tiny_model(n_words=3, seed=2)
    batch = tiny_batch(model, ["w0 w1"] * 4000)
    batch.indices = list(range(4000))
    firsts = [(found.words or [EOS])[0] for found in sample(model, batch, 1, seed=1)]
    log_p, _ = model.dec.f_next(
        model.encode(tiny_batch(model, ["w0 w1"])), model.dec.get_emb(torch.tensor([BOS])), None
    )
    p = log_p[0].detach().exp()
    p[[PAD, BOS]] = 0
    for word in range(EOS, len(p)):
        expected = float(p[word] / p.sum())
        tolerance = 4 * math.sqrt(expected * (1 - expected) / 4000)
        assert firsts.count(word) / 4000 == pytest.approx(expected, abs=tolerance)


def test_top_k_and_a_low_temperature_lead_to_greedy_search():
    model = tiny_model(n_words=6, seed=4)
    batch = tiny_batch(model, tiny_sentences(5, n_words=6))
    greedy = [found.words for found in greedy_search(model, batch, 12)]
    assert [found.words for found in sample(model, batch, 12, top_k=1)] == greedy
    assert [found.words for found in sample(model, batch, 12, temperature=1e-4)] == greedy


@pytest.mark.parametrize("search", ["greedy", "beam", "sample"])
def test_unknown_words_can_be_suppressed_and_special_ones_never_appear(search):
    model = tiny_model(n_words=2, seed=1)
    with torch.no_grad():
        model.dec.out2prob.bias[[PAD, BOS, UNK]] = 50.0
    batch = tiny_batch(model, tiny_sentences(4, n_words=2))

    def words(suppress):
        if search == "beam":
            return [w for (best, *_) in beam_search(model, batch, 3, 6, suppress_unk=suppress) for w in best.words]
        find = greedy_search if search == "greedy" else sample
        return [w for found in find(model, batch, 6, suppress) for w in found.words]

    assert UNK in words(suppress=False)
    assert not {PAD, BOS, UNK} & set(words(suppress=True))
    assert not {PAD, BOS} & set(words(suppress=False))


def test_finished_hypotheses_keep_their_scores_while_others_grow():
    """A hypothesis that ends early and wins must come out with the score it had when it ended."""
    model = tiny_model(n_words=3, seed=3, spread=0.5)
    with torch.no_grad():
        batch = tiny_batch(model, ["w0", "w1 w2 w0 w1"])
        for row, found in enumerate(beam_search(model, batch, 5, 15, n_best=True)):
            single = tiny_batch(model, [["w0", "w1 w2 w0 w1"][row]])
            for hypothesis in found:
                steps = hypothesis.words + ([EOS] if len(hypothesis.words) < 15 else [])
                expected = log_probability(model, single, steps) / max(1, len(hypothesis.words))
                assert hypothesis.score == pytest.approx(expected, abs=1e-4)
