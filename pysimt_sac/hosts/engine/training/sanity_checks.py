"""What `--check` finds suspicious: text that does not fit its vocabularies or its other side, and first losses.

None of it is an error: it may be intended. But each is what a mistake in a configuration looks like.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from pysimt_sac.core.files import stream_lines
from pysimt_sac.core.sections import RecipeOptions, TrainOptions
from pysimt_sac.core.vocabulary import UNK, Vocabulary
from pysimt_sac.hosts.engine.data.corpus import ParallelCorpus, Text

UNKNOWN = 0.05  # share of unknown words
LEFT_OUT = 0.05  # share of pairs
LONGER = 2.0  # times as many words on one side as on the other
CORRELATION, LEAST_PAIRS, LEAST_SPREAD = 0.2, 100, 2.0  # of both sides' lengths; it means little if they hardly vary
KNOWS_NOTHING = 0.9  # of log V: a trained model has less
FIRST_LOSS = 1.5  # of log V: random weights have about 1


def unknown_rate(side: Text) -> float:
    """Return the share of unknown words in a text."""
    return float((side.ids == UNK).sum() / max(1, (side.ids >= UNK).sum()))


def words_per_sentence(side: Text) -> float:
    """Return the mean length of a text's sentences, in tokens of the vocabulary."""
    return float((side.ids >= UNK).sum() / len(side))


def about_corpus(name: str, corpus: ParallelCorpus, vocabs: Mapping[str, Vocabulary]) -> Iterator[str]:
    """Yield what is suspicious about a split."""
    for side, text in corpus.sides.items():
        if (rate := unknown_rate(text)) > UNKNOWN:
            hint = next(fitting_vocabularies(text, side, vocabs), "does it belong to this text?")
            yield f"{rate:.0%} of the words of {text.name} are not in the vocabulary of {side!r}: {hint}"
    source, target = corpus.sides.values()
    lengths = [words_per_sentence(text) for text in (source, target)]
    if max(lengths) > LONGER * min(lengths):
        what = f"{lengths[0]:.1f} words in the source, {lengths[1]:.1f} in the target"
        yield f"sentences of the {name} text have {what}: are both sides segmented, and translations of each other?"
    if corpus.left_out > LEFT_OUT * len(corpus.bucket_lengths):
        share = corpus.left_out / len(corpus.bucket_lengths)
        yield f"{share:.0%} of the {name} pairs are longer than max_len and left out: raise it, or check the text"
    spread = min(source.lengths.std(), target.lengths.std())
    if len(source) >= LEAST_PAIRS and spread >= LEAST_SPREAD:
        correlation = float(np.corrcoef(source.lengths, target.lengths)[0, 1])
        if correlation < CORRELATION:
            what = f"the lengths of both sides of the {name} text are unrelated"
            yield f"{what} (correlation {correlation:.2f}): are their lines translations of each other?"


def fitting_vocabularies(text: Text, own: str, vocabs: Mapping[str, Vocabulary]) -> Iterator[str]:
    """Yield hints about other vocabularies that cover a text well."""
    words = [word for line in stream_lines(Path(text.name)) for word in line.split()]
    for side, vocab in vocabs.items():
        rate = sum(word not in vocab.index for word in words) / max(1, len(words))
        if side != own and rate < UNKNOWN:
            yield f"in that of {side!r} only {rate:.1%} are missing; are the vocabularies, or the files, swapped?"


def about_first_loss(nll: float, n_words: int, is_trained: bool) -> Iterator[str]:
    """Yield what is suspicious about the references' likelihood before training. is_trained: it should be high."""
    guessing = math.log(n_words)
    what = f"the first loss is {nll:.2f} per word, guessing among {n_words} words gives {guessing:.2f}"
    if is_trained and nll > KNOWS_NOTHING * guessing:
        yield f"{what}: the actor knows nothing; is pretrained_file the right one, with these vocabularies?"
    elif nll > FIRST_LOSS * guessing:
        yield f"{what}: check the model's options"


def about_length(train: TrainOptions, recipe: RecipeOptions, per_epoch: int, actor_learns: bool) -> Iterator[str]:
    """Yield what is suspicious about a run's length. per_epoch: updates per epoch."""
    updates, first_validation = min(train.max_iterations, train.max_epochs * per_epoch), train.eval_freq or per_epoch
    if not actor_learns:
        yield f"the model never learns within max_epochs ({train.max_epochs}): until then only critics or rewards learn"
    if recipe.lr_schedule and recipe.lr_warmup >= updates:
        yield f"the learning rate never reaches lr: lr_warmup is {recipe.lr_warmup}, and the run has {updates} updates"
    if train.eval_freq < 0:
        return
    if train.eval_start > train.max_epochs:
        yield f"there will be no validation: it starts in epoch {train.eval_start} (eval_start) of {train.max_epochs}"
    elif first_validation > updates:
        yield (
            f"there will be no validation of what is learned: the first is after {first_validation} updates "
            f"(eval_freq: {train.eval_freq}), and the run has {updates}"
        )
