"""Searching through pysimt's decoder protocol finds what the engine's own steps find."""

from types import SimpleNamespace

import pytest
import torch

from pysimt_sac.hosts.engine.decoding.greedy import greedy_stream
from pysimt_sac.hosts.engine.decoding.search import sample
from pysimt_sac.hosts.pysimt.stepper import PysimtStepper, SearchablePysimtModel
from tests.hosts.engine.decoding.test_search import SEARCHES
from tests.hosts.engine.tiny import tiny_batch, tiny_model, tiny_sentences


class PysimtLikeModel(SimpleNamespace):
    """Knows how pysimt's models are asked for encoder states, and has a decoder with its protocol and no more."""

    def __init__(self, model):
        dec = SimpleNamespace(f_init=model.dec.f_init, f_next=model.dec.f_next, get_emb=model.dec.get_emb)
        names = ("opts", "sl", "load_data", "src_vocab", "trg_vocab")
        super().__init__(dec=dec, inner=model, **{name: getattr(model, name) for name in names})

    def cache_enc_states(self, batch):
        self.states = self.inner.encode(batch)

    def get_enc_state_dict(self):
        return self.states


@pytest.fixture
def models():
    # In double precision: a random recurrent network may blow rounding errors up until they matter.
    model = tiny_model(n_words=6, seed=34, spread=1.6, out_logic="deep").double()
    return model, SearchablePysimtModel(PysimtLikeModel(model))


SEARCHES = {**SEARCHES, "sample": lambda model, batch: sample(model, batch, 12, seed=5)}


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_a_decoder_that_only_knows_pysimts_protocol_finds_the_same(models, search):
    model, foreign = models
    batch = tiny_batch(model, tiny_sentences(9, n_words=6, longest=9))
    assert [found.words for found in search(foreign, batch)] == [found.words for found in search(model, batch)]


def test_batches_do_not_join_others_and_are_translated_all_the_same(models):
    model, foreign = models
    sentences = tiny_sentences(9, n_words=6, longest=9)
    batches = [tiny_batch(model, sentences[start : start + 3]) for start in (0, 3, 6)]
    found = [[each.words for each in hypotheses] for _, hypotheses in greedy_stream(foreign, iter(batches), 12)]
    assert found == [[each.words for each in hypotheses] for _, hypotheses in greedy_stream(model, iter(batches), 12)]
    stepper = foreign.stepper(foreign.encode(batches[0]))
    assert isinstance(stepper, PysimtStepper)
    with pytest.raises(TypeError):
        stepper.join(stepper)


def test_the_steps_of_several_hypotheses_are_the_engines(models):
    batch = tiny_batch(models[0], tiny_sentences(4, n_words=6))
    ours, theirs = (each.stepper(each.encode(batch), suppress_unk=True) for each in models)
    parents_BK = torch.tensor([[0, 0, 0], [0, 0, 0]])
    with torch.no_grad():
        tokens_BK = torch.full((4, 1), 1)
        for stepper in (ours, theirs):
            assert stepper.log_probs(tokens_BK)[..., [0, 1, 3]].isneginf().all()  # <pad>, <bos>, <unk>
            stepper.keep_sentences(torch.tensor([3, 1]))
            stepper.keep_hypotheses(parents_BK)
        tokens_BK = torch.tensor([[4, 5, 6], [7, 8, 9]])
        torch.testing.assert_close(ours.log_probs(tokens_BK), theirs.log_probs(tokens_BK))
        for stepper in (ours, theirs):
            stepper.keep_hypotheses(torch.tensor([[2, 0, 2], [1, 1, 0]]))
            stepper.keep_sentences(torch.tensor([1]))
        torch.testing.assert_close(ours.log_probs(tokens_BK[:1]), theirs.log_probs(tokens_BK[:1]))
