"""No algorithm mixes devices, and none lets the host wait for the device but where it must: on a pretended one."""

import sys

import pytest
import torch

from pysimt_sac.core.sections import TrainOptions
from pysimt_sac.hosts.engine.training.gradients import gather_gradients
from pysimt_sac.hosts.engine.training.optim import Optimizer
from tests.models.pretended_device import PRETENDED, Elsewhere, Pretending, waits
from tests.models.task import Board, make_model

CRITICS = {"support_size": 3}
VARIANTS = {
    "SimultaneousNMT": {},
    "MLENMT": {},
    "REINFORCENMT": {"n_samples": 2, "entropy_weight": 0.1},
    "REINFORCENMT learned": {"n_samples": 2, "baseline": "learned"},
    "REINFORCENMT greedy": {"n_samples": 2, "baseline": "greedy"},
    "MIXERNMT": {},
    "MRTNMT": {"n_samples": 3, "mrt_reference": True},
    "VineNMT": {"branch_continuation": "sample"},
    "VineNMT rarity": {"rarity_weight": 1.0, "permute_bonus": True},
    "ACNMT": CRITICS,
    "ERACNMT": CRITICS | {"known_reward": True},
    "SACNMT": CRITICS | {"alpha": "auto", "kl_weight": 0.1},
    "SACNMT known": CRITICS | {"known_reward": True, "lambda_return": 0.9},
    "BranchedSACNMT": {"lambda_return": 0.5, "alpha": 0.1},
    "SACUnsupNMT": {"reward": "unsup"},
    "SACUnsupNMT counts": {"reward": "unsup", "bonus": "counts"},
    "SACUnsupNMT permuted": {"reward": "unsup", "bonus": "policy", "permute_bonus": True},
}

# Who may let the host wait. torch itself does so for padded sources; a rollout asks who has ended, and its words go to
# the rewards, which the host computes; the replay buffer is in host memory; lengths that no batch has are read; and the
# number of chosen rows, in both passes.
PADDED = {"RecurrentEncoder.run"}
ROLLOUT = PADDED | {"roll_out", "Collector.roll_out", "Translations.from_ids", "Collector.next_rewards"}
LENGTHS = {"Batch.__init__", "Experience.steps", "EngineActor.nll"}
REPLAY = LENGTHS | {"Experience.converted"}
BRANCHES = {"Collector.final_scores", "branch_points", "collect_branched", "complete"}
WITH_CRITICS = ROLLOUT | LENGTHS | {"CriticEnsemble.readouts", "known_rewards"}
LABELS = {"SourceTexts", "Collector.learn", "LabelledDraws", "count_bonuses", "permute_within"}
RARITY = {"TranslationMemory", "permute_within", "RarityBonus", "Vine.update"}
MAY_WAIT = {
    "SimultaneousNMT": PADDED,
    "MLENMT": PADDED | {"EngineActor.nll"},
    "REINFORCENMT": ROLLOUT | LENGTHS,
    "MIXERNMT": ROLLOUT | LENGTHS | {"MIXER.update", "optimizer_step"},
    "MRTNMT": ROLLOUT | LENGTHS | {"unique_columns"},
    "VineNMT": ROLLOUT | LENGTHS | BRANCHES | RARITY,
    "ACNMT": WITH_CRITICS,
    "ERACNMT": WITH_CRITICS,
    "SACNMT": WITH_CRITICS | REPLAY,
    "BranchedSACNMT": WITH_CRITICS
    | REPLAY
    | BRANCHES
    | {"BranchedSAC.update_critics", "states_with_alternatives", "optimizer_step"},
    "SACUnsupNMT": ROLLOUT | LENGTHS | LABELS,
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_update_stays_on_its_device(variant, monkeypatch):
    optimizers = sys.modules["torch.optim.optimizer"]
    monkeypatch.setattr(optimizers, "_get_fused_kernels_supported_devices", lambda: ["cpu", "meta"])
    name, options = variant.split()[0], VARIANTS[variant]
    model, corpus = make_model(name, 1, dropout_emb=0.1, dropout_ctx=0.1, dropout_out=0.1, n_encoders=2, **options)
    batches = [corpus[indices] for indices in corpus.batches(1)[:3]]
    with Pretending():
        model.to(PRETENDED).train()
        model.start_training(Board())
        optimizer = Optimizer(model, TrainOptions(gclip=1.0), higher_better=True)
        for update, batch in enumerate(batches, 1):
            waits.clear()
            optimizer.zero_grad()
            found = gather_gradients(model, [batch], PRETENDED, update, 1)
            norm = optimizer.clip()
            optimizer.step()
            waited = dict(waits)
        assert isinstance(found.loss, Elsewhere)
        assert bool((found.loss + norm).isfinite())
    allowed = MAY_WAIT[name]
    assert [asked for asked in waited if asked not in allowed and asked.partition(".")[0] not in allowed] == []


def test_it_is_as_strict_as_a_device():
    with Pretending():
        there, here = torch.ones(3, device=PRETENDED), torch.ones(3)
        with pytest.raises(AssertionError, match="mixes devices"):
            there + here
        waits.clear()
        assert float((there + here.to(PRETENDED)).sum()) == 6
        assert (there * 2).tolist() == [2, 2, 2]
        assert there[there > 0].cpu().tolist() == [1, 1, 1]
        assert waits["a test"] == 4
