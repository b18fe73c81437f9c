"""The actor over four families of models against transformers' own loss, `generate`, and itself without a cache."""

import pytest
import torch

from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import BOS, EOS, PAD, UNK

pytest.importorskip("transformers", reason="the extra `hf` is not installed")

from pysimt_sac.hosts.engine.decoding.search import beam_search
from pysimt_sac.hosts.huggingface.ids import Ids
from pysimt_sac.rl.rollout import roll_out
from tests.hosts.huggingface.families import FAMILIES, N_IDS, family, make_batch

LIMITS = torch.tensor([1, 3, 8, 8, 8, 5])


@pytest.fixture(params=FAMILIES)
def tiny(request):
    return family(request.param)


def rollout(tiny, seed=1, limits=LIMITS):
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    return roll_out(tiny.actor.stepper(tiny.actor.encode(tiny.batch)), limits, generator)


@pytest.mark.parametrize(("pad", "eos", "unk", "start"), [(39, 0, 1, [39]), (1, 2, 3, [2, 35]), (0, 1, 2, [0])])
def test_ids_are_a_permutation_and_all_but_a_few_keep_their_place(pad, eos, unk, start):
    ids = Ids(N_IDS, pad, eos, unk, start)
    theirs = ids.to_theirs_V.tolist()
    assert [theirs[place] for place in (PAD, EOS, UNK, BOS)] == [pad, eos, unk, start[-1]]
    assert sorted(theirs[:BOS] + theirs[BOS + 1 :]) == list(range(N_IDS))
    assert sum(place != number for place, number in enumerate(theirs)) <= 6
    assert all(theirs[ids.to_ours[number]] == number for number in range(N_IDS))
    scores = torch.rand(2, N_IDS)
    assert torch.equal(ids.scores(scores)[:, ids.to_ours[7]], scores[:, 7])
    assert bool((ids.scores(scores)[:, BOS] == -1e4).all())


def test_the_likelihood_is_transformers_own(tiny):
    reference = tiny.batch["trg"]
    labels = tiny.ids.theirs(reference[1:]).t().masked_fill(reference[1:].t().eq(PAD), -100)
    given = torch.cat((tiny.ids.start.expand(len(labels), -1), tiny.ids.theirs(reference[1:-1]).t()), 1)
    labels = torch.nn.functional.pad(labels, (given.size(1) - labels.size(1), 0), value=-100)
    out = tiny.model(tiny.source, attention_mask=tiny.real, decoder_input_ids=given, labels=labels)
    ours = tiny.actor.nll(tiny.actor.encode(tiny.batch), reference)
    torch.testing.assert_close(ours, out.loss)
    weights = [weight for weight in tiny.model.parameters() if weight.requires_grad]
    found = [torch.autograd.grad(loss, weights, allow_unused=True, materialize_grads=True) for loss in (ours, out.loss)]
    torch.testing.assert_close(*found)


def test_greedy_decoding_is_generates(tiny):
    limits = torch.full((6,), 12)
    found = rollout(tiny, None, limits).tokens_TB.t().tolist()
    mine = [[int(tiny.ids.to_theirs_V[word]) for word in row[1:] if word != PAD] for row in found]
    assert mine == [row[:12] for row in generated(tiny, num_beams=1)]


def generated(tiny, **options):
    start = tiny.ids.start.expand(6, -1)
    more = {"max_new_tokens": 12, "do_sample": False, "suppress_tokens": [tiny.ids.pad], **options}
    config = tiny.model.generation_config
    config.forced_eos_token_id = config.forced_bos_token_id = None
    rows = tiny.model.generate(tiny.source, attention_mask=tiny.real, decoder_input_ids=start.clone(), **more)
    eos = tiny.model.config.eos_token_id
    rows = rows[:, start.size(1) :].tolist()
    return [row[: row.index(eos) + 1] if eos in row else row for row in rows]


class Searched:
    def __init__(self, actor):
        self.encode, self.actor = actor.encode, actor

    def stepper(self, states, suppress_unk=False, normalise=True):
        return self.actor.stepper(states)


def test_beam_search_is_generates(tiny):
    """By log-probability; the searches differ in when they stop, so the beam is wide."""
    found = beam_search(Searched(tiny.actor), tiny.batch, 12, 12, lp_alpha=1e-9)
    mine = [[int(tiny.ids.to_theirs_V[word]) for word in hypotheses[0].words] for hypotheses in found]
    theirs = generated(tiny, num_beams=12, length_penalty=0.0, early_stopping="never")
    eos = tiny.model.config.eos_token_id
    assert mine == [[number for number in row if number != eos] for row in theirs]


def test_one_pass_scores_what_steps_with_a_cache_score(tiny):
    found = rollout(tiny)
    assert len(set(found.lengths_B.tolist())) > 2
    steps, encoded = Steps.of(found.lengths_B), tiny.actor.encode(tiny.batch)
    log_p_NV = tiny.actor.log_probs(encoded, found.tokens_TB, steps)
    stepper, sentences = tiny.actor.stepper(encoded), torch.arange(6)
    for time in range(int(found.lengths_B.max()) - 1):
        going_on = found.lengths_B[sentences] > time + 1
        if not bool(going_on.all()):  # sentences leave the batch
            stepper.keep_sentences(going_on.nonzero().squeeze(1))
            sentences = sentences[going_on]
        stepped = stepper.log_probs(found.tokens_TB[time, sentences].unsqueeze(1)).squeeze(1)
        torch.testing.assert_close(stepped[:, EOS:], log_p_NV[steps.times_N == time][:, EOS:])
        assert bool(stepped[:, :EOS].isneginf().all())


def test_forks_of_different_lengths_score_what_one_pass_scores(tiny):
    found = rollout(tiny, limits=torch.full((6,), 8))
    encoded = tiny.actor.encode(tiny.batch)
    stepper, states = tiny.actor.stepper(encoded), []
    for words in found.tokens_TB[:-1]:
        stepper.log_probs(words.unsqueeze(1))
        states.append(stepper.decoder_states())
    lengths = found.lengths_B.tolist()
    places = [(3, 1), (0, 0), (3, 2), (5, 1), (2, 0)]
    places = [(sentence, time) for sentence, time in places if time + 2 < lengths[sentence]]
    sentences = torch.tensor([sentence for sentence, _ in places])
    forked = stepper.fork(sentences, torch.stack([states[time][sentence] for sentence, time in places]))
    assert len(forked.groups) > 1
    steps = Steps.of(found.lengths_B)
    log_p_NV, kept = tiny.actor.log_probs(encoded, found.tokens_TB, steps), list(range(len(places)))
    for more in range(2):
        if more:  # some leave, so that a group may end
            kept = kept[1:]
            forked.keep_sentences(torch.arange(1, len(places)))
        fed = torch.tensor([int(found.tokens_TB[places[row][1] + 1 + more, places[row][0]]) for row in kept])
        stepped = forked.log_probs(fed.unsqueeze(1)).squeeze(1)
        for row, scored in zip(kept, stepped, strict=True):
            sentence, time = places[row]
            here = ((steps.sentences_N == sentence) & (steps.times_N == time + 1 + more)).nonzero()
            if len(here):
                torch.testing.assert_close(scored[EOS:], log_p_NV[int(here)][EOS:])


def test_beams_move_with_their_caches(tiny):
    encoded = tiny.actor.encode(tiny.batch)
    stepper, generator = tiny.actor.stepper(encoded), torch.Generator().manual_seed(0)
    words_BK = torch.full((6, 1), BOS)
    stepper.log_probs(words_BK)
    stepper.keep_hypotheses(torch.zeros(6, 3, dtype=torch.long))
    first_BK = torch.randint(EOS, N_IDS, (6, 3), generator=generator)
    stepper.log_probs(first_BK)
    parents_BK = torch.randint(3, (6, 2), generator=generator)
    stepper.keep_hypotheses(parents_BK)
    stepper.keep_sentences(torch.tensor([1, 4]))
    second_BK = torch.randint(UNK, N_IDS, (2, 2), generator=generator)
    found = stepper.log_probs(second_BK)
    for row, sentence in enumerate((1, 4)):
        for k in range(2):
            words = torch.tensor([BOS, int(first_BK[sentence, parents_BK[sentence, k]]), int(second_BK[row, k]), EOS])
            tokens_TB = words.unsqueeze(1).expand(-1, 6)
            steps = Steps.of(torch.full((6,), 4))
            alone = tiny.actor.log_probs(encoded, tokens_TB, steps)[steps.times_N == 2][sentence]
            torch.testing.assert_close(found[row, k, EOS:], alone[EOS:])


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_taken_words_and_policies_follow_from_all_scores(tiny, temperature):
    found, encoded = rollout(tiny), tiny.actor.encode(tiny.batch)
    steps = Steps.of(found.lengths_B)
    scores_NV = tiny.actor.log_probs(encoded, found.tokens_TB, steps) / temperature
    words_N1 = steps.flatten(found.tokens_TB[1:]).unsqueeze(1)
    taken = tiny.actor.taken_words(encoded, found.tokens_TB, steps, temperature)
    log_pi_NV = scores_NV.clone()
    log_pi_NV[:, [PAD, BOS]] = -1e4
    log_pi_NV = log_pi_NV.log_softmax(-1)
    torch.testing.assert_close(taken.log_pi_N, log_pi_NV.gather(1, words_N1).squeeze(1))
    torch.testing.assert_close(taken.log_p_N, scores_NV.log_softmax(-1).gather(1, words_N1).squeeze(1))
    torch.testing.assert_close(taken.entropy_N, -(log_pi_NV.exp() * log_pi_NV).sum(-1))
    assert taken.states_NH.shape == (len(steps), tiny.actor.state_size)
    inputs = encoded, found.tokens_TB
    whole, _ = tiny.actor.policy(*inputs, steps, words_N1.squeeze(1), 0)
    some, support = tiny.actor.policy(*inputs, steps, words_N1.squeeze(1), 3)
    expected = whole.gather(1, support.tokens_NK).masked_fill(~support.valid_NK, -1e4).log_softmax(-1)
    torch.testing.assert_close(some[support.valid_NK], expected[support.valid_NK])
    torch.testing.assert_close(tiny.actor.policy_on(*inputs, steps.positions_N, support), some)
    torch.testing.assert_close(tiny.actor.policy_on(*inputs, steps.positions_N, None), whole)


def test_the_support_of_many_positions_is_found_in_slices(monkeypatch):
    tiny = family("marian")
    found, encoded = rollout(tiny), tiny.actor.encode(tiny.batch)
    steps = Steps.of(found.lengths_B)
    inputs = encoded, found.tokens_TB, steps, steps.flatten(found.tokens_TB[1:]), 4, 0.05
    whole = tiny.actor.policy(*inputs)
    monkeypatch.setattr("pysimt_sac.hosts.huggingface.actor.CHUNK", 2)
    sliced = tiny.actor.policy(*inputs)
    assert torch.equal(whole[1].tokens_NK, sliced[1].tokens_NK)
    torch.testing.assert_close(whole[0], sliced[0])


def test_nothing_is_left_in_the_model_and_copies_are_independent(tiny):
    import copy

    actor = tiny.actor
    before = actor.nll(actor.encode(tiny.batch), tiny.batch["trg"])
    other = actor.with_networks(copy.deepcopy(actor.networks))
    with torch.no_grad():
        for weight in other.networks.parameters():
            weight.zero_()
    assert not tiny.model.get_output_embeddings()._forward_pre_hooks
    assert torch.equal(actor.nll(actor.encode(tiny.batch), tiny.batch["trg"]), before)
    assert not torch.equal(other.nll(other.encode(tiny.batch), tiny.batch["trg"]), before)
    assert make_batch().size == 6
