"""Notices when learning goes wrong, and says in plain words what to change. It changes nothing itself."""

import math
from typing import Any

SHORTEST, LONGEST = 0.8, 1.25  # sampled words for each word of the references
LOWEST_ENTROPY = 0.2  # in parts of what it was at first
LARGEST_Q = 3.0  # in parts of the largest return that was had
LARGEST_GAP = 0.5  # between prediction and truth, in parts of the mean return


class Watch:
    """Looks at the figures of an algorithm as they come, and warns once of each thing until it is well again."""

    def __init__(self) -> None:
        self.first_entropy = math.nan
        self.ill: set[str] = set()

    def look(self, figures: dict[str, float]) -> list[str]:
        """New warnings."""
        found = self.symptoms(figures)
        new = [warning for name, warning in found.items() if name not in self.ill]
        self.ill = set(found)
        return new

    def symptoms(self, figures: dict[str, float]) -> dict[str, str]:
        """All that is wrong now, by name."""
        found = {}
        ratio = figures.get("length_ratio", 1.0)
        if not SHORTEST <= ratio <= LONGEST:
            kind = "short" if ratio < SHORTEST else "long"
            found["length"] = (
                f"sampled translations get too {kind}: {ratio:.2f} words for each of the references'; "
                "lower lambda_rl, raise lambda_mle, or put `length` into the reward (reward: bleu:1,length:0.1)"
            )
        entropy = figures.get("entropy", math.nan)
        if math.isnan(self.first_entropy):
            self.first_entropy = entropy
        if entropy < LOWEST_ENTROPY * self.first_entropy:
            found["entropy"] = (
                f"the policy hardly tries anything any more: its entropy fell from {self.first_entropy:.2g} to "
                f"{entropy:.2g}; raise alpha, or lower lambda_rl or lr"
            )
        largest, possible = figures.get("largest_q", 0.0), figures.get("largest_return", math.inf)
        if largest > LARGEST_Q * possible:
            found["q"] = (
                f"Q grows beyond what can be earned: {largest:.3g} where the largest return was {possible:.3g}; "
                "set target_clip: True, or lower critic_lr or tau"
            )
        predicted, realised = figures.get("q", 0.0), figures.get("return", 0.0)
        if "gradient_rl" in figures and predicted - realised > LARGEST_GAP * max(abs(realised), 1.0):
            found["gap"] = (
                f"the critics promise {predicted:.3g}, and {realised:.3g} comes of it; "
                "the actor may be chasing their mistakes: lower support or lambda_rl, or raise n_critics"
            )
        return found

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        return {"first_entropy": self.first_entropy, "ill": sorted(self.ill)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.first_entropy, self.ill = state["first_entropy"], set(state["ill"])
