"""Playing: the actor translates a batch by sampling, and the translations are rewarded."""

import dataclasses
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pysimt_sac.engine.data.corpus import Batch
from pysimt_sac.engine.decoding.protocol import select_states
from pysimt_sac.rewards import Numbers, Rewarder, RewardOptions, Rewards, Translations, permute
from pysimt_sac.rl.replay import Experience
from pysimt_sac.rl.rollout import Rollout, network_mode, sample_rollout, step_limits

RECENT = 30  # batches that figures are means of


class Judged(NamedTuple):
    """A rewarded rollout: as the networks see it, in words, and what it earned."""

    experience: Experience
    translations: Translations
    earned: Rewards


def repeat(batch: Any, times: int) -> Batch:
    """A batch with every sentence several times, side by side."""
    return Batch({side: batch[side].repeat_interleave(times, 1) for side in batch})


def repeat_states(states: Any, times: int) -> Any:
    """The same for encoded sources."""
    any_state = next(iter(states.values()))[0]
    return select_states(states, torch.arange(any_state.size(1), device=any_state.device).repeat_interleave(times))


class Player:
    """Rolls out and rewards, with a random state of its own."""

    def __init__(self, options: RewardOptions, longest: int, dropout: bool, permuted: bool, seed: int) -> None:
        """longest: most steps of a rollout; dropout: whether the actor has it; permuted: a control, see `permute`."""
        self.rewarder, self.n_labels = Rewarder(options), options.n_skills
        self.longest, self.dropout, self.permuted = longest, dropout, permuted
        self.generator = torch.Generator().manual_seed(seed)
        self.recent: list[dict[str, float]] = []
        self.learnt_figures: dict[str, float] = {}
        self.last: Translations | None = None

    def play(
        self, model: Any, batch: Any, alpha: float, update: int, n_samples: int = 1, forced_TB: Tensor | None = None
    ) -> Experience:
        """Sample translations of every source of a batch, and say what they earned; see `roll_out`."""
        rollout = self.roll_out(model, batch, self.generator, forced_TB, n_samples)
        several = repeat(batch, n_samples) if n_samples > 1 else batch
        judged = self.judge(model, several, rollout, alpha, update, self.generator, learning=True)
        self.note(judged.translations, judged.earned.parts)
        return judged.experience

    def roll_out(
        self,
        model: Any,
        batch: Any,
        generator: torch.Generator | None,
        forced_TB: Tensor | None = None,
        n_samples: int = 1,
    ) -> Rollout:
        """Translations without gradient: sampled, or without a generator greedy.

        forced_TB: words they begin with. n_samples: of each sentence, side by side.
        """
        lengths_B = model.host_lengths(batch, model.tl)
        with torch.no_grad(), network_mode(model, self.dropout):
            states = model.states_of(batch)
            limits_B = step_limits(lengths_B, self.longest)
            if n_samples > 1:
                limits_B, states = limits_B.repeat_interleave(n_samples), repeat_states(states, n_samples)
            if forced_TB is not None:  # what is given must fit
                limits_B = limits_B.maximum(forced_TB.ne(0).sum(0).cpu())
            return sample_rollout(model.dec, states, limits_B, generator, forced_TB)

    def judge(
        self,
        model: Any,
        batch: Any,
        rollout: Rollout,
        alpha: float,
        update: int = 0,
        generator: torch.Generator | None = None,
        learning: bool = False,
    ) -> Judged:
        """What the sampled translations of a batch are worth; learning: rewards that learn do so before they judge."""
        reference_TB, z_TB = batch[model.tl], None
        translations = Translations.from_ids(rollout.words_TB, reference_TB, model.trg_vocab_tokens)
        if self.rewarder.learners:
            z_TB = torch.randint(self.n_labels, rollout.words_TB[1:].shape, generator=generator)
            z_TB = z_TB.to(reference_TB.device)
            states = model.get_enc_state_dict()  # of this batch, or before it was repeated: it has just been rolled out
            states = repeat_states(states, batch.size // next(iter(states.values()))[0].size(1))
            numbers = self.numbers(model, states, batch[model.sl], rollout.words_TB, z_TB)
            translations = dataclasses.replace(translations, numbers=numbers)
            if learning:
                self.learnt_figures = self.rewarder.learn(translations, new=True)
        earned = self.rewarder(translations, alpha)
        if self.permuted:
            order = torch.randperm(batch.size, generator=generator).tolist()
            earned = permute(earned, translations.steps, order)

        def tensor(values: Any) -> Tensor:
            return torch.from_numpy(values).to(reference_TB.device, torch.float32)

        experience = Experience(
            batch[model.sl],
            reference_TB,
            rollout.words_TB,
            tensor(earned.potentials_TB),
            tensor(earned.scale_B),
            rollout.ended_B,
            z_TB,
            None if earned.learnt_TB is None else tensor(earned.learnt_TB),
            born=update,
        )
        return Judged(experience, translations, earned)

    def appraise(self, model: Any, states: Any, experience: Experience) -> Experience:
        """An experience with what the rewards that learn think of it now, after they have learnt from it once more."""
        if experience.z_TB is None or experience.learnt_TB is None:
            return experience
        words_TB = experience.words_TB
        numbers = self.numbers(model, states, experience.source_SB, words_TB, experience.z_TB)
        translations = Translations.from_ids(words_TB, experience.reference_RB, model.trg_vocab_tokens, numbers)
        self.learnt_figures = self.rewarder.learn(translations)
        now_TB = torch.from_numpy(self.rewarder.learnt(translations)).to(words_TB.device, torch.float32)
        potentials_TB = experience.potentials_TB + now_TB - experience.learnt_TB
        return dataclasses.replace(experience, potentials_TB=potentials_TB, learnt_TB=now_TB)

    @torch.no_grad()
    def numbers(self, model: Any, states: Any, source_SB: Tensor, words_TB: Tensor, z_TB: Tensor | None) -> Numbers:
        """What rewards that learn may look at."""
        states_SBC, mask_SB = next(iter(states.values()))
        states_SBC = states_SBC.detach()
        if mask_SB is None:  # pysimt gives none where there is no padding
            source_BC = states_SBC.mean(0)
        else:
            weights_SB1 = mask_SB.to(states_SBC.dtype).unsqueeze(-1)
            source_BC = (states_SBC * weights_SB1).sum(0) / weights_SB1.sum(0)
        return Numbers(source_SB, words_TB, source_BC, model.dec.get_emb(words_TB[1:]).detach(), z_TB)

    def note(self, translations: Translations, parts: dict[str, Any]) -> None:
        """Keep what a person wants to see of the last batches; one alone says little, its sentences are all as long."""
        self.last = translations
        counts = {
            "sentences": len(translations.ended),
            "words": sum(map(len, translations.hypotheses)),
            "reference_words": sum(map(len, translations.references)),
            "cut": len(translations.ended) - sum(translations.ended),
        }
        rewards = {f"reward_{name}": float(values.sum()) for name, values in parts.items()}
        self.recent = [*self.recent, {**counts, **rewards}][-RECENT:]

    @property
    def figures(self) -> dict[str, float]:
        """Means over the last batches, and what rewards that learn have to say."""
        if not self.recent:
            return {}
        sums = {name: sum(counts[name] for counts in self.recent) for name in self.recent[-1]}
        rewards = {name: value / sums["sentences"] for name, value in sums.items() if name.startswith("reward_")}
        ratio = sums["words"] / max(1, sums["reference_words"])
        return {**rewards, "length_ratio": ratio, "cut_off": sums["cut"] / sums["sentences"], **self.learnt_figures}

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        return {
            "generator": self.generator.get_state(),
            "rewarder": self.rewarder.state_dict(),
            "recent": self.recent,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.generator.set_state(state["generator"])
        self.recent = state["recent"]
        self.rewarder.load_state_dict(state["rewarder"])
