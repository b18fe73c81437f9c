"""`precision: bfloat16`: losses stay near those of float32, and weights and what is saved stay float32."""

import pytest
import torch

from tests.models.runs import points, train

VARIANTS = {
    "SimultaneousNMT": [],
    "SimultaneousNMT lstm": ["model.enc_type:lstm", "model.att_type:dot", "model.enc_lnorm:True"],
    "SACNMT": ["model.gate_sentences:0", "model.critic_pretrain_updates:0"],
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_losses_stay_near(toy, variant):
    changes = [
        f"train.model_type:{variant.split()[0]}",
        "train.max_iterations:4",
        "train.disp_freq:1",
        *VARIANTS[variant],
    ]
    full = train(toy, "full", changes)
    half = train(toy, "half", [*changes, "model.precision:bfloat16"])
    one, other = points(full, "train_LOSS"), points(half, "train_LOSS")
    assert one != other
    assert other == pytest.approx(one, rel=0.05, abs=0.05)
    weights = torch.load(half / "train_state.pt", weights_only=True)["weights"]
    assert {weight.dtype for weight in weights.values()} == {torch.float32}
