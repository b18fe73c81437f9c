"""Q of some words against the full product; padding, the beginning at zero, where gradients go; target networks."""

import dataclasses

import pytest
import torch
from torch import nn

from pysimt_sac.core.sections import ModelOptions
from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import PAD
from pysimt_sac.hosts.engine.actor import EngineActor
from pysimt_sac.rl.critic import Critic, TargetNetwork, polyak_update
from pysimt_sac.rl.losses import critic_loss
from tests.hosts.engine.tiny import tiny_model

OPTIONS = ModelOptions(
    emb_dim=4, enc_dim=5, dec_dim=6, out_logic="deep", dropout_emb=0.5, dropout_ctx=0.5, dropout_out=0.5
)
VOCABULARY = 9
REFERENCE = torch.tensor([[1, 1, 1], [5, 6, 7], [6, 2, 8], [2, 0, 4], [0, 0, 2]])
WORDS = torch.tensor([[1, 1, 1], [4, 5, 2], [8, 2, 0], [2, 0, 0]])


def make(spread=0.6, seed=0, **options):
    """A critic with random weights; 0 keeps those it begins with."""
    torch.manual_seed(seed)
    critic = Critic(dataclasses.replace(OPTIONS, **options), VOCABULARY)
    if spread:
        with torch.no_grad():
            for parameter in critic.parameters():
                parameter.normal_(std=spread)
    return critic


def lengths(tokens_TB):
    return tokens_TB.ne(PAD).sum(0)


def readouts(critic, reference=REFERENCE, words=WORDS):
    return critic(reference, lengths(reference), words, Steps.of(lengths(words)))


def taken():
    return Steps.of(lengths(WORDS)).flatten(WORDS[1:])


@pytest.mark.parametrize("tied", [False, "2way", "3way"])
def test_q_of_some_words_is_that_of_the_full_product_and_so_are_its_gradients(tied):
    critic = make(tied_emb=tied)
    tokens_NK = torch.randint(0, VOCABULARY, (6, 4), generator=torch.Generator().manual_seed(0))
    for words in (taken(), tokens_NK):
        few = critic.q_of(readouts(critic), words)
        full = critic.q_of_all(readouts(critic))
        full = full.gather(1, words.view(6, -1)).view_as(words)
        torch.testing.assert_close(few, full)
        gradients = [
            torch.autograd.grad(q.square().sum(), list(critic.parameters()), allow_unused=True) for q in (few, full)
        ]
        for one, other in zip(*gradients, strict=True):
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("source", ["fresh", "from the actor"])
def test_a_critic_begins_at_zero_and_learns_from_there(source):
    critic = make(spread=0)
    if source == "from the actor":
        critic.start_from(EngineActor.of(tiny_model(n_words=VOCABULARY - 4, out_logic="deep")).networks)
    assert (critic.q_of_all(readouts(critic)) == 0).all()
    optimizer = torch.optim.Adam(critic.parameters(), lr=0.02)
    target = torch.tensor([1.0, -1.0, 2.0, 0.5, 0.0, 3.0])
    for _ in range(150):
        optimizer.zero_grad()
        loss = critic_loss(critic.q_of(readouts(critic), taken()).unsqueeze(0), target)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.01


def test_padding_changes_neither_q_nor_gradients():
    critic = make().double()
    together = critic.q_of(readouts(critic), taken())
    sentences = Steps.of(lengths(WORDS)).sentences_N

    def cut(tokens_TB, column, more=0):
        rows = tokens_TB[: int(lengths(tokens_TB)[column]) + more, column]
        return rows.unsqueeze(1)

    losses = [together.square().sum(), torch.zeros((), dtype=torch.float64)]
    for column in range(3):
        reference, words = cut(REFERENCE, column), cut(WORDS, column)
        alone = critic.q_of(readouts(critic, reference, words), words[1:, 0])
        torch.testing.assert_close(alone, together[sentences == column])
        losses[1] = losses[1] + alone.square().sum()
    gradients = [torch.autograd.grad(loss, list(critic.parameters())) for loss in losses]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


def test_no_dropout_even_in_training():
    critic = make(n_encoders=2, dropout_enc=0.5).train()
    assert torch.equal(readouts(critic), readouts(critic))


def test_it_reads_the_reference_and_the_words_before():
    critic = make()
    q = critic.q_of_all(readouts(critic))
    other = REFERENCE.clone()
    other[1, 0] = 8
    changed = (critic.q_of_all(readouts(critic, other)) - q).abs().amax(-1) > 1e-6
    assert changed.tolist() == [True, False, False, True, False, True]  # all steps of the first sentence
    words = WORDS.clone()
    words[2, 0] = 6
    changed = (critic.q_of_all(readouts(critic, words=words)) - q).abs().amax(-1) > 1e-6
    assert changed.tolist() == [False, False, False, False, False, True]  # only what comes after that word


def test_starting_from_the_actor_takes_what_fits():
    model = tiny_model(n_words=VOCABULARY - 4, out_logic="deep")
    actor, critic = model.dec, make(spread=0, emb_dim=model.options.emb_dim, enc_dim=model.options.enc_dim)
    taken_names = critic.start_from(EngineActor.of(model).networks)
    assert torch.equal(critic.dec.emb.weight, actor.emb.weight)
    assert torch.equal(critic.encoder.emb.weight, actor.emb.weight)
    assert torch.equal(critic.dec.dec1.weight_hh, actor.dec1.weight_hh)
    assert torch.equal(critic.dec.att["ref"].hid2ctx.weight, actor.att["src"].hid2ctx.weight)
    assert not critic.dec.hid2out.weight.any()
    assert not critic.dec.out2prob.bias.any()
    assert torch.equal(critic.encoder.enc.weight_hh_l0, model.encoders["src"].enc.weight_hh_l0)
    assert {"dec.dec0.weight_ih", "encoder.enc.weight_ih_l0"} <= set(taken_names)
    before = actor.emb.weight.clone()
    with torch.no_grad():
        critic.dec.emb.weight.add_(1)
    assert torch.equal(actor.emb.weight, before)


def test_its_loss_changes_neither_the_target_network_nor_the_actor():
    critic = make()
    copied = TargetNetwork(critic)
    target = copied.network.q_of(readouts(copied.network), taken())
    assert not target.requires_grad
    critic_loss(critic.q_of(readouts(critic), taken()).unsqueeze(0), target + 1).backward()
    assert all(parameter.grad is None for parameter in copied.network.parameters())
    assert all(parameter.grad is not None for parameter in critic.parameters())


def test_polyak_averaging_moves_by_exactly_tau():
    target, online = [torch.tensor([0.0, 8.0]), torch.tensor(4.0)], [torch.tensor([1.0, 0.0]), torch.tensor(4.0)]
    polyak_update(target, online, 0.25)
    assert target[0].tolist() == [0.25, 6.0]
    assert target[1].item() == 4
    assert online[0].tolist() == [1, 0]


def test_a_target_network_follows_its_network_and_is_never_trained():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2)).train()
    copied = TargetNetwork(network)
    assert network.training
    assert not copied.network.training
    assert not any(parameter.requires_grad for parameter in copied.network.parameters())
    begin = [parameter.clone() for parameter in network.parameters()]
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(1.0)
    copied.polyak_update(0.0)
    for target, first in zip(copied.network.parameters(), begin, strict=True):
        assert torch.equal(target, first)
    copied.polyak_update(0.005)
    for target, first in zip(copied.network.parameters(), begin, strict=True):
        torch.testing.assert_close(target, first + 0.005)
    copied.polyak_update(1.0)
    for target, online in zip(copied.network.parameters(), network.parameters(), strict=True):
        assert torch.equal(target, online)
        assert target is not online
