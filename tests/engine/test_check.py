"""`pysimt train --check` does everything but train, says what it found, and writes nothing."""

import re

import pytest
import torch


def content_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_it_says_what_it_found_and_writes_nothing(toy, pysimt):
    before = content_of(toy.folder)
    outcome = pysimt("train", "-C", toy.config, "--check", "model.bucket_by:src", "model.max_len:6")
    assert outcome.status == 0
    assert content_of(toy.folder) == before
    assert not toy.run_folder.parent.exists()
    assert f"A new run would begin in {toy.run_folder}" in outcome.err
    left_out = sum(len(line.split()) + 1 > 6 for line in toy.src.read_text().splitlines())
    assert f"Training text: {200 - left_out} pairs" in outcome.err
    assert "longest: src 6, trg 7; unknown words: src 0.00%, trg 0.00%" in outcome.err
    assert f"{left_out} pairs are longer than max_len and left out" in outcome.err
    assert "Validation text: 12 pairs; metrics: BLEU, LOSS" in outcome.err
    assert "Largest batch: 20 pairs" in outcome.err
    assert "nothing was written" in outcome.err


def test_memory_is_counted_by_purpose(toy, pysimt):
    """Adam keeps two numbers for each weight, and one step count for each of its tensors."""
    from pysimt_sac.engine.config.parser import read_config
    from pysimt_sac.engine.network.nmt import SimultaneousNMT
    from pysimt_sac.engine.training.check import in_units

    model = SimultaneousNMT(read_config(toy.config))
    model.setup()
    weights = 4 * sum(parameter.numel() for parameter in model.parameters())
    adam = 2 * weights + 4 * len(list(model.parameters()))
    told = pysimt("train", "-C", toy.config, "--check").err
    expected = (
        f"weights {in_units(weights)}, gradients {in_units(weights)}, optimizer {in_units(adam)}, learner 0 bytes, "
    )
    assert expected in told


def test_activations_are_counted_once():
    from pysimt_sac.engine.training.check import SavedTensors

    weight = torch.nn.Parameter(torch.ones(5, 10))
    kept = SavedTensors([weight])
    inputs = torch.ones(100, 10, requires_grad=True)
    with kept:
        hidden = (inputs @ weight.T).exp()  # keeps `inputs` and its own outcome; the weight is not an activation
        hidden.view(50, 10).square()  # keeps a view of the same memory
    assert kept.bytes == 4 * (1000 + 500)


def test_more_words_than_the_vocabulary_has(toy, pysimt):
    toy.src.write_text(toy.src.read_text().replace("one", "zilch"))
    told = pysimt("train", "-C", toy.config, "--check").err
    assert re.search(r"unknown words: src [1-9][\d.]*%, trg 0.00%", told)


def test_it_tells_what_training_would_do(toy, pysimt):
    assert pysimt("train", "-C", toy.config, "train.max_iterations:5").status == 0
    before = content_of(toy.folder)
    told = pysimt("train", "-C", toy.config, "--check").err
    assert re.search(r"simultaneousnmt-r\w+ in .*/toy would go on after update 5", told)
    assert "is finished: 5 updates done" in pysimt("train", "-C", toy.config, "--check", "train.max_iterations:5").err
    assert "A new run would begin" in pysimt("train", "-C", toy.config, "--check", "--restart").err
    outcome = pysimt("train", "-C", toy.config, "--check", "train.lr:1")
    assert outcome.status == 2
    assert "changed: train.lr: 0.01 -> 1" in outcome.error
    assert content_of(toy.folder) == before


def test_pretrained_weights_and_frozen_layers_are_tried(toy, pysimt):
    assert pysimt("train", "-C", toy.config, "train.eval_freq:-1").status == 0
    (path,) = toy.run_folder.glob("*-final.ckpt")
    words = ["train", "-C", toy.config, "-s", "next", "--check", f"train.pretrained_file:{path}"]
    told = pysimt(*words, "train.freeze_layers:enc").err
    assert re.search(r"Took (\d+) of \1 weights from", told)
    assert "Froze encoders.src.emb.weight" in told
    assert "of them trained" in told
    outcome = pysimt(*words, "model.dec_dim:17")
    assert outcome.status == 2
    assert "has another size" in outcome.error


@pytest.mark.parametrize(
    "override", ["train.eval_metrics:bleuu", "data.val_set.src:./no", "model.emb_dim:10000000000000"]
)
def test_what_training_would_refuse_is_refused(toy, pysimt, override):
    outcome = pysimt("train", "-C", toy.config, "--check", override)
    assert outcome.status == 2
    assert outcome.error
