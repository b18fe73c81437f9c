"""Branched rollouts: which states, which words, and returns that are those of rollouts from scratch."""

import pytest
import torch

from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import EOS, PAD, SPECIAL_TOKENS
from pysimt_sac.rewards import Translations, reward
from pysimt_sac.rl import branching
from pysimt_sac.rl.branching import (
    BranchOptions,
    branch_metrics,
    branch_points,
    collect_branched,
    known_part,
    likeliest_words,
)
from pysimt_sac.rl.collector import Collector, derangement
from pysimt_sac.rl.policy import known_rewards, policy_at_steps
from pysimt_sac.rl.replay import Branches
from pysimt_sac.rl.rollout import Trace, roll_out, select_encoded, step_limits
from tests.hosts.engine.tiny import tiny_batch, tiny_model, tiny_sentences
from tests.rl.tiny import ACTORS, make_setup, rollout

AMOUNT, LONGEST = 6, 5
TOKENS = [*SPECIAL_TOKENS, "cat", "dog", "c@@", "d@@", "s", "."]


@reward("different")
def different(translations):
    """A user's own, which knows only whole hypotheses."""
    return [len(set(words)) / max(1, len(words)) for words in translations.hypotheses]


def generator(seed=1):
    return torch.Generator().manual_seed(seed)


def make(kind="engine", **options):
    """A model whose hypotheses end early, late, or not at all; its collector, and a batch."""
    model = tiny_model(n_words=6, seed=4, out_logic="deep", dropout_emb=0.2, dropout_out=0.5).double()
    with torch.no_grad():
        model.dec.out2prob.bias[EOS] = 1.0
    actor = ACTORS[kind](model)
    actor.tokens = TOKENS
    sides = (tiny_sentences(AMOUNT, 6, seed=seed, longest=7) for seed in (0, 1))
    setup = make_setup(model, actor, filters=["de-bpe"], **{"rollout_max_len": LONGEST, **options})
    return actor, Collector(setup), tiny_batch(model, *sides)


def collect(made, known=True, alpha=0.0, **options):
    actor, collector, batch = made
    collector.generator.manual_seed(1)
    return collect_branched(actor, batch, collector, BranchOptions(**options), 3, known, alpha)


# Which states


def trace_of(words, probabilities):
    """By step, then by sentence, then by word."""
    tokens_TBK = torch.tensor(words)
    trace = Trace(tokens_TBK.size(2), *tokens_TBK.shape[:2], torch.device("cpu"))
    trace.tokens_TBK, trace.log_pi_TBK = tokens_TBK, torch.tensor(probabilities).log()
    return trace


# Four steps of three sentences. The first hesitates at all steps, and might end at the last; the second never does; the
# third hesitates at its second step alone, and ends there.
SURE, EITHER, END, NO = [0.99, 0.01], [0.6, 0.4], [0.7, 0.3], [0.0, 0.0]
TRACE = trace_of(
    [[[5, 6]] * 3, [[5, 6], [5, 6], [EOS, 6]], [[5, 6], [EOS, 6], [0, 0]], [[5, EOS], [0, 0], [0, 0]]],
    [[EITHER, SURE, SURE], [EITHER, SURE, END], [EITHER, SURE, NO], [END, NO, NO]],
)


def points(n_states, seed=1, least=0.02):
    times_M, sentences_M = branch_points(TRACE, n_states, least, generator(seed))
    return sorted(zip(sentences_M.tolist(), times_M.tolist(), strict=True))


def test_states_that_may_end_come_first():
    assert {tuple(points(1, seed)) for seed in range(10)} == {((0, 3), (2, 1))}


def test_the_others_are_drawn_among_those_that_hesitate():
    found = {tuple(points(2, seed)) for seed in range(30)}
    assert found == {((0, time), (0, 3), (2, 1)) for time in (0, 1, 2)}
    assert points(4) == points(9) == [(0, 0), (0, 1), (0, 2), (0, 3), (2, 1)]
    assert points(0) == []


def test_the_least_probability_says_what_hesitating_is():
    assert points(4, least=0.35) == [(0, 0), (0, 1), (0, 2)]
    assert points(4, least=0.0) == [(s, t) for s, last in ((0, 4), (1, 3), (2, 2)) for t in range(last)]


def test_the_same_generator_chooses_the_same_states():
    assert points(2, seed=7) == points(2, seed=7)
    made = make()
    one, other = (collect(made, branch_continuation="sample", branch_path="sample") for _ in range(2))
    assert one.tensors().keys() == other.tensors().keys()
    assert all(torch.equal(one.tensors()[name], other.tensors()[name]) for name in one.tensors())


def test_the_likely_words_of_a_state_by_hand():
    found = likeliest_words(TRACE, n_steps=3, least=0.35)
    assert found.tokens_TBK.shape == (3, 3, 2)
    assert found.tokens_TBK[0].tolist() == [[5, 6], [5, 0], [5, 0]]
    assert found.tokens_TBK[1].tolist() == [[5, 6], [5, 0], [EOS, 0]]
    assert torch.equal(found.log_pi_TBK, TRACE.log_pi_TBK[:3])
    assert not found.rewards_TBK.any()
    assert likeliest_words(TRACE, 1, least=0.995).tokens_TBK[0].tolist() == [[5, 0], [5, 0], [5, 0]]  # one always


# What they bring


def scratch(made, experience, number, column, references_RB=None):
    """Potentials and scale of a branch by a rollout of its own, which takes the path's words and the branch's."""
    actor, collector, batch = made
    branches = experience.branches
    time, sentence = int(branches.times_M[number]), int(branches.sentences_M[number])
    forced_TB = experience.tokens_TB[1 : time + 2, sentence : sentence + 1].clone()
    forced_TB[time] = branches.tokens_MK[number, column]
    with torch.no_grad(), actor.training_mode(dropout=False):
        encoded = select_encoded(actor.encode(batch), torch.tensor([sentence]))
        limits = step_limits(batch.lengths["trg"], LONGEST)[[sentence]]
        found = roll_out(actor.stepper(encoded), limits, None, forced_TB)
    references_RB = batch["trg"] if references_RB is None else references_RB
    translations = Translations.from_ids(found.tokens_TB, references_RB[:, [sentence]], TOKENS)
    rewards = collector.rewarder(translations)
    return [0.0, *rewards.potentials_TB[:, 0]], rewards.scale_B[0], time, found.tokens_TB.flatten().tolist(), limits


def assert_returns_are_those_of_scratch(made, experience, references_RB=None):
    """All of them; says how many branches ended at once, and how many were truncated at once."""
    branches, n_ended, n_cut = experience.branches, 0, 0
    assert branches.valid_MK.sum() > AMOUNT
    for number, column in branches.valid_MK.nonzero().tolist():
        potentials, scale, time, words, limits = scratch(made, experience, number, column, references_RB)
        before, after, end = potentials[time], potentials[time + 1], potentials[-1]
        assert branches.rewards_MK[number, column].item() == pytest.approx(scale * (after - before), abs=1e-5)
        assert branches.returns_MK[number, column].item() == pytest.approx(scale * (end - before), abs=1e-5)
        n_ended += words[time + 1] == EOS
        n_cut += words[time + 1] != EOS and time + 1 == int(limits)
        if words[time + 1] == EOS or time + 1 == int(limits):
            assert len(words) == time + 2  # terminal: nothing follows, all of the return is the word's own reward
            own_reward = branches.rewards_MK[number, column].item()
            assert branches.returns_MK[number, column].item() == pytest.approx(own_reward, abs=1e-5)
    return n_ended, n_cut


REWARDS = ["bleu", "gleu", "chrf", "ter", "length", "different", "bleu:0.7,ter:0.3"]


@pytest.mark.parametrize("unit", ["piece", "word"])
@pytest.mark.parametrize("name", REWARDS)
def test_a_branchs_return_is_that_of_a_rollout_from_scratch(name, unit):
    made = make(reward=name, reward_unit=unit)
    experience = collect(made, branch_states=3, branch_path="sample")
    n_ended, n_cut = assert_returns_are_those_of_scratch(made, experience)
    assert n_ended > 0
    assert n_cut > 0


@pytest.mark.parametrize("kind", ACTORS)
@pytest.mark.parametrize("path", ["greedy", "sample"])
def test_so_it_is_on_both_hosts_and_paths(kind, path):
    made = make(kind, reward="gleu")
    assert_returns_are_those_of_scratch(made, collect(made, branch_states=3, branch_path=path))


@pytest.mark.parametrize("path", ["greedy", "sample"])
def test_returns_include_the_entropy_of_the_states_after_the_word(path):
    """That of the policy over its likeliest words, by a rollout of its own."""
    made = make(reward_scale=1.0)
    actor, _, batch = made
    plain, soft = (collect(made, alpha=alpha, branch_states=3, branch_path=path) for alpha in (0.0, 0.5))
    assert torch.equal(plain.branches.tokens_MK, soft.branches.tokens_MK)
    found_MK = (soft.branches.returns_MK - plain.branches.returns_MK) / 0.5
    for number, column in soft.branches.valid_MK.nonzero().tolist():
        *_, time, words, _ = scratch(made, soft, number, column)
        sentence, expected = int(soft.branches.sentences_M[number]), 0.0
        with torch.no_grad(), actor.training_mode(dropout=False):
            stepper = actor.stepper(select_encoded(actor.encode(batch), torch.tensor([sentence])))
            for step, word in enumerate(words[:-1]):
                likeliest_K = stepper.log_probs(torch.tensor([[word]])).flatten().topk(4).values.softmax(-1)
                expected += float(-(likeliest_K * likeliest_K.log()).sum()) if step > time else 0.0
        assert found_MK[number, column].item() == pytest.approx(expected, abs=1e-4)


def test_both_hosts_collect_the_same():
    one, other = (collect(make(kind), known=True, branch_path="sample").tensors() for kind in ACTORS)
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name])


def test_returns_of_words_are_scaled_as_rewards_are():
    plain, scaled = (collect(make(reward_scale=scale)) for scale in (1.0, 10.0))
    torch.testing.assert_close(scaled.branches.returns_MK, 10 * plain.branches.returns_MK)
    torch.testing.assert_close(scaled.branches.rewards_MK, 10 * plain.branches.rewards_MK)


@pytest.mark.parametrize("continuation", ["greedy", "sample"])
def test_the_hypotheses_behind_the_returns(continuation, monkeypatch):
    seen, original = [], branching.complete

    def complete(*args, **named):
        found = original(*args, **named)
        seen.append((found[0], args[4]))
        return found

    monkeypatch.setattr(branching, "complete", complete)
    made = make()
    experience = collect(made, branch_states=3, branch_continuation=continuation)
    ((whole_TC, times_C),) = seen
    branches = experience.branches
    limits = step_limits(made[2].lengths["trg"], LONGEST).tolist()
    places = branches.valid_MK.nonzero().tolist()
    assert len(places) == whole_TC.size(1)
    for (number, column), row, time in zip(places, whole_TC.t().tolist(), times_C.tolist(), strict=True):
        sentence = int(branches.sentences_M[number])
        assert row[: time + 1] == experience.tokens_TB[: time + 1, sentence].tolist()
        assert row[time + 1] == branches.tokens_MK[number, column]
        words = [word for word in row if word != PAD]
        assert row == words + [PAD] * (len(row) - len(words))
        assert (words[-1] == EOS) != (len(words) - 1 == limits[sentence] and EOS not in words)
        assert EOS not in words[:-1]


def test_sampled_continuations_differ_and_greedy_ones_do_not():
    def returns(continuation):
        actor, collector, batch = make()
        options = BranchOptions(branch_continuation=continuation)
        found = []
        for seed in (1, 2):
            collector.generator.manual_seed(1)
            original = branching.complete

            def complete(*args, generator, seed=seed, original=original, **named):
                generator and generator.manual_seed(seed)
                return original(*args, generator=generator, **named)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(branching, "complete", complete)
                found.append(collect_branched(actor, batch, collector, options, 1).branches.returns_MK)
        return found

    assert torch.equal(*returns("greedy"))
    assert not torch.equal(*returns("sample"))


# The path, and the rewards that are known


@pytest.mark.parametrize("path", ["greedy", "sample"])
def test_the_path_is_a_plain_rollout_and_scored_as_one(path):
    made = make()
    actor, collector, batch = made
    found = collect(made, branch_path=path)
    collector.generator.manual_seed(1)
    _, expected = collector.roll_out(actor, batch, collector.generator if path == "sample" else None)
    assert torch.equal(found.tokens_TB, expected.tokens_TB)
    scored = collector.score(actor, batch, expected)
    assert torch.equal(found.potentials_TB, scored.potentials_TB)
    assert torch.equal(found.scale_B, scored.scale_B)
    assert found.created_at_update == 3
    assert torch.equal(found.reference_RB, batch["trg"])


@pytest.mark.parametrize("unit", ["piece", "word"])
@pytest.mark.parametrize("path", ["greedy", "sample"])
def test_known_rewards_of_taken_and_of_branched_words_are_their_own(path, unit):
    made = make(reward="gleu", reward_unit=unit)
    found = collect(made, known=True, branch_path=path)
    tokens_TBK, rewards_TBK = found.choices.tokens_TBK, found.choices.rewards_TBK
    taken_TBK = tokens_TBK.eq(found.tokens_TB[1:].unsqueeze(-1)) & tokens_TBK.ne(PAD)
    if path == "greedy":
        assert torch.equal(taken_TBK[..., 0], found.tokens_TB[1:].ne(PAD))
    assert taken_TBK.any(-1).sum() > 2 * AMOUNT
    torch.testing.assert_close(rewards_TBK[taken_TBK], found.rewards_TB.unsqueeze(-1).expand_as(taken_TBK)[taken_TBK])
    branches = found.branches
    assert torch.equal(tokens_TBK[branches.times_M, branches.sentences_M][branches.valid_MK],
                       branches.tokens_MK[branches.valid_MK])  # fmt: skip
    known_MK = rewards_TBK[branches.times_M, branches.sentences_M]
    torch.testing.assert_close(known_MK[branches.valid_MK], branches.rewards_MK[branches.valid_MK])


def test_known_rewards_as_part_of_q():
    made = make()
    found = collect(made, known=True)
    steps = found.steps
    taken_N, likeliest_NK = known_part(found, known=True)
    assert torch.equal(taken_N, steps.flatten(found.rewards_TB))
    assert torch.equal(likeliest_NK, steps.flatten(found.choices.rewards_TBK))
    taken_N, likeliest_N1 = known_part(found, known=False)
    assert (taken_N.shape, likeliest_N1.shape) == ((len(steps),), (len(steps), 1))
    assert not taken_N.any()
    assert not likeliest_N1.any()


def test_known_rewards_of_a_support_that_was_chosen_later():
    actor, collector, batch = made = make(reward="gleu")
    found = collect(made, known=True, branch_words=3, branch_min_probability=0.0)
    with torch.no_grad(), actor.training_mode(dropout=False):
        policy = policy_at_steps(actor, actor.encode(batch), found, 3, least=0.0)
    taken_N, rewards_NK = known_rewards(collector, actor, found, policy, known=True)
    assert torch.equal(taken_N, policy.steps.flatten(found.rewards_TB))
    assert torch.equal(policy.support.tokens_NK[:, :3], policy.steps.flatten(found.choices.tokens_TBK))
    torch.testing.assert_close(rewards_NK[:, :3], policy.steps.flatten(found.choices.rewards_TBK))
    assert not rewards_NK[~policy.support.valid_NK].any()


def test_the_policy_at_the_likeliest_words_is_the_actors():
    actor, _, batch = made = make()
    found = collect(made, branch_path="sample")
    policy = branching.policy_at_choices(found)
    with torch.no_grad(), actor.training_mode(dropout=False):
        inputs = actor.encode(batch), found.tokens_TB, policy.steps.positions_N, policy.support
        expected_NK = actor.policy_on(*inputs)
    torch.testing.assert_close(policy.log_pi_NA.exp(), expected_NK.exp(), check_dtype=False)
    assert torch.equal(policy.taken_N, policy.steps.flatten(found.tokens_TB[1:]))
    torch.testing.assert_close(policy.log_pi_NA.exp().sum(1), torch.ones(len(policy.steps)))


# Controls, dropout and ends


def test_permuted_rewards_score_path_branches_and_known_rewards_against_the_same_references():
    made = make(reward="gleu", permute_rewards=True)
    _, collector, batch = made
    found = collect(made, known=True, branch_states=3)
    order = derangement(AMOUNT, generator(1))
    references_RB = batch["trg"][:, order]
    expected = collector.rewarder(Translations.from_ids(found.tokens_TB, references_RB, TOKENS))
    torch.testing.assert_close(found.potentials_TB, torch.from_numpy(expected.potentials_TB).float())
    torch.testing.assert_close(found.scale_B, torch.from_numpy(expected.scale_B).float())
    assert_returns_are_those_of_scratch(made, found, references_RB)
    torch.testing.assert_close(found.choices.rewards_TBK[..., 0], found.rewards_TB)  # the path is greedy
    assert torch.equal(found.reference_RB, batch["trg"])  # what likelihood and critics see
    assert torch.equal(collector.last.reference_RB, batch["trg"])
    right = make(reward="gleu")
    assert torch.equal(collect(right).tokens_TB, found.tokens_TB)
    assert not torch.equal(collect(right).potentials_TB, found.potentials_TB)


@pytest.mark.parametrize("kind", ACTORS)
def test_no_part_of_it_has_dropout_or_touches_the_global_random_state(kind):
    made = make(kind)
    settings = {"branch_path": "sample", "branch_continuation": "sample"}
    expected = collect(made, known=True, **settings).tensors()
    made[0].networks.train()
    before = torch.get_rng_state()
    found = collect(made, known=True, **settings).tensors()
    assert torch.equal(before, torch.get_rng_state())
    assert made[0].decoder.training
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    draws = (generator(seed) for seed in (1, 1))
    with_dropout = [rollout(made[0], made[2], torch.full((AMOUNT,), LONGEST), draw).tokens_TB for draw in draws]
    assert with_dropout[0].shape != with_dropout[1].shape or not torch.equal(*with_dropout)


@pytest.mark.parametrize("options", [{"branch_states": 0}, {"branch_min_probability": 0.99}], ids=["none", "no doubts"])
def test_without_branches_a_path_and_its_known_rewards_are_left(options):
    found = collect(make(), known=True, **options)
    assert found.branches.returns_MK.shape == (0, 4)
    assert branch_metrics(found.branches) == {"branched_states": 0.0, "branches": 0.0}
    torch.testing.assert_close(found.choices.rewards_TBK[..., 0], found.rewards_TB)


def test_rewards_that_learn_know_the_branches_words():
    """The bonus of a mixture is that of the samples of the same update; no word's reward is unknown."""
    made = make(reward="gleu:0.5,unsup:0.5", unsup_samples=3)
    found, part = collect(made, known=True), made[1].rewarder.parts["unsup"]
    assert len(part.draws) == 6
    assert (found.choices.rewards_TBK != 0).any()
    plain = collect(make(reward="gleu:0.5"), known=True)
    assert not torch.equal(found.branches.returns_MK, plain.branches.returns_MK)


def test_metrics_by_hand():
    returns_MK = torch.tensor([[1.0, 3.0, 0.0], [2.0, 1.0, 5.0]])
    valid_MK = torch.tensor([[True, True, True], [True, True, False]])
    nothing_M = torch.zeros(2, dtype=torch.long)
    branches = Branches(nothing_M, nothing_M, torch.full((2, 3), 5), valid_MK, torch.zeros(2, 3), returns_MK)
    found = {name: float(value) for name, value in branch_metrics(branches).items()}
    assert found == {"branched_states": 2, "branches": 5, "likeliest_is_best": 0.5, "gain_of_best": 1.0}


def test_where_branched_states_are_and_what_critics_learn_there():
    steps = Steps.of(torch.tensor([4, 2]))  # three steps and one; flat: 0 of both, then the first's
    returns_MK = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    times_M, sentences_M = torch.tensor([2, 0]), torch.tensor([0, 1])
    tokens_MK, valid_MK = torch.full((2, 2), 5), torch.ones(2, 2, dtype=torch.bool)
    branches = Branches(times_M, sentences_M, tokens_MK, valid_MK, returns_MK, returns_MK)
    assert branches.positions_M(2).tolist() == [4, 1]
    assert branches.rows_M(steps).tolist() == [3, 1]
    assert branches.mask_N(steps).tolist() == [False, True, False, True]
    assert branches.futures_MK(known_reward=False).equal(returns_MK)
    assert not branches.futures_MK(known_reward=True).any()
