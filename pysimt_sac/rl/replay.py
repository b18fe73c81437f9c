"""The replay buffer: a ring buffer of scored rollouts, in whole batches, sampled uniformly.

Everything is kept in host memory, in small types. `state_dict` holds only tensors and plain values, and few of them
however full the buffer is, so that it can be saved often.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pysimt_sac.core.batch import Batch
from pysimt_sac.core.policy import Support
from pysimt_sac.core.steps import Steps
from pysimt_sac.core.vocabulary import PAD

STORED_AS = {torch.int64: torch.int32, torch.float64: torch.float32}  # vocabularies are far smaller than 2^31
IN_USE = {torch.int32: torch.int64}


class Branches(NamedTuple):
    """M branched states of a batch, and up to K words of each.

    times_M, sentences_M: time step and sentence of each state. rewards_MK: r(s,a) of the word itself, if known.
    returns_MK: Q(s,a), the undiscounted return of the word and its continuation.
    """

    times_M: Tensor
    sentences_M: Tensor
    tokens_MK: Tensor
    valid_MK: Tensor
    rewards_MK: Tensor
    returns_MK: Tensor

    @property
    def support(self) -> Support:
        """The words as a support."""
        return Support(self.tokens_MK, self.valid_MK)

    def positions_M(self, n_sentences: int) -> Tensor:
        """Return the positions of the states in a flattened (T, B) array."""
        return self.times_M * n_sentences + self.sentences_M

    def rows_M(self, steps: Steps) -> Tensor:
        """Return the indices of the states in the flat order of a batch's steps."""
        return steps.rows_of(self.positions_M(steps.shape[1]))

    def futures_MK(self, known_reward: bool) -> Tensor:
        """Return what critics learn of these words: their returns, without the reward of the word if that is known."""
        return self.returns_MK - self.rewards_MK if known_reward else self.returns_MK

    def mask_N(self, steps: Steps) -> Tensor:
        """Return which of a batch's steps are branched."""
        mask_N = torch.zeros(len(steps), dtype=torch.bool, device=self.times_M.device)
        mask_N[self.rows_M(steps)] = True
        return mask_N


class Choices(NamedTuple):
    """The likeliest words of every state of a path: log pi under the behaviour policy, and the known rewards r(s,a)."""

    tokens_TBK: Tensor
    log_pi_TBK: Tensor
    rewards_TBK: Tensor


@dataclass(frozen=True)
class Experience:
    """A scored rollout of a batch.

    source_SB, reference_RB: as in the batch. tokens_TB: the rollout, `<bos> ... <eos>`, with one more row than steps.
    potentials_TB: R_t at every step, R_T after the end. scale_B: the reward scale c.
    branches, choices: of branched rollouts. others: what else was in the batch, by name. sides: names of source and
    target in a batch.
    """

    source_SB: Tensor
    reference_RB: Tensor
    tokens_TB: Tensor
    potentials_TB: Tensor
    scale_B: Tensor
    branches: Branches | None = None
    choices: Choices | None = None
    others: Mapping[str, Tensor] = dataclasses.field(default_factory=dict)
    created_at_update: int = 0
    sides: tuple[str, str] = ("src", "trg")

    @property
    def lengths_B(self) -> Tensor:
        """The lengths of the rollouts, including `<bos>` and `<eos>`."""
        return self.tokens_TB.ne(PAD).sum(0)

    @property
    def potentials_before_TB(self) -> Tensor:
        """R_{t-1} at every step; R_0 = 0."""
        return torch.cat((torch.zeros_like(self.potentials_TB[:1]), self.potentials_TB[:-1]))

    @property
    def rewards_TB(self) -> Tensor:
        """r_t = c (R_t - R_{t-1}); zero after the end."""
        return self.scale_B * (self.potentials_TB - self.potentials_before_TB)

    @property
    def returns_B(self) -> Tensor:
        """The return of each hypothesis, c R_T."""
        return self.scale_B * self.potentials_TB[-1]

    @property
    def reference_words_TB(self) -> Tensor:
        """The reference's word ref_t at every step; `<pad>` after the end of the reference."""
        return rows_beside(self.tokens_TB[1:], self.reference_RB[1:])

    @property
    def aligned_TB(self) -> Tensor:
        """1[y_{t-1} = ref_{t-1}] at every step; both start with `<bos>`."""
        before_TB = self.tokens_TB[:-1]
        return before_TB == rows_beside(before_TB, self.reference_RB)

    def select(self, columns: Tensor) -> "Experience":
        """Return some of the hypotheses, which must not be branched."""
        assert self.branches is None
        return self.replaced(
            {
                name: value.index_select(min(1, value.dim() - 1), columns.to(value.device))
                for name, value in self.tensors().items()
            }
        )

    @cached_property
    def steps(self) -> Steps:
        """The real steps of the rollouts."""
        return Steps.of(self.lengths_B.cpu(), self.tokens_TB.device)

    @cached_property
    def batch(self) -> Batch:
        """The sentence pairs as a batch."""
        source, target = self.sides
        return Batch({source: self.source_SB, target: self.reference_RB, **self.others})

    def to(self, device: torch.device) -> "Experience":
        """Return the experience on another device."""
        return self.replaced({name: value.to(device) for name, value in self.tensors().items()})

    def tensors(self) -> dict[str, Tensor]:
        """Return all tensors by name, those of branches, choices and others as `PART.NAME`."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        parts = {part: values[part]._asdict() for part in ("branches", "choices") if values[part] is not None}
        for part, named in {**parts, "others": self.others}.items():
            values |= {f"{part}.{name}": value for name, value in named.items()}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}

    def replaced(self, tensors: Mapping[str, Tensor]) -> "Experience":
        """Return the experience with other tensors, named as in `tensors`."""
        return dataclasses.replace(self, **assemble(tensors))

    def converted(self, types: dict[torch.dtype, torch.dtype]) -> "Experience":
        """Return a detached copy in host memory, with tensor types converted, laid out as a restored one will be."""

        def copied(value: Tensor) -> Tensor:
            kind = types.get(value.dtype, value.dtype)
            return value.detach().to("cpu", kind, copy=True, memory_format=torch.contiguous_format)

        return self.replaced({name: copied(value) for name, value in self.tensors().items()})


def rows_beside(tokens_TB: Tensor, other_RB: Tensor) -> Tensor:
    """Return `other_RB` with as many rows as `tokens_TB`, cut or padded with `<pad>`."""
    rows = min(len(tokens_TB), len(other_RB))
    fitted_TB = torch.zeros_like(tokens_TB)
    fitted_TB[:rows] = other_RB[:rows]
    return fitted_TB


PARTS: dict[str, Callable[..., Any]] = {"branches": Branches, "choices": Choices, "others": dict}


def assemble(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return the fields of an experience from tensors named as in `Experience.tensors`."""
    fields: dict[str, Any] = {name: value for name, value in tensors.items() if "." not in name}
    for part, kind in PARTS.items():
        own = {name.partition(".")[2]: value for name, value in tensors.items() if name.startswith(f"{part}.")}
        if own:
            fields[part] = kind(**own)
    return fields


class ReplayBuffer:
    """The last `size` experiences; it has its own random state."""

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.entries: list[Experience] = []
        self.position = 0  # of the next entry to overwrite, once the buffer is full
        self.generator = torch.Generator().manual_seed(seed)

    def __len__(self) -> int:
        return len(self.entries)

    def clear(self, seed: int) -> None:
        """Remove all entries, and start a new random stream."""
        self.entries, self.position = [], 0
        self.generator.manual_seed(seed)

    def add(self, experience: Experience) -> None:
        """Store an experience; overwrite the oldest if the buffer is full."""
        stored = experience.converted(STORED_AS)
        if len(self.entries) < self.size:
            self.entries.append(stored)
        else:
            self.entries[self.position] = stored
        self.position = (self.position + 1) % self.size

    def sample(self) -> Experience:
        """Sample a stored experience uniformly."""
        place = int(torch.randint(len(self.entries), (), generator=self.generator))
        return self.entries[place].converted(IN_USE)

    def metrics(self, update: int) -> dict[str, float]:
        """Return how full the buffer is, and the mean age of its experiences in updates."""
        ages = [update - entry.created_at_update for entry in self.entries]
        return {"replay_fill": len(self) / self.size, "replay_age": sum(ages) / max(1, len(ages))}

    def state_dict(self) -> dict[str, Any]:
        """Return the entries by field: all values concatenated, and their shapes."""
        fields: dict[str, Any] = {}
        for name in self.entries[0].tensors() if self.entries else ():
            values = [entry.tensors()[name] for entry in self.entries]
            row = torch.cat([value.flatten() for value in values])
            fields[name] = {"numbers": row, "shapes": [list(value.shape) for value in values]}
        return {
            "fields": fields,
            "created_at_update": [entry.created_at_update for entry in self.entries],
            "sides": list(self.entries[0].sides) if self.entries else [],
            "position": self.position,
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state."""
        columns = {}
        for name, field in state["fields"].items():
            sizes = [torch.Size(shape).numel() for shape in field["shapes"]]
            pieces = field["numbers"].split(sizes)
            columns[name] = [piece.view(shape).clone() for piece, shape in zip(pieces, field["shapes"], strict=True)]
        self.entries = []
        for place, created in enumerate(state["created_at_update"]):
            fields = assemble({name: column[place] for name, column in columns.items()})
            self.entries.append(Experience(created_at_update=created, sides=tuple(state["sides"]), **fields))
        self.position = state["position"]
        self.generator.set_state(state["generator"])
