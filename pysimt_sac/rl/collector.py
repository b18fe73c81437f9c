"""The collector: rolls out a batch without dropout, and scores the hypotheses."""

from typing import Any

import torch
from torch import Tensor

from pysimt_sac.core.actor import Actor, Encoded
from pysimt_sac.core.batch import Batch
from pysimt_sac.core.errors import UserError
from pysimt_sac.rewards import Rewarder, SourceTexts, Translations, permute
from pysimt_sac.rl.replay import Experience
from pysimt_sac.rl.rollout import Rollout, repeat_batch, repeat_encoded, roll_out, step_limits
from pysimt_sac.rl.setup import RLOptions, Setup

RECENT = 30  # batches that metrics are averaged over


class Collector:
    """Collects experience; owns the reward and its own random state.

    last: the last experience. samples: those of the last batch that rewards learn from, `n_samples` of each source in
    adjacent columns. recent: counts of the last batches; a single one is not representative, since all its sentences
    have the same length.
    """

    def __init__(self, setup: Setup, rewarder: Rewarder | None = None) -> None:
        """rewarder: shared with another collector; a new one by default."""
        common = setup.read(RLOptions)
        self.rewarder = rewarder or Rewarder(setup.read, setup.filters, setup.where)
        self.max_len, self.permute = common.rollout_max_len, common.permute_rewards
        if self.permute and self.rewarder.learners:  # it would learn from the true sentences
            hint = "use a reward that does not learn"
            raise UserError("cannot be combined with a reward that learns", f"{setup.where} permute_rewards", hint)
        self.generator = torch.Generator().manual_seed(setup.seed)
        self.last: Experience | None = None
        self.samples = Rollout(torch.zeros(0, 0, dtype=torch.long), torch.zeros(0, dtype=torch.long))
        self.recent: list[dict[str, float]] = []
        self.reward_metrics: dict[str, float] = {}

    def collect(
        self,
        actor: Actor,
        batch: Batch,
        step: int,
        n_samples: int = 1,
        forced_TB: Tensor | None = None,
        temperature: float = 1.0,
    ) -> Experience:
        """Sample `n_samples` hypotheses of every source, in adjacent columns, and score them.

        step: the number of the update, which dates the experience. forced_TB: prefixes that hypotheses start with.
        temperature: sampling temperature.
        """
        encoded, rollout = self.roll_out(actor, batch, self.generator, forced_TB, n_samples, temperature)
        self.learn(actor, batch, encoded)
        return self.score(actor, repeat_batch(batch, n_samples), rollout, step, self.generator, learning=True)

    @torch.no_grad()
    def roll_out(
        self,
        actor: Actor,
        batch: Batch,
        generator: torch.Generator | None,
        forced_TB: Tensor | None = None,
        n_samples: int = 1,
        temperature: float = 1.0,
    ) -> tuple[Encoded, Rollout]:
        """Return the encoded sources and their hypotheses: sampled, or greedy if generator is None."""
        limits_B = step_limits(batch.lengths[actor.target], self.max_len).repeat_interleave(n_samples)
        if forced_TB is not None:  # forced words must fit
            limits_B = limits_B.maximum(forced_TB.ne(0).sum(0).cpu())
        with actor.training_mode(dropout=False):
            encoded = actor.encode(batch)
            stepper = actor.stepper(repeat_encoded(encoded, n_samples))
            return encoded, roll_out(stepper, limits_B, generator, forced_TB, temperature=temperature)

    @torch.no_grad()
    def learn(self, actor: Actor, batch: Batch, encoded: Encoded) -> None:
        """Draw samples of every source for the rewards that learn, if there are any, and update these."""
        n_samples = self.rewarder.n_samples
        if not n_samples:
            return
        limits_B = step_limits(batch.lengths[actor.target], self.max_len).repeat_interleave(n_samples)
        with actor.training_mode(dropout=False):
            stepper = actor.stepper(repeat_encoded(encoded, n_samples))
            self.samples = roll_out(stepper, limits_B, self.generator)
        references_RC = batch[actor.target].repeat_interleave(n_samples, 1)
        source = SourceTexts.of(actor, batch[actor.source], batch.indices)
        sentences = [sentence for sentence in range(batch.size) for _ in range(n_samples)]
        samples = Translations.from_ids(self.samples.tokens_TB, references_RC, actor.tokens, source, sentences)
        self.reward_metrics = self.rewarder.learn(samples)

    def score(
        self,
        actor: Actor,
        batch: Batch,
        rollout: Rollout,
        step: int = 0,
        generator: torch.Generator | None = None,
        learning: bool = False,
        scored_against_RB: Tensor | None = None,
    ) -> Experience:
        """Score a rollout. learning: include it in the metrics.

        scored_against_RB: references to use instead of the batch's and of `permute_rewards`.
        """
        reference_RB = batch[actor.target]
        against_RB = reference_RB if scored_against_RB is None else scored_against_RB
        source = SourceTexts.of(actor, batch[actor.source], batch.indices)
        translations = Translations.from_ids(rollout.tokens_TB, against_RB, actor.tokens, source=source)
        rewards = self.rewarder(translations)
        if self.permute and scored_against_RB is None:
            steps = translations.steps
            rewards = permute(rewards, steps, derangement(len(steps), generator).tolist())
        if learning:
            if against_RB is not reference_RB:  # lengths are compared with the true references
                translations = Translations.from_ids(rollout.tokens_TB, reference_RB, actor.tokens, source=source)
            self.count(translations, {name: float(values.sum()) for name, values in rewards.parts.items()})

        def tensor(values: Any) -> Tensor:
            return torch.from_numpy(values).to(reference_RB.device, torch.float32)

        experience = Experience(
            batch[actor.source],
            reference_RB,
            rollout.tokens_TB,
            tensor(rewards.potentials_TB),
            tensor(rewards.scale_B),
            others={name: values for name, values in batch.items() if name not in (actor.source, actor.target)},
            created_at_update=step,
            sides=(actor.source, actor.target),
        )
        self.last = experience if learning else self.last
        return experience

    def final_scores(
        self,
        actor: Actor,
        tokens_TC: Tensor,
        reference_RC: Tensor,
        source: SourceTexts | None = None,
        sentences_C: Tensor | None = None,
    ) -> Tensor:
        """Return c R_T (C) of any hypotheses. source, sentences_C: what they translate, for rewards that need it."""
        if tokens_TC.size(1) == 0:
            return torch.zeros(0, device=tokens_TC.device)
        sentences = None if sentences_C is None else sentences_C.tolist()
        found = Translations.from_ids(tokens_TC, reference_RC, actor.tokens, source=source, sentences=sentences)
        scores_C, scale_C = self.rewarder.scores(found)
        return torch.from_numpy(scores_C * scale_C).to(tokens_TC.device, torch.float32)

    def next_rewards(
        self,
        actor: Actor,
        tokens_TB: Tensor,
        reference_RB: Tensor,
        candidates_TBK: Tensor,
        limits_B: Tensor,
        source: SourceTexts | None = None,
    ) -> Tensor:
        """Return r(s, a) (T, B, K) of candidate next words at every step of given hypotheses; 0 for `<pad>`."""
        translations = Translations.from_ids(tokens_TB, reference_RB, actor.tokens, source=source)
        found = self.rewarder.next_rewards(translations, candidates_TBK.cpu().numpy(), limits_B.cpu().numpy())
        return torch.from_numpy(found).to(tokens_TB.device, torch.float32)

    def references(self, reference_RB: Tensor) -> Tensor:
        """Return the references for algorithms that look ahead; with `permute_rewards`, those of other sentences."""
        if not self.permute:
            return reference_RB
        order = derangement(reference_RB.size(1), self.generator)
        return reference_RB.index_select(1, order.to(reference_RB.device))

    def count(self, translations: Translations, rewards: dict[str, float]) -> None:
        """Record the counts behind `metrics`."""
        counts = {
            "sentences": len(translations.ended),
            "words": sum(map(len, translations.hypotheses)),
            "reference_words": sum(map(len, translations.references)),
            "truncated": len(translations.ended) - sum(translations.ended),
        }
        parts = {f"reward_{name}": value for name, value in rewards.items()}
        self.recent = [*self.recent, {**counts, **parts}][-RECENT:]

    @property
    def metrics(self) -> dict[str, float]:
        """Means over the last batches, and the metrics of learned rewards."""
        if not self.recent:
            return {}
        sums = {name: sum(counts[name] for counts in self.recent) for name in self.recent[-1]}
        rewards = {name: value / sums["sentences"] for name, value in sums.items() if name.startswith("reward_")}
        ratio = sums["words"] / max(1, sums["reference_words"])
        truncated = sums["truncated"] / sums["sentences"]
        return {**rewards, "length_ratio": ratio, "truncated": truncated, **self.reward_metrics}

    def state_dict(self) -> dict[str, Any]:
        """Return the random state, the counts, and the state of learned rewards."""
        return {
            "generator": self.generator.get_state(),
            "rewarder": self.rewarder.state_dict(),
            "recent": self.recent,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state."""
        self.generator.set_state(state["generator"])
        self.recent = state["recent"]
        self.rewarder.load_state_dict(state["rewarder"])


def mean_state(encoded: Encoded) -> Tensor:
    """Return the source as a bag: the mean of its encoder states (B, C), detached."""
    states_SBC, mask_SB = next(iter(encoded.values()))
    states_SBC = states_SBC.detach()
    if mask_SB is None:
        return states_SBC.mean(0)
    weights_SB1 = mask_SB.to(states_SBC.dtype).unsqueeze(-1)
    return (states_SBC * weights_SB1).sum(0) / weights_SB1.sum(0)


def return_metrics(returns_C: Tensor, entropy_N: Tensor) -> dict[str, Tensor | float]:
    """Return the mean and standard deviation of the returns of sampled hypotheses, and the policy's entropy."""
    return {
        "return": returns_C.mean(),
        "return_spread": returns_C.std(correction=0),
        "entropy": entropy_N.detach().mean(),
    }


def derangement(n: int, generator: torch.Generator | None) -> Tensor:
    """Return a random cyclic permutation, which has no fixed point if n > 1."""
    order = torch.randperm(n, generator=generator)
    return torch.empty_like(order).index_copy(0, order, order.roll(1))
