"""`MRTNMT`: minimum risk training (Shen et al. 2016).

The candidates of a source are its reference and `n_samples` sampled translations, each counted once. Their
probabilities, flattened to the power `mrt_sharpness` and normalised over the candidates, are shifted towards those that
earn most. (The figures of sampled translations in the log have the reference among them.)
"""

import dataclasses
import math
from typing import Any, ClassVar

import torch
from torch import Tensor

from pysimt_sac.engine.config.options import ModelOptions, option
from pysimt_sac.engine.config.registry import MODELS
from pysimt_sac.models.base import RLModel
from pysimt_sac.rewards import RewardOptions
from pysimt_sac.rl import losses
from pysimt_sac.rl.learner import ActorLoss, Learner
from pysimt_sac.rl.options import RLOptions
from pysimt_sac.rl.scoring import rescore


@dataclasses.dataclass(frozen=True)
class MRTOptions:
    """The keys of `[model]` that only minimum risk training has."""

    n_samples: int = option(20, "translations sampled of each source, beside its reference", minimum=1)
    mrt_sharpness: float = option(0.005, "power of the candidates' probabilities", above=0)


@MODELS.register("MRTNMT")
class MRTNMT(RLModel):
    """The actor; nothing else learns."""

    option_classes: ClassVar[tuple[type, ...]] = (ModelOptions, RLOptions, RewardOptions, MRTOptions)

    def make_learner(self) -> "MRTLearner":
        """Built when training begins."""
        return MRTLearner(self)


class MRTLearner(Learner):
    """One update of minimum risk training; see the top of this file."""

    def __init__(self, model: MRTNMT) -> None:
        super().__init__(model)
        self.options: MRTOptions = model.read_options(MRTOptions)

    def loss(self, batch: Any, update: int, epoch: int) -> ActorLoss:
        """Sample, leave out what is there twice, score the rest with gradient."""
        model, common, each = self.model, self.common, self.options.n_samples + 1
        reference_TB = batch[model.tl][1:]
        forced_TB = torch.zeros_like(reference_TB).repeat_interleave(each, 1)
        forced_TB[:, ::each] = reference_TB  # the first candidate of each source is given
        played = self.player.play(model, batch, math.nan, update, each, forced_TB)
        columns_C = different(played.words_TB, each).to(self.device)
        candidates, sentences_C = played.select(columns_C), columns_C // each
        dropout, with_nll = common.rollout_dropout, common.lambda_mle > 0
        scored = rescore(model, batch, candidates, sentences_C, dropout, with_nll)
        returns_C = candidates.scores_B
        risk = losses.risk_loss(scored.log_pi_B, returns_C, sentences_C, batch.size, self.options.mrt_sharpness)
        self.figures |= {**scored.figures(returns_C), "candidates": len(columns_C) / batch.size}
        terms = {"rl": common.lambda_rl * risk}
        if scored.nll is not None:
            terms["mle"] = common.lambda_mle * scored.nll
        return ActorLoss(terms, int((model.host_lengths(batch, model.tl) - 1).sum()))


def different(words_TC: Tensor, each: int) -> Tensor:
    """The columns that hold no translation for the second time; each: columns of one source, side by side."""
    first = {(column // each, *words): column for column, words in reversed([*enumerate(words_TC.t().tolist())])}
    return torch.tensor(sorted(first.values()))
