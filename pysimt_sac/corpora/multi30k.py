"""Prepare Multi30K from its raw files, as in the paper."""

from collections.abc import Callable, Sequence
from pathlib import Path

from pysimt_sac.core.errors import UserError
from pysimt_sac.corpora.language_pairs import PairSettings, check_codes, prepare_pairs
from pysimt_sac.corpora.record import TextStatistics, require_own_folder
from pysimt_sac.corpora.text_files import find_splits, find_text, require_folder

REQUIRED_SPLITS = ("train", "val")
TEST_SPLITS = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr")
PAPER_PAIRS = ("en-de", "en-fr")
PLACE_IN_CLONE = Path("data/task1/raw")


def raw_folder(path: Path) -> Path:
    """Return the folder of raw files: the given one, or data/task1/raw in a clone of multi30k/dataset."""
    require_folder(path)
    return path / PLACE_IN_CLONE if (path / PLACE_IN_CLONE).is_dir() else path


def default_pairs(raw: Path) -> list[str]:
    """Return the paper's pairs whose training text exists."""
    pairs = [pair for pair in PAPER_PAIRS if all(find_text(raw, f"train.{language}") for language in pair.split("-"))]
    if not pairs:
        hint = "expected train.en.gz with train.de.gz or train.fr.gz; git clone https://github.com/multi30k/dataset"
        raise UserError("no Multi30K training text here", raw, hint)
    return pairs


def prepare(
    raw: Path, out: Path, pairs: Sequence[str], settings: PairSettings, jobs: int, log: Callable[[str], None]
) -> dict[str, list[TextStatistics]]:
    """Write a folder for each pair and return statistics of the files used for training."""
    raw = raw_folder(raw)
    pairs = list(dict.fromkeys(pairs)) or default_pairs(raw)
    check_codes(settings, pairs)
    for pair in pairs:
        require_own_folder(out / pair, f"multi30k {pair}")
    log(f"reading {raw}")
    names = {split: split for split in (*REQUIRED_SPLITS, *TEST_SPLITS)}
    splits = {pair: find_splits(raw, pair, names, REQUIRED_SPLITS) for pair in pairs}
    used = {file.path for found in splits.values() for files in found.values() for file in files}
    languages = {language for pair in pairs for language in pair.split("-")}
    for path in sorted(raw.iterdir()):
        if path not in used and path.name.removesuffix(".gz").rpartition(".")[2] in languages:
            log(f"ignoring {path.name}: not a split of Multi30K (for text of your own: pysimt-sac prepare text)")
    return prepare_pairs("multi30k", out, splits, settings, jobs, log)
