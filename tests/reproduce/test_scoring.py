"""Scoring steps: what they depend on, and which of them a matrix needs."""

import pytest

from pysimt_sac.hosts.engine.config.ready import ready_folder
from pysimt_sac.reproduce.corpus import Corpus, Places, Request, preparation
from pysimt_sac.reproduce.matrix import find_matrix, read_matrix
from pysimt_sac.reproduce.scoring import ScoringSteps
from pysimt_sac.reproduce.steps import plan_work
from tests.reproduce.tiny import MATRIX, write


@pytest.fixture
def scoring(tmp_path):
    """The scoring steps of a matrix, as if everything had been translated."""

    def make(matrix):
        corpus = Corpus(preparation("text", "key", tmp_path / "text"), None, Places(tmp_path, tmp_path, "en-de"), ())
        work = plan_work(matrix, corpus, Request("en-de", tmp_path / "out", seeds=1))
        return ScoringSteps(matrix, corpus, tmp_path / "out", work.translations, ("BLEU",)).steps()

    return make


def test_a_matrix_with_several_test_sets_has_them_pooled_as_well(scoring):
    several, single = (find_matrix("en-de", path) for path in (None, ready_folder() / "ablations.toml"))
    titles = [step.title for step in scoring(several)]
    assert "score: compare beam6 against C1 pooled" in titles
    assert titles.count("score: compare beam6 against MLE noUNK") == 1
    assert titles[-1] == "report"
    assert not any("pooled" in step.title for step in scoring(single))


def test_one_system_alone_is_scored(scoring, tmp_path):
    (tmp_path / "matrix.toml").write_text(MATRIX.partition('[[system]]\nname = "SAC BLEU"')[0])
    first = scoring(read_matrix(tmp_path / "matrix.toml"))[0]
    assert "--baseline" in first.words
    assert "--system" not in first.words


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
