"""What learns besides the actor: the base of every algorithm's learner, and of those that have critics.

A learner is a plain object, built when training begins. It owns everything that is not the actor (`parts`), turns a
batch into the terms of the actor's loss, and keeps figures for a person to watch. `RLModel` drives it.
"""

import dataclasses
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor

from pysimt_sac.engine.checkpoint import load_state, state_fits
from pysimt_sac.engine.config.options import ModelOptions
from pysimt_sac.errors import UserError
from pysimt_sac.rewards import RewardOptions
from pysimt_sac.rl import losses
from pysimt_sac.rl.ensemble import CriticEnsemble
from pysimt_sac.rl.gate import Gate
from pysimt_sac.rl.losses import Support
from pysimt_sac.rl.options import CriticOptions, RLOptions
from pysimt_sac.rl.player import Player
from pysimt_sac.rl.replay import Experience
from pysimt_sac.rl.rollout import network_mode
from pysimt_sac.rl.steps import Steps


class Stateful(Protocol):
    """Something whose state is saved with the run's."""

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""

    def load_state_dict(self, state: Any) -> Any:
        """Take back what `state_dict` gave."""


class ActorLoss(NamedTuple):
    """The actor's loss: its weighted terms, each a mean over `n_items` steps. No term: the actor does not learn now."""

    terms: dict[str, Tensor]
    n_items: int


class Choices(NamedTuple):
    """What a policy says about every step of an experience: log pi of a support's words, or of all words."""

    steps: Steps
    taken_N: Tensor
    log_pi_NA: Tensor
    support: Support | None
    nll: Tensor | None
    states: Any  # the encoded sources


class Learner(ABC):
    """Plays batches by the actor's policy, and says what the actor shall minimise."""

    def __init__(self, model: Any) -> None:
        self.model, self.device = model, next(model.parameters()).device
        self.common: RLOptions = model.read_options(RLOptions)
        self.seed = int(model.opts.train["seed"])
        common = self.common
        self.player = Player(
            model.read_options(RewardOptions),
            common.rollout_max_len,
            common.rollout_dropout,
            common.permute_rewards,
            self.seed,
        )
        self.parts: dict[str, Stateful] = {"player": self.player}
        self.figures: dict[str, Tensor | float] = {}

    def stage(self, epoch: int) -> str:
        """What learns in an epoch, in words."""
        return "actor"

    def enter(self, stage: str) -> list[str]:
        """Called once when a stage begins; what there is to say about it."""
        return []

    @abstractmethod
    def loss(self, batch: Any, update: int, epoch: int) -> ActorLoss:
        """The actor's loss for a batch; all else learns on the way."""

    def on_device(self, experience: Experience) -> Experience:
        """An experience where the networks are."""
        moved = {name: value.to(self.device) for name, value in experience.tensors().items()}
        return dataclasses.replace(experience, **moved)  # type: ignore[arg-type]

    def health(self, update: int) -> dict[str, float]:
        """All figures of the last update, by name."""
        return {**self.player.figures, **{name: float(value) for name, value in self.figures.items()}}

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        return {name: part.state_dict() for name, part in self.parts.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        for name, part in self.parts.items():
            part.load_state_dict(state[name])


class CriticLearner(Learner):
    """A learner with critics: they learn alone first, are examined at the gate, and go on beside the actor."""

    ALONE: ClassVar[str] = "critics alone"
    JOINTLY: ClassVar[str] = "actor and critics"

    def __init__(self, model: Any, n_critics: int, tau: float) -> None:
        super().__init__(model)
        self.critic_options: CriticOptions = model.read_options(CriticOptions)
        shape = model.read_options(ModelOptions)
        beta1 = self.critic_options.critic_beta1
        self.critics = CriticEnsemble(shape, len(model.trg_vocab), n_critics, tau, self.device, beta1)
        if self.critic_options.critic_init == "actor":
            self.critics.start_from(model.dec)
        if self.critic_options.critics_from:
            self.take_critics(self.critic_options.critics_from)
        self.parts["critics"] = self.critics

    @property
    def alpha(self) -> float | Tensor:
        """The weight of the entropy in values."""
        return 0.0

    @property
    def support(self) -> tuple[int, float]:
        """Over which words expectations sum: how many, and how likely at least."""
        return self.critic_options.support, self.critic_options.support_least

    def take_critics(self, folder: str) -> None:
        """Begin with another run's critics."""
        state, _ = load_state(Path(folder))
        if state is None or "critics" not in state["model"].get("learner", {}):
            what, where = "no run with critics is there", f"[model] critics_from: {folder}"
            raise UserError(what, where, "name the folder of such a run, e.g. runs/sac_bleu")
        with state_fits(Path(folder)):
            self.critics.take(state["model"]["learner"]["critics"])

    def stage(self, epoch: int) -> str:
        """What learns in an epoch."""
        return self.ALONE if epoch <= self.critic_options.critic_pretrain_epochs else self.JOINTLY

    def enter(self, stage: str) -> list[str]:
        """Before the actor follows the critics, see whether they know anything."""
        n_sentences = self.critic_options.gate_sentences
        if stage != self.JOINTLY or not n_sentences:
            return []
        gate = Gate(self.model, self.player, self.critics, self.critic_options, float(self.alpha))
        return gate.examine(n_sentences, self.seed).lines()

    def learns_returns(self, epoch: int) -> bool:
        """Whether the critics' targets are returns that were had, and not values of their slow copies."""
        options = self.critic_options
        target = options.critic_pretrain_target if self.stage(epoch) == self.ALONE else options.critic_target
        return target == "mc"

    def teach(self, loss: Tensor, epoch: int) -> None:
        """One step down the critics' loss; then their slow copies follow."""
        options = self.critic_options
        lr = options.critic_pretrain_lr if self.stage(epoch) == self.ALONE else options.critic_lr
        self.figures["critic_loss"] = loss.detach()
        self.figures["critic_gradient"] = self.critics.learn(loss, lr, options.critic_gclip)
        # Returns do not come from the slow copies, so that these need not be slow until bootstrapping begins.
        self.critics.follow(1.0 if self.learns_returns(epoch) else None)

    def choices(self, actor: Any, experience: Experience, gradient: bool) -> Choices:
        """What an actor's policy says about an experience; with the likelihood of its references if it shall learn."""
        words_TB, lengths_B = experience.words_TB, experience.lengths_B.cpu()
        steps = Steps.of(lengths_B, words_TB.device)
        taken_N = steps.flatten(words_TB[1:])
        with network_mode(actor, self.common.rollout_dropout), torch.set_grad_enabled(gradient):
            states = actor.states_of(experience.batch(actor.sl, actor.tl))
            log_pi_NA, support = actor.policy(states, words_TB, lengths_B, taken_N, *self.support)
            nll = actor.nll(states, experience.reference_RB) if gradient else None
        return Choices(steps, taken_N, log_pi_NA, support, nll, states)

    @torch.no_grad()
    def targets(self, experience: Experience, choices: Choices) -> Tensor:
        """What Q(s_t, a_t) shall be: r_t + gamma V(s_{t+1}), V by the slow critics and a policy's choices."""
        steps = choices.steps
        readouts = self.critics.readouts(experience, steps, slow=True)
        q_INA = self.critics.q_of_actions(readouts, choices.support, slow=True)
        next_N = steps.following(losses.soft_value(q_INA, choices.log_pi_NA, self.alpha))
        rewards_N = steps.flatten(experience.rewards_TB)
        return losses.td_target(rewards_N, next_N, steps.ends_N, self.critic_options.gamma)

    def wanted(self, experience: Experience, choices: Choices, epoch: int) -> tuple[Tensor, Tensor]:
        """What the critics shall learn of an experience in an epoch, and the returns that it had."""
        returns_N = self.returns(experience, choices.steps, choices.log_pi_NA)
        return returns_N if self.learns_returns(epoch) else self.targets(experience, choices), returns_N

    def q_of(self, experience: Experience, choices: Choices) -> tuple[Tensor, Tensor]:
        """Q of all choices, and of the words that were taken, both with gradient."""
        readouts = self.critics.readouts(experience, choices.steps)
        q_INA = self.critics.q_of_actions(readouts, choices.support, gradient=True)
        return q_INA, self.critics.q_of_taken(readouts, choices.taken_N)

    def actor_loss(self, choices: Choices, q_INA: Tensor | None) -> ActorLoss:
        """What the actor shall minimise, given Q of its choices; nothing if it does not learn now."""
        if choices.nll is None or q_INA is None:
            return ActorLoss({}, len(choices.steps))
        self.figures["mle_loss"] = choices.nll.detach()
        reinforcement = losses.actor_loss(choices.log_pi_NA, q_INA, self.alpha)
        terms = {"rl": self.common.lambda_rl * reinforcement, "mle": self.common.lambda_mle * choices.nll}
        return ActorLoss(terms, len(choices.steps))

    @torch.no_grad()
    def returns(self, experience: Experience, steps: Steps, log_pi_NA: Tensor) -> Tensor:
        """The soft returns that the experience's steps had."""
        rewards_N, entropies_N = steps.flatten(experience.rewards_TB), losses.entropy(log_pi_NA)
        return losses.soft_returns(rewards_N, entropies_N, steps, self.critic_options.gamma, self.alpha)

    @torch.no_grad()
    def note(self, q_IN: Tensor, target_N: Tensor, returns_N: Tensor, log_pi_NA: Tensor) -> None:
        """Keep what a person wants to see of the last step, on the device until it is asked for."""
        lowest_N = q_IN.amin(0)
        self.figures |= {
            "q": lowest_N.mean(),
            "q_target": target_N.mean(),
            "return": returns_N.mean(),
            "largest_q": lowest_N.abs().amax(),
            "largest_return": returns_N.abs().amax(),
            "td_error": (lowest_N - target_N).abs().mean(),
            "explained_variance": losses.explained_variance(lowest_N, returns_N),
            "entropy": losses.entropy(log_pi_NA).mean(),
            "peak_probability": log_pi_NA.exp().amax(-1).mean(),
        }
