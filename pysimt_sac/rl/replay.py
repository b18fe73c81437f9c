"""The replay memory: rollouts with what they earned, a ring of whole batches, drawn uniformly.

Everything is in host memory, in small types, and has a random state of its own. `state_dict` holds tensors and plain
values only, few of them however many entries there are, so that it can be saved often.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pysimt_sac.engine.data.corpus import Batch
from pysimt_sac.engine.data.vocabulary import PAD

STORED_AS = {torch.int64: torch.int32, torch.float64: torch.float32}  # vocabularies are far smaller than 2^31
IN_USE = {torch.int32: torch.int64}


@dataclass(frozen=True)
class Experience:
    """A rolled-out batch. T is the longest rollout here; the other sides have lengths of their own.

    source_SB, reference_RB: as in the batch. words_TB: the rollout, `<bos> ... <eos>`, one row more than it has steps.
    potentials_TB: R_t at every step, R_T after the end. scale_B: what their growth is multiplied by.
    ended_B: by `<eos>`, or else cut off. z_TB: the words' random labels, where a reward learns them.
    learnt_TB: what such rewards have in the potentials.
    born: at which update.
    """

    source_SB: Tensor
    reference_RB: Tensor
    words_TB: Tensor
    potentials_TB: Tensor
    scale_B: Tensor
    ended_B: Tensor
    z_TB: Tensor | None = None
    learnt_TB: Tensor | None = None
    born: int = 0

    @property
    def lengths_B(self) -> Tensor:
        """The rollouts' lengths, `<bos>` and `<eos>` counted."""
        return self.words_TB.ne(PAD).sum(0)

    @property
    def potentials_before_TB(self) -> Tensor:
        """R_{t-1} at every step; R_0 = 0."""
        return torch.cat((torch.zeros_like(self.potentials_TB[:1]), self.potentials_TB[:-1]))

    @property
    def rewards_TB(self) -> Tensor:
        """r_t = c (R_t - R_{t-1}); zero after the end."""
        return self.scale_B * (self.potentials_TB - self.potentials_before_TB)

    @property
    def scores_B(self) -> Tensor:
        """c R_T: all that each translation earned."""
        return self.scale_B * self.potentials_TB[-1]

    def select(self, columns: Tensor) -> "Experience":
        """Some of the translations."""
        chosen = {name: value.index_select(-1, columns.to(value.device)) for name, value in self.tensors().items()}
        return dataclasses.replace(self, **chosen)  # type: ignore[arg-type]

    def batch(self, source: str, target: str) -> Batch:
        """The sentence pairs it came from, with the names of their sides."""
        return Batch({source: self.source_SB, target: self.reference_RB})

    def tensors(self) -> dict[str, Tensor]:
        """All that is not a plain value."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}

    def converted(self, types: dict[torch.dtype, torch.dtype]) -> "Experience":
        """A copy with other number types, in host memory and detached from everything."""
        tensors = {name: value.detach() for name, value in self.tensors().items()}
        moved = {
            name: value.to("cpu", types.get(value.dtype, value.dtype), copy=True) for name, value in tensors.items()
        }
        return dataclasses.replace(self, **moved)  # type: ignore[arg-type]


def bytes_needed(
    size: int, batch_size: int, source_length: int, reference_length: int, rollout_steps: int, labels: bool = False
) -> int:
    """The most memory that a replay of `size` batches takes, if no sentence is longer than that."""
    per_step = 4 + 4 + (8 if labels else 0)  # word, potential; label and the learnt part of the potential
    per_sentence = 4 * (source_length + reference_length) + 4 + per_step * rollout_steps + 4 + 1
    return size * batch_size * per_sentence


class Replay:
    """The last `size` experiences."""

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.entries: list[Experience] = []
        self.position = 0  # where the next one goes, once the ring is full
        self.generator = torch.Generator().manual_seed(seed)

    def __len__(self) -> int:
        return len(self.entries)

    def add(self, experience: Experience) -> None:
        """Remember a batch, in place of the oldest if there is no more room."""
        stored = experience.converted(STORED_AS)
        if len(self.entries) < self.size:
            self.entries.append(stored)
        else:
            self.entries[self.position] = stored
        self.position = (self.position + 1) % self.size

    def sample(self) -> Experience:
        """One of all batches, each as likely as the others."""
        place = int(torch.randint(len(self.entries), (), generator=self.generator))
        return self.entries[place].converted(IN_USE)

    def mean_age(self, update: int) -> float:
        """How many updates ago the batches were rolled out, on average."""
        return sum(update - entry.born for entry in self.entries) / max(1, len(self.entries))

    @property
    def nbytes(self) -> int:
        """The memory in use."""
        return sum(value.nbytes for entry in self.entries for value in entry.tensors().values())

    def state_dict(self) -> dict[str, Any]:
        """All entries, by field: their numbers in one row, and their shapes."""
        fields: dict[str, Any] = {}
        for name in self.entries[0].tensors() if self.entries else ():
            values = [entry.tensors()[name] for entry in self.entries]
            row = torch.cat([value.flatten() for value in values])
            fields[name] = {"numbers": row, "shapes": [list(value.shape) for value in values]}
        return {
            "fields": fields,
            "born": [entry.born for entry in self.entries],
            "position": self.position,
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        columns = {}
        for name, field in state["fields"].items():
            sizes = [torch.Size(shape).numel() for shape in field["shapes"]]
            pieces = field["numbers"].split(sizes)
            columns[name] = [piece.view(shape).clone() for piece, shape in zip(pieces, field["shapes"], strict=True)]
        self.entries = [
            Experience(born=born, **{name: column[place] for name, column in columns.items()})
            for place, born in enumerate(state["born"])
        ]
        self.position = state["position"]
        self.generator.set_state(state["generator"])
