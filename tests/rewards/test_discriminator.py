"""The unsupervised reward: by hand, its mechanism, and that nothing of it reaches what it looks at."""

import copy
import math

import pytest
import torch

from pysimt_sac.core.errors import UserError
from pysimt_sac.rewards import RolloutTensors, Translations
from pysimt_sac.rewards.choices import ChoiceCounts
from pysimt_sac.rewards.discriminator import UnsupervisedOptions, UnsupervisedReward, certainty, label_reward
from tests.rewards.rewarders import make_rewarder

K, C, E = 4, 6, 5
FREQUENT, RARE, EOS = 7, 8, 2


def test_the_reward_of_given_probabilities():
    log_q = torch.tensor([[0.5, 0.25, 0.125, 0.125], [0.1, 0.2, 0.3, 0.4]]).log()
    found = label_reward(log_q, torch.tensor([0, 1]))
    assert found.tolist() == pytest.approx([math.log(0.5 / 0.25), math.log(0.2 / 0.25)])
    entropy = 0.5 * math.log(2) + 0.25 * math.log(4) + 2 * 0.125 * math.log(8)
    assert certainty(log_q)[0].item() == pytest.approx(math.log(4) - entropy)


def translations(words, z, sources=None, embeddings=None, end_z=None):
    """One word per sentence, then `<eos>`, whose labels are 0 if they are of no interest."""
    size = len(words)
    tokens_TB = torch.stack((torch.ones(size, dtype=torch.long), torch.tensor(words), torch.full((size,), EOS)))
    table = torch.randn(20, E, generator=torch.Generator().manual_seed(1)) if embeddings is None else embeddings
    source_SB = torch.full((3, size), 5) if sources is None else torch.tensor(sources).expand(3, -1)
    state_BC = torch.ones(size, C) * source_SB[0].unsqueeze(1) / 5
    z_TB = torch.tensor([z, end_z or [0] * size])
    tensors = RolloutTensors(source_SB, tokens_TB, state_BC, table[tokens_TB[1:]], z_TB)
    return Translations([[str(word)] for word in words], [["x"]] * size, [True] * size, tensors)


@pytest.mark.parametrize("discriminator", ["network", "counts"])
def test_who_knows_nothing_gives_exactly_nothing(discriminator):
    part = UnsupervisedReward(UnsupervisedOptions(discriminator=discriminator))
    found = part(translations([FREQUENT, RARE], [0, 3]))
    assert found.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def play(part, updates, generator):
    """Sample the frequent word 100 times as often as the rare one, store all labels, and learn from what is stored."""
    words = [FREQUENT] * 100 + [RARE]
    z, end_z = torch.randint(K, (2, len(words)), generator=generator).tolist()
    stored = translations(words, z, end_z=end_z)
    part.observe(stored)
    figures = {}
    for _ in range(updates):
        figures = part.learn(stored)
    return part(stored)[0], figures


@pytest.mark.parametrize(("discriminator", "updates"), [("network", 300), ("counts", 1)])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_rare_choice_earns_more(discriminator, updates, seed):
    options = UnsupervisedOptions(discriminator=discriminator, discriminator_lr=0.01, discriminator_dim=16)
    rewards, figures = play(UnsupervisedReward(options), updates, torch.Generator().manual_seed(seed))
    assert rewards[100] > rewards[:100].mean() + 0.3
    assert rewards[:100].mean() < 0.1
    assert rewards[:100].mean() >= 0  # on stored labels it is never less than nothing
    assert figures["seen_once"] > figures["seen_10_or_more"]
    assert 1 / K <= figures["accuracy"] <= 1


def test_counts_by_hand():
    part = UnsupervisedReward(UnsupervisedOptions(discriminator="counts"))
    part.observe(translations([FREQUENT, FREQUENT, RARE], [0, 1, 2]))
    # twice, with different labels: (1 + 1) / (2 + 4); once: (1 + 1) / (1 + 4); never for another source: 1 / 4
    found = part(translations([FREQUENT, RARE, RARE], [0, 2, 2], sources=[5, 5, 6]))
    assert found[0].tolist() == pytest.approx([math.log(4 / 3), math.log(8 / 5), 0.0], abs=1e-6)
    assert part.choices.words_per_source == 3  # and `<eos>`


def test_nothing_reaches_the_actor():
    table = torch.randn(20, E, generator=torch.Generator().manual_seed(1)).requires_grad_()
    part = UnsupervisedReward(UnsupervisedOptions())
    stored = translations([FREQUENT, RARE], [0, 1], embeddings=table)
    assert stored.tensors.embedding_TBE.requires_grad  # even if it is handed over with a gradient
    part.learn(stored)
    assert table.grad is None


def test_words_without_labels_are_refused():
    with pytest.raises(UserError, match="labelled"):
        UnsupervisedReward(UnsupervisedOptions())(Translations([["a"]], [["a"]], [True]))


@pytest.mark.parametrize("discriminator", ["network", "counts"])
def test_a_restored_one_goes_on_as_the_other_would_have(discriminator):
    one, other = (make_rewarder(reward="unsup", discriminator=discriminator) for _ in range(2))
    stored = translations([FREQUENT, RARE, RARE], [0, 1, 1])
    one.learn(stored, new=True)
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for rewarder in (one, other):
        rewarder.learn(stored, new=True)
    assert one.learned_potentials(stored).tolist() == other.learned_potentials(stored).tolist()


@pytest.mark.filterwarnings("ignore:for .*copying from a non-meta parameter")
def test_a_restored_network_goes_where_its_inputs_are():
    """Training states are read to the CPU, wherever the run goes on; the `meta` device stands for another one."""
    part, restored = (UnsupervisedReward(UnsupervisedOptions()) for _ in range(2))
    play(part, 2, torch.Generator().manual_seed(1))
    restored.load_state_dict(part.state_dict())
    kept = restored.state_dict()["network"]["weights"]  # before anything was asked
    assert all(torch.equal(kept[name], weight) for name, weight in part.network.state_dict().items())
    elsewhere = RolloutTensors(*(torch.zeros(shape, device="meta") for shape in ((3, 2), (3, 2), (2, C), (2, 2, E))))
    restored.log_q(elsewhere, torch.zeros(2, dtype=torch.long, device="meta"), None, torch.zeros(2, E, device="meta"))
    assert {weight.device.type for weight in restored.network.parameters()} == {"meta"}


def test_counts_of_nothing_can_be_restored():
    empty = ChoiceCounts(K)
    empty.load_state_dict(ChoiceCounts(K).state_dict())
    assert empty.seen(torch.full((3, 2), 5), torch.tensor([0, 1]), torch.tensor([7, 8])).tolist() == [0, 0]


def test_a_mixture_tells_what_was_learned():
    rewarder = make_rewarder(reward="bleu:0.7,unsup:0.3", discriminator="counts")
    stored = translations([FREQUENT, RARE], [0, 1])
    rewarder.learn(stored, new=True)
    earned = rewarder(stored)
    alone = make_rewarder(reward="bleu")(stored)
    assert earned.potentials_TB - earned.learned_TB == pytest.approx(0.7 * alone.potentials_TB)
    assert earned.learned_TB == pytest.approx(0.3 * rewarder.parts["unsup"](stored))


def test_many_choices_are_counted_like_few():
    choices, generator = ChoiceCounts(K), torch.Generator().manual_seed(1)
    words = torch.randint(4, 4000, (9000,), generator=generator)
    z = torch.randint(K, (9000,), generator=generator)
    source = torch.tensor([[4, 5], [6, 0]])
    columns = torch.arange(9000) % 2
    for part in range(3):
        chosen = slice(part * 3000, (part + 1) * 3000)
        choices.add(source, columns[chosen], words[chosen], z[chosen])
    expected = [[int(((words == words[i]) & (columns == columns[i]) & (z == label)).sum()) for label in range(K)]
                for i in range(20)]  # fmt: skip
    assert choices.of(source, columns[:20], words[:20]).tolist() == expected
    assert choices.seen(source, columns[:1], torch.tensor([4001])).tolist() == [0]
