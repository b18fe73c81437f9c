"""Reinforcement learning on pysimt's other models: what an actor computes is what the model computes."""

import dataclasses

import pytest

from pysimt_sac.hosts.engine.checkpoint import load_checkpoint
from tests.hosts.pysimt.hosts import (
    NEEDS_PYSIMT,
    pysimt_commands,
    run_folder,
    run_python,
    start_python,
    training,
    translating,
)
from tests.hosts.pysimt.images import add_images
from tests.hosts.pysimt.test_resuming import DIE, assert_same_run
from tests.hosts.pysimt.test_untouched import SAC, outputs, pysimt_itself

pytestmark = NEEDS_PYSIMT

IN_PYSIMT = {"PYSIMT_SAC_HOST": "pysimt"}
RECURRENT = "enc_bidirectional: False\n"
TRANSFORMER = "model_dim: 16\nnum_heads: 2\nenc_n_layers: 2\ndec_n_layers: 2\nenc_ff_dim: 16\ndec_ff_dim: 16\n"
WAIT = "translator_args: {'k': 2}\n"
NUMPY, DETECTIONS = "aux_dim: 3\naux_proj_dim: 16\n", "aux_dim: 4\naux_proj_dim: 16\naux_lnorm: True\n"
IN_ENCODER = "n_heads: 2\n"


@dataclasses.dataclass(frozen=True)
class Network:
    """One of pysimt's networks: its name, its keys of `[model]`, and what its images are."""

    model_type: str
    keys: str
    images: str = ""


NETWORKS = [
    Network("SimultaneousWaitKNMT", RECURRENT + WAIT),
    Network("SimultaneousTFNMT", TRANSFORMER),
    Network("SimultaneousTFWaitKNMT", TRANSFORMER + WAIT),
    Network(
        "SimultaneousNMT", RECURRENT + NUMPY + "mm_fusion_op: concat\naux_l2norm: True\nout_logic: deep\n", "Numpy"
    ),
    Network("SimultaneousWaitKNMT", RECURRENT + WAIT + DETECTIONS + "mm_fusion_op: sum\n", "ObjectDetections"),
    Network("EncoderSelfAttentionSimultaneousNMT", RECURRENT + NUMPY + IN_ENCODER, "Numpy"),
    Network("EncoderSelfAttentionSimultaneousWaitKNMT", RECURRENT + WAIT + DETECTIONS + IN_ENCODER, "ObjectDetections"),
]

# The log-probabilities of references: an actor's in one pass, its stepper's, and those of forks from several steps,
# against pysimt's own decoding, which reads as many words as it may and then writes the next word of the reference.
COMPARE = """
import sys
import torch
from pysimt_sac.hosts.pysimt.device import reserve_device
reserve_device("cpu")
from pysimt_sac.core.batch import Batch
from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import EOS
from pysimt_sac.hosts.engine.config.parser import read_config
from pysimt_sac.hosts.pysimt import host
from pysimt_sac.rl.rollout import roll_out
host.register()
ours = read_config(sys.argv[1], ["train.model_type:MLENMT"])
torch.manual_seed(0)
model = host.build_model(host.find_model(ours, sys.argv[1]), host.pysimt_options(ours))
model.setup()
model.reset_parameters()
model.double().eval()
theirs = model.load_batches("val", 6)[0]
theirs.update({side: values.double() for side, values in theirs.items() if values.is_floating_point()})
batch = Batch({str(side): values for side, values in theirs.items()})
assert batch.keys() == batch.lengths.keys() | ({"image"} if "image" in str(ours.model["direction"]) else set())
actor = host.actor_of(model)
tokens_TB, steps = batch["trg"], Steps.of(batch.lengths["trg"])
with torch.no_grad():
    model.cache_enc_states(theirs)
    state, expected = model.dec.f_init(model.get_enc_state_dict()), []
    for step in range(len(tokens_TB) - 1):
        states = model.get_enc_state_dict(up_to=10**6 if model.wait is None else model.wait + step)
        emb = model.dec.get_emb(tokens_TB[step])
        log_p_BV, state = model.dec.f_next(states, emb, state, tokens_TB[: step + 1])
        expected.append(log_p_BV)
    expected = torch.stack(expected)
    if "TFWaitK" in type(model).__mro__[3].__name__:  # searching, it computes a prefix again with all that it has read
        expected, _ = model.dec(model.get_enc_state_dict(), tokens_TB[:-1], k=model.wait)  # as it is trained
    encoded = actor.encode(batch)
    if not hasattr(model, "loss"):  # which is smoothed, in its Transformers
        loss = model(theirs)
        torch.testing.assert_close(actor.nll(encoded, tokens_TB), loss["loss"] / loss["n_items"], rtol=0, atol=1e-9)
    torch.testing.assert_close(actor.log_probs(encoded, tokens_TB, steps), steps.flatten(expected))
    assert actor.taken_words(encoded, tokens_TB, steps).states_NH.size(1) == actor.state_size
    stepper, traced, sentences = actor.stepper(encoded), [], torch.arange(tokens_TB.size(1))
    for step in range(3):
        if step == 1:  # finished sentences leave
            sentences = torch.tensor([0, 2, 3, 5])
            stepper.keep_sentences(sentences)
        found = stepper.log_probs(tokens_TB[step, sentences].unsqueeze(1)).squeeze(1)
        torch.testing.assert_close(found[:, EOS:], expected[step, sentences][:, EOS:])
        traced.append(stepper.decoder_states())
    forks, times = torch.tensor([5, 1, 2]), torch.tensor([2, 0, 1])
    places = [int((sentences == 5).nonzero()), 1, int((sentences == 2).nonzero())]
    states = torch.stack([traced[time][place] for time, place in zip(times.tolist(), places)])
    forked = stepper.fork(forks, states)
    for ahead in (1, 2):
        found = forked.log_probs(tokens_TB[times + ahead, forks].unsqueeze(1)).squeeze(1)
        real = tokens_TB[times + ahead + 1, forks].ne(0) if int(times.max()) + ahead + 1 < len(tokens_TB) else ...
        torch.testing.assert_close(found[real, EOS:], expected[times + ahead, forks][real, EOS:])
        if ahead == 1:
            forked.keep_sentences(torch.tensor([2, 1]))
            forks, times = forks[[2, 1]], times[[2, 1]]
    model.float()
    if model.wait is None:
        loader = host.make_dataloader(model.load_data("val", 6, mode="beam"))
        (searched,) = host.translators.get_translator("gs")(model, loader, "", 6, max_len=7).run()
        batches = [Batch({str(side): values for side, values in part.items()}) for part in loader]
        greedy = [roll_out(actor.stepper(actor.encode(part)), torch.full((part.size,), 7), None) for part in batches]
        found = [model.trg_vocab.idxs_to_sent(row[1:].tolist()) for part in greedy for row in part.tokens_TB.t()]
        assert len(set(searched)) > 1 and sorted(found) == sorted(searched)
print("same", tokens_TB.shape)
"""


@pytest.fixture(params=NETWORKS, ids=lambda network: f"{network.model_type}{network.images}")
def network(request, toy):
    """A toy with a configuration of one of pysimt's networks."""
    wanted = request.param
    text = toy.config.read_text().replace("SimultaneousNMT", wanted.model_type)
    toy.config.write_text(text.replace("[model]\n", f"[model]\n{wanted.keys}"))
    if wanted.images:
        add_images(toy, wanted.images)
    (toy.folder / "out").mkdir()
    return wanted.model_type, toy


def test_an_actor_and_its_forks_compute_what_the_model_computes(network):
    assert run_python(COMPARE, network[1].config).splitlines()[-1].startswith("same")


def test_sac_killed_and_resumed_ends_with_the_same_bits_and_pysimt_alone_translates_with_it(network):
    name, toy = network
    words = [*SAC, "train.max_epochs:99", "train.max_iterations:50", "model.critic_pretrain_updates:5"]
    script = DIE.replace("os._exit(9)", "os.kill(os.getpid(), 9)")
    died = start_python(script, "loop", "train_batch", "before", 30, *training(toy, "sac", *words), **IN_PYSIMT)
    assert died.returncode == -9
    pysimt_commands("pysimt", training(toy, "sac", *words), training(toy, "whole", *words))
    assert_same_run(run_folder(toy, "whole"), run_folder(toy, "sac"))
    (best,) = run_folder(toy, "sac").glob("*.best.bleu.ckpt")
    assert load_checkpoint(best).options["train"]["model_type"] == "SACNMT"
    search = ["-f", "wk", "--n-init-tokens", "2"] if "WaitK" in name else ["-f", "gs"]
    pysimt_itself(*translating(best, toy.folder / "out/alone", *search))
    pysimt_commands("pysimt", translating(best, toy.folder / "out/with", *search))
    alone, ours = outputs(toy, "alone"), outputs(toy, "with")
    assert {suffix: ours[suffix] for suffix in alone} == alone
    assert alone
