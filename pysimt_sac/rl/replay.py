"""The replay buffer: a ring buffer of scored rollouts, in whole batches, sampled uniformly.

Everything is kept in host memory, in small types. `state_dict` holds only tensors and plain values, and few of them
however full the buffer is, so that it can be saved often.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pysimt_sac.core.batch import Batch
from pysimt_sac.core.distributed import world
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

    def mask_N(self, steps: Steps) -> Tensor:
        """Return which of a batch's steps are branched."""
        mask_N = torch.zeros(len(steps), dtype=torch.bool, device=self.times_M.device)
        mask_N[self.rows_M(steps)] = True
        return mask_N

    @property
    def order_M(self) -> Tensor:
        """The sort key of the states."""
        return order_of_branches(self.sentences_M)

    def overwrite(self, q_INA: Tensor, steps: Steps) -> None:
        """Replace Q of the branched states by the returns of their words, in place."""
        q_INA[:, self.rows_M(steps)] = self.returns_MK


def order_of_branches(sentences_M: Tensor) -> Tensor:
    """Return whether a state is the first branched one of its sentence (0), the second (1), and so on."""
    return (sentences_M.unsqueeze(1) == sentences_M).tril(-1).sum(1)


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
    z_TB: random labels of the words, for rewards that learn them. learned_TB: the share of such rewards in the
    potentials. branches, choices: of branched rollouts. global_batch_size: over all ranks, if sharded.
    """

    source_SB: Tensor
    reference_RB: Tensor
    tokens_TB: Tensor
    potentials_TB: Tensor
    scale_B: Tensor
    z_TB: Tensor | None = None
    learned_TB: Tensor | None = None
    branches: Branches | None = None
    choices: Choices | None = None
    created_at_update: int = 0
    global_batch_size: int = 0

    @property
    def size(self) -> int:
        """The number of hypotheses."""
        return self.tokens_TB.size(1)

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

    def select(self, columns: Tensor) -> "Experience":
        """Return some of the hypotheses, which must not be branched."""
        assert self.branches is None
        return self.replaced(
            {name: value.index_select(-1, columns.to(value.device)) for name, value in self.tensors().items()}
        )

    def batch(self, source: str, target: str) -> Batch:
        """Return its sentence pairs as a batch with these names of the two sides."""
        return Batch({source: self.source_SB, target: self.reference_RB})

    def to(self, device: torch.device) -> "Experience":
        """Return the experience on another device."""
        return self.replaced({name: value.to(device) for name, value in self.tensors().items()})

    def tensors(self) -> dict[str, Tensor]:
        """Return all tensors by name, those of branches and choices as `PART.NAME`."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for part in PARTS:
            if values[part] is not None:
                values |= {f"{part}.{name}": value for name, value in values[part]._asdict().items()}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}

    def replaced(self, tensors: Mapping[str, Tensor]) -> "Experience":
        """Return the experience with other tensors, named as in `tensors`."""
        return dataclasses.replace(self, **assemble(tensors))

    def converted(self, types: dict[torch.dtype, torch.dtype]) -> "Experience":
        """Return a detached copy in host memory, with tensor types converted."""
        tensors = {name: value.detach() for name, value in self.tensors().items()}
        return self.replaced(
            {name: value.to("cpu", types.get(value.dtype, value.dtype), copy=True) for name, value in tensors.items()}
        )


PARTS: dict[str, type[Branches] | type[Choices]] = {"branches": Branches, "choices": Choices}


def assemble(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return the fields of an experience from tensors named as in `Experience.tensors`."""
    fields: dict[str, Any] = {name: value for name, value in tensors.items() if "." not in name}
    for part, kind in PARTS.items():
        own = {name.partition(".")[2]: value for name, value in tensors.items() if name.startswith(f"{part}.")}
        if own:
            fields[part] = kind(**own)
    return fields


def bytes_needed(
    size: int,
    batch_size: int,
    source_length: int,
    reference_length: int,
    rollout_steps: int,
    labels: bool = False,
    n_words: int = 0,
    n_states: int = 0,
) -> int:
    """Return the maximum memory of `size` batches, in bytes, for sentences up to these lengths.

    n_words, n_states: likeliest words per step and branched states per sentence, in branched rollouts.
    """
    per_step = 4 + 4 + (8 if labels else 0)  # word, potential; label and the learned part of the potential
    per_step += n_words * (4 + 4 + 4)  # word, log pi, reward
    per_state = 4 + 4 + n_words * (4 + 1 + 4 + 4)  # time, sentence; word, valid flag, reward, return
    per_sentence = 4 * (source_length + reference_length) + 4 + per_step * rollout_steps + 4 + per_state * n_states
    return size * batch_size * per_sentence


# Padding of sharded experience: after a sentence's last step, these fields repeat the last value,
# log-probabilities of the likeliest words are -inf, and all others are 0.
KEEP_LAST = ("potentials_TB", "learned_TB")
NO_WORD = {"choices.log_pi_TBK": -torch.inf}


def gather_entries(entries: list[Experience]) -> list[Experience]:
    """Join the experiences of all ranks on rank 0; return none on the others."""
    if world.size == 1:
        return entries
    parts = world.gather_on_main([entry.tensors() for entry in entries if entry.global_batch_size])
    if not world.is_main:
        return []
    joined = (join_shards(pieces) for pieces in zip(*parts, strict=True))
    return [
        dataclasses.replace(entry, **assemble(next(joined))) if entry.global_batch_size else entry for entry in entries
    ]


def join_shards(parts: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Concatenate the sentences of all shards, padded to the longest."""
    sizes = [part["scale_B"].numel() for part in parts]
    joined = {name: join_field(name, [part[name] for part in parts]) for name in parts[0]}
    if "branches.sentences_M" in joined:
        n_states = torch.tensor([len(part["branches.sentences_M"]) for part in parts])
        first = torch.tensor([0, *sizes[:-1]]).cumsum(0).repeat_interleave(n_states)
        sentences_M = joined["branches.sentences_M"] + first.to(joined["branches.sentences_M"].dtype)
        joined["branches.sentences_M"] = sentences_M
        order_M = order_of_branches(sentences_M).argsort(stable=True)
        joined |= {name: value[order_M] for name, value in joined.items() if name.startswith("branches.")}
    return joined


def join_field(name: str, values: list[Tensor]) -> Tensor:
    """Join one field of all shards."""
    if name.startswith("branches.") or values[0].dim() == 1:
        return torch.cat(values)
    longest = max(map(len, values))

    def padded(value: Tensor) -> Tensor:
        rows = value[-1:] if name in KEEP_LAST else torch.full_like(value[:1], NO_WORD.get(name, 0))
        return torch.cat((value, *[rows] * (longest - len(value))))

    return torch.cat([padded(value) for value in values], 1)


def local_shard(experience: Experience) -> Experience:
    """Return this rank's sentences of an experience."""
    if not world.can_shard(experience.size):
        return experience
    own, tensors = world.local_slice(experience.size), experience.tensors()
    parts = {name: value[own] if value.dim() == 1 else value[:, own] for name, value in tensors.items()}
    if experience.branches is not None:
        sentences_M = experience.branches.sentences_M
        mine_M = (sentences_M >= own.start) & (sentences_M < own.stop)
        parts |= {name: value[mine_M] for name, value in tensors.items() if name.startswith("branches.")}
        parts["branches.sentences_M"] = parts["branches.sentences_M"] - own.start
    n_steps = int(parts["tokens_TB"].ne(PAD).sum(0).max()) - 1
    for name, value in parts.items():
        if name not in ("source_SB", "reference_RB") and "_TB" in name:
            parts[name] = value[: n_steps + (name == "tokens_TB")]
    contiguous = {name: value.clone() for name, value in parts.items()}
    return dataclasses.replace(experience.replaced(contiguous), global_batch_size=experience.size)


class ReplayBuffer:
    """The last `size` experiences; it has its own random state."""

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.entries: list[Experience] = []
        self.position = 0  # of the next entry to overwrite, once the buffer is full
        self.generator = torch.Generator().manual_seed(seed)

    def __len__(self) -> int:
        return len(self.entries)

    def describe_size(
        self, batch_size: int, longest: int, labels: bool = False, n_words: int = 0, n_states: int = 0
    ) -> str:
        """Describe the memory of the full buffer; labels: whether words are labelled; see `bytes_needed`."""
        most = bytes_needed(self.size, batch_size, longest, longest, longest, labels, n_words, n_states)
        return f"Replay buffer: at most {most / 1e6:.0f} MB, if sentences have up to {longest} words"

    def add(self, experience: Experience) -> None:
        """Store an experience; overwrite the oldest if the buffer is full."""
        stored = experience.converted(STORED_AS)
        if len(self.entries) < self.size:
            self.entries.append(stored)
        else:
            self.entries[self.position] = stored
        self.position = (self.position + 1) % self.size

    def sample(self) -> Experience:
        """Sample a stored experience uniformly; until the next batch, `World.sharded` refers to it."""
        place = int(torch.randint(len(self.entries), (), generator=self.generator))
        world.global_batch_size = self.entries[place].global_batch_size
        return self.entries[place].converted(IN_USE)

    def metrics(self, update: int) -> dict[str, float]:
        """Return how full the buffer is, and the mean age of its experiences in updates."""
        ages = [update - entry.created_at_update for entry in self.entries]
        return {"replay_fill": len(self) / self.size, "replay_age": sum(ages) / max(1, len(ages))}

    def state_dict(self) -> dict[str, Any]:
        """Return the entries of all ranks, by field: all values concatenated, and their shapes."""
        entries = gather_entries(self.entries)
        fields: dict[str, Any] = {}
        for name in entries[0].tensors() if entries else ():
            values = [entry.tensors()[name] for entry in entries]
            row = torch.cat([value.flatten() for value in values])
            fields[name] = {"numbers": row, "shapes": [list(value.shape) for value in values]}
        return {
            "fields": fields,
            "created_at_update": [entry.created_at_update for entry in self.entries],
            "position": self.position,
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state; each rank keeps its shard."""
        columns = {}
        for name, field in state["fields"].items():
            sizes = [torch.Size(shape).numel() for shape in field["shapes"]]
            pieces = field["numbers"].split(sizes)
            columns[name] = [piece.view(shape).clone() for piece, shape in zip(pieces, field["shapes"], strict=True)]
        self.entries = [
            local_shard(
                Experience(
                    created_at_update=created, **assemble({name: column[place] for name, column in columns.items()})
                )
            )
            for place, created in enumerate(state["created_at_update"])
        ]
        self.position = state["position"]
        self.generator.set_state(state["generator"])
