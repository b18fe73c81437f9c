"""Learn BPE codes with subword-nmt and count their units, or learn a SentencePiece model."""

import contextlib
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pysimt_sac.core.files import atomic_write, stream_lines, write_lines
from pysimt_sac.corpora.text_files import in_chunks
from pysimt_sac.corpora.vocabulary_builder import count_words, keep_frequent
from pysimt_sac.text.subwords import Segmentation, make_segmenter, read_model, require_sentencepiece

MIN_PAIR_FREQUENCY = 2


def learn_codes(texts: Sequence[Path], units: int, target: Path) -> None:
    """Learn codes jointly on several tokenised texts and write them.

    units: BPE units, characters included (subword-nmt's --symbols with --total-symbols), as in the paper.
    """
    from subword_nmt.learn_bpe import learn_bpe

    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(count_words(stream_lines(text)))
    codes = io.StringIO()
    with contextlib.redirect_stderr(io.StringIO()):  # subword-nmt prints every merge
        learn_bpe(
            [f"{word} {count}" for word, count in counts.items()],
            codes,
            units,
            MIN_PAIR_FREQUENCY,
            is_dict=True,
            total_symbols=True,
        )
    write_lines(target, codes.getvalue().removesuffix("\n").split("\n"))


def write_units(text: Path, codes: Path, target: Path) -> None:
    """Segment a training text without a threshold and write its subword-nmt vocabulary."""
    segment = make_segmenter(Segmentation("bpe", read_model(codes, "bpe")), codes)
    counts = count_words(line for chunk in in_chunks(stream_lines(text)) for line in segment(chunk))
    write_lines(target, [f"{unit} {count}" for unit, count in keep_frequent(counts).items()])


def learn_sentencepiece(texts: Sequence[Path], units: int, target: Path) -> None:
    """Learn a SentencePiece model of at most `units` units jointly on several texts and write it."""
    require_sentencepiece("--subwords sentencepiece")
    from sentencepiece import SentencePieceTrainer

    lines, model = (line for text in texts for line in stream_lines(text)), io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=lines, model_writer=model, vocab_size=units, hard_vocab_limit=False, minloglevel=2
    )
    with atomic_write(target, "wb") as stream:
        stream.write(model.getvalue())
