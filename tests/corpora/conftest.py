"""What the tests of corpora share: the real data where they are, and small made-up ones."""

import gzip
import hashlib
import os
from pathlib import Path

import pytest

from pysimt_sac.cli import main_sac

SENTENCES = {
    "en": [
        "A man in a T-shirt is sleeping.",
        'Two women say "hello".',
        "The dog's ball is red.",
        "A boy, a girl and a dog.",
        "People are sitting near a well-known bank.",
    ],
    "de": [
        "Ein Mann in einem T-Shirt schläft.",
        'Zwei Frauen sagen "Hallo".',
        "Der Ball des Hundes ist rot.",
        "Ein Junge, ein Mädchen und ein Hund.",
        "Menschen sitzen bei einer bekannten Bank.",
    ],
    "fr": [
        "Un homme en t-shirt dort.",
        'Deux femmes disent "bonjour".',
        "La balle de l'homme est rouge.",
        "Un garçon, une fille et un chien.",
        "Des gens sont assis près d'une banque.",
    ],
}
SPLITS = {"train": 40, "val": 5, "test_2016_flickr": 5, "test_2017_mscoco": 3}


@pytest.fixture(scope="session")
def shared():
    """The folder of research data that is beside the project on some machines."""
    folder = Path(os.environ.get("PYSIMT_SAC_SHARED", Path(__file__).resolve().parents[3] / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip("research data not found: set PYSIMT_SAC_SHARED to their folder")
    return folder / "data"


@pytest.fixture
def raw(tmp_path):
    """A small Multi30K: training and validation plain, test sets compressed."""
    folder = tmp_path / "raw"
    folder.mkdir()
    for language, sentences in SENTENCES.items():
        for split, size in SPLITS.items():
            text = "".join(f"{sentences[number % len(sentences)]}\n" for number in range(size)).encode()
            if split.startswith("test"):
                (folder / f"{split}.{language}.gz").write_bytes(gzip.compress(text))
            else:
                (folder / f"{split}.{language}").write_bytes(text)
    return folder


@pytest.fixture
def prepare(capsys):
    """Run `pysimt-sac prepare` and return its exit status, standard output and standard error."""

    def run(*arguments):
        status = main_sac(["prepare", *map(str, arguments)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def contents():
    """All files of a folder: name -> checksum."""

    def read(folder):
        return {
            str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }

    return read
