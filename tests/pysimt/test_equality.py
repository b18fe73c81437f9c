"""pysimt itself as the oracle: same weights and batch, same loss, gradients, log-probabilities and greedy output.

Run by `make test-pysimt PYSIMT=path`, in processes of their own, because a process has one host.
"""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.pysimt,
    pytest.mark.skipif(importlib.util.find_spec("pysimt") is None, reason="pysimt is not importable here"),
]

COMPARE = """
import json, sys
import torch
from pysimt.utils.device import DeviceManager
DeviceManager("cpu")
from pysimt.config import Options as PysimtOptions
from pysimt.models import SimultaneousNMT as PysimtModel
from pysimt_sac.engine.config import read_config
from pysimt_sac.engine.nmt import SimultaneousNMT

path = sys.argv[1]
theirs = PysimtModel(PysimtOptions(path, []))
ours = SimultaneousNMT(read_config(path))
torch.manual_seed(0)
for model in (theirs, ours):
    model.setup()
theirs.reset_parameters()
ours.load_state_dict(theirs.state_dict(), strict=True)
assert set(ours.state_dict()) == set(theirs.state_dict())
corpus = ours.load_data("train", 8)
batch = next(corpus.loader(1))
for model in (theirs, ours):
    model.train()
results = [model(batch) for model in (theirs, ours)]
for result in results:
    (result["loss"] / result["n_items"]).backward()
gradients = [{name: p.grad for name, p in model.named_parameters()} for model in (theirs, ours)]
difference = max((gradients[0][name] - gradients[1][name]).abs().max().item() for name in gradients[0])
print(json.dumps({
    "loss": [result["loss"].item() / result["n_items"] for result in results],
    "n_items": [result["n_items"] for result in results],
    "gradient_difference": difference,
}))
"""


def run_python(script, *arguments, **environment):
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def pysimt_command(host, *arguments):
    script = "import sys; from pysimt_sac.cli import main; sys.exit(main(sys.argv[1:]))"
    return run_python(script, *arguments, PYSIMT_SAC_HOST=host)


@pytest.mark.parametrize(
    "changes", ["", "enc_bidirectional: False\ntied_emb: False\nout_logic: simple", "att_type: dot"]
)
def test_one_update_has_the_same_loss_and_gradients(toy, changes):
    config = toy.config.read_text().replace("dropout_emb: 0.1", "dropout_emb: 0")
    for line in changes.splitlines():
        config = "\n".join(old for old in config.splitlines() if not old.startswith(line.split(":")[0] + ":"))
    config = config.replace("[model]", f"[model]\n{changes}\n")
    path = toy.folder / "compare.conf"
    path.write_text(config)
    found = json.loads(run_python(COMPARE, str(path)).splitlines()[-1])
    assert found["n_items"][0] == found["n_items"][1]
    assert found["loss"][1] == pytest.approx(found["loss"][0], abs=1e-5)
    assert found["gradient_difference"] < 1e-5


def test_a_model_of_ours_trains_and_translates_in_pysimts_own_loop(toy):
    """The seam: one configuration, five updates on each host, and each host translates what the other trained."""
    outputs = {}
    for host in ("pysimt", "embedded"):
        changes = ["train.model_type:MLENMT", "train.max_iterations:5", "train.eval_freq:-1"]
        pysimt_command(host, "train", "-d", "cpu", "-C", str(toy.config), "-s", host, *changes)
        (checkpoint,) = toy.folder.glob(f"runs/*-{host}/*-final.ckpt")
        for reader in ("pysimt", "embedded"):
            prefix = toy.folder / f"out/{reader}-reads-{host}"
            pysimt_command(reader, "translate", "-d", "cpu", "-s", "val", "-o", str(prefix), str(checkpoint))
            outputs[host, reader] = prefix.with_name(prefix.name + ".val.gs.raw").read_text()
    for host in ("pysimt", "embedded"):
        assert outputs[host, "pysimt"] == outputs[host, "embedded"]
        assert outputs[host, "pysimt"].count("\n") > 1
