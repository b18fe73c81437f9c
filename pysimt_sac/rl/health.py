"""The health monitor: warns when the metrics of an algorithm say that training goes wrong."""

import math
from typing import Any

SHORTEST, LONGEST = 0.8, 1.25  # length ratio of sampled hypotheses
LOWEST_ENTROPY = 0.2  # as a fraction of the first one
LARGEST_Q = 3.0  # as a multiple of the largest realised return
LARGEST_REWARD = 100.0  # of a translation, before the scale; those of metrics are at most 1
LARGEST_GAP = 0.5  # between predicted and realised return, relative to the latter
LEAST_BONUS = 0.02  # mean unsupervised reward of a word, in nats
LARGEST_NLL = 3.0  # as a multiple of the lowest one
RECENT, LEAST_REPORTS = 5, 3  # most and fewest reports in a running mean: single batches are noisy


class HealthMonitor:
    """Watches the running means of an algorithm's metrics; warns of each problem once, until it has recovered."""

    def __init__(self) -> None:
        self.first_entropy = math.nan
        self.lowest_nll = math.inf
        self.recent: dict[str, list[float]] = {}  # the last reports, by metric
        self.active_warnings: set[str] = set()

    def check(self, metrics: dict[str, float]) -> list[str]:
        """Record a report; return new warnings."""
        # Critics need not learn in every update: what a report lacks keeps its history.
        self.recent |= {name: [*self.recent.get(name, []), value][-RECENT:] for name, value in metrics.items()}
        means = {
            name: sum(values) / len(values) for name, values in self.recent.items() if len(values) >= LEAST_REPORTS
        }
        found = self.find(means)
        new = [warning for name, warning in found.items() if name not in self.active_warnings]
        self.active_warnings = set(found)
        return new

    def find(self, means: dict[str, float]) -> dict[str, str]:
        """Return all current warnings, by name."""
        found = {}
        ratio = means.get("length_ratio", 1.0)
        if not SHORTEST <= ratio <= LONGEST:
            kind = "short" if ratio < SHORTEST else "long"
            found["length"] = (
                f"sampled hypotheses are too {kind}: length ratio {ratio:.2f}; "
                "lower lambda_rl, raise lambda_mle, or add `length` to the reward (reward: bleu:1,length:0.1)"
            )
        entropy = means.get("entropy", math.nan)
        if math.isnan(self.first_entropy):
            self.first_entropy = entropy
        if entropy < LOWEST_ENTROPY * self.first_entropy:
            found["entropy"] = (
                f"the policy has almost stopped exploring: its entropy fell from {self.first_entropy:.2g} to "
                f"{entropy:.2g}; raise alpha, or lower lambda_rl or lr"
            )
        largest, possible = means.get("max_q", 0.0), means.get("max_return", math.inf)
        if largest > LARGEST_Q * possible:
            found["q"] = (
                f"Q diverges: {largest:.3g} where the largest realised return is {possible:.3g}; "
                "lower critic_lr; with bootstrapped targets lower tau as well"
            )
        predicted, realised = means.get("q", 0.0), means.get("return_to_go", 0.0)
        if "gradient_rl" in means and predicted - realised > LARGEST_GAP * max(abs(realised), 1.0):
            found["gap"] = (
                f"predicted return {predicted:.3g}, realised return {realised:.3g}; "
                "the actor may exploit the critics' errors: lower support_size or lambda_rl"
            )
        if (bonus := means.get("unsup_mean", math.inf)) < LEAST_BONUS:
            found["bonus"] = (
                f"the unsupervised reward is about 0: {bonus:.2g} per word; labels are not learned, or all samples are "
                "alike; raise discriminator_steps or discriminator_lr, or lower unsup_samples"
            )
        for name, mean in means.items():
            if name.startswith("reward_") and abs(mean) > LARGEST_REWARD:
                part = name.removeprefix("reward_")
                found[name] = (
                    f"the reward {part!r} gives a translation {mean:.3g}; divide it, so that good ones score about 1"
                )
        nll = means.get("mle_loss", math.inf)
        self.lowest_nll = min(self.lowest_nll, nll)
        if math.isfinite(nll) and nll > LARGEST_NLL * self.lowest_nll + 1:
            found["nll"] = (
                f"the actor diverges: the references' negative log-likelihood rose from {self.lowest_nll:.3g} to "
                f"{nll:.3g} per word; lower lr or lambda_rl, or raise lambda_mle"
            )
        return found

    def state_dict(self) -> dict[str, Any]:
        """Return the state needed to resume."""
        return {
            "first_entropy": self.first_entropy,
            "lowest_nll": self.lowest_nll,
            "recent": self.recent,
            "active_warnings": sorted(self.active_warnings),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state."""
        self.first_entropy, self.active_warnings = state["first_entropy"], set(state["active_warnings"])
        self.lowest_nll, self.recent = state["lowest_nll"], state["recent"]
