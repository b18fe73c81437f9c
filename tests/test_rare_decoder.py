"""`experiments/rare_decoder.py`: a beam search that prefers rare translations."""

import math
from collections import Counter
from itertools import product

import pytest
import torch

import pysimt_sac
from pysimt_sac.cli import main
from pysimt_sac.core.vocabulary import BOS, UNK
from pysimt_sac.hosts.engine.data.corpus import Text
from tests.conftest import load_script


@pytest.fixture(scope="module")
def script():
    return load_script("experiments/rare_decoder.py")


@pytest.fixture
def network(trained_toy):
    return pysimt_sac.load(trained_toy.final_checkpoint).network


@torch.no_grad()
def test_shares_come_from_counts_of_the_training_text(script, network, trained_toy):
    shares_FA = script.translation_shares(network)
    counts, attended = Counter(), Counter()
    texts = ((trained_toy.folder / f"train.{side}").read_text().splitlines() for side in ("src", "trg"))
    for source, target in zip(*texts, strict=True):
        corpus = network.make_corpus({"src": Text([source], network.src_vocab, is_target=False)}, 1)
        batch = next(iter(corpus.loader()))
        words = network.trg_vocab.sent_to_idxs(target)
        prefix_T1 = torch.tensor([BOS, *words[:-1]]).unsqueeze(1)
        places = network.dec.attended(network.encode(batch), prefix_T1)[:, 0].tolist()
        sources = [int(batch["src"][place, 0]) for place in places]
        counts.update(zip(sources, words, strict=True))
        attended.update(sources)
    assert bool((shares_FA[:, : UNK + 1] == 0).all())
    for f, a in product(range(len(shares_FA)), range(UNK + 1, shares_FA.size(1))):
        assert math.exp(shares_FA[f, a]) == pytest.approx((counts[f, a] + 1) / (attended[f] + 1), rel=1e-5)


@torch.no_grad()
def test_likely_words_are_adjusted_by_the_source_word_that_is_attended_to(script, network, trained_toy):
    lines = (trained_toy.folder / "test.src").read_text().splitlines()[:4]
    corpus = network.make_corpus({"src": Text(lines, network.src_vocab, is_target=False)}, 4)
    batch = next(iter(corpus.loader()))
    shares_FA = -torch.rand(len(network.src_vocab), len(network.trg_vocab))
    plain = network.stepper(network.encode(batch))
    expected, prefix_TB = [], torch.full((1, 4), BOS)
    for _ in range(3):
        log_p_BV = plain.log_probs(prefix_TB[-1].unsqueeze(1)).squeeze(1)
        places_B = network.dec.attended(network.encode(batch), prefix_TB)[-1]
        words_B = batch["src"][places_B, torch.arange(4)]
        expected.append(torch.where(log_p_BV >= math.log(0.02), log_p_BV - 0.5 * shares_FA[words_B], log_p_BV))
        prefix_TB = torch.cat((prefix_TB, log_p_BV.argmax(-1).unsqueeze(0)))
    set_tau = script.favour_rare(network, shares_FA)
    set_tau(0.5)
    adjusted = network.stepper(network.encode(batch))
    for step, wanted_BV in enumerate(expected):
        torch.testing.assert_close(adjusted.log_probs(prefix_TB[step].unsqueeze(1)).squeeze(1), wanted_BV)


def test_without_preference_it_is_beam_search(script, trained_toy, tmp_path, monkeypatch, capsys):
    words = [str(trained_toy.final_checkpoint), "-s", "test", "-f", "bs", "-k", "3", "-o", str(tmp_path / "plain")]
    assert main(["translate", *words]) == 0
    words = [words[0], "--splits", "test", "--out", str(tmp_path / "rare"), "--taus", "0", "--beam", "3"]
    monkeypatch.setattr("sys.argv", ["rare_decoder.py", *words])
    script.main()
    assert "Translating with tau 0" in capsys.readouterr().out
    plain, rare = ((tmp_path / f"{name}.test.beam3").read_bytes() for name in ("plain", "rare"))
    assert plain == rare
