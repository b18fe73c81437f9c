"""The discriminator of random labels: what it counts, what it can learn, and that it touches nothing else."""

import math

import pytest
import torch

from pysimt_sac.rewards.count_bonus import count_bonus
from pysimt_sac.rewards.discriminator import (
    DiscriminatorOptions,
    LabelledDraws,
    certainty,
    fit_discriminator,
    label_metrics,
)

K, V, C, E = 4, 40, 6, 5
PAD, BOS, EOS = 0, 1, 2


def test_labels_are_counted_by_source_and_word():
    tokens_TC = torch.tensor([[BOS, 5, 5, EOS], [BOS, 5, 7, EOS], [BOS, 5, EOS, PAD], [BOS, EOS, PAD, PAD]]).t()
    z_TC = torch.tensor([[0, 1, 3], [1, 2, 3], [2, 3, 0], [3, 0, 0]]).t()
    found = LabelledDraws.of(tokens_TC, z_TC, n_samples=2, n_labels=K, n_words=V)
    pairs = zip(found.sources_P.tolist(), found.words_P.tolist(), strict=True)
    assert dict(zip(pairs, found.labels_PK.tolist(), strict=True)) == {
        (0, 5): [1, 2, 0, 0], (0, 7): [0, 0, 1, 0], (0, EOS): [0, 0, 0, 2],
        (1, 5): [0, 0, 1, 0], (1, EOS): [0, 0, 0, 2],
    }  # fmt: skip
    numbers = found.numbers(torch.tensor([0, 1]), torch.tensor([[5, 7, 9], [5, 7, 39]]))
    assert numbers.tolist() == [[3, 1, 0], [1, 0, 0]]
    metrics = label_metrics(found, found.log_frequencies())
    assert float(metrics["unsup_accuracy"]) == float(metrics["best_accuracy"]) == pytest.approx(8 / 9)
    assert float(metrics["unsup_n_1"]) == pytest.approx(math.log(K))
    two_and_three = 4 * math.log(K) + math.log(K / 3) + 2 * math.log(2 * K / 3)
    assert float(metrics["unsup_n_2_to_3"]) == pytest.approx(two_and_three / 7)


def test_certainty_by_hand():
    log_q = torch.tensor([[0.5, 0.25, 0.125, 0.125], [0.25] * 4]).log()
    entropy = 0.5 * math.log(2) + 0.25 * math.log(4) + 2 * 0.125 * math.log(8)
    assert certainty(log_q).tolist() == pytest.approx([math.log(4) - entropy, 0])


def random_draws(seed, n_sources=16, n_samples=4, length=6):
    """Samples over few likely and many unlikely words, with labels; source states; an embedding."""
    generator = torch.Generator().manual_seed(seed)
    weights = 1 / torch.arange(1, V - 2).float() ** 0.5
    words = torch.multinomial(weights, n_sources * n_samples * length, True, generator=generator) + 3
    tokens_TC = torch.cat((torch.ones(1, n_sources * n_samples).long(), words.view(length, -1)))
    z_TC = torch.randint(K, (length, n_sources * n_samples), generator=generator)
    draws = LabelledDraws.of(tokens_TC, z_TC, n_samples, K, V)
    states, table = torch.randn(n_sources, C, generator=generator), torch.randn(V, E, generator=generator)
    return draws, states, table


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_memorises_what_can_be_memorised_and_pays_less_the_more_often_a_word_was_drawn(seed):
    draws, source_BC, table = random_draws(seed)
    embedding_PE = table[draws.words_P]
    network = fit_discriminator(draws, source_BC, embedding_PE, DiscriminatorOptions(discriminator_steps=300))
    metrics = label_metrics(draws, network(source_BC, draws.sources_P, embedding_PE))
    found = {name: float(value) for name, value in metrics.items()}
    assert found["unsup_accuracy"] > 0.6 > 2 * found["chance_accuracy"]
    assert found["unsup_accuracy"] <= found["best_accuracy"]
    assert found["unsup_n_1"] > found["unsup_n_2_to_3"] > found["unsup_n_4_to_7"] > 0.1
    # What was drawn n times is worth, on average, one more draw after n - 1.
    u_P, n_P = certainty(draws.log_frequencies()), draws.labels_PK.sum(1)
    for n in (1, 2, 3):
        assert float(u_P[n_P == n].mean()) == pytest.approx(count_bonus(n - 1, K), abs=0.1)


def test_nothing_reaches_the_actor_or_depends_on_the_global_random_state():
    draws, source_BC, table = random_draws(1)
    source_BC.requires_grad_()
    table.requires_grad_()
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        with torch.no_grad():  # as in an update
            found.append(fit_discriminator(draws, source_BC, table[draws.words_P], DiscriminatorOptions()))
        assert torch.equal(before, torch.get_rng_state())
    assert source_BC.grad is None
    assert table.grad is None
    assert all(map(torch.equal, found[0].parameters(), found[1].parameters()))
