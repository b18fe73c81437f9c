"""METEOR equals its own program where that can run, and says how to get it where not."""

import shutil
import subprocess

import numpy as np
import pytest

from pysimt_sac.core.errors import UserError
from pysimt_sac.evaluation import meteor
from pysimt_sac.evaluation.meteor import LANGUAGES, MeteorMetric, MeteorUnavailableError, find_jar, guess_language


def can_run() -> bool:
    try:
        MeteorMetric("de")
    except MeteorUnavailableError:
        return False
    return True


needs_meteor = pytest.mark.skipif(not can_run(), reason="METEOR needs Java and pip install 'pysimt_sac[meteor]'")


def programs_score(metric: MeteorMetric, hypotheses, references, folder) -> float:
    """The final score as the program itself prints it."""
    files = [folder / "hypotheses", folder / "references"]
    for path, lines in zip(files, (hypotheses, references), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = [*metric.command(*files)[:-1], "-q"]
    return 100 * float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@needs_meteor
@pytest.mark.parametrize("language", ["de", "fr", pytest.param("en", marks=pytest.mark.slow)])
def test_scores_equal_the_programs_own(language, references, output, tmp_path):
    metric = MeteorMetric(language)
    # A perfect sentence, an empty one and letters beyond ASCII among them.
    hypotheses = [references[0], "", "die größe überrascht", *output(1, 0.3)[3:40]]
    wanted = [*references[:2], "die größen überraschen", *references[3:40]]
    scores = metric.score(metric.statistics([wanted, hypotheses], wanted).sum(axis=1))
    assert scores[0] == pytest.approx(100)
    assert scores[1] == pytest.approx(programs_score(metric, hypotheses, wanted, tmp_path), abs=1e-6)
    assert metric.name == ("METEOR" if language == "en" else "METEOR (exact stem)")


def test_the_formula_by_hand(monkeypatch, tmp_path):
    jar = tmp_path / "meteor.jar"
    jar.touch()
    monkeypatch.setattr(shutil, "which", lambda name: "java")
    metric = MeteorMetric("de", jar)
    # 4 words here, 5 there; 1 and 2 of them function words; exact: 2 content words and 1 function word;
    # stem: 1 content word here, matching 1 there; 2 chunks; 4 words matched on either side.
    row = np.array([[4, 5, 1, 2, 2, 2, 1, 1, 1, 1, 0, 0, *[0] * 8, 2, 4, 4]], dtype=float)
    matched = 0.55 * (2 + 0.8) + 0.45 * 1
    precision, recall = matched / (0.55 * 3 + 0.45 * 1), matched / (0.55 * 3 + 0.45 * 2)
    mean = precision * recall / (0.95 * precision + 0.05 * recall)
    assert metric.score(row) == pytest.approx([100 * mean * (1 - 0.55 * 0.5**1.0)])


def test_a_wholly_matched_sentence_counts_no_chunk():
    rows = np.zeros((2, meteor.STATISTICS))
    rows[:, :2] = 3
    rows[0, -3:] = 1, 3, 3
    rows[1, -3:] = 1, 2, 2
    assert list(meteor.without_whole_chunks(rows)[:, -3]) == [0, 1]


def test_paraphrases_are_used_where_their_table_is(monkeypatch, tmp_path):
    jar = tmp_path / "meteor.jar"
    jar.touch()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "paraphrase-fr.gz").touch()
    monkeypatch.setattr(shutil, "which", lambda name: "java")
    assert "modules:exact stem paraphrase|" in MeteorMetric("fr", jar).signature
    assert "modules:exact stem|" in MeteorMetric("de", jar).signature


def test_the_reason_why_meteor_cannot_run_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.delenv("METEOR_JAR", raising=False)
    monkeypatch.setattr(meteor.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MeteorUnavailableError, match=r"pip install 'pysimt_sac\[meteor\]'"):
        find_jar(None)
    with pytest.raises(UserError, match="no such METEOR jar"):
        find_jar(tmp_path / "nowhere.jar")
    with pytest.raises(MeteorUnavailableError, match="--lang de"):
        MeteorMetric(None)
    with pytest.raises(MeteorUnavailableError, match="does not support the language 'zh'"):
        MeteorMetric("zh")
    jar = tmp_path / "meteor.jar"
    jar.touch()
    monkeypatch.setenv("METEOR_JAR", str(jar))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(MeteorUnavailableError, match="needs Java"):
        MeteorMetric("de")


@needs_meteor
def test_a_failure_of_the_program_is_a_user_error(tmp_path):
    jar = tmp_path / "meteor.jar"
    jar.write_bytes(b"not a program")
    with pytest.raises(UserError, match="METEOR failed"):
        MeteorMetric("de", jar).statistics([["a"]], ["a"])


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("test_2016_flickr.lc.norm.tok.de.dehyph", "de"),
        ("test.en", "en"),
        ("hyps.fr.gz", "fr"),
        ("reference.txt", None),
    ],
)
def test_the_language_is_in_the_name(tmp_path, name, language):
    assert guess_language(tmp_path / name) == language
    assert language is None or language in LANGUAGES
