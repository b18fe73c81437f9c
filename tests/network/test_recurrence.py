"""The gradients written out by hand equal those of autograd on the same mathematics."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from pysimt_sac.core.sections import ModelOptions
from pysimt_sac.network.layers import ConditionalGRUDecoder, RecurrentEncoder
from pysimt_sac.network.recurrence import GRULayer, run_gru_layer
from pysimt_sac.network.stepper import QuickStep

SIZES = {"emb_dim": 5, "dec_dim": 7, "att_bottleneck": "hid", "out_logic": "deep", "att_temp": 1.7}


@pytest.fixture(autouse=True)
def double_precision():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def gradients(outputs, inputs, seed=1):
    generator = torch.Generator().manual_seed(seed)
    directions = [torch.randn(output.shape, generator=generator) for output in outputs]
    return torch.autograd.grad(outputs, inputs, directions, retain_graph=True)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("steps", [1, 4])
def test_gru_layer_equals_torchs(bidirectional, steps):
    gru = nn.GRU(5, 6, bidirectional=bidirectional)
    inputs = torch.randn(steps, 3, 5, requires_grad=True)
    ours, theirs = run_gru_layer(inputs, gru.all_weights), gru(inputs)[0]
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    variables = [inputs, *gru.parameters()]
    for mine, reference in zip(gradients([ours], variables), gradients([theirs], variables), strict=True):
        torch.testing.assert_close(mine, reference, rtol=0, atol=1e-12)


def test_gru_layer_by_finite_differences():
    weights = [torch.randn(2, 3, 2, 9), torch.randn(2, 9, 3), torch.randn(2, 9)]
    assert torch.autograd.gradcheck(GRULayer.apply, [weight.requires_grad_() for weight in weights])


@pytest.mark.parametrize("bottleneck", ["hid", "ctx", 4])
@pytest.mark.parametrize("steps", [1, 5])
@pytest.mark.parametrize(("size", "wait"), [(6, None), (7, None), (8, None), (6, 1)])  # 2, 1, 4, 2 blocks
def test_decoder_equals_step_by_step_autograd(bottleneck, steps, size, wait):
    options = ModelOptions(**{**SIZES, "att_bottleneck": bottleneck, "dec_dim": size})
    decoder = ConditionalGRUDecoder(options, 11, {"src": 8})
    decoder.wait = wait
    for parameter in decoder.parameters():
        nn.init.normal_(parameter, std=0.5)
    states = torch.randn(4, 3, 8, requires_grad=True)
    mask = torch.tensor([[1, 1, 1], [1, 1, 1], [1, 1, 0], [1, 0, 0]])
    words = decoder.emb(torch.randint(1, 11, (steps, 3)))
    results = [unroll(decoder.project_source({"src": (states, mask)}), words) for unroll in both_ways(decoder)]
    for ours, reference in zip(*results, strict=True):
        torch.testing.assert_close(ours, reference, rtol=0, atol=1e-12)
    unused = ("hid2out", "out2prob")
    variables = [states, *(p for name, p in decoder.named_parameters() if not name.startswith(unused))]
    for ours, reference in zip(*(gradients(result, variables) for result in results), strict=True):
        torch.testing.assert_close(ours, reference, rtol=0, atol=1e-11)


def both_ways(decoder):
    return decoder.unroll, decoder.unroll_step_by_step


@pytest.mark.parametrize("size", [6, 7, 8])
def test_a_quick_step_equals_a_plain_one(size):
    decoder = ConditionalGRUDecoder(ModelOptions(**{**SIZES, "dec_dim": size}), 11, {"src": 8})
    for parameter in decoder.parameters():
        nn.init.normal_(parameter, std=0.5)
    mask = torch.tensor([[1, 1, 1], [1, 1, 1], [1, 1, 0], [1, 0, 0]])
    memory = decoder.project_source({"src": (torch.randn(4, 3, 8), mask)})
    ours, plain = None, None
    with torch.no_grad():
        quick = QuickStep(decoder, memory)
        for words in torch.randint(1, 11, (3, 3, 2)):  # three steps of two hypotheses for each of three sentences
            ours, readout = quick(memory, words, ours)
            plain, context = decoder.step(memory, decoder.emb(words), plain)
            torch.testing.assert_close(ours, plain, rtol=0, atol=1e-12)
            expected = decoder.readout(plain, decoder.emb(words), context).flatten(0, 1)
            torch.testing.assert_close(readout, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_padding_changes_nothing_in_the_encoder(bidirectional):
    encoder = RecurrentEncoder(ModelOptions(**SIZES, enc_dim=6, n_encoders=2, enc_bidirectional=bidirectional), 11)
    ids = torch.tensor([[4, 5, 6], [7, 8, 0], [9, 0, 0]])
    ours, _ = encoder(ids)
    packed = pack_padded_sequence(encoder.emb(ids), torch.tensor([3, 2, 1]))
    theirs = pad_packed_sequence(encoder.enc(packed)[0])[0]
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    variables = [encoder.emb.weight, *encoder.enc.parameters()]
    for mine, reference in zip(gradients([ours], variables), gradients([theirs], variables), strict=True):
        torch.testing.assert_close(mine, reference, rtol=0, atol=1e-12)


def test_other_attentions_fall_back_to_autograd():
    decoder = ConditionalGRUDecoder(ModelOptions(**SIZES, att_type="dot"), 11, {"src": 8})
    memory = decoder.project_source({"src": (torch.randn(4, 3, 8), torch.ones(4, 3).long())})
    states, contexts = decoder.unroll(memory, decoder.emb(torch.randint(1, 11, (2, 3))))
    assert states.shape == contexts.shape == (2, 3, 7)
    assert not decoder.has_fast_path
