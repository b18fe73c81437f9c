"""The actor as algorithms see it: a policy that encodes sources, rolls out hypotheses and scores them.

`hosts.embedded.EngineActor` and `hosts.pysimt_actor.PysimtActor` implement the protocol. Nothing is cached between
calls: algorithms pass on what they have encoded.

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
    """The policy at every real step of given hypotheses, for the taken word.

    log_pi_N: log pi(a_t|s_t). log_p_N: the model's log-probability, not renormalised without `<pad>` and `<bos>`.
    entropy_N: entropy of the policy. states_NH: the decoder state before the word, detached.
    """

    log_pi_N: Tensor
    log_p_N: Tensor
    entropy_N: Tensor
    states_NH: Tensor


class PolicyAtSteps(NamedTuple):
    """The policy at every real step of an experience: log pi (N, A) over a support, or over all words."""

    steps: Steps
    taken_N: Tensor
    log_pi_NA: Tensor
    support: Support | None

    def states(self, undecided: bool) -> tuple[Tensor, Support | None]:
        """Return the indices (N) of all states and their support.

        undecided: only those of states with more than one word, unless there are none.
        """
        every_N = torch.arange(len(self.steps), device=self.taken_N.device)
        if not undecided or self.support is None:
            return every_N, self.support
        rows_N = every_N[self.support.valid_NK.sum(1) > 1]
        if world.global_count(len(rows_N)) == 0:
            # The mean over no states would be NaN; over states with a single word it has no gradient.
            return every_N, self.support
        return rows_N, Support(*(part[rows_N] for part in self.support))


class Actor(Protocol):
    """A translation model as a policy pi(a|s); s is the source and the words so far, a the next word."""

    source: str  # names of the two sides of a batch
    target: str
    tokens: Sequence[str]  # the target vocabulary, by id
    source_tokens: Sequence[str]  # the source vocabulary

    @property
    def device(self) -> torch.device:
        """The device of the networks."""

    @property
    def networks(self) -> nn.ModuleDict:
        """Encoders and decoder, as `encoders` and `dec`."""

    @property
    def decoder(self) -> nn.Module:
        """The decoder; critics may be initialised from its weights."""

    @property
    def state_size(self) -> int:
        """The size of `TakenWords.states_NH`."""

    def with_networks(self, networks: nn.ModuleDict) -> "Actor":
        """Return the same actor with other weights, such as those of a target network."""

    def training_mode(self, dropout: bool) -> AbstractContextManager[None]:
        """Switch dropout on or off inside the context; restore the previous mode on exit."""

    def encode(self, batch: Batch) -> Encoded:
        """Encode the source side."""

    def embed(self, words: Tensor) -> Tensor:
        """Embed target words."""

    def stepper(self, encoded: Encoded) -> Stepper:
        """Return the policy one step at a time, without gradient, for `rl.rollout.roll_out`."""

    def log_probs(self, encoded: Encoded, words_TB: Tensor, steps: Steps) -> Tensor:
        """Return the log-probabilities (N, V) of the next word at every real step."""

    def policy(
        self, encoded: Encoded, words_TB: Tensor, steps: Steps, taken: Tensor, k: int, least: float = 0.0
    ) -> tuple[Tensor, Support | None]:
        """Return log pi (N, A) over the k likeliest words and the taken ones; over the vocabulary if k = 0."""

    def policy_on(
        self,
        encoded: Encoded,
        words_TB: Tensor,
        positions_N: Tensor,
        support: Support | None,
        order_N: Tensor | None = None,
    ) -> Tensor:
        """Return log pi (N, A) over a support, or over all words, at given positions of a flattened (T, B) array.

        order_N: what the positions are sorted by, if not by time; see `World.global_rows`.
        """

    def taken_words(self, encoded: Encoded, words_TB: Tensor, steps: Steps, temperature: float = 1.0) -> TakenWords:
        """Score only the words of given hypotheses, under the policy at a sampling temperature."""

    def nll(self, encoded: Encoded, reference_RB: Tensor) -> Tensor:
        """Return the mean negative log-likelihood per word of the references, Eq. 1."""

    def validation_batches(self, n_sentences: int, batch_size: int = 32) -> Iterator[Batch]:
        """Yield about `n_sentences` sentence pairs, spread evenly over the validation set."""


def select_encoded(encoded: Encoded, columns: Tensor) -> Encoded:
    """Select sentences of an encoded batch; a sentence may be selected repeatedly."""
    return {
        name: (states.index_select(1, columns), None if mask is None else mask.index_select(1, columns))
        for name, (states, mask) in encoded.items()
    }


def repeat_encoded(encoded: Encoded, times: int) -> Encoded:
    """Repeat every sentence; the copies are adjacent."""
    if times == 1:
        return encoded
    states = next(iter(encoded.values()))[0]
    return select_encoded(encoded, torch.arange(states.size(1), device=states.device).repeat_interleave(times))


def mean_state(encoded: Encoded) -> Tensor:
    """Return the source as a bag: the mean of its encoder states (B, C), detached."""
    states_SBC, mask_SB = next(iter(encoded.values()))
    states_SBC = states_SBC.detach()
    if mask_SB is None:
        return states_SBC.mean(0)
    weights_SB1 = mask_SB.to(states_SBC.dtype).unsqueeze(-1)
    return (states_SBC * weights_SB1).sum(0) / weights_SB1.sum(0)


def policy_at_steps(
    actor: Actor, encoded: Encoded, words_TB: Tensor, lengths_B: Tensor, k: int, least: float
) -> PolicyAtSteps:
    """Return the policy at every step of given hypotheses; k and least: see `rl.policy.find_support`."""
    steps = Steps.of(lengths_B, words_TB.device)
    taken_N = steps.flatten(words_TB[1:])
    return PolicyAtSteps(steps, taken_N, *actor.policy(encoded, words_TB, steps, taken_N, k, least))
