"""What the tests of bad input share."""

import re

import pytest


def folder_content(folder):
    """Every file below a folder with its content; a folder with None."""
    return {path: path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


@pytest.fixture
def refused(toy, pysimt):
    """Train and expect to be refused, with a message that fits a pattern, and everything left as it was."""

    def check(pattern, *words, config=None):
        before = folder_content(toy.folder)
        outcome = pysimt("train", "-C", config or toy.config, *words)
        assert outcome.status == 2, outcome
        assert outcome.error.startswith(("pysimt train: error: ", "pysimt: error: unrecognized"))
        assert re.search(pattern, outcome.error), outcome.error
        assert folder_content(toy.folder) == before

    return check
