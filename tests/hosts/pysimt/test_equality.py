"""pysimt itself as the oracle: same weights and batch, same loss, gradients, log-probabilities and greedy output.

Run by `make test-pysimt PYSIMT=path`, in processes of their own: pysimt must be imported after its device is chosen.
"""

import json

import pytest

from tests.hosts.pysimt.hosts import NEEDS_PYSIMT, pysimt_command, run_python, train, translating, translation

pytestmark = NEEDS_PYSIMT

COMPARE = """
import json, sys
import torch
from pysimt.utils.device import DeviceManager
DeviceManager("cpu")
from pysimt.config import Options as PysimtOptions
from pysimt import models
from pysimt_sac.hosts.engine.config.parser import read_config
from pysimt_sac.hosts.engine.nmt import SimultaneousNMT

path = sys.argv[1]
options = PysimtOptions(path, [])
theirs = getattr(models, options.train["model_type"])(options)
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
results = [model(batch, uctr=1, ectr=1) for model in (theirs, ours)]
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


# One checkpoint in both hosts' models and actors; ours computes all steps in one pass, pysimt's one after the other.
SCORE = """
import json, sys
import torch
from pysimt_sac.hosts.pysimt.device import reserve_device
reserve_device("cpu")
from pysimt.config import Options
from pysimt_sac.hosts.engine.checkpoint import load_checkpoint
from pysimt_sac.core.batch import Batch
from pysimt_sac.hosts.engine.decoding.translation import load_model
from pysimt_sac.hosts.pysimt import host as pysimt_host
from pysimt_sac.hosts.engine.actor import EngineActor
from pysimt_sac.hosts.pysimt.actor import PysimtActor
from pysimt_sac.core.steps import Steps
checkpoint, source, target, *overrides = sys.argv[1:]
overrides.append("train.model_type:MLENMT")
loaded = load_checkpoint(checkpoint)
pysimt_host.register()
in_shell = pysimt_host.shell("MLENMT", pysimt_host.MODELS.get("MLENMT"), "SimultaneousNMT")
theirs = in_shell(opts=Options.from_dict(loaded.options, overrides))
theirs.setup(is_train=False)
theirs.load_state_dict(loaded.weights)
ours = load_model(loaded, torch.device("cpu"), overrides)
actors = {"pysimt": PysimtActor.of(theirs), "embedded": EngineActor.of(ours)}
assert type(theirs.dec).__module__.startswith("pysimt.")
assert actors["pysimt"].tokens == list(actors["embedded"].tokens)
scores, attended = ({name: [] for name in actors} for _ in range(2))
for precision in (torch.float32, torch.float64):
    for name, actor in actors.items():
        actor.networks.eval().to(precision)
        scores[name].append([])
        for line, translation in zip(open(source), open(target)):
            batch = Batch({
                "src": torch.tensor(ours.src_vocab.sent_to_idxs(line)).unsqueeze(1),
                "trg": torch.tensor(ours.trg_vocab.sent_to_idxs(translation, explicit_bos=True)).unsqueeze(1),
            })
            steps = Steps.of(batch.lengths["trg"])
            log_p_NV = actor.log_probs(actor.encode(batch), batch["trg"], steps)
            scores[name][-1].append(log_p_NV.gather(1, batch["trg"][1:]).sum().item())
            if precision == torch.float64:
                attended[name].append(actor.attended(actor.encode(batch), batch["trg"]).tolist())
assert attended["pysimt"] == attended["embedded"]
assert len({tuple(place for (place,) in places) for places in attended["pysimt"]}) > 1
print(json.dumps(scores))
"""


def head(path, size, place):
    """The first lines of a file, in a file of their own."""
    place.write_text("".join(path.read_text().splitlines(keepends=True)[:size]))
    return place


def assert_same_translations_and_scores(checkpoint, folder, source, target, overrides=()):
    """Greedy search word for word, what each step attends to, and the log-probability of every sentence pair.

    In single precision the sum of a sentence's log-probabilities is itself known to six or seven digits only: a long
    sentence's -90 to 1e-5. Double precision tells rounding from a difference.
    """
    more = ["-S", f"src:{source}", *(["-x", *overrides] if overrides else [])]
    for host in ("pysimt", "embedded"):
        pysimt_command(host, *translating(checkpoint, folder / host, *more, split="some"))
    greedy = [translation(folder / host, split="some") for host in ("pysimt", "embedded")]
    assert greedy[0] == greedy[1]
    assert len(set(greedy[0])) > 1
    scores = json.loads(run_python(SCORE, checkpoint, source, target, *overrides).splitlines()[-1])
    theirs, ours = scores["pysimt"], scores["embedded"]
    assert len(ours[0]) == len(greedy[0])
    assert ours[0] == pytest.approx(theirs[0], rel=1e-5)
    assert ours[1] == pytest.approx(theirs[1], abs=1e-9)


def test_a_toys_translations_and_log_probabilities_are_the_same(toy):
    folder = train("pysimt", toy, "mle", "train.model_type:SimultaneousNMT", "train.max_epochs:3")
    (checkpoint,) = folder.glob("*.best.bleu.ckpt")
    assert_same_translations_and_scores(checkpoint, toy.folder / "out", toy.val_src, toy.val_trg)


def test_the_given_checkpoints_translations_and_log_probabilities_are_the_same(research_data, tmp_path):
    paper, checkpoint = research_data / "data/multi30k/paper/en-de", "checkpoints/pysimt-mle-en-de.ckpt"
    source = head(paper / "test_2017_mscoco.lc.norm.tok.en", 60, tmp_path / "some.en")
    target = head(paper / "test_2017_mscoco.lc.norm.tok.bpe.de", 60, tmp_path / "some.de")
    vocabularies = [
        f"vocabulary.src:{paper}/train.lc.norm.tok.vocab.en",
        f"vocabulary.trg:{paper}/train.lc.norm.tok.bpe.vocab.de",
    ]
    assert_same_translations_and_scores(research_data / checkpoint, tmp_path, source, target, vocabularies)


@pytest.mark.parametrize(
    "changes",
    [
        "",
        "enc_bidirectional: False\ntied_emb: False\nout_logic: simple",
        "att_type: dot",
        "enc_bidirectional: False\ntranslator_args: {'k': 2}",
    ],
)
def test_one_update_has_the_same_loss_and_gradients(toy, changes):
    config = toy.config.read_text().replace("dropout_emb: 0.1", "dropout_emb: 0")
    for line in changes.splitlines():
        config = "\n".join(old for old in config.splitlines() if not old.startswith(line.split(":")[0] + ":"))
    config = config.replace("[model]", f"[model]\n{changes}\n")
    if "translator_args" in changes:
        config = config.replace("SimultaneousNMT", "SimultaneousWaitKNMT")
    path = toy.folder / "compare.conf"
    path.write_text(config)
    found = json.loads(run_python(COMPARE, str(path)).splitlines()[-1])
    assert found["n_items"][0] == found["n_items"][1]
    assert found["loss"][1] == pytest.approx(found["loss"][0], abs=1e-5)
    assert found["gradient_difference"] < 1e-5
