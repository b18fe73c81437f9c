"""Beam search that prefers rare translations, without any training: a control for rewards that pay for rare words.

    python experiments/rare_decoder.py runs/mle --splits test --out out/rare --taus 0 0.05 0.1 0.2

A likely word a (p of 0.02 or more) has the score log p(a|s) - tau log p(a|f). f is the source word that the decoder
attends to most, and p(a|f) the share of a among the references' words that were attended from f in the training text.
The tau with the best BLEU on the validation set translates the splits; the first of several that are equally good.
"""

import argparse
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import pysimt_sac
from pysimt_sac.core.actor import Encoded, Stepper
from pysimt_sac.core.files import stream_lines
from pysimt_sac.core.metrics import bleu
from pysimt_sac.core.sections import SearchOptions
from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import UNK
from pysimt_sac.hosts.engine.actor import EngineActor
from pysimt_sac.hosts.engine.data.corpus import read_sentences
from pysimt_sac.hosts.engine.decoding.translation import Translator
from pysimt_sac.rl.rollout import repeat_encoded, select_encoded

LIKELY = math.log(0.02)


@torch.no_grad()
def translation_shares(network: Any, batch_size: int = 64) -> Tensor:
    """Return log p(a|f) = log (n(f,a) + 1) / (n(f) + 1) of source words f and target words a, from the training text.

    0 for `<eos>` and the other special ones.
    """
    actor = EngineActor.of(network)
    counts_FA = torch.zeros(len(network.src_vocab), len(network.trg_vocab), device=actor.device)
    for batch in actor.load_batches("train", batch_size):
        batch.device(actor.device)
        reference_RB, source_SB = batch[actor.target], batch[actor.source]
        steps = Steps.of(batch.lengths[actor.target], actor.device)
        attended_TB = source_SB.gather(0, actor.attended(actor.encode(batch), reference_RB))
        pairs = steps.flatten(attended_TB), steps.flatten(reference_RB[1:])
        counts_FA.index_put_(pairs, torch.ones(len(steps), device=actor.device), accumulate=True)
    shares_FA = torch.log((counts_FA + 1) / (counts_FA.sum(1, keepdim=True) + 1))
    shares_FA[:, : UNK + 1] = 0
    return shares_FA.clamp(max=0)


class RareStepper:
    """A stepper whose likely words are adjusted by how rarely they translate the source word that is attended to."""

    can_join = False

    def __init__(self, plain: Stepper, decoder: Any, states: Encoded, source_SB: Tensor, adjustment_FA: Tensor) -> None:
        self.plain, self.decoder, self.states, self.source_SB = plain, decoder, states, source_SB
        self.adjustment_FA, self.device = adjustment_FA, plain.device
        self.prefixes_BKT: Tensor | None = None

    def log_probs(self, tokens_BK: Tensor) -> Tensor:
        """Return the adjusted log-probabilities (B, K, V) of the next words."""
        log_p_BKV, last_BK1 = self.plain.log_probs(tokens_BK), tokens_BK.unsqueeze(-1)
        before = self.prefixes_BKT
        self.prefixes_BKT = last_BK1 if before is None else torch.cat((before, last_BK1), -1)
        n_each = tokens_BK.size(1)
        places_N = self.decoder.attended(
            repeat_encoded(self.states, n_each), self.prefixes_BKT.flatten(0, 1).t().contiguous()
        )[-1]
        words_N = self.source_SB.repeat_interleave(n_each, 1).gather(0, places_N.unsqueeze(0)).squeeze(0)
        adjusted_BKV = log_p_BKV + self.adjustment_FA[words_N].view(log_p_BKV.shape)
        return torch.where(log_p_BKV >= LIKELY, adjusted_BKV, log_p_BKV)

    def keep_sentences(self, indices: Tensor) -> None:
        """Keep only these sentences."""
        self.plain.keep_sentences(indices)
        self.states, self.source_SB = select_encoded(self.states, indices), self.source_SB[:, indices]
        if self.prefixes_BKT is not None:
            self.prefixes_BKT = self.prefixes_BKT[indices]

    def keep_hypotheses(self, parents_BK: Tensor) -> None:
        """Keep these hypotheses of each sentence."""
        self.plain.keep_hypotheses(parents_BK)
        assert self.prefixes_BKT is not None
        places_BKT = parents_BK.unsqueeze(-1).expand(-1, -1, self.prefixes_BKT.size(-1))
        self.prefixes_BKT = self.prefixes_BKT.gather(1, places_BKT)


def favour_rare(network: Any, shares_FA: Tensor) -> Callable[[float], None]:
    """Make a model's searches prefer rare translations; return the function that sets tau."""
    plain_encode, plain_stepper, adjustment_FA = network.encode, network.stepper, torch.zeros_like(shares_FA)
    sources: list[Tensor] = [adjustment_FA]

    def encode(batch: Any) -> Encoded:
        sources[0] = batch[str(network.sl)]
        states: Encoded = plain_encode(batch)
        return states

    def stepper(states: Encoded, suppress_unk: bool = False) -> RareStepper:
        return RareStepper(plain_stepper(states, suppress_unk), network.dec, states, sources[0], adjustment_FA)

    def set_tau(tau: float) -> None:
        torch.mul(shares_FA, -tau, out=adjustment_FA)

    network.encode, network.stepper = encode, stepper
    return set_tau


def main() -> None:
    """Choose tau on the validation set, then translate."""
    parser = argparse.ArgumentParser(description="Translate with a preference for rare translations.")
    parser.add_argument("run", help="a run's folder, or a checkpoint, of a recurrent model")
    parser.add_argument("--splits", required=True, help="splits of its configuration, separated by commas")
    parser.add_argument("--out", required=True, help="prefix of the translations")
    parser.add_argument("--taus", type=float, nargs="+", default=[0.0, 0.05, 0.1, 0.2], help="to choose from")
    parser.add_argument("--beam", type=int, default=6, help="beam size (default: 6)")
    args = parser.parse_args()
    model = pysimt_sac.load(args.run)
    network = model.network
    translator = Translator(network, SearchOptions(func="bs", beam_size=args.beam, batch_size=64), model.device)
    set_tau = favour_rare(network, translation_shares(network))
    source = list(stream_lines(translator.source_of("val"), "validation text"))
    references = [translator.filters(read_sentences(path)) for path in network.val_refs]
    scores = {}
    for tau in args.taus:
        set_tau(tau)
        translated = translator.filters(translator.best_texts(translator.translate_lines(source)))
        scores[tau] = bleu(translated, references)
        print(f"tau {tau:g}: validation BLEU {scores[tau]:.2f}", flush=True)
    best = max(args.taus, key=scores.__getitem__)
    print(f"Translating with tau {best:g}")
    set_tau(best)
    for path in translator.translate_splits(args.splits.split(","), args.out):
        print(f"Wrote {path}")


if __name__ == "__main__":
    main()
