"""The model's loss against a step-by-step computation, padding, tying and initialisation."""

import itertools

import pytest
import torch
from torch.nn.functional import cross_entropy

from pysimt_sac.hosts.engine.nmt import real_positions
from tests.hosts.engine.tiny import tiny_batch, tiny_model, tiny_sentences

DEEP = {"out_logic": "deep", "tied_emb": "2way", "n_encoders": 2, "att_bottleneck": "hid"}


def loss_step_by_step(model, batch):
    """What pysimt's own forward does: one `f_next` after the other."""
    states, total, h = model.encode(batch), 0.0, None
    words = batch["trg"]
    for now, after in itertools.pairwise(words):
        log_p, h = model.dec.f_next(states, model.dec.get_emb(now), h)
        total = total - (log_p.gather(1, after.unsqueeze(1)).squeeze(1) * after.ne(0)).sum()
    return total


@pytest.mark.parametrize(
    "options",
    [
        {},
        DEEP,
        {"att_type": "dot"},
        {"enc_type": "lstm"},
        {"enc_bidirectional": False},
        {"tied_emb": "3way"},
        {"enc_proj_dim": 3, "enc_proj_activ": "tanh", "enc_lnorm": True},
        {"dec_inp_activ": "tanh"},
        {"att_activ": "relu"},
    ],
)
def test_loss_and_gradients_equal_the_step_by_step_ones(options):
    model = tiny_model(**options)
    batch = tiny_batch(model, tiny_sentences(4), tiny_sentences(4, seed=1))
    out = model(batch)
    reference = loss_step_by_step(model, batch)
    torch.testing.assert_close(out["loss"], reference, rtol=1e-5, atol=1e-5)
    assert out["n_items"] == int(batch["trg"][1:].ne(0).sum())
    variables = list(model.parameters())
    fast = torch.autograd.grad(out["loss"], variables, allow_unused=True)
    slow = torch.autograd.grad(reference, variables, allow_unused=True)
    for one, other in zip(fast, slow, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_label_smoothing_is_in_the_training_loss_alone():
    model = tiny_model(label_smoothing=0.2, **DEEP)
    batch = tiny_batch(model, tiny_sentences(4), tiny_sentences(4, seed=1))
    positions_N = real_positions(batch.lengths["trg"])
    targets_N = batch["trg"][1:].flatten()[positions_N]
    logits_NV = model.dec.out2prob(model.dec.readouts(model.encode(batch), batch["trg"][:-1], positions_N))
    plain, smoothed = (cross_entropy(logits_NV, targets_N, reduction="sum", label_smoothing=s) for s in (0, 0.2))
    assert plain.item() != pytest.approx(smoothed.item())
    torch.testing.assert_close(model(batch)["loss"], plain)
    torch.testing.assert_close(model.train()(batch)["loss"], smoothed)


def test_padding_changes_nothing():
    model = tiny_model(**DEEP)
    sources, targets = tiny_sentences(5), tiny_sentences(5, seed=3)
    together = model(tiny_batch(model, sources, targets))["loss"]
    alone = sum(model(tiny_batch(model, [s], [t]))["loss"] for s, t in zip(sources, targets, strict=True))
    torch.testing.assert_close(together, alone)


def test_real_positions_are_those_of_the_words_behind_bos():
    words = torch.tensor([[1, 1, 1], [5, 5, 5], [2, 5, 6], [0, 2, 2]])
    found = real_positions(torch.tensor([3, 4, 4]))
    assert found.tolist() == [0, 1, 2, 3, 4, 5, 7, 8]
    assert torch.equal(found, words[1:].flatten().nonzero().squeeze(1))


def test_initialisation_is_pysimts():
    model = tiny_model(**DEEP)
    torch.manual_seed(0)
    model.reset_parameters()
    assert model.dec.emb.weight[0].abs().sum() == 0
    assert model.encoders["src"].emb.weight[0].abs().sum() == 0
    assert model.dec.out2prob.weight is model.dec.emb.weight


def test_the_papers_model_has_its_size():
    model = tiny_model(
        n_words=1, emb_dim=200, enc_dim=320, dec_dim=320, n_encoders=2, att_bottleneck="hid", tied_emb="2way",
        out_logic="deep",
    )  # fmt: skip
    words = 9797 + 6405 - 2 * len(model.src_vocab)
    n_parameters = sum(p.numel() for p in model.parameters()) + 200 * words + (6405 - len(model.trg_vocab))
    assert n_parameters == 7_894_045  # "about 7.89M"
