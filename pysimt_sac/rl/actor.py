"""The actor as algorithms see it: a policy that encodes sources, rolls out hypotheses and scores them.

`hosts.embedded.EngineActor` and `hosts.pysimt_actor.PysimtActor` implement the protocol. Nothing is cached between
calls: what an algorithm encodes, it passes on.

Shape suffixes: S source length, R reference length, T rollout length, B sentences, N real steps, V vocabulary,
K words of a support, A actions (V or K), I critics, H decoder state, C encoder state, E embedding.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from pysimt_sac.engine.data.corpus import Batch
from pysimt_sac.engine.distributed import world
from pysimt_sac.engine.network.layers import States
from pysimt_sac.engine.network.stepper import Stepper
from pysimt_sac.rl.policy import Support
from pysimt_sac.rl.rollout import Steps

Encoded = States  # an encoded source


class TakenWords(NamedTuple):
    """The policy at every real step of given hypotheses, for the word that was taken.

    log_pi_N: log pi(a_t|s_t). log_p_N: the model's log-probability, not renormalised without `<pad>` and `<bos>`.
    entropy_N: of the policy. states_NH: the decoder's state before the word, detached.
    """

    log_pi_N: Tensor
    log_p_N: Tensor
    entropy_N: Tensor
    states_NH: Tensor


class PolicyAtSteps(NamedTuple):
    """The policy at every real step of an experience: log pi (N, A) of a support's words, or of all words."""

    steps: Steps
    taken_N: Tensor
    log_pi_NA: Tensor
    support: Support | None

    def states(self, undecided: bool) -> tuple[Tensor, Support | None]:
        """Numbers (N) of all states and their support; or, if there are any, of those with more than one word."""
        every_N = torch.arange(len(self.steps), device=self.taken_N.device)
        if not undecided or self.support is None:
            return every_N, self.support
        rows_N = every_N[self.support.valid_NK.sum(1) > 1]
        if world.global_count(len(rows_N)) == 0:
            # A mean over no state is not a number; one over states without a choice has no gradient.
            return every_N, self.support
        return rows_N, Support(*(part[rows_N] for part in self.support))


class Actor(Protocol):
    """A translation model as a policy pi(a|s); s is the source and the words so far, a the next word."""

    source: str  # the names of a batch's two sides
    target: str
    tokens: Sequence[str]  # the target vocabulary, by number
    source_tokens: Sequence[str]  # the source's

    @property
    def device(self) -> torch.device:
        """Where the networks are."""

    @property
    def networks(self) -> nn.ModuleDict:
        """Encoders and decoder, as `encoders` and `dec`."""

    @property
    def decoder(self) -> nn.Module:
        """The decoder alone; critics may start from its weights."""

    @property
    def state_size(self) -> int:
        """The size of `TakenWords.states_NH`."""

    def with_networks(self, networks: nn.ModuleDict) -> "Actor":
        """The same actor over other weights, such as those of a target network."""

    def training_mode(self, dropout: bool) -> AbstractContextManager[None]:
        """Inside, the networks have dropout or not; afterwards they are as they were."""

    def encode(self, batch: Batch) -> Encoded:
        """Encode the source side."""

    def embed(self, words: Tensor) -> Tensor:
        """Target embeddings."""

    def stepper(self, encoded: Encoded) -> Stepper:
        """The policy one step at a time, without gradient, for `rl.rollout.roll_out`."""

    def log_probs(self, encoded: Encoded, words_TB: Tensor, steps: Steps) -> Tensor:
        """Log-probabilities (N, V) of the next word at every real step."""

    def policy(
        self, encoded: Encoded, words_TB: Tensor, steps: Steps, taken: Tensor, k: int, least: float = 0.0
    ) -> tuple[Tensor, Support | None]:
        """log pi (N, A) over the k likeliest words and the taken ones; k = 0: over the whole vocabulary."""

    def policy_on(
        self,
        encoded: Encoded,
        words_TB: Tensor,
        positions_N: Tensor,
        support: Support | None,
        order_N: Tensor | None = None,
    ) -> Tensor:
        """log pi (N, A) over a given support, or over all words, at some positions of a flattened (T, B) array.

        order_N: by what positions are sorted, if not by time; see `World.global_rows`.
        """

    def taken_words(self, encoded: Encoded, words_TB: Tensor, steps: Steps, temperature: float = 1.0) -> TakenWords:
        """Score the words of given hypotheses, and no others, under the policy at a temperature."""

    def nll(self, encoded: Encoded, reference_RB: Tensor) -> Tensor:
        """The mean negative log-likelihood per word of the references, Eq. 1."""

    def validation_batches(self, n_sentences: int, batch_size: int = 32) -> Iterator[Batch]:
        """About so many sentence pairs from all over the validation set."""


def select_encoded(encoded: Encoded, columns: Tensor) -> Encoded:
    """Some sentences of an encoded batch, or several times the same."""
    return {
        name: (states.index_select(1, columns), None if mask is None else mask.index_select(1, columns))
        for name, (states, mask) in encoded.items()
    }


def repeat_encoded(encoded: Encoded, times: int) -> Encoded:
    """Every sentence several times, side by side."""
    if times == 1:
        return encoded
    states = next(iter(encoded.values()))[0]
    return select_encoded(encoded, torch.arange(states.size(1), device=states.device).repeat_interleave(times))


def mean_state(encoded: Encoded) -> Tensor:
    """The source as a bag: the mean of its encoder states (B, C), detached."""
    states_SBC, mask_SB = next(iter(encoded.values()))
    states_SBC = states_SBC.detach()
    if mask_SB is None:
        return states_SBC.mean(0)
    weights_SB1 = mask_SB.to(states_SBC.dtype).unsqueeze(-1)
    return (states_SBC * weights_SB1).sum(0) / weights_SB1.sum(0)


def policy_at_steps(
    actor: Actor, encoded: Encoded, words_TB: Tensor, lengths_B: Tensor, k: int, least: float
) -> PolicyAtSteps:
    """The actor's policy at every step of given hypotheses; k and least: see `rl.policy.find_support`."""
    steps = Steps.of(lengths_B, words_TB.device)
    taken_N = steps.flatten(words_TB[1:])
    return PolicyAtSteps(steps, taken_N, *actor.policy(encoded, words_TB, steps, taken_N, k, least))
