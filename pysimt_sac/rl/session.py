"""The training session of an algorithm in a host's loop; the shells of both hosts delegate to it.

It passes batches to the algorithm, applies the warm-up, reports metrics and warnings, and saves the algorithm's state.
"""

from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from pysimt_sac.core.actor import Actor
from pysimt_sac.core.batch import Batch
from pysimt_sac.core.distributed import seed_of_rank, world
from pysimt_sac.core.filters import FilterChain
from pysimt_sac.core.metrics import bleu
from pysimt_sac.core.options import read_section
from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.rewards import Translations
from pysimt_sac.rl import losses
from pysimt_sac.rl.algorithm import Algorithm
from pysimt_sac.rl.critic import TargetNetwork
from pysimt_sac.rl.health import HealthMonitor
from pysimt_sac.rl.rollout import repeat_encoded
from pysimt_sac.rl.setup import ActorOptions, RLOptions, Setup

NO_ACTOR = (
    "Warning: there is no pretrained_file: the actor starts from random weights, and its samples earn almost no "
    "reward; train an actor first (pysimt train -C experiments/mle.conf) and set pretrained_file to its folder"
)
# The most important metrics and their console headings, most informative first. The first five that an algorithm has
# are shown. Those of critics are not among the actor's: critics need not learn in every update.
WITHOUT_ACTOR = {
    "critic_loss": "critic loss",
    "explained_variance": "expl. var.",
    "q": "Q",
    "return_to_go": "return",
    "length_ratio": "length ratio",
    "entropy": "entropy",
}
WITH_ACTOR = {
    "greedy_bleu": "greedy BLEU",
    "reward": "reward",
    "length_ratio": "length ratio",
    "entropy": "entropy",
    "unsup_accuracy": "label acc.",
    "sampled_bleu": "sampled BLEU",
    "mle_loss": "NLL",
}
SHOWN = 5


class TrainingStage(NamedTuple):
    """A phase of a run in which the same parts learn: its first update, and the first whose metrics are reported."""

    name: str
    first: int
    reported: int


class RunOptions(Protocol):
    """The sections of a configuration that a session reads."""

    filename: str
    train: dict[str, Any]
    model: dict[str, Any]


class Log(Protocol):
    """A run's log and curves."""

    def say(self, message: str) -> None:
        """Write a line to console and log."""

    def log_scalar(self, name: str, value: float, step: int) -> None:
        """Add a point to a curve."""


class Session:
    """One algorithm, from the start of training."""

    def __init__(
        self, algorithm: type[Algorithm], actor: Actor, opts: RunOptions, log: Log, is_trained: bool = False
    ) -> None:
        """is_trained: the actor translates already, even without a `pretrained_file`."""
        self.actor, self.log = actor, log
        train = read_section(TrainOptions, opts.train, f"{opts.filename} [train]")
        self.filters = FilterChain((*actor.piece_filters, *train.eval_filters))
        self.seed = seed_of_rank(int(opts.train["seed"]))
        setup = Setup(actor, opts.model, str(opts.filename), self.seed, train, self.filters, log.say)
        self.warmup = setup.read(ActorOptions).actor_warmup
        common = setup.read(RLOptions)
        self.health_freq, self.kl_weight = common.health_freq or train.disp_freq, common.kl_weight
        self.algorithm, self.monitor = algorithm(setup), HealthMonitor()
        samples = self.algorithm.collector is not None
        self.pretrained = TargetNetwork(actor.networks) if samples and self.kl_weight else None
        if self.pretrained:
            self.pretrained_actor = actor.with_networks(self.pretrained.network)
        self.stage, self.actor_learns = "", False
        self.reported: dict[str, float] = {}  # metrics not yet shown on the console
        self.first_update = 0  # of the actor; before it, the actor does not learn
        if self.algorithm.collector and not (is_trained or train.pretrained_file):
            log.say(NO_ACTOR)

    def training_loss(self, batch: Batch, update: int) -> dict[str, Any]:
        """Return the algorithm's loss, as a sum, in the form that both training loops expect."""
        self.enter(update > self.algorithm.updates_without_actor)
        self.algorithm.metrics = {}  # of this update only, so that a resumed run reports the same
        loss = self.algorithm.update(batch, update)
        self.actor_learns = bool(loss.terms)
        if self.pretrained and loss.terms:
            loss.terms["kl"] = self.kl_weight * self.divergence(batch)
        if self.algorithm.collector and update % self.health_freq == 0:
            norms = {f"gradient_{name}": self.gradient_norm(term) for name, term in loss.terms.items()}
            self.report({**self.algorithm.report(update), **norms, **self.word_scores(batch)}, update)
        if not loss.terms:  # a zero that depends on no weight: the host's optimiser skips them all
            return {"loss": torch.zeros((), device=self.actor.device, requires_grad=True), "n_items": loss.n_items}
        self.first_update = self.first_update or update
        return {"loss": sum(loss.terms.values()) * loss.n_items, "n_items": loss.n_items}

    def divergence(self, batch: Batch) -> Tensor:
        """Return the KL divergence from the pre-trained actor at the states that were sampled last, with dropout."""
        assert self.algorithm.collector is not None
        assert self.algorithm.collector.last is not None
        experience = self.algorithm.collector.last
        states = experience.tokens_TB, experience.steps.positions_N, None
        n_samples = experience.tokens_TB.size(1) // batch.size
        with self.actor.training_mode(self.algorithm.common.gradient_dropout):
            encoded = repeat_encoded(self.actor.encode(batch), n_samples)
            log_pi_NV = self.actor.policy_on(encoded, *states)
        with torch.no_grad():
            encoded = repeat_encoded(self.pretrained_actor.encode(batch), n_samples)
            pretrained_NV = self.pretrained_actor.policy_on(encoded, *states)
        divergence = losses.kl_divergence(log_pi_NV, pretrained_NV)
        self.algorithm.metrics["kl"] = divergence.detach()
        return divergence

    @property
    def learning(self) -> str:
        """What learns at present, in words."""
        return self.stage

    def stages(self) -> list[TrainingStage]:
        """Return the stages of a run, each with the first update whose metrics are reported."""
        if not self.algorithm.collector:
            return [TrainingStage("", 1, 1)]
        alone = self.algorithm.updates_without_actor
        reported = alone - alone % self.health_freq + self.health_freq
        after = TrainingStage(self.stage_name(True), alone + 1, reported)
        before = TrainingStage(self.stage_name(False), 1, self.health_freq if self.health_freq <= alone else 1)
        return [before, after] if alone else [after]

    def stage_name(self, with_actor: bool) -> str:
        """Return what learns, in words."""
        others = self.algorithm.beside_actor
        if not with_actor:
            return f"{others} alone"
        return f"actor and {others}" if others else "actor"

    def pop_metrics(self) -> dict[str, float]:
        """Return the most important metrics of the last report, once."""
        metrics, self.reported = self.reported, {}
        collector = self.algorithm.collector
        weights = collector.rewarder.weights if collector else {}
        if rewards := [weights[name] * metrics[f"reward_{name}"] for name in weights if f"reward_{name}" in metrics]:
            metrics["reward"] = sum(rewards)
        columns = WITH_ACTOR if self.actor_learns else WITHOUT_ACTOR
        found = {heading: metrics[name] for name, heading in columns.items() if name in metrics}
        return dict(list(found.items())[:SHOWN])

    def lr_factor(self, update: int) -> float:
        """Return the warm-up factor of the learning rate, which starts at the actor's first update."""
        learned = update + 1 - (self.first_update or 1)
        return min(1.0, learned / self.warmup) if self.warmup else 1.0

    def enter(self, with_actor: bool) -> None:
        """Announce a stage when it starts, and let the algorithm prepare for the actor's first update."""
        if (stage := self.stage_name(with_actor)) != self.stage:
            self.stage = stage
            self.log.say(f"Now learning: {stage}")
            for line in self.algorithm.before_actor_learns() if with_actor else []:
                self.log.say(line)

    def report(self, found: dict[str, Tensor | float], update: int) -> None:
        """Average the metrics over all ranks, log them, add a point to each curve, and print new warnings."""
        metrics = self.reported = world.average_metrics(found)
        self.log.say("  ".join(f"{name} {value:.3g}" for name, value in metrics.items()))
        for name, value in metrics.items():
            self.log.log_scalar(f"rl_{name}", value, update)
        for warning in self.monitor.check(metrics):
            self.log.say(f"Warning: {warning}. The best checkpoint so far is kept.")

    def gradient_norm(self, term: Tensor) -> float:
        """Return the norm of the actor's gradient of a single loss term."""
        weights = [weight for weight in self.actor.networks.parameters() if weight.requires_grad]
        gradients = torch.autograd.grad(term, weights, retain_graph=True, allow_unused=True)
        return float(torch.nn.utils.get_total_norm([gradient for gradient in gradients if gradient is not None]))

    def word_scores(self, batch: Batch) -> dict[str, float]:
        """Return BLEU of the last sampled hypotheses and of the batch's greedy ones, filtered as in validation."""
        collector = self.algorithm.collector
        if collector is None or collector.last is None:
            return {}
        _, rollout = collector.roll_out(self.actor, batch, generator=None)
        tokens = self.actor.tokens
        greedy = Translations.from_ids(rollout.tokens_TB, batch[self.actor.target], tokens)
        sampled = Translations.from_ids(collector.last.tokens_TB, collector.last.reference_RB, tokens)
        return {"sampled_bleu": self.word_bleu(sampled), "greedy_bleu": self.word_bleu(greedy)}

    def word_bleu(self, translations: Translations) -> float:
        """Return corpus BLEU of words, not of the model's units."""
        texts = translations.hypotheses, translations.references
        hypotheses, references = (self.filters([" ".join(words) for words in text]) for text in texts)
        return bleu(hypotheses, [references])

    def state_dict(self) -> dict[str, Any]:
        """Return the state needed to resume, apart from the weights."""
        return {
            "stage": self.stage,
            "first_update": self.first_update,
            "monitor": self.monitor.state_dict(),
            "algorithm": self.algorithm.state_dict(),
            "pretrained": self.pretrained.state_dict() if self.pretrained else {},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state."""
        self.stage, self.first_update = state["stage"], state["first_update"]
        self.monitor.load_state_dict(state["monitor"])
        self.algorithm.load_state_dict(state["algorithm"])
        if self.pretrained:
            self.pretrained.load_state_dict(state["pretrained"])


class TrainedByAlgorithm:
    """What training loops need of a shell besides the loss; it delegates to the session once training starts."""

    session: Session | None = None

    def lr_factor(self, update: int) -> float:
        """Return the actor's warm-up factor."""
        return self.session.lr_factor(update) if self.session else 1.0

    def training_state(self) -> dict[str, Any]:
        """Return the algorithm's state."""
        return self.session.state_dict() if self.session else {}

    def load_training_state(self, state: dict[str, Any]) -> None:
        """Restore the state."""
        if self.session:
            self.session.load_state_dict(state)

    def rank_state(self) -> dict[str, Any]:
        """Return what each process has for itself."""
        return self.session.algorithm.rank_state() if self.session else {}

    def load_rank_state(self, state: dict[str, Any] | None) -> None:
        """Restore the state of `rank_state`; None: this process is new."""
        if self.session and state is None:
            self.session.algorithm.start_afresh(self.session.seed)
        elif self.session and state is not None:
            self.session.algorithm.load_rank_state(state)

    @property
    def learning(self) -> str:
        """What learns at present; empty if the algorithm does not sample."""
        return self.session.learning if self.session and self.session.algorithm.collector else ""

    def figures(self) -> dict[str, float] | None:
        """Return the algorithm's own metrics for the console; None if it does not sample."""
        return self.session.pop_metrics() if self.session and self.session.algorithm.collector else None

    def stages(self) -> list[TrainingStage]:
        """Return the stages of a run."""
        return self.session.stages() if self.session else [TrainingStage("", 1, 1)]
