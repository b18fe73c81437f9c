"""pysimt's network as an `Actor`, through its decoder protocol only (`f_init`, `get_emb`, `f_next`), step by step.

This module does not import pysimt, so it can be tested without it.
"""

from typing import Any

import torch
from torch import Tensor, nn

from pysimt_sac.core.actor import Encoded, TakenWords
from pysimt_sac.core.batch import Batch
from pysimt_sac.core.policy import Support, entropy, find_support, full_policy, restricted_policy
from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import EOS, PAD
from pysimt_sac.hosts.network_actor import NetworkActor
from pysimt_sac.hosts.pysimt.stepper import PysimtStepper, read_words
from pysimt_sac.network.stepper import join_state


class PysimtActor(NetworkActor):
    """pysimt's encoders and decoder as an `Actor`.

    wait: the k of a wait-k policy, which attends at step t to the first k + t source words; None: to all.
    """

    wait: int | None = None

    @classmethod
    def of(cls, model: Any) -> "PysimtActor":
        """Wrap a model as an actor."""
        networks = nn.ModuleDict({name: part for name, part in model.named_children() if name != "loss"})
        source_tokens, tokens = (
            [str(vocab[number]) for number in range(len(vocab))] for vocab in (model.src_vocab, model.trg_vocab)
        )
        actor = cls(networks, str(model.sl), str(model.tl), tokens, model.load_batches, source_tokens)
        actor.wait = model.wait
        return actor

    @property
    def state_size(self) -> int:
        """The size of the decoder state."""
        return int(self.decoder.hidden_size) + (self.wait is not None)

    def encode(self, batch: Batch) -> Encoded:
        """Encode the source side."""
        encoders: Any = self.networks["encoders"]
        return {str(name): encoder(batch[str(name)]) for name, encoder in encoders.items()}

    def stepper(self, encoded: Encoded) -> PysimtStepper:
        """Return the policy one step at a time."""
        return PysimtStepper(self.decoder, encoded, wait=self.wait)

    def unroll(self, encoded: Encoded, tokens_TB: Tensor, positions_N: Tensor) -> tuple[Tensor, Tensor]:
        """Return log-probabilities (N, V) and decoder states (N, H) at given positions."""
        state, scores, states = self.decoder.f_init(encoded), [], []
        for step, tokens_B in enumerate(tokens_TB[:-1]):
            read_B = None if self.wait is None else torch.full_like(tokens_B, self.wait + step)
            visible = encoded if read_B is None else read_words(encoded, read_B)
            log_p_BV, state = self.decoder.f_next(visible, self.embed(tokens_B), state)
            scores.append(log_p_BV)
            states.append(state if read_B is None else join_state(state, read_B + 1))
        return torch.cat(scores).index_select(0, positions_N), torch.cat(states).index_select(0, positions_N)

    def log_probs(self, encoded: Encoded, tokens_TB: Tensor, steps: Steps) -> Tensor:
        """Return the log-probabilities (N, V) of the next word."""
        return self.unroll(encoded, tokens_TB, steps.positions_N)[0]

    def policy(
        self, encoded: Encoded, tokens_TB: Tensor, steps: Steps, taken: Tensor, k: int, least: float = 0.0
    ) -> tuple[Tensor, Support | None]:
        """Return log pi (N, A) over a support, or over all words if k = 0."""
        log_p_NV = self.log_probs(encoded, tokens_TB, steps)
        if k == 0:
            return full_policy(log_p_NV), None
        support = find_support(log_p_NV, taken, k, least)
        return restricted_policy(log_p_NV, support), support

    def policy_on(
        self,
        encoded: Encoded,
        tokens_TB: Tensor,
        positions_N: Tensor,
        support: Support | None,
    ) -> Tensor:
        """Return log pi (N, A) over a given support, or over all words."""
        log_p_NV, _ = self.unroll(encoded, tokens_TB, positions_N)
        return full_policy(log_p_NV) if support is None else restricted_policy(log_p_NV, support)

    def taken_words(self, encoded: Encoded, tokens_TB: Tensor, steps: Steps, temperature: float = 1.0) -> TakenWords:
        """Score the words of given hypotheses."""
        log_p_NV, states_NH = self.unroll(encoded, tokens_TB, steps.positions_N)
        log_p_NV = log_p_NV / temperature
        choices_NV = log_p_NV[:, EOS:]  # `<pad>` and `<bos>` come before `<eos>`
        log_p_N = log_p_NV.gather(1, steps.flatten(tokens_TB[1:]).unsqueeze(1)).squeeze(1)
        log_pi_N, entropy_N = log_p_N - choices_NV.logsumexp(-1), entropy(choices_NV.log_softmax(-1))
        return TakenWords(log_pi_N, log_p_N - log_p_NV.logsumexp(-1), entropy_N, states_NH.detach())

    def attended(self, encoded: Encoded, tokens_TB: Tensor) -> Tensor:
        """Return the source position that every step of given hypotheses attends to most, (T, B)."""
        with self.training_mode(dropout=False):  # then the decoder records its attention
            self.unroll(encoded, tokens_TB, tokens_TB.new_empty(0))
        weights = self.decoder.history[f"alpha_{self.source}"]
        return torch.stack([weights_SB.argmax(0) for weights_SB in weights]).to(tokens_TB.device)

    def nll(self, encoded: Encoded, reference_RB: Tensor) -> Tensor:
        """Return the mean negative log-likelihood per word of the references."""
        steps = Steps.of(reference_RB.ne(PAD).sum(0).cpu(), reference_RB.device)
        targets_N1 = steps.flatten(reference_RB[1:]).unsqueeze(1)
        return -self.log_probs(encoded, reference_RB, steps).gather(1, targets_N1).mean()
