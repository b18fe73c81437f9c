"""Gradients of several batches in one update: as if they were one batch, and counted once everywhere."""

import pytest
import torch

from pysimt_sac.hosts.engine.shell import model_class
from pysimt_sac.hosts.engine.training.gradients import gather_gradients
from pysimt_sac.models import MLE
from tests.hosts.engine.dying_runs import last_state, scalars
from tests.hosts.engine.tiny import tiny_batch, tiny_model, tiny_sentences
from tests.models.task import Board

CPU = torch.device("cpu")


def gradients(model, batches):
    model.zero_grad()
    found = gather_gradients(model.train(), batches, CPU, 1, 1)
    return found, {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}


@pytest.mark.parametrize("parts", [[(0, 32), (32, 64)], [(0, 5), (5, 6), (6, 64)]])
@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}, {"model_class": model_class(MLE)}], ids=str)
def test_parts_of_a_batch_give_the_gradient_of_the_whole(parts, options):
    model = tiny_model(**options).double()
    if "model_class" in options:
        model.start_training(Board())
    sources, targets = tiny_sentences(64), tiny_sentences(64, seed=1)
    whole, expected = gradients(model, [tiny_batch(model, sources, targets)])
    several, found = gradients(model, [tiny_batch(model, sources[a:b], targets[a:b]) for a, b in parts])
    assert several.n_items == whole.n_items == sum(len(target.split()) + 1 for target in targets)
    torch.testing.assert_close(several.loss, whole.loss)
    assert expected.keys() == found.keys()
    for name in expected:
        torch.testing.assert_close(found[name], expected[name])


def test_what_a_model_adds_to_its_loss_is_weighted_by_words():
    """Two words and one: the mean of the added terms, 3 and 6 times the weight, is (2 * 3 + 1 * 6) / 3 = 4 times it."""

    class Adding(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.aux_loss = torch.nn.Parameter(torch.ones(())), {}

        def forward(self, batch, uctr, ectr):
            self.aux_loss["term"] = 9 / (batch.n + 1) * self.weight if batch.n == 2 else 6 * self.weight
            return {"loss": 0 * self.weight, "n_items": batch.n}

    class Words:
        def __init__(self, n):
            self.n = n

        def device(self, device):
            pass

        def shard(self, rank, n_shards):
            return self

    model = Adding()
    gather_gradients(model, [Words(2), Words(1)], CPU, 1, 1)
    assert model.weight.grad.item() == pytest.approx(4)


def test_two_halves_of_the_corpus_train_as_the_whole(toy, pysimt):
    """An epoch is one update in both runs, so that they see the same sentences in each."""
    words = ["train.max_epochs:3", "model.dropout_emb:0", "train.disp_freq:1", "model.lr_schedule:cosine"]
    for name, size, several in (("one", 200, 1), ("two", 100, 2)):
        changes = [f"train.batch_size:{size}", f"model.accumulate:{several}"]
        assert pysimt("train", "-C", toy.config, "-s", name, *words, *changes).status == 0
    one, two = (last_state(toy.folder / f"runs/toy-{name}") for name in ("one", "two"))
    assert one["progress"]["update"] == two["progress"]["update"] == 3
    assert one["progress"]["lr_total"] == two["progress"]["lr_total"] == 3
    for name, weight in one["weights"].items():
        torch.testing.assert_close(two["weights"][name], weight, rtol=1e-3, atol=1e-4)
    assert one["progress"]["train_loss"] == pytest.approx(two["progress"]["train_loss"], abs=1e-5)


def test_the_rest_of_an_epoch_still_updates_and_each_update_counts_once(toy, pysimt):
    """Ten batches in fours: three updates an epoch."""
    words = ["model.accumulate:4", "train.disp_freq:1", "train.eval_freq:2", "train.eval_metrics:loss"]
    assert pysimt("train", "-C", toy.config, *words).status == 0
    points = scalars(toy.run_folder)
    assert [point["step"] for point in points if point["name"] == "train_LOSS"] == [1, 2, 3, 4, 5, 6]
    assert [point["step"] for point in points if point["name"] == "val_LOSS"] == [2, 4, 6]
    assert last_state(toy.run_folder)["progress"]["epoch_items"] == 0
