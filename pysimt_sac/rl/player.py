"""Playing: the actor translates a batch by sampling, and the translations are rewarded."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from pysimt_sac.engine.corpus import Batch
from pysimt_sac.rewards import Rewarder, RewardOptions, Rewards, Translations, permute
from pysimt_sac.rl.replay import Experience
from pysimt_sac.rl.rollout import Rollout, network_mode, sample_rollout, select_states, step_limits


class Judged(NamedTuple):
    """A rewarded rollout: as the networks see it, in words, and what it earned."""

    experience: Experience
    translations: Translations
    earned: Rewards


def repeat(batch: Any, times: int) -> Batch:
    """A batch with every sentence several times, side by side."""
    return Batch({side: batch[side].repeat_interleave(times, 1) for side in batch})


class Player:
    """Rolls out and rewards, with a random state of its own."""

    def __init__(self, options: RewardOptions, longest: int, dropout: bool, permuted: bool, seed: int) -> None:
        """longest: most steps of a rollout; dropout: whether the actor has it; permuted: a control, see `permute`."""
        self.rewarder = Rewarder(options)
        self.longest, self.dropout, self.permuted = longest, dropout, permuted
        self.generator = torch.Generator().manual_seed(seed)
        self.figures: dict[str, float] = {}
        self.last: Translations | None = None

    def play(
        self, model: Any, batch: Any, alpha: float, update: int, n_samples: int = 1, forced_TB: Tensor | None = None
    ) -> Experience:
        """Sample translations of every source of a batch, and say what they earned; see `roll_out`."""
        rollout = self.roll_out(model, batch, self.generator, forced_TB, n_samples)
        several = repeat(batch, n_samples) if n_samples > 1 else batch
        judged = self.judge(model, several, rollout, alpha, update, self.generator)
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
                columns_C = torch.arange(len(limits_B)).repeat_interleave(n_samples)
                limits_B, states = limits_B[columns_C], select_states(states, columns_C.to(batch[model.sl].device))
            if forced_TB is not None:  # what is given must fit
                limits_B = limits_B.maximum(forced_TB.ne(0).sum(0).cpu())
            return sample_rollout(model.dec, states, limits_B, generator, forced_TB)

    def judge(
        self, model: Any, batch: Any, rollout: Rollout, alpha: float, update: int = 0,
        generator: torch.Generator | None = None,
    ) -> Judged:  # fmt: skip
        """What the sampled translations of a batch are worth."""
        reference_TB = batch[model.tl]
        translations = Translations.from_ids(rollout.words_TB, reference_TB, model.trg_vocab_tokens)
        earned = self.rewarder(translations, alpha)
        if self.permuted:
            order = torch.randperm(batch.size, generator=generator).tolist()
            earned = permute(earned, translations.steps, order)
        device = reference_TB.device
        experience = Experience(
            batch[model.sl],
            reference_TB,
            rollout.words_TB,
            torch.from_numpy(earned.potentials_TB).to(device, torch.float32),
            torch.from_numpy(earned.scale_B).to(device, torch.float32),
            rollout.ended_B,
            born=update,
        )
        return Judged(experience, translations, earned)

    def note(self, translations: Translations, parts: dict[str, Any]) -> None:
        """Keep what a person wants to see of the last batch."""
        self.last = translations
        words = sum(map(len, translations.hypotheses))
        self.figures = {f"reward_{name}": float(values.mean()) for name, values in parts.items()}
        self.figures["length_ratio"] = words / max(1, sum(map(len, translations.references)))
        self.figures["cut_off"] = 1 - sum(translations.ended) / len(translations.ended)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        return {"generator": self.generator.get_state(), "rewarder": self.rewarder.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.generator.set_state(state["generator"])
        self.rewarder.load_state_dict(state["rewarder"])
