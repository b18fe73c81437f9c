"""Scores of translations, significance tests, lexical analyses, human ranking and the report.

The names below are the public API behind `pysimt-sac score`, `compare`, `lexical`, `table`, `frequency`, `rank`,
`domain` and `report`. Texts are lists of tokenised sentences without BPE. Only the neural language model of
`domain_distances` and the reading of run folders need torch.
"""

from pysimt_sac.evaluation.lexical.accuracy import LexicalAccuracy, compare_lexical, lexical_accuracy, read_cases
from pysimt_sac.evaluation.lexical.domain import DomainAnalysis, NeuralOptions, domain_distances
from pysimt_sac.evaluation.lexical.frequency import FrequencyAnalysis, analyse_frequency
from pysimt_sac.evaluation.lexical.ngram import NgramModel
from pysimt_sac.evaluation.ranking.sample import RankingOptions, draw_items
from pysimt_sac.evaluation.ranking.score import RankingResult, score_ranking
from pysimt_sac.evaluation.report.data import ReportData, analyse
from pysimt_sac.evaluation.report.input import ReportRequest, gather
from pysimt_sac.evaluation.report.page import render_page
from pysimt_sac.evaluation.scoring.comparison import Comparison, System, compare_systems
from pysimt_sac.evaluation.scoring.meteor import MeteorMetric
from pysimt_sac.evaluation.scoring.scores import TextScores, choose_metrics, score_text, score_texts
from pysimt_sac.evaluation.scoring.significance import Resampling

__all__ = [
    "Comparison",
    "DomainAnalysis",
    "FrequencyAnalysis",
    "LexicalAccuracy",
    "MeteorMetric",
    "NeuralOptions",
    "NgramModel",
    "RankingOptions",
    "RankingResult",
    "ReportData",
    "ReportRequest",
    "Resampling",
    "System",
    "TextScores",
    "analyse",
    "analyse_frequency",
    "choose_metrics",
    "compare_lexical",
    "compare_systems",
    "domain_distances",
    "draw_items",
    "gather",
    "lexical_accuracy",
    "read_cases",
    "render_page",
    "score_ranking",
    "score_text",
    "score_texts",
]
