"""A straightforward step-by-step reference: what the engine does, without its optimisations.

Every step projects the whole source again, computes the output layer for padding too, and lets autograd record it all;
batches are grouped by source length alone. Same mathematics, same weights, same losses.
"""

import itertools

import torch
from torch import nn

from pysimt_sac.core.vocabulary import BOS
from pysimt_sac.hosts.engine.nmt import SimultaneousNMT


class ReferenceNMT(SimultaneousNMT):
    def forward(self, batch, uctr=0, ectr=0):
        encoder = self.encoders[self.sl]
        embedded = nn.functional.dropout(encoder.emb(batch[self.sl]), encoder.do_emb.p, self.training)
        hidden = encoder.enc(embedded)[0]
        for layer in encoder.output:
            hidden = (
                nn.functional.dropout(hidden, layer.p, self.training)
                if isinstance(layer, nn.Dropout)
                else layer(hidden)
            )
        states = {self.sl: (hidden, batch[self.sl].ne(0).long())}
        words, h, loss = batch[self.tl], None, 0.0
        for now, after in itertools.pairwise(words):
            log_p, h = self.dec.f_next(states, self.dec.get_emb(now), h)
            loss = loss + nn.functional.nll_loss(log_p, after, ignore_index=0, reduction="sum")
        return {"loss": loss, "n_items": int(words[1:].ne(0).sum())}


def greedy_step_by_step(model, batch, max_len):
    """Search greedily; keep every sentence until the last one ends."""
    with torch.no_grad():
        states = model.encode(batch)
        words, h = torch.full((batch.size,), BOS), None
        ended, found = torch.zeros(batch.size, dtype=torch.bool), []
        for _ in range(max_len):
            log_p, h = model.dec.f_next(states, model.dec.get_emb(words), h)
            log_p[:, :2] = -torch.inf
            words = log_p.argmax(-1)
            found.append(words)
            ended |= words.eq(2)
            if bool(ended.all()):
                break
        return torch.stack(found)


def beam_step_by_step(model, batch, beam_size, max_len):
    """Search with a beam over tiled states; keep every sentence until the last one ends."""
    with torch.no_grad():
        size, k = batch.size, beam_size
        rows = torch.arange(size).repeat_interleave(k)
        states = {name: (s[:, rows], m[:, rows]) for name, (s, m) in model.encode(batch).items()}
        words, h = torch.full((size * k,), BOS), None
        total = torch.full((size, k), -torch.inf)
        total[:, 0] = 0.0
        ended = torch.zeros(size, k, dtype=torch.bool)
        for _ in range(max_len):
            log_p, h = model.dec.f_next(states, model.dec.get_emb(words), h)
            log_p[:, :2] = -torch.inf
            log_p = log_p.view(size, k, -1)
            stay = torch.full_like(log_p, -torch.inf)
            stay[..., 0] = 0.0
            log_p = torch.where(ended.unsqueeze(-1), stay, log_p)
            total, flat = (total.unsqueeze(-1) + log_p).flatten(1).topk(k)
            parents = flat // log_p.size(-1)
            words = (flat % log_p.size(-1)).flatten()
            ended = ended.gather(1, parents) | words.view(size, k).eq(2)
            h = h.view(size, k, -1).gather(1, parents.unsqueeze(-1).expand(-1, -1, h.size(-1))).flatten(0, 1)
            if bool(ended.all()):
                break
        return total
