"""Scoring translations and telling whether a difference is real.

Texts are lists of sentences, already joined (no BPE) and tokenised; nothing here needs torch.
"""

from pysimt_sac.evaluation.comparison import Comparison, System, compare_systems
from pysimt_sac.evaluation.meteor import MeteorMetric
from pysimt_sac.evaluation.scores import TextScores, choose_metrics, score_text, score_texts
from pysimt_sac.evaluation.significance import Resampling

__all__ = [
    "Comparison",
    "MeteorMetric",
    "Resampling",
    "System",
    "TextScores",
    "choose_metrics",
    "compare_systems",
    "score_text",
    "score_texts",
]
