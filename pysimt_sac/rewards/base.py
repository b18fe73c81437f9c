"""The interface of rewards, built-in or user-defined, and how to declare one.

Shaping is potential-based (Ng et al. 1999). A reward is a callable that maps `Translations` to a *potential* R_t for
every step; the reward of a step is the increment r_t = R_t - R_{t-1}, with R_0 = 0. The rewards telescope: they sum to
R_T, the score of the translation, whatever the potentials in between. So, without discounting, these do not change the
optimal policy, only how early it is rewarded. A reward may return any of:

- one number per sentence: its score, all of it earned at the last step;
- one sequence per sentence: R_1 ... R_T, one for each of its steps;
- an array (T, B), as returned by `by_step`.

A user-defined reward is a function in a file listed in `reward_modules`:

    from pysimt_sac.rewards import reward

    @reward("different_words")
    def different_words(translations):
        return [len(set(words)) / max(1, len(words)) for words in translations.hypotheses]

A reward may also be a class. It is instantiated once, and the instance is the callable. Its argument is the options of
its `options_class`, a frozen dataclass of `option(...)` as in the built-in rewards, or else `RewardOptions`; these keys
can then be set in `[model]`. A class that learns has `learn(samples)`, which is called with samples of every new batch
before the batch is scored, and returns numbers to log; `n_samples`, how many of each source it needs (default: 1); and
`state_dict` and `load_state_dict`. `count_bonus.py` is an example.

Translations also have `sources`, the source texts, and `numbers`, the positions of the sentences in the training
text; both are computed only on demand. `docs/extending.md` has a reward that uses the source.

With `reward_unit: word`, hypotheses and references are lists of whole words, and steps are words, too; rewards need not
know how these map to the steps of the model (`units.py`). A reward with `counts_words = True` always gets words.

Algorithms that need the rewards of words that were not taken (`Rewarder.next_rewards`) call it with the resulting
hypotheses; subclasses of `incremental.IncrementalReward` compute them much faster.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.options import check_declaration, option, read_section
from pysimt_sac.core.registry import REWARDS, load_plugin_modules
from pysimt_sac.core.vocabulary import EOS, SPECIAL_TOKENS, UNK

if TYPE_CHECKING:
    from torch import Tensor

    from pysimt_sac.core.actor import Actor

T = TypeVar("T")
Floats = np.ndarray[Any, np.dtype[np.float64]]
UNKNOWN_WORD = SPECIAL_TOKENS[UNK]


@dataclasses.dataclass(frozen=True)
class RewardOptions:
    """The `[model]` keys shared by all rewards; each reward declares its own keys in its file."""

    reward: str = option("bleu", "what is rewarded: a name, or several with weights such as `bleu:0.7,chrf:0.3`")
    reward_modules: tuple[str, ...] = option((), "Python files that register rewards of your own")
    reward_scale: float | str = option(
        "ref",
        "what rewards are multiplied by: the reference's length, or a number",
        choices=("ref",),
        above=0,
    )
    reward_unit: str = option(
        "piece",
        "what rewards and the scale `ref` count: the pieces that the model writes, or words, made of them by the "
        "`eval_filters` of `[train]`",
        choices=("piece", "word"),
    )


def chosen_reward_options(values: Mapping[str, Any], where: str) -> tuple[type, ...]:
    """Return the option classes of the rewards that `values` name; runs the user's files that define them."""
    options = read_section(RewardOptions, values, where)
    load_plugin_modules(options.reward_modules)
    return option_classes_of(REWARDS.get(name, f"{where} reward") for name in parse_mixture(options.reward, where))


def all_reward_options(values: Mapping[str, Any], where: str) -> tuple[type, ...]:
    """Return those of all rewards, including user-defined ones and those of other packages."""
    load_plugin_modules(read_section(RewardOptions, values, where).reward_modules)
    REWARDS.read_entry_points()
    return option_classes_of(REWARDS.items.values())


def option_classes_of(rewards: Iterable[Any]) -> tuple[type, ...]:
    """Return the option classes that rewards declare; functions have none."""
    classes = [options_class_of(declared) for declared in rewards if isinstance(declared, type)]
    return tuple(dict.fromkeys(classes))


def options_class_of(declared: type) -> type:
    """Return the option class that a reward class is instantiated with."""
    cls = getattr(declared, "options_class", RewardOptions)
    check_declaration(cls, f"options_class of {declared.__name__}")
    return cls


def parse_mixture(text: str, where: str) -> dict[str, float]:
    """Parse `bleu` or `bleu:0.7,chrf:0.3` into weights by name. where: the section, for error messages."""
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
    """A function that reads options, such as `rl.setup.Setup.read`."""

    def __call__(self, cls: type[T], /) -> T:
        """Return the options of `[model]` that `cls` declares."""


@dataclasses.dataclass(frozen=True)
class SourceTexts:
    """The sources of a batch, converted to text on demand.

    numbers: positions of the sentences in the training text, from 0; empty if unknown. prefix: what the model wants
    before every source. filters: join pieces into words if `reward_unit` is `word`.
    """

    ids_SB: "Tensor"
    tokens: Sequence[str]
    numbers: Sequence[int] = ()
    prefix: str = ""
    filters: Callable[[list[str]], list[str]] = list

    @classmethod
    def of(cls, actor: "Actor", ids_SB: "Tensor", numbers: Sequence[int] = ()) -> "SourceTexts":
        """Return the sources of a batch of an actor's."""
        return cls(ids_SB, actor.source_tokens, numbers, actor.source_prefix)

    @cached_property
    def texts(self) -> list[str]:
        """One line per sentence."""
        rows = self.ids_SB.t().tolist()
        lines = self.filters([" ".join(self.tokens[word] for word in row if word > EOS) for row in rows])
        return [line.removeprefix(self.prefix).strip() for line in lines] if self.prefix else lines


@dataclasses.dataclass(frozen=True)
class Translations:
    """Sampled translations of a batch: their words without `<bos>` and `<eos>`, and whether they ended with `<eos>`.

    tokens: the vocabulary, by id, if known. source: the sources of the batch; sentences: which of them each hypothesis
    translates, if not one each in order.
    """

    hypotheses: list[list[str]]
    references: list[list[str]]
    ended: list[bool]
    tokens: Sequence[str] = dataclasses.field(default=(), repr=False, compare=False)
    source: SourceTexts | None = dataclasses.field(default=None, repr=False, compare=False)
    sentences: Sequence[int] | None = dataclasses.field(default=None, repr=False, compare=False)

    @property
    def sources(self) -> list[str]:
        """The source text of each hypothesis; out-of-vocabulary words are `<unk>`."""
        if self.source is None:
            raise UserError("the sources are not known here", "Translations.sources")
        return [self.source.texts[sentence] for sentence in self.order]

    @property
    def numbers(self) -> list[int] | None:
        """The position in the training text, from 0, of each hypothesis's sentence.

        None if unknown: in validation, for replayed experience, and in pysimt's own loop.
        """
        if self.source is None or not self.source.numbers:
            return None
        return [self.source.numbers[sentence] for sentence in self.order]

    @property
    def order(self) -> Sequence[int]:
        """The index in the batch of the sentence that each hypothesis translates."""
        return range(len(self.hypotheses)) if self.sentences is None else self.sentences

    @cached_property
    def steps(self) -> list[int]:
        """The number of steps of each sentence: its words, and its `<eos>` unless it was truncated."""
        return [len(words) + ended for words, ended in zip(self.hypotheses, self.ended, strict=True)]

    @classmethod
    def from_ids(
        cls,
        sampled_TB: Any,
        references_TB: Any,
        tokens: Sequence[str],
        source: SourceTexts | None = None,
        sentences: Sequence[int] | None = None,
    ) -> "Translations":
        """Build from two tensors in the layout `<bos> ... <eos>` and the vocabulary, by id."""
        sampled, references = sampled_TB.t().tolist(), references_TB.t().tolist()
        return cls(
            [[tokens[word] for word in row if word > EOS] for row in sampled],
            [[tokens[word] for word in row if word > EOS] for row in references],
            [EOS in row for row in sampled],
            tokens,
            source,
            sentences,
        )


def reward(name: str) -> Callable[[T], T]:
    """Return a decorator that registers a function or a class as the reward `name`."""
    return REWARDS.register(name)


def as_numbers(answer: Any, where: str) -> Floats:
    """Convert numbers that a reward returned; whatever else numpy would take for a number is refused."""
    try:
        values = np.asarray(answer)
    except (RuntimeError, TypeError, ValueError) as error:  # a tensor with gradient; lists of different lengths
        raise UserError(f"returned something that is not a number: {error}", where) from error
    if values.dtype.kind not in "biuf":
        raise UserError(f"returned {str(answer)[:50]!r}, which is not a real number of 64 bits", where)
    return values.astype(np.float64)


def by_step(answer: Any, steps: Sequence[int], where: str = "reward") -> Floats:
    """Convert what a reward returned to potentials (T, B), repeating the last one after a sentence's end."""
    if isinstance(answer, np.ndarray) and answer.ndim == 2:
        if answer.shape != (max(steps), len(steps)):
            expected = f"({max(steps)}, {len(steps)})"
            raise UserError(f"returned an array of {answer.shape}, not (steps, sentences) = {expected}", where)
        potentials_TB = as_numbers(answer, where)
        for column, n_steps in enumerate(steps):
            potentials_TB[n_steps:, column] = potentials_TB[n_steps - 1, column]
    else:
        potentials_TB = np.zeros((max(steps), len(steps)))
        if not hasattr(answer, "__len__") or isinstance(answer, dict):
            raise UserError(f"returned {str(answer)[:50]!r}, not a list with an entry for each sentence", where)
        if len(answer) != len(steps):
            raise UserError(f"returned values for {len(answer)} sentences, not {len(steps)}", where)
        for column, (potential, n_steps) in enumerate(zip(answer, steps, strict=True)):
            values = as_numbers(potential, where)
            if values.ndim and values.shape != (n_steps,):
                found = f"{len(values)} numbers for a sentence of {n_steps} steps"
                raise UserError(f"returned {found}{', in several dimensions' * (values.ndim > 1)}", where)
            if values.ndim:
                potentials_TB[:n_steps, column] = values
            potentials_TB[n_steps - 1 :, column] = values[-1] if values.ndim else values
    if not np.isfinite(potentials_TB).all():
        raise UserError("returned something that is not a finite number", where)
    return potentials_TB
