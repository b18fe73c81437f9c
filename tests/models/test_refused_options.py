"""Options that would have no effect, or a wrong one, are refused where they are set."""

import pytest

from pysimt_sac.core.errors import UserError
from tests.models import task


def start(model_type, options):
    """Make the algorithm, before anything is written."""
    model, corpus = task.make_model(model_type, 1, **options)
    model.start_training(task.Board())
    return model.train(), corpus[corpus.batches(0)[0]]


@pytest.mark.parametrize(
    ("model_type", "options", "message"),
    [
        ("VineNMT", {"branch_states": 0}, "branch_states: must be at least 1"),
        ("VineNMT", {"permute_bonus": True}, "permute_bonus: has nothing to permute"),
        ("BranchedSACNMT", {"gamma": 0.9}, "gamma: the returns of branches are not discounted"),
        ("SACNMT", {"known_reward": True, "support_size": 0}, "known_reward: is not computed for the whole vocabulary"),
        ("ACNMT", {"known_reward": True, "permute_rewards": True}, "known_reward: cannot be combined"),
        ("SACUnsupNMT", {"reward": "gleu:0.9,unsup:0.1"}, "reward: must be `unsup`: Q ignores any other"),
        ("SACUnsupNMT", {"reward": "unsup", "permute_rewards": True}, "permute_rewards: cannot be combined"),
        ("VineNMT", {"reward": "bleu:0.7,unsup:0.3", "permute_rewards": True}, "permute_rewards: cannot be combined"),
    ],
)
def test_options_that_cannot_act_are_refused(model_type, options, message):
    with pytest.raises(UserError, match=message):
        start(model_type, options)


@pytest.mark.parametrize(
    ("model_type", "options"),
    [
        ("SACNMT", {"gamma": 0.9}),
        ("BranchedSACNMT", {"known_reward": True, "permute_rewards": True}),
        ("BranchedSACNMT", {"reward": "bleu:0.7,unsup:0.3"}),
        ("MLENMT", {"kl_weight": 1.0}),  # without samples there is nothing to measure it on
        ("VineNMT", {"branch_words": 50}),  # more than there are
        ("SACNMT", {"reward": "bleu:0.7,unsup:0.3", "known_reward": True, "support_size": 2}),
    ],
)
def test_options_that_act_are_not(model_type, options):
    model, batch = start(model_type, options)
    model(batch, uctr=1)
