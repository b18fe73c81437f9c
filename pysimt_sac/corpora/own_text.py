"""Prepare parallel text of one's own: clean it, take the steps of `language_pairs`, write a configuration.

Training pairs with an empty side, with too many words or with very different lengths are left out, and validation pairs
with an empty side; test sets keep every line.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import decode_plain_line, read_lines, stream_lines, write_lines
from pysimt_sac.corpora.language_pairs import PairSettings, check_codes, prepare_pairs
from pysimt_sac.corpora.record import TextStatistics, require_own_folder
from pysimt_sac.corpora.text_files import RawFile, scan_sides
from pysimt_sac.hosts.engine.config.ready import ready_configs
from pysimt_sac.text.preparation import STEPS
from pysimt_sac.text.subwords import FILE_NAMES

MAX_RATIO = 9  # of the numbers of words, as in Moses' clean-corpus-n
CONFIG_NAME = "mle.conf"


@dataclass(frozen=True)
class TextSettings(PairSettings):
    """Settings for text of one's own. subwords: the kind to learn; lowercase: also take that step."""

    split_hyphens: bool = False
    bpe_units: int = 8000
    bpe_sides: str = "both"
    subwords: str = "bpe"
    lowercase: bool = False
    max_words: int = 100

    @property
    def steps(self) -> tuple[str, ...]:
        """The Moses steps."""
        return STEPS if self.lowercase else STEPS[1:]

    @property
    def kind(self) -> str:
        """The kind of segmentation."""
        return self.subwords


def prepare(
    sides: dict[str, Sequence[Path]],
    out: Path,
    pair: str,
    settings: TextSettings,
    jobs: int,
    log: Callable[[str], None],
) -> list[TextStatistics]:
    """Write OUT/PAIR from the two files of each split, and return its statistics."""
    check_codes(settings, [pair])
    require_own_folder(out / pair, f"text {pair}")
    with TemporaryDirectory(prefix="text-") as scratch:
        splits = {split: clean(split, files, Path(scratch), pair, settings, log) for split, files in sides.items()}
        statistics = prepare_pairs("text", out, {pair: splits}, settings, jobs, log)[pair]
    config = out / pair / CONFIG_NAME
    if config.exists():
        log(f"{config} is kept as it is")
    else:
        write_lines(config, starting_configuration(out, pair, list(sides), settings))
    return statistics


def language_pair_of(files: Sequence[Path]) -> str:
    """Return the language pair that the endings of two files name, such as en-de."""
    languages = [file.name.removesuffix(".gz").rpartition(".")[2] for file in files]
    if languages[0] == languages[1] or not all(re.fullmatch("[a-z]{2}", language) for language in languages):
        names = " and ".join(file.name for file in files)
        raise UserError(f"{names} do not end in two languages", "--train", "give them: --pair en-de")
    return "-".join(languages)


def named_tests(tests: Sequence[Sequence[Path]]) -> dict[str, Sequence[Path]]:
    """Return the test sets by name: `test`, or with several of them the names of their files without endings."""
    if len(tests) == 1:
        return {"test": tests[0]}
    names = [re.sub(r"\W+", "_", files[0].name.removesuffix(".gz").rpartition(".")[0]).lower() for files in tests]
    if len({*names, "train", "val", ""}) < len(names) + 3:
        raise UserError(f"not the names of different test sets: {', '.join(names)}", "--test", "rename the files")
    return dict(zip(names, tests, strict=True))


def clean(
    split: str, files: Sequence[Path], folder: Path, pair: str, settings: TextSettings, log: Callable[[str], None]
) -> list[RawFile]:
    """Write both sides of a split to a folder, with single spaces and without unusable pairs."""
    sides = [[" ".join(line.split()) for line in stream_lines(file, decode=decode_plain_line)] for file in files]
    if len(sides[0]) != len(sides[1]):
        hint = f"{files[0]} has {len(sides[0]):,}; line N of each must be the same sentence"
        raise UserError(f"has {len(sides[1]):,} lines", files[1], hint)
    kept = [sentences for sentences in zip(*sides, strict=True) if is_usable(split, sentences, settings.max_words)]
    if not kept:
        raise UserError(f"no usable sentence pair for {split}", files[0], f"of {len(sides[0]):,} lines")
    if len(kept) < len(sides[0]):
        why = f", more than {settings.max_words} words, or a length ratio above {MAX_RATIO}" if split == "train" else ""
        log(f"{split}: {len(sides[0]) - len(kept):,} of {len(sides[0]):,} pairs left out (an empty side{why})")
    paths = [folder / f"{split}.{language}" for language in pair.split("-")]
    for path, lines in zip(paths, zip(*kept, strict=True), strict=True):
        write_lines(path, list(lines))
    return scan_sides(paths)


def is_usable(split: str, sentences: Sequence[str], max_words: int) -> bool:
    """Return whether a pair is kept."""
    short, long = sorted(len(sentence.split()) for sentence in sentences)
    if split == "train":
        return short >= 1 and long <= max_words and long <= MAX_RATIO * short
    return short >= 1 or split != "val"


def starting_configuration(out: Path, pair: str, splits: Sequence[str], settings: TextSettings) -> list[str]:
    """Return the lines of Multi30K's configuration of the actor, with this corpus's files instead."""
    source, target = pair.split("-")
    pieces = dict.fromkeys(settings.segmented(pair), FILE_NAMES[settings.kind])
    forms = [settings.text_name("", language, pieces.get(language, "")) for language in (source, target)]
    filters = [f"de-{pieces[target]}"] * (target in pieces) + ["de-hyphen"] * settings.split_hyphens
    values = {
        "root": ("Output folder of `pysimt-sac prepare text`.", str(out) if out.is_absolute() else f"./{out}"),
        "sl": ("Source language: suffix of its text files.", source),
        "tl": ("Target language: suffix of its text files.", target),
        "src": ("Preparation of the source, as in its file names.", forms[0][1 : -len(source) - 1]),
        "trg": ("Preparation of the target.", forms[1][1 : -len(target) - 1]),
        "eval_filters": ("Post-processing of hypotheses and references before scoring.", ",".join(filters)),
        "save_path": ("The run's folder is SAVE_PATH/CONFIG[-SUFFIX]/.", "./runs"),
    }
    text = "\n".join(read_lines(ready_configs()["mle"]))
    text = f"# The actor, trained by maximum likelihood: pysimt train -C FILE\n\n{text[text.index('[vars]') :]}"
    for key, (comment, value) in values.items():
        before, after = re.split(rf"(?m)^#.*\n{key}:.*$", text, maxsplit=1)
        text = f"{before}# {comment}\n{key}: {value}{after}"
    text = re.sub(r"(?m)^#.*\ntest_\w+_set:.*\n(^ .*\n)*", "", text)
    tests = [
        f"# Test set.\n{split}_set: {{'src': '${{vars:pair}}/{split}.${{vars:src}}.${{vars:sl}}',\n"
        f"    'trg': '${{vars:pair}}/{split}.${{vars:trg}}.${{vars:tl}}'}}\n"
        for split in splits
        if split not in ("train", "val")
    ]
    return text.replace("\n[vocabulary]", f"{''.join(tests)}\n[vocabulary]").split("\n")
