"""Results as small as they can be: two systems on one test set of the paper."""

from pysimt_sac.reproduce.results import Difference, Results, Score

TEST = "test_2016_flickr"
DIRECTIONS = {"BLEU": True, "METEOR (exact stem)": True, "TER": False, "length": True, "LTA": True, "ALI": True}


def score(metric, system, runs, against=None, part="all", size=1000, search="beam6", test_set=TEST):
    """A line of scores. against: baseline -> p, or None if identical."""
    differences = {name: Difference(-0.5, 0.5, p) for name, p in (against or {}).items()}
    return Score(search, test_set, part, size, metric, system, tuple(runs), (0.0, 100.0), differences)


def run(system, seed, best, updates=100):
    """A run that was best at its second validation."""
    scores = {"best": {"BLEU": {"score": best, "update": 50}}, "validation": {"BLEU": [[0, 30.0], [50, best]]}}
    about = {"system": system, "seed": seed, "commit": "0123456789ab+", "updates": updates, "seconds": 7200}
    about["lp_alpha"] = 0.6
    return about | scores


PLAIN = {"train": {"model_type": "SimultaneousNMT"}}


def sample_results(**changes):
    """Results of two runs each of MLE and SAC BLEU; `changes` are other values of fields."""
    fields = {
        "title": "Multi30K", "pair": "en-de", "short": False, "matrix": "multi30k.toml", "baselines": ["MLE"],
        "searches": ["beam6"], "tests": [TEST], "made": {}, "seconds": 36000, "data": {}, "ambiguous_words": {},
        "resampling": {"shuffling": "paired"}, "missing": ["METEOR is left out: no Java"],
        "systems": [{"name": "MLE", "start": "", "config": "mle", "settings": PLAIN},
                    {"name": "SAC BLEU", "start": "MLE", "config": "sac_bleu"}],
        "runs": [run("MLE", 1, 37.0), run("MLE", 2, 38.0, 90), run("SAC BLEU", 1, 39.0), run("SAC BLEU", 2, 39.5)],
        "scores": [
            score("BLEU", "MLE", [38.0, 39.0]), score("BLEU", "SAC BLEU", [39.5, 40.5], {"MLE": 0.01}),
            score("TER", "MLE", [42.0, 43.0]), score("TER", "SAC BLEU", [41.9, 42.9], {"MLE": 0.7}),
            score("length", "MLE", [101.0, 102.0]), score("length", "SAC BLEU", [99.0, 100.0], {"MLE": 0.00009999}),
            score("BLEU", "MLE", [38.5, 39.5], part="noUNK", size=997),
            score("BLEU", "SAC BLEU", [40.0, 41.0], {"MLE": 0.2}, "noUNK", 997),
            score("LTA", "MLE", [65.0, 66.0], part="cases", size=1004),
            score("LTA", "SAC BLEU", [65.0, 66.0], {"MLE": None}, "cases", 1004),
            score("ALI", "MLE", [43.0, 44.0], part="cases", size=1004),
            score("ALI", "SAC BLEU", [39.75, 40.75], {"MLE": 0.04}, "cases", 1004),
        ],
    } | changes  # fmt: skip
    names = dict.fromkeys(own.metric for own in fields["scores"])
    metrics = {name: {"signature": name, "higher_is_better": DIRECTIONS[name]} for name in names}
    return Results(**{"metrics": metrics, **fields})
