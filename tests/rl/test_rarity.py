"""The bonus for correct words that are rare translations of their source word, and a task that needs it."""

import itertools

import numpy as np
import pytest
import torch

from pysimt_sac.core.vocabulary import BOS, EOS, PAD, UNK
from pysimt_sac.hosts.engine.data.corpus import Text
from pysimt_sac.hosts.engine.decoding.greedy import greedy_search
from pysimt_sac.rl.rarity import TranslationMemory, wanted_words
from pysimt_sac.rl.replay import Branches, Experience
from tests.hosts.engine.tiny import tiny_batch, tiny_model, tiny_sentences
from tests.models import task
from tests.rl.tiny import engine_actor


def test_shares_are_of_the_visits_of_a_source_word():
    memory = TranslationMemory()
    assert memory.share(torch.tensor([7]), torch.tensor([[5, 6]])).tolist() == [[1, 1]]  # nothing is rare yet
    words_NK, likely_NK = torch.tensor([[5, 6], [5, PAD], [5, 6]]), torch.tensor([[0.75, 0.25], [1.0, 0.0], [0.5, 0.5]])
    memory.add(torch.tensor([7, 7, 8]), words_NK, likely_NK)
    found = memory.share(torch.tensor([7, 8]), torch.tensor([[5, 6, 9], [5, 6, 9]]))
    assert found[0].tolist() == pytest.approx([2.75 / 3, 1.25 / 3, 1 / 3])
    assert found[1].tolist() == pytest.approx([1.5 / 2, 1.5 / 2, 1 / 2])
    other = TranslationMemory()
    other.load_state_dict(memory.state_dict())
    assert (other.translated, other.visited) == (memory.translated, memory.visited)


def test_a_word_is_wanted_as_often_as_the_reference_has_it():
    reference_RB = torch.tensor([[BOS, 5, 6, 5, EOS]]).t()
    tokens_TB = torch.tensor([[BOS, 5, UNK, 5, 7, EOS]]).t()
    nothing = torch.zeros(5, 1)
    times_M = torch.tensor([0, 1, 4])
    words_MK = torch.tensor([[5, 6, 7], [5, UNK, EOS], [5, 6, PAD]])
    parts = torch.zeros(3, dtype=torch.long), words_MK, words_MK.ne(PAD), torch.zeros(3, 3), torch.zeros(3, 3)
    experience = Experience(reference_RB, reference_RB, tokens_TB, nothing, torch.ones(1))
    found = wanted_words(experience, Branches(times_M, *parts))
    assert found.tolist() == [[True, True, False], [True, False, False], [False, True, False]]


def test_a_wait_k_policy_attends_to_what_it_has_read():
    model = tiny_model(n_words=6, seed=4, spread=1.5)
    actor, batch = engine_actor(model), tiny_batch(model, *(tiny_sentences(5, 6, seed) for seed in (0, 1)))
    with torch.no_grad():
        encoded, model.dec.wait = actor.encode(batch), 1
        found_TB = actor.attended(encoded, batch["trg"])
    assert found_TB[0].tolist() == [0] * 5
    assert (found_TB <= torch.arange(len(found_TB)).unsqueeze(1)).all()
    assert (found_TB > 0).any()


@pytest.mark.parametrize("options", [{}, {"att_type": "dot"}])
def test_what_a_step_attends_to_is_what_its_context_is_made_of(options):
    model = tiny_model(n_words=6, seed=4, spread=1.5, **options)
    actor, batch = engine_actor(model), tiny_batch(model, *(tiny_sentences(5, 6, seed) for seed in (0, 1)))
    with torch.no_grad():
        encoded, dec = actor.encode(batch), model.dec
        found_TB = actor.attended(encoded, batch["trg"])
        memory, h = dec.project_source(encoded), None
        for step, tokens_B in enumerate(batch["trg"][:-1]):
            contexts = []
            for place in range(len(batch["src"])):  # the context if only this source word were there
                mask = torch.zeros_like(memory.mask_BS)
                mask[:, place] = 1
                contexts.append(dec.step(memory._replace(mask_BS=mask), dec.get_emb(tokens_B.unsqueeze(1)), h)[1])
            h, context = dec.step(memory, dec.get_emb(tokens_B.unsqueeze(1)), h)
            weights = np.stack([
                np.linalg.lstsq(torch.stack([c[b, 0] for c in contexts], 1).numpy(), context[b, 0].numpy())[0]
                for b in range(batch.size)
            ])  # fmt: skip
            for sentence, place in enumerate(found_TB[step].tolist()):
                assert weights[sentence, place] > 1 / len(batch["src"]) - 0.01


CUES = ["c1", "c2", "c3", "c4", "c5"]
"""An ambiguous word, `bank`: four of five cues go with its common translation, the last one with the rare one."""


def pairs(rare="rare"):
    for cue, other in itertools.product(CUES, "xyz"):
        yield f"bank {cue} {other}", f"{rare if cue == 'c5' else 'common'} {other} end"


def make_task(model_type, seed, mistakes=0, **options):
    """The model and corpus of `task.py`, with eight copies of these pairs, some of them with the wrong translation."""
    before, task.PAIRS = task.PAIRS, [*pairs()] * (8 - mistakes) + [*pairs("common")] * mistakes
    try:
        return task.make_model(model_type, seed, **options)
    finally:
        task.PAIRS = before


def right(model):
    """The shares of the common and of the rare translations that greedy search finds."""
    sources, targets = zip(*pairs(), strict=True)
    corpus = model.make_corpus({"src": Text(list(sources), model.src_vocab, is_target=False)}, len(sources))
    found = greedy_search(model, corpus[np.arange(len(sources))], max_len=5)
    kinds = {"common": [], "rare": []}
    for hypothesis, target in zip(found, targets, strict=True):
        first = model.trg_vocab.tokens[hypothesis.words[0]] if hypothesis.words else ""
        kinds[target.split()[0]].append(first == target.split()[0])
    return tuple(sum(each) / len(each) for each in kinds.values())


@pytest.mark.parametrize("seed", [1, 2])
def test_a_rare_correct_word_is_found_with_the_bonus_and_not_without_it(seed):
    """The actor knows the rare word but never prefers it; the metric, length, does not tell words apart."""
    actor = task.updates(*make_task("SimultaneousNMT", seed, mistakes=5), 60, lr=0.005)
    assert right(actor) == (1, 0)
    for weight, best in ((0.0, (1, 0)), (2.0, (1, 1))):
        options = {"reward": "length", "rarity_weight": weight, "branch_min_probability": 0.02, "kl_weight": 0.3}
        model, corpus = make_task("VineNMT", seed, **options)
        model.load_state_dict(actor.state_dict())
        model.start_training(task.Board())
        validations = [right(task.updates(model, corpus, n_updates, lr=0.003)) for n_updates in (40, 20)]
        assert max(validations, key=sum) == best  # a run keeps its best checkpoint
