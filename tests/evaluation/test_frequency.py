"""Training frequencies of produced words, computed by hand."""

import math
from collections import Counter

from pysimt_sac.evaluation.frequency import analyse_frequency, distinct, word_use
from pysimt_sac.evaluation.report.data import frequency_figure

TRAINING = Counter({"the": 100, "dog": 20, "cat": 10, "lynx": 1})


def test_the_words_of_a_text():
    # Frequencies, sorted: 0 (ocelot), 1 (lynx), 10 (cat), 100, 100.
    use = word_use("x", ["the cat", "the lynx", "ocelot"], TRAINING, rare_limit=10)
    assert (use.sentences, use.words, use.types) == (3, 5, 4)
    assert use.type_token_ratio == 4 / 5
    assert use.unseen == 1 / 5
    assert use.rare == 3 / 5  # up to 10 counts, unseen ones included
    assert use.mean_frequency == 211 / 5
    assert [use.percentiles[percent] for percent in (0, 20, 21, 40, 41, 60, 61, 100)] == [0, 0, 1, 1, 10, 10, 100, 100]


def test_percentiles_are_the_lowest_frequency_that_so_many_words_do_not_exceed():
    use = word_use("x", ["the the dog cat lynx ocelot cat"], TRAINING)
    frequencies = sorted([100, 100, 20, 10, 1, 0, 10])
    for percent, found in enumerate(use.percentiles):
        lowest = next(f for f in frequencies if sum(g <= f for g in frequencies) >= percent / 100 * len(frequencies))
        assert found == lowest


def test_distinct_n_does_not_cross_sentences():
    sentences = [["a", "b", "a", "b"], ["a", "b"], ["c"]]
    assert distinct(sentences, 2) == 2 / 4  # ab, ba, ab; ab
    assert distinct(sentences, 3) == 2 / 2
    assert math.isnan(distinct(sentences, 5))


def test_only_improved_sentences_are_in_the_papers_group():
    references = ["the dog", "the cat", "the lynx"]
    base = ["the the", "the cat", "the dog"]
    system = ["the dog", "the the", "the lynx"]  # improves the first and the third
    found = analyse_frequency(TRAINING, references, [("base", base), ("system", system)])
    assert [text.name for text in found.all.texts] == ["reference", "base", "system"]
    (group,) = found.improved
    assert group.title == "sentences that system improved over base"
    assert [text.name for text in group.texts] == ["reference", "base", "system"]
    assert {text.sentences for text in group.texts} == {2}
    assert group.texts[0].mean_frequency == (100 + 20 + 100 + 1) / 4
    assert group.texts[1].mean_frequency == (100 + 100 + 100 + 20) / 4
    assert group.texts[2].mean_frequency == group.texts[0].mean_frequency


def test_a_system_that_improves_nothing_has_no_group():
    lines = ["the dog", "the cat"]
    assert analyse_frequency(TRAINING, lines, [("a", lines), ("b", lines)]).improved == ()


def test_a_text_without_words_has_no_frequencies():
    found = analyse_frequency(TRAINING, ["the dog"], [("a", [""])])
    assert math.isnan(found.all.texts[1].unseen)
    figure = frequency_figure(found, found.all)
    assert [line.name for line in figure.series] == ["reference"]


def test_the_figure_shows_all_percentiles_and_a_system_has_the_same_style_everywhere():
    references, base, system = ["the dog", "the cat"], ["the the", "the the"], ["the dog", "the the"]
    found = analyse_frequency(TRAINING, references, [("base", base), ("other", base), ("system", system)])
    all_figure, improved_figure = (frequency_figure(found, group) for group in found.groups())
    assert [x for x, _ in all_figure.series[0].points] == list(range(101))
    assert all_figure.series[0].points[100] == (100, 100)
    styles = {line.name: line.style for line in all_figure.series}
    assert len(set(styles.values())) == 4
    assert all(line.style == styles[line.name] for line in improved_figure.series)
