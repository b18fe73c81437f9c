"""The tiny reproduction's inputs, and its plan without running anything."""

from pathlib import Path

import pytest

from pysimt_sac.reproduce.corpus import Request, find_corpus
from pysimt_sac.reproduce.matrix import read_matrix
from pysimt_sac.reproduce.steps import plan_work
from tests.reproduce.tiny import MATRIX, make_inputs


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    make_inputs(tmp_path)
    return tmp_path


@pytest.fixture
def plan(inputs):
    """Plan the work of a changed matrix or of other options."""

    def make(changes=(), out="out", **options):
        text = MATRIX
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (inputs / "matrix.toml").write_text(text)
        matrix = read_matrix(inputs / "matrix.toml")
        given = {"seeds": 1, "mlt": inputs / "mlt", "raw": inputs / "raw", **options}
        request = Request("en-de", inputs / out, **given)
        return plan_work(matrix, find_corpus(matrix, request), request)

    return make
