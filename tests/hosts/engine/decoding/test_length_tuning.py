"""The length penalty that gives the best BLEU on the validation set is chosen."""

from types import SimpleNamespace

import pytest

from pysimt_sac.core.sections import SearchOptions
from pysimt_sac.hosts.engine.decoding.length_tuning import PENALTIES, penalised, tune_length
from pysimt_sac.hosts.engine.decoding.search import Hypothesis

SHORT, LONG = Hypothesis([4] * 4, -4 / 4), Hypothesis([4] * 8, -6 / 8)  # log-probabilities -4 and -6


class FakeTranslator(SimpleNamespace):
    """A translator whose n-best list is always the same."""

    def source_of(self, split):
        assert split == "val"
        return self.folder / "val.src"

    def translate_lines(self, lines, progress):
        assert (self.search.n_best, self.search.lp_alpha) == (True, 0.0)
        return [[LONG, SHORT] for _ in lines]

    def best_texts(self, results):
        return [" ".join(["x"] * len(found[0].words)) for found in results]

    def readable(self, texts):
        return texts

    def filters(self, lines):
        return list(lines)


@pytest.mark.parametrize(("n_words", "best"), [(4, 0.2), (8, 0.0)])
def test_the_best_penalty_is_chosen_and_used(tmp_path, n_words, best):
    """Divided by the number of words the long one wins, by ((5 + n) / 6)^0.2 the short one."""
    (tmp_path / "val.src").write_text("a\nb\n")
    (tmp_path / "val.trg").write_text(f"{' '.join(['x'] * n_words)}\n" * 2)
    model = SimpleNamespace(val_refs=[tmp_path / "val.trg"])
    translator = FakeTranslator(folder=tmp_path, model=model, search=SearchOptions(func="bs", lp_alpha=9.0))
    tuned = tune_length(translator)
    assert tuned["lp_alpha"] == best
    assert tuned["BLEU"][str(best)] == pytest.approx(100)
    assert list(tuned["BLEU"]) == [str(penalty) for penalty in PENALTIES]
    assert (translator.search.lp_alpha, translator.search.n_best) == (best, False)


def test_scores_are_those_of_the_search_with_that_penalty():
    assert penalised(SHORT, 0.0) == pytest.approx(-1.0)
    assert penalised(SHORT, 0.8) == pytest.approx(-4 / (9 / 6) ** 0.8)
    assert penalised(Hypothesis([], -2.0), 0.0) == -2.0
