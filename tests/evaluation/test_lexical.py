"""LTA and ALI by hand."""

import pytest

from pysimt_sac.core.errors import UserError
from pysimt_sac.evaluation.comparison import System
from pysimt_sac.evaluation.lexical import (
    CORRECT,
    MISSING,
    WRONG,
    Case,
    compare_lexical,
    label_case,
    lexical_accuracy,
    read_cases,
)
from pysimt_sac.evaluation.significance import Resampling

HEADER = "word\tcorrect\tcandidates\tline\trare"
HAT = Case("hat", ("hut",), (("mütze", 40), ("hut", 30), ("hüte", 2), ("helm", 1)), 0, True)


@pytest.mark.parametrize(
    ("hypothesis", "label"),
    [
        ("ein mann mit hut .", CORRECT),
        ("Ein Mann mit HUT .", CORRECT),
        ("ein mann mit mütze .", WRONG),
        ("ein mann mit mütze und helm .", WRONG),  # several wrong ones count once
        ("ein hut , eine mütze .", CORRECT),  # correct wins over wrong
        ("ein mann .", MISSING),
        ("", MISSING),
        ("ein strohhut .", MISSING),  # whole words only
        ("hut.", MISSING),
        ("zwei hüte .", WRONG),  # an inflected form that the list has as another candidate
        ("des hutes .", MISSING),  # one that it does not have
        ("hut hut hut", CORRECT),
    ],
)
def test_one_case_by_hand(hypothesis, label):
    assert label_case(HAT, hypothesis) == label


def test_inflected_forms_count_where_they_are_among_the_correct_ones():
    case = Case("hat", ("hut", "hüte"), HAT.candidates, 0, False)
    assert label_case(case, "zwei hüte .") == CORRECT
    assert label_case(case, "zwei mützen .") == MISSING


def test_forms_of_several_words_and_escaped_characters():
    case = Case("now", ("en ce moment",), (("aujourd'hui", 3), ("en ce moment", 1)), 0, True)
    assert label_case(case, "il dort en ce moment .") == CORRECT
    assert label_case(case, "en moment ce") == MISSING
    assert label_case(case, "il dort aujourd&apos;hui .") == WRONG


def test_the_word_twice_in_a_sentence_is_two_cases():
    bank = (("bank", 9), ("ufer", 3))
    twice = [Case("bank", ("bank",), bank, 0, False), Case("bank", ("ufer",), bank, 0, True)]
    both = lexical_accuracy(twice, ["die bank am ufer"])
    assert (both.all.correct, both.all.wrong, both.all.cases) == (2, 0, 2)
    one = lexical_accuracy(twice, ["die bank am fluss"])
    assert (one.all.correct, one.all.wrong) == (1, 1)  # the second case finds only the wrong one
    assert (one.all.lta, one.all.ali, one.all.ali_paper) == (50, 0, 0)
    assert (one.rare.cases, one.rare.lta, one.rare.ali, one.rare.ali_paper) == (1, 0, -100, -100)


def test_shares_by_hand():
    cases = [Case("hat", ("hut",), HAT.candidates, line, line > 1) for line in range(4)]
    found = lexical_accuracy(cases, ["hut", "mütze", "nichts", "hut"])
    assert (found.all.lta, found.all.ali, found.all.ali_paper) == (50, 25, 0)
    assert (found.rare.cases, found.rare.lta, found.rare.ali) == (2, 50, 50)
    assert found.words["hat"] == found.all


def test_runs_are_averaged_and_tested_by_sentence():
    cases = [Case("hat", ("hut",), HAT.candidates, line, False) for line in range(40)]
    good, bad = ("hut",) * 40, ("mütze",) * 40
    mixed = ("hut", "mütze") * 20
    systems = [System("a", (bad, mixed)), System("b", (good, good)), System("c", (bad, mixed))]
    result = compare_lexical(cases, systems, Resampling(999, 100, 1))
    assert [system.all.lta for system in result.systems] == [25, 100, 25]
    lta, ali = result.all
    assert (lta.metric, ali.metric) == ("LTA", "ALI")
    assert [system.average for system in lta.systems] == [25, 100, 25]
    assert [system.average for system in ali.systems] == [-50, 100, -50]
    assert lta.systems[1].against_baseline.p == 1 / 1000
    assert lta.systems[2].against_baseline.p == 1
    assert result.rare == ()


def test_words_of_one_sentence_are_shuffled_together():
    # Ten cases in one sentence are one observation: p cannot be below 1.
    cases = [Case(f"w{number}", ("ja",), (), 0, False) for number in range(10)]
    result = compare_lexical(cases, [System("a", (("nein",),)), System("b", (("ja",),))], Resampling(200, 10, 1))
    assert result.all[0].systems[1].against_baseline.p == 1


def test_a_list_can_be_read_case_sensitively(tmp_path):
    path = tmp_path / "list.tsv"
    path.write_text(f"{HEADER}\nhat\tHut\tMütze:4|Hut:3\t0\t1\n", encoding="utf-8")
    (case,) = read_cases(path, case_sensitive=True)
    assert [label_case(case, text) for text in ("ein Hut", "ein hut", "die Mütze", "die mütze")] == [1, 0, -1, 0]


def test_a_list_is_read(tmp_path):
    path = tmp_path / "list.tsv"
    path.write_text(f"{HEADER}\nhat\thut|Hüte\tmütze:40|hut:30|ratio 3:1:7\t12\t1\n", encoding="utf-8")
    assert read_cases(path) == [Case("hat", ("hut", "hüte"), (("mütze", 40), ("hut", 30), ("ratio 3:1", 7)), 12, True)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "lacks the column 'word'"),
        ("word\tcorrect\tline\trare\n", "lacks the column 'candidates'"),
        (f"{HEADER}\n", "has no cases"),
        (f"{HEADER}\nhat\thut\tmütze:4\t3\n", "line 2 is not a row"),
        (f"{HEADER}\nhat\thut\tmütze:4\t3\t1\textra\n", "line 2 is not a row"),
        (f"{HEADER}\nhat\thut\tmütze\t3\t1\n", "line 2 is not a row"),
        (f"{HEADER}\nhat\thut\tmütze:4\tdrei\t1\n", "line 2 is not a row"),
        (f"{HEADER}\nhat\thut\tmütze:4\t3\tyes\n", "line 2 is not a row"),
        (f"{HEADER}\nhat\t\tmütze:4\t3\t1\n", "line 2 has no correct form"),
        (f"{HEADER}\nhat\thut\tmütze:4\t-3\t1\n", "line 2 has no correct form or no line"),
    ],
)
def test_a_broken_list_is_rejected(tmp_path, content, message):
    path = tmp_path / "list.tsv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        read_cases(path)
