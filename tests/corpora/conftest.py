"""What the tests of corpora share: a small Multi30K, `pysimt-sac prepare`, and the files of a folder."""

import gzip
import hashlib

import pytest

from pysimt_sac.cli import main_sac
from tests.plain_corpus import write_raw


@pytest.fixture
def raw(tmp_path):
    """A small Multi30K: training and validation plain, test sets compressed."""
    folder = write_raw(tmp_path / "raw", ("en", "de", "fr"), more=("test_2017_mscoco",))
    for path in folder.glob("test_*"):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    return folder


@pytest.fixture
def prepare(capsys):
    """Run `pysimt-sac prepare` and return its exit status, standard output and standard error."""

    def run(*arguments):
        status = main_sac(["prepare", *map(str, arguments)])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def refused(prepare):
    """Run `pysimt-sac prepare` and expect to be refused, with this message."""

    def run(message, *arguments):
        status, _, progress = prepare(*arguments)
        assert status == 2
        assert message in progress

    return run


@pytest.fixture
def contents():
    """All files of a folder: name -> checksum."""

    def read(folder):
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    return read
