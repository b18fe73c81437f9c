"""The demo corpus: English captions and their German translations, made by a small grammar of our own.

`prepare` writes it, the same for the same seed. Called by the `prepare` command and by tests.
"""

import random
from collections.abc import Sequence
from pathlib import Path

from pysimt_sac.corpora.ambiguous import AmbiguousWord, TranslationCounts, write_ambiguous_words
from pysimt_sac.corpora.demo_captions import IN_DOMAIN, OUT_OF_DOMAIN, Caption, CaptionWriter
from pysimt_sac.corpora.record import TextStatistics, require_own_folder, text_statistics, write_record
from pysimt_sac.corpora.vocabulary_builder import count_words, keep_frequent, vocabulary_path, write_vocabulary
from pysimt_sac.files import atomic_folder, write_lines

SPLIT_SIZES = {"train": 4000, "val": 500, "test": 500, "test_ood": 500}
TEST_SPLITS = ("test", "test_ood")
DEFAULT_SEED = 1


def generate(seed: int = DEFAULT_SEED) -> dict[str, list[Caption]]:
    """All splits. No English sentence occurs twice, within a split or across."""
    seen: set[str] = set()
    splits = {}
    for split, size in SPLIT_SIZES.items():
        writer = CaptionWriter(random.Random(f"{seed} {split}"), OUT_OF_DOMAIN if split == "test_ood" else IN_DOMAIN)
        captions: list[Caption] = []
        while len(captions) < size:
            new = writer.caption()
            if new.english not in seen:
                seen.add(new.english)
                captions.append(new)
        splits[split] = captions
    return splits


def ambiguous_words(captions: Sequence[Caption]) -> list[AmbiguousWord]:
    """The ambiguous words of a split."""
    return [
        AmbiguousWord(caption.word, (caption.translation,), line)
        for line, caption in enumerate(captions)
        if caption.word
    ]


def published_list(splits: dict[str, list[Caption]]) -> list[str]:
    """The ambiguous words of the test splits in MLT's own format; SPLIT/LINE stands in for the image."""
    return [
        f"{caption.word} | {caption.translation} | {caption.english} | {caption.german} | {split}/{line}"
        for split in TEST_SPLITS
        for line, caption in enumerate(splits[split])
        if caption.word
    ]


def prepare(out: Path, seed: int = DEFAULT_SEED) -> list[TextStatistics]:
    """Write the corpus into a folder and describe it."""
    require_own_folder(out, "demo")
    splits = generate(seed)
    with atomic_folder(out) as folder:
        statistics = []
        for language, attribute in (("en", "english"), ("de", "german")):
            texts = {split: [getattr(caption, attribute) for caption in splits[split]] for split in splits}
            words = keep_frequent(count_words(texts["train"]))
            for split, lines in texts.items():
                path = folder / f"{split}.{language}"
                write_lines(path, lines)
                statistics.append(text_statistics(path, words))
            write_vocabulary(vocabulary_path(folder, Path(f"train.{language}")), words)
        counts = TranslationCounts((caption.word, caption.translation) for caption in splits["train"] if caption.word)
        for split in TEST_SPLITS:
            write_ambiguous_words(folder / f"{split}.mlt.tsv", ambiguous_words(splits[split]), counts)
        write_lines(folder / "ambiguous.en-de.txt", published_list(splits))
        write_record(folder, "demo", {"seed": seed, "sentences": SPLIT_SIZES}, {}, statistics)
    return statistics
