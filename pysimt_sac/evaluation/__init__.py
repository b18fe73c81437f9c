"""Scoring translations and telling whether a difference is real.

The names below are the programming interface behind `pysimt-sac score`, `compare`, `lexical` and `table`.
Texts are lists of sentences, already joined (no BPE) and tokenised; nothing here needs torch.
"""

from pysimt_sac.evaluation.comparison import Comparison, System, compare_systems
from pysimt_sac.evaluation.lexical import LexicalAccuracy, compare_lexical, lexical_accuracy, read_cases
from pysimt_sac.evaluation.meteor import MeteorMetric
from pysimt_sac.evaluation.scores import TextScores, choose_metrics, score_text, score_texts
from pysimt_sac.evaluation.significance import Resampling

__all__ = [
    "Comparison",
    "LexicalAccuracy",
    "MeteorMetric",
    "Resampling",
    "System",
    "TextScores",
    "choose_metrics",
    "compare_lexical",
    "compare_systems",
    "lexical_accuracy",
    "read_cases",
    "score_text",
    "score_texts",
]
