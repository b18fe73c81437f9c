"""Tiny actors made in memory: the engine's, and one that knows no more of its decoder than pysimt's protocol."""

import torch
from torch import nn

from pysimt_sac.core.filters import FilterChain
from pysimt_sac.core.options import defaults
from pysimt_sac.core.sections import ModelOptions, TrainOptions
from pysimt_sac.hosts.engine.actor import EngineActor
from pysimt_sac.hosts.pysimt.actor import PysimtActor
from pysimt_sac.rl.rollout import roll_out
from pysimt_sac.rl.setup import Setup


class ProtocolDecoder(nn.Module):
    """A decoder of the engine's that offers `f_init`, `f_next` and `get_emb`, as pysimt's do, and no more."""

    def __init__(self, dec):
        super().__init__()
        self.inner = dec
        self.f_init, self.f_next, self.get_emb = dec.f_init, dec.f_next, dec.get_emb
        self.hidden_size = dec.dec1.hidden_size


def engine_actor(model):
    return EngineActor.of(model)


def protocol_actor(model):
    """The actor of pysimt's host over the same weights."""
    networks = nn.ModuleDict({"encoders": model.encoders, "dec": ProtocolDecoder(model.dec)})
    vocabularies = model.trg_vocab.tokens, lambda split, size: [], model.src_vocab.tokens
    return PysimtActor(networks, model.sl, model.tl, *vocabularies)


ACTORS = {"engine": engine_actor, "pysimt": protocol_actor}


def rollout(actor, batch, limits_B, generator=None, forced_TB=None, **more):
    """A rollout of an actor as it is."""
    with torch.no_grad():
        return roll_out(actor.stepper(actor.encode(batch)), limits_B, generator, forced_TB, **more)


def make_setup(model, actor=None, log=None, filters=(), **options):
    """What an algorithm is built from, around a tiny model."""
    section = {**defaults(ModelOptions), **model.opts.model, **options}
    say = (lambda line: None) if log is None else log.append
    chain = FilterChain(filters)
    train = TrainOptions(batch_size=8, gclip=0.0)
    return Setup(actor or engine_actor(model), section, "tiny.conf", seed=1, train=train, filters=chain, log=say)
