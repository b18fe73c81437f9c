"""The actor as algorithms see it: a policy that encodes sources, rolls out hypotheses and scores them.

Each host implements the protocol in its `actor.py`. Nothing is cached between
calls: algorithms pass on what they have encoded.

Shape suffixes: S source length, R reference length, T rollout length, B sentences, N real steps, V vocabulary,
K words of a support, A actions (V or K), I critics, H decoder state, C encoder state, E embedding.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from pysimt_sac.core.batch import Batch
from pysimt_sac.core.policy import Support
from pysimt_sac.core.steps import Steps

Encoded = Mapping[str, tuple[Tensor, Tensor | None]]  # by encoder: states (S, B, C), mask (S, B) if it has one


class TakenWords(NamedTuple):
    """The policy at every real step of given hypotheses, for the taken word.

    log_pi_N: log pi(a_t|s_t). log_p_N: the model's log-probability, not renormalised without `<pad>` and `<bos>`.
    entropy_N: entropy of the policy. states_NH: the decoder state before the word, detached.
    """

    log_pi_N: Tensor
    log_p_N: Tensor
    entropy_N: Tensor
    states_NH: Tensor


class Stepper(Protocol):
    """Steps of K hypotheses of each of B sentences, whatever the decoder is."""

    device: torch.device
    can_join: bool  # whether `join` is supported

    def log_probs(self, tokens_BK: Tensor) -> Tensor:
        """Return log-probabilities (B, K, V) of the next words; forbidden ones are -inf."""

    def likeliest(self, tokens_B: Tensor) -> Tensor:
        """Return the likeliest next word of one hypothesis per sentence."""

    def keep_sentences(self, indices: Tensor) -> None:
        """Keep only these sentences."""

    def keep_hypotheses(self, parents_BK: Tensor) -> None:
        """Keep these hypotheses of each sentence; one may be repeated."""

    def join(self, other: Any) -> None:
        """Append the sentences of another stepper of this kind, which has not started."""

    def decoder_states(self) -> Tensor:
        """Return the states (B, H) of one hypothesis per sentence after the last step."""

    def fork(self, sentences_C: Tensor, states_CH: Tensor) -> "Stepper":
        """Return a new stepper in given decoder states, for sentences as numbered at the start."""


class Actor(Protocol):
    """A translation model as a policy pi(a|s); s is the source and the words so far, a the next word."""

    source: str  # names of the two sides of a batch
    target: str
    tokens: Sequence[str]  # the target vocabulary, by id
    source_tokens: Sequence[str]  # the source vocabulary
    source_prefix: str  # text that the model wants before every source, and that is no part of it
    piece_filters: Sequence[str]  # filters that join its pieces into words, before those of the configuration

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

    def log_probs(self, encoded: Encoded, tokens_TB: Tensor, steps: Steps) -> Tensor:
        """Return the log-probabilities (N, V) of the next word at every real step."""

    def policy(
        self, encoded: Encoded, tokens_TB: Tensor, steps: Steps, taken: Tensor, k: int, least: float = 0.0
    ) -> tuple[Tensor, Support | None]:
        """Return log pi (N, A) over the k likeliest words and the taken ones; over the vocabulary if k = 0."""

    def policy_on(
        self,
        encoded: Encoded,
        tokens_TB: Tensor,
        positions_N: Tensor,
        support: Support | None,
    ) -> Tensor:
        """Return log pi (N, A) over a support, or over all words, at given positions of a flattened (T, B) array."""

    def taken_words(self, encoded: Encoded, tokens_TB: Tensor, steps: Steps, temperature: float = 1.0) -> TakenWords:
        """Score only the words of given hypotheses, under the policy at a sampling temperature."""

    def attended(self, encoded: Encoded, tokens_TB: Tensor) -> Tensor:
        """Return the source position that every step of given hypotheses attends to most, (T, B)."""

    def nll(self, encoded: Encoded, reference_RB: Tensor) -> Tensor:
        """Return the mean negative log-likelihood per word of the references, Eq. 1."""

    def validation_batches(self, n_sentences: int, batch_size: int = 32) -> Iterator[Batch]:
        """Yield about `n_sentences` sentence pairs, spread evenly over the validation set."""
