"""Random sentences over few words, so that n-grams repeat, and with unknown ones."""

import random

from pysimt_sac.rewards import Translations

WORDS = ["a", "b", "cat", "dogs", "<unk>"]


def random_translations(n_sentences=200, seed=0, words=WORDS, shortest=0):
    rng = random.Random(seed)
    references = [rng.choices(words, k=rng.randint(1, 9)) for _ in range(n_sentences)]
    hypotheses, ended = [], []
    for reference in references:
        kept = [word if rng.random() < 0.7 else rng.choice(words) for word in reference]
        kept += rng.choices(words, k=rng.randint(0, 3))
        kept = kept[rng.randint(0, 2) : rng.randint(shortest, len(kept))] or kept[:shortest]
        hypotheses.append(kept)
        ended.append(not kept or rng.random() < 0.7)
    return Translations(hypotheses, references, ended)


def without_unknown(words, mark):
    """The words as an oracle that does not know `<unk>` must see them."""
    return [f"{mark}{place}" if word == "<unk>" else word for place, word in enumerate(words)]


PIECES = ["a", "b", "c@@", "d@@", "@-@", "<unk>", "."]


def words_of(pieces, whole=True):
    """What `de-bpe,de-hyphen` makes of pieces, piece by piece; without an unfinished last word, unless it is whole."""
    words, joins = [], False
    for piece in pieces:
        joins |= piece == "@-@"
        text = {"@-@": "-", "<unk>": "\ue000"}.get(piece, piece.removesuffix("@@"))
        if joins and words:
            words[-1] += text
        else:
            words.append(text)
        joins = piece == "@-@" or piece.endswith("@@")
    if joins and not whole:
        words.pop()
    return ["<unk>" if "\ue000" in word else word for word in words]
