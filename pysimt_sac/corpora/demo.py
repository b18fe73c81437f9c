"""The demo corpus: English captions with German translations, once drawn from a small grammar; in `demo.tsv.gz`."""

from pathlib import Path
from typing import NamedTuple

from pysimt_sac.core.files import atomic_folder, stream_lines, write_lines
from pysimt_sac.corpora.mlt import AmbiguousWord, TranslationCounts, write_ambiguous_words
from pysimt_sac.corpora.record import TextStatistics, require_own_folder, text_statistics, write_record
from pysimt_sac.corpora.vocabulary_builder import count_words, keep_frequent, vocabulary_path, write_vocabulary
from pysimt_sac.text.preparation import SidePreparation

CAPTIONS = Path(__file__).with_name("demo.tsv.gz")
TEST_SPLITS = ("test", "test_ood")


class Caption(NamedTuple):
    """A sentence pair and the ambiguous word in it, with its translation; both are empty if there is none."""

    english: str
    german: str
    word: str
    translation: str


def read_captions() -> dict[str, list[Caption]]:
    """Return the captions of each split."""
    splits: dict[str, list[Caption]] = {}
    for line in stream_lines(CAPTIONS):
        split, *caption = line.split("\t")
        splits.setdefault(split, []).append(Caption(*caption))
    return splits


def prepare(out: Path) -> list[TextStatistics]:
    """Write the corpus and return its statistics."""
    require_own_folder(out, "demo")
    splits = read_captions()
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
        published = []  # in MLT's format, with SPLIT/LINE instead of an image
        for split in TEST_SPLITS:
            cases = [(line, caption) for line, caption in enumerate(splits[split]) if caption.word]
            words_of_split = [AmbiguousWord(caption.word, (caption.translation,), line) for line, caption in cases]
            write_ambiguous_words(folder / f"{split}.mlt.tsv", words_of_split, counts)
            published += [
                f"{caption.word} | {caption.translation} | {caption.english} | {caption.german} | {split}/{line}"
                for line, caption in cases
            ]
        write_lines(folder / "ambiguous.en-de.txt", published)
        preparation = {f"train.{language}": SidePreparation(language) for language in ("en", "de")}
        sizes = {split: len(captions) for split, captions in splits.items()}
        write_record(folder, "demo", {"sentences": sizes}, {}, statistics, preparation)
    return statistics
