"""What a reward is, and how one is declared; every reward's file, ours or the user's, begins here.

Shaping is potential-based (Ng et al. 1999). A reward is a callable: `Translations` in, a *potential* R_t for every step
out; what a step earns is its growth, r_t = R_t - R_{t-1} with R_0 = 0. Rewards telescope: they sum up to R_T, the
translation's score, whatever the potentials between. So, without discount, these do not change which policy is best,
only how soon it is rewarded. A reward may answer in any of three ways:

- one number per sentence: its score, all of it earned at the last step;
- one sequence per sentence: R_1 ... R_T, one for each of its steps;
- an array (T, B), as `by_step` makes it.

The user's own reward is one function in a file that `reward_modules` names:

    from pysimt_sac.rewards import reward

    @reward("different_words")
    def different_words(translations):
        return [len(set(words)) / max(1, len(words)) for words in translations.hypotheses]

A class may be declared, too: it is made once, and its instance is the callable. It is given the options that its
`options_class` declares, or else the `RewardOptions`. That is a frozen dataclass of `option(...)`, as in our rewards'
files; its keys may then stand in `[model]`. A class that learns has `learn(translations)`, which returns numbers to log
and is called for every batch that is learned from, and `state_dict` and `load_state_dict`; if it has
`observe(translations)`, that is called once for every batch, when it is new.

Besides, translations have `sources`, the text that was translated, and `numbers`, the sentences' places in the training
text; both are made only when a reward asks for them. `docs/extending.md` has a reward that looks at the source.

With `reward_unit: word` hypotheses and references are lists of whole words, and steps are words, too; what that means
for the steps of the model is no reward's concern (`units.py`). One that looks at the model's own tensors sets
`counts_pieces = True`, and is always given pieces.

A function or a class may have `bounds`, the least and the most that its potentials can be, R_0 included; without, it
counts as unbounded. Algorithms that ask what other words would have earned (`Rewarder.next_rewards`) call it with the
hypotheses that those words lead to; a class that derives from `incremental.IncrementalReward` answers much faster.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from pysimt_sac.engine.config.options import option, read_section
from pysimt_sac.engine.config.parts import NamesParts, check_declaration
from pysimt_sac.engine.config.registry import REWARDS, load_plugin_modules
from pysimt_sac.engine.data.vocabulary import EOS, SPECIAL_TOKENS, UNK
from pysimt_sac.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")
Floats = np.ndarray[Any, np.dtype[np.float64]]
Bounds = tuple[float, float]
UNBOUNDED: Bounds = (-math.inf, math.inf)
UNKNOWN_WORD = SPECIAL_TOKENS[UNK]


@dataclasses.dataclass(frozen=True)
class RewardOptions(NamesParts):
    """The keys of `[model]` that all rewards share; each reward's own are declared in its file."""

    reward: str = option("bleu", "what is rewarded: a name, or several with weights such as `bleu:0.7,chrf:0.3`")
    reward_modules: tuple[str, ...] = option((), "Python files that register rewards of your own")
    reward_scale: float | str = option(
        "ref",
        "what rewards are multiplied by: the reference's length, the inverse of alpha, or a number; with `1/alpha`, "
        "since alpha stays in the losses, the temperature is alpha squared in units of the score",
        choices=("ref", "1/alpha"),
        above=0,
    )
    reward_unit: str = option(
        "piece",
        "what rewards and the scale `ref` count: the pieces that the model writes, or words, made of them by the "
        "`eval_filters` of `[train]`",
        choices=("piece", "word"),
    )

    @classmethod
    def options_of_named(cls, values: Mapping[str, Any], where: str) -> tuple[type, ...]:
        """The option classes of the rewards in the mixture."""
        options = read_section(cls, values, where)
        load_plugin_modules(options.reward_modules)
        return option_classes_of(REWARDS.get(name, f"{where} reward") for name in parse_mixture(options.reward, where))

    @classmethod
    def options_of_registered(cls, values: Mapping[str, Any], where: str) -> tuple[type, ...]:
        """Those of all rewards, also of the user's files and of other packages."""
        load_plugin_modules(read_section(cls, values, where).reward_modules)
        REWARDS.read_entry_points()
        return option_classes_of(REWARDS.items.values())


def option_classes_of(rewards: Iterable[Any]) -> tuple[type, ...]:
    """What some rewards declare; a function has no options."""
    classes = [options_class_of(declared) for declared in rewards if isinstance(declared, type)]
    return tuple(dict.fromkeys(classes))


def options_class_of(declared: type) -> type:
    """The options that a reward's class is made with."""
    cls = getattr(declared, "options_class", RewardOptions)
    check_declaration(cls, f"options_class of {declared.__name__}")
    return cls


def parse_mixture(text: str, where: str) -> dict[str, float]:
    """`bleu`, or `bleu:0.7,chrf:0.3`, as weights by name. where: the section, for messages."""
    weights: dict[str, float] = {}
    for part in text.split(","):
        name, _, weight = (piece.strip() for piece in part.partition(":"))
        try:
            number = float(weight or "1")
        except ValueError:
            number = math.nan
        if not name or not math.isfinite(number) or name.lower() in weights:
            raise UserError(f"{text!r} is not a list of rewards", f"{where} reward", "write it as `bleu:0.7,chrf:0.3`")
        weights[name.lower()] = number
    return weights


class ReadOptions(Protocol):
    """Something that reads options, such as `RLModel.read_options`."""

    def __call__(self, cls: type[T], /) -> T:
        """The options of `[model]` that `cls` declares."""


class RolloutTensors(NamedTuple):
    """Translations as the networks see them, for rewards that learn; nothing in it has a gradient.

    source_SB, words_TB: ids, the latter `<bos> ... <eos>`. source_BC: the mean of a source's states.
    embedding_TBE: the actor's embeddings of the words behind `<bos>`. z_TB: their random labels, where there are any.
    """

    source_SB: "Tensor"
    words_TB: "Tensor"
    source_BC: "Tensor"
    embedding_TBE: "Tensor"
    z_TB: "Tensor | None" = None


@dataclasses.dataclass(frozen=True)
class SourceTexts:
    """The sources of a batch, in text as soon as a reward asks for it.

    numbers: the sentences' places in the training text, from 0; empty where they are not known. filters: make words of
    pieces, where `reward_unit` is `word`.
    """

    ids_SB: "Tensor"
    tokens: Sequence[str]
    numbers: Sequence[int] = ()
    filters: Callable[[list[str]], list[str]] = list

    @cached_property
    def texts(self) -> list[str]:
        """One line for each sentence."""
        rows = self.ids_SB.t().tolist()
        return self.filters([" ".join(self.tokens[word] for word in row if word > EOS) for row in rows])


@dataclasses.dataclass(frozen=True)
class Translations:
    """Sampled translations of a batch: their words without `<bos>` and `<eos>`, and whether `<eos>` ended them.

    tensors: for rewards that learn. tokens: the vocabulary, by id, where it is known. source: the sources of the batch;
    sentences: which of them each hypothesis translates, if not one after the other.
    """

    hypotheses: list[list[str]]
    references: list[list[str]]
    ended: list[bool]
    tensors: RolloutTensors | None = None
    tokens: Sequence[str] = dataclasses.field(default=(), repr=False, compare=False)
    source: SourceTexts | None = dataclasses.field(default=None, repr=False, compare=False)
    sentences: Sequence[int] | None = dataclasses.field(default=None, repr=False, compare=False)

    @property
    def sources(self) -> list[str]:
        """The text that each hypothesis translates; words that the model does not know are `<unk>`."""
        if self.source is None:
            raise UserError("the sources are not known here", "Translations.sources")
        return [self.source.texts[sentence] for sentence in self.order]

    @property
    def numbers(self) -> list[int] | None:
        """The place, from 0, that the sentence of each hypothesis has in the training text.

        None where it is not known: in validation, for what was replayed, and in pysimt's own loop.
        """
        if self.source is None or not self.source.numbers:
            return None
        return [self.source.numbers[sentence] for sentence in self.order]

    @property
    def order(self) -> Sequence[int]:
        """Which sentence of the batch each hypothesis translates."""
        return range(len(self.hypotheses)) if self.sentences is None else self.sentences

    @cached_property
    def steps(self) -> list[int]:
        """Steps of each sentence: its words, and its `<eos>` unless it was cut off."""
        return [len(words) + ended for words, ended in zip(self.hypotheses, self.ended, strict=True)]

    def with_references_of(self, permutation: Sequence[int]) -> "Translations":
        """The control of permuted rewards for algorithms that look ahead: sentence i has permutation[i]'s reference.

        Its reward function, scale included, is then another sentence's, in a call of a `Rewarder` and in `next_rewards`
        alike, so that both agree. `permute` instead moves what was earned, which says nothing about other words.
        """
        return dataclasses.replace(self, references=[self.references[other] for other in permutation])

    @classmethod
    def from_ids(
        cls,
        sampled_TB: Any,
        references_TB: Any,
        tokens: Sequence[str],
        tensors: RolloutTensors | None = None,
        source: SourceTexts | None = None,
        sentences: Sequence[int] | None = None,
    ) -> "Translations":
        """From two tensors in the layout `<bos> ... <eos>` and the vocabulary, by id."""
        sampled, references = sampled_TB.t().tolist(), references_TB.t().tolist()
        return cls(
            [[tokens[word] for word in row if word > EOS] for row in sampled],
            [[tokens[word] for word in row if word > EOS] for row in references],
            [EOS in row for row in sampled],
            tensors,
            tokens,
            source,
            sentences,
        )


def reward(name: str) -> Callable[[T], T]:
    """A decorator that makes a function or a class known as the reward `name`."""
    return REWARDS.register(name)


def by_step(answer: Any, steps: Sequence[int], where: str = "reward") -> Floats:
    """Any reward's answer as potentials (T, B); after a sentence's end its last potential stays."""
    if isinstance(answer, np.ndarray) and answer.ndim == 2:
        if answer.shape != (max(steps), len(steps)):
            expected = f"({max(steps)}, {len(steps)})"
            raise UserError(f"answers with an array of {answer.shape}, not (steps, sentences) = {expected}", where)
        potentials_TB = answer.astype(np.float64)
        for column, n_steps in enumerate(steps):
            potentials_TB[n_steps:, column] = potentials_TB[n_steps - 1, column]
    else:
        potentials_TB = np.zeros((max(steps), len(steps)))
        if len(answer) != len(steps):
            raise UserError(f"answers for {len(answer)} sentences, not {len(steps)}", where)
        for column, (potential, n_steps) in enumerate(zip(answer, steps, strict=True)):
            values = np.asarray(potential, dtype=np.float64)
            if values.ndim and len(values) != n_steps:
                raise UserError(f"answers with {len(values)} numbers for a sentence of {n_steps} steps", where)
            if values.ndim:
                potentials_TB[:n_steps, column] = values
            potentials_TB[n_steps - 1 :, column] = values[-1] if values.ndim else values
    if not np.isfinite(potentials_TB).all():
        raise UserError("answers with something that is not a finite number", where)
    return potentials_TB
