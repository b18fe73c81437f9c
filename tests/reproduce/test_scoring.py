"""Scoring steps: what they depend on, and which of them a matrix needs."""

import pytest

from pysimt_sac.hosts.engine.config.ready import ready_folder
from pysimt_sac.reproduce.corpus import Corpus, Places, Preparation, Request
from pysimt_sac.reproduce.matrix import find_matrix, read_matrix
from pysimt_sac.reproduce.scoring import Scorer
from pysimt_sac.reproduce.steps import plan_work
from tests.reproduce.tiny import MATRIX, write


@pytest.fixture
def scoring(tmp_path):
    """The scoring steps of a matrix, as if everything had been translated."""

    def make(matrix):
        corpus = Corpus(Preparation("text", "key", tmp_path / "text"), None, Places(tmp_path, tmp_path, "en-de"), ())
        work = plan_work(matrix, corpus, Request("en-de", tmp_path / "out", seeds=1))
        return Scorer(matrix, corpus, tmp_path / "out", work.translations, ("BLEU",)).steps()

    return make


def test_the_paper_s_tables_need_the_paper_s_test_sets(scoring):
    def commands(matrix):
        return {step.words[0] for step in scoring(matrix)}

    assert commands(find_matrix("en-de", None)) == {"compare", "table", "report"}
    assert commands(find_matrix("en-de", ready_folder() / "ablations.toml")) == {"compare", "report"}


def test_a_reference_outside_the_corpus_counts_by_its_content(scoring, tmp_path):
    reference = '"{data}/{pair}/{set}.lc.norm.tok.{target}.dehyph"'
    assert reference in MATRIX
    (tmp_path / "matrix.toml").write_text(MATRIX.replace(reference, f'"{tmp_path.parent}/own.{{set}}.de"'))
    matrix = read_matrix(tmp_path / "matrix.toml")
    name = tmp_path.parent / "own.test_2016_flickr.de"
    keys = []
    for text in ("ein hund", "eine katze", "ein hund"):
        write(name, [text])
        keys.append([step.key for step in scoring(matrix)])
    assert keys[0] == keys[2]
    assert all(first != second for first, second in zip(keys[0], keys[1], strict=True))
