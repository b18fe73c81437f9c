"""Branched rollouts: at some states of a path, several next words are each continued to the end of the hypothesis.

The returns of the continuations directly estimate Q(s, a) for several words of the *same* state. They rank these words,
which is what a policy needs (the vine of TRPO, Schulman et al. 2015; AggreVaTeD, Sun et al. 2017). The decoder state is
forked at the branch point, so the prefix is not decoded again.
"""

import dataclasses
import math

import torch
from torch import Tensor

from pysimt_sac.core.actor import Actor, Stepper
from pysimt_sac.core.batch import Batch
from pysimt_sac.core.options import option
from pysimt_sac.core.policy import Support, policy_on_support
from pysimt_sac.core.vocabulary import EOS, PAD
from pysimt_sac.rewards import SourceTexts
from pysimt_sac.rl.collector import Collector
from pysimt_sac.rl.policy import PolicyAtSteps
from pysimt_sac.rl.replay import Branches, Choices, Experience
from pysimt_sac.rl.rollout import Rollout, Trace, roll_out, step_limits


@dataclasses.dataclass(frozen=True)
class BranchOptions:
    """The `[model]` keys shared by all models with branched rollouts."""

    branch_states: int = option(
        2, "branched states per sentence, where several words are likely; a likely `<eos>` takes priority", minimum=0
    )
    branch_words: int = option(4, "likeliest words that are compared at a state", minimum=2)
    branch_min_probability: float = option(0.02, "least probability of such a word", minimum=0, below=1)
    branch_path: str = option("greedy", "how the path is decoded", choices=("greedy", "sample"))
    branch_continuation: str = option("greedy", "how a branch is continued", choices=("greedy", "sample"))


@torch.no_grad()
def collect_branched(
    actor: Actor,
    batch: Batch,
    collector: Collector,
    options: BranchOptions,
    step: int,
    known_rewards: bool = False,
    alpha: float = 0.0,
) -> Experience:
    """Roll out a path without dropout, continue the likeliest words of some of its states, and score all of them.

    known_rewards: also compute r(s, a) for the likeliest words of every state. alpha: the returns of branches include
    the entropy of the states after them, over the likeliest words, with this weight.
    """
    generator, references_RB = collector.generator, collector.references(batch[actor.target])
    with actor.training_mode(dropout=False):
        encoded = actor.encode(batch)
        collector.learn(actor, batch, encoded)
        stepper = actor.stepper(encoded)
        limits_B = step_limits(batch.lengths[actor.target], collector.max_len)
        n_words = min(options.branch_words, len(actor.tokens))
        trace = Trace(n_words, int(limits_B.max()), batch.size, actor.device)
        path = roll_out(stepper, limits_B, generator if options.branch_path == "sample" else None, trace=trace)
        times_M, sentences_M = branch_points(trace, options.branch_states, options.branch_min_probability, generator)
        tokens_MK = trace.tokens_TBK[times_M, sentences_M]
        valid_MK = trace.log_pi_TBK[times_M, sentences_M] >= math.log(max(options.branch_min_probability, 1e-30))
        states_C, columns_C = valid_MK.nonzero().unbind(1)
        times_C, sentences_C = times_M[states_C], sentences_M[states_C]
        whole_TC, entropy_C = complete(
            stepper,
            path,
            trace,
            limits_B.to(actor.device),
            times_C,
            sentences_C,
            tokens_C=tokens_MK[states_C, columns_C],
            generator=generator if options.branch_continuation == "sample" else None,
            all_greedy=options.branch_path == options.branch_continuation == "greedy",
            with_entropy=alpha > 0,
        )
    experience = collector.score(actor, batch, path, step, generator, True, references_RB)
    choices = likeliest_words(trace, len(path.tokens_TB) - 1, options.branch_min_probability)
    source = SourceTexts.of(actor, batch[actor.source], batch.indices)
    if known_rewards:
        inputs = path.tokens_TB, references_RB, choices.tokens_TBK, limits_B
        choices = choices._replace(rewards_TBK=collector.next_rewards(actor, *inputs, source))
    # The return of a branch: c (R_T - R_{t-1}), the score minus what the prefix has earned, and the entropy after it.
    branch_references_RC = references_RB.index_select(1, sentences_C)
    scores_C = collector.final_scores(actor, whole_TC, branch_references_RC, source, sentences_C)
    before_C = (experience.scale_B * experience.potentials_before_TB)[times_C, sentences_C]
    returns_MK = torch.zeros(valid_MK.shape, device=actor.device)
    returns_MK[states_C, columns_C] = scores_C - before_C + alpha * entropy_C
    rewards_MK = choices.rewards_TBK[times_M, sentences_M]
    branches = Branches(times_M, sentences_M, tokens_MK, valid_MK, rewards_MK, returns_MK)
    return dataclasses.replace(experience, branches=branches, choices=choices)


def likeliest_words(trace: Trace, n_steps: int, least: float) -> Choices:
    """Return the words of each state that are likely enough, else `<pad>`. Their rewards are 0 for now."""
    tokens_TBK, log_pi_TBK = trace.tokens_TBK[:n_steps], trace.log_pi_TBK[:n_steps]
    unlikely_TBK = log_pi_TBK < math.log(max(least, 1e-30))
    unlikely_TBK[..., 0] = False  # every state keeps at least one word
    tokens_TBK = tokens_TBK.masked_fill(unlikely_TBK, PAD)
    return Choices(tokens_TBK, log_pi_TBK, torch.zeros_like(log_pi_TBK))


def branch_points(trace: Trace, n_states: int, least: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Choose states with several likely words, first those where `<eos>` is one of them, otherwise at random.

    Return their times and sentences.
    """
    valid_TBK = trace.log_pi_TBK >= math.log(max(least, 1e-30))
    has_alternatives_TB = valid_TBK.sum(-1) > 1
    may_end_TB = has_alternatives_TB & (valid_TBK & trace.tokens_TBK.eq(EOS)).any(-1)
    draws_TB = torch.rand(trace.shape, generator=generator).to(valid_TBK.device)
    priority_TB = draws_TB + has_alternatives_TB + may_end_TB
    times_PB = priority_TB.topk(min(n_states, len(priority_TB)), dim=0).indices
    sentences_PB = torch.arange(trace.shape[1], device=times_PB.device).expand_as(times_PB)
    chosen_PB = has_alternatives_TB.gather(0, times_PB)
    return times_PB[chosen_PB], sentences_PB[chosen_PB]


def complete(
    stepper: Stepper,
    path: Rollout,
    trace: Trace,
    limits_B: Tensor,
    times_C: Tensor,
    sentences_C: Tensor,
    tokens_C: Tensor,
    generator: torch.Generator | None,
    all_greedy: bool,
    with_entropy: bool,
) -> tuple[Tensor, Tensor]:
    """Return whole hypotheses (T, C): the path up to a state, a word, and the continuation from the forked state.

    all_greedy: path and continuations are greedy, so the path's own word need not be continued again. The second part
    of the result is the sum of the entropies of the states after the word (C); zeros unless `with_entropy`.
    """
    whole_TC = path.tokens_TB.index_select(1, sentences_C)
    longest, every_C = int(limits_B.max()) + 1, torch.arange(len(times_C), device=times_C.device)
    whole_TC = torch.cat((whole_TC, whole_TC.new_full((longest - len(whole_TC), len(times_C)), PAD)))
    known_C = whole_TC[times_C + 1, every_C].eq(tokens_C) & all_greedy
    rows_T1 = torch.arange(longest, device=whole_TC.device).unsqueeze(1)
    whole_TC = whole_TC.masked_fill((rows_T1 > times_C) & ~known_C, PAD)
    whole_TC[times_C + 1, every_C] = tokens_C
    entropy_C = torch.zeros(len(times_C), device=times_C.device)
    if with_entropy:
        after_TC = rows_T1[: trace.shape[0]] > times_C
        entropy_C = (trace.entropies_TB[:, sentences_C] * (after_TC & known_C)).sum(0)
    left_C = limits_B[sentences_C] - times_C - 1
    open_ = (tokens_C.ne(EOS) & (left_C > 0) & ~known_C).nonzero().squeeze(1)
    if len(open_):
        assert trace.states_TBH is not None
        forked = stepper.fork(sentences_C[open_], trace.states_TBH[times_C[open_], sentences_C[open_]])
        limits, record = left_C[open_].cpu(), None
        if with_entropy:
            record = Trace(trace.k, int(limits.max()), len(open_), times_C.device, with_states=False)
        continued = roll_out(forked, limits, generator, first_B=tokens_C[open_], trace=record).tokens_TB
        rows = times_C[open_] + 1 + torch.arange(len(continued), device=open_.device).unsqueeze(1)
        columns = open_.expand_as(rows)
        fits = rows < longest
        whole_TC[rows[fits], columns[fits]] = continued[fits]
        if record is not None:
            entropy_C[open_] = record.entropies_TB.sum(0)
    return whole_TC, entropy_C


@torch.no_grad()
def branch_metrics(branches: Branches) -> dict[str, Tensor | float]:
    """Measure how often the likeliest word of a branched state is the best, and how much better the best one is."""
    if len(branches.times_M) == 0:
        return {"branched_states": 0.0, "branches": 0.0}
    returns_MK = branches.returns_MK.masked_fill(~branches.valid_MK, -torch.inf)
    gain_M = returns_MK.amax(1) - branches.returns_MK[:, 0]  # words are sorted by probability
    return {
        "branched_states": float(len(gain_M)),
        "branches": branches.valid_MK.sum().float(),
        "likeliest_is_best": gain_M.eq(0).float().mean(),
        "gain_of_best": gain_M.mean(),
    }


def policy_at_choices(experience: Experience) -> PolicyAtSteps:
    """Return the behaviour policy at every step of a branched rollout, over its likeliest words."""
    assert experience.choices is not None
    steps = experience.steps
    tokens_NK, log_pi_NK = (steps.flatten(part) for part in experience.choices[:2])
    support = Support(tokens_NK, tokens_NK.ne(PAD))
    return PolicyAtSteps(steps, steps.flatten(experience.tokens_TB[1:]), policy_on_support(log_pi_NK, support), support)


def known_part(experience: Experience, known: bool) -> tuple[Tensor, Tensor]:
    """Return the known part of Q at a branched rollout: r of the taken words (N) and of the likeliest ones (N, K)."""
    steps = experience.steps
    if not known:
        zeros_N = torch.zeros(len(steps), device=experience.tokens_TB.device)
        return zeros_N, zeros_N.unsqueeze(1)
    assert experience.choices is not None
    return steps.flatten(experience.rewards_TB), steps.flatten(experience.choices.rewards_TBK)
