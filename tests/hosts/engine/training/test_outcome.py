"""Runs that gain nothing, and runs that diverge: both are told, and a diverged model is never the best so far."""

import math
import re

import pytest

from pysimt_sac.core.metrics import Metric
from pysimt_sac.hosts.engine.checkpoint import load_checkpoint
from pysimt_sac.hosts.engine.training.outcome import has_diverged, validation_lines, watch_training
from pysimt_sac.hosts.engine.training.progress import Best, Progress
from tests.hosts.engine.dying_runs import last_state
from tests.models.runs import lines, train_actor

GROWING = """
from pysimt_sac.core.registry import MODELS
from pysimt_sac.hosts.engine.nmt import SimultaneousNMT

@MODELS.register("Growing{training}{validation}")
class Growing(SimultaneousNMT):
    '''Its losses are multiplied in its second epoch, and in validations after it.'''
    epoch = 1
    def forward(self, batch, uctr=0, ectr=0):
        out = super().forward(batch)
        self.epoch = ectr or self.epoch
        factor = {training} if self.training else {validation}
        if self.epoch == 2:
            out["loss"] = out["loss"] * factor
        return out
"""


@pytest.fixture
def growing(toy, pysimt):
    """Three epochs with losses that are multiplied in the second one."""

    def train(training, validation, *words):
        plugin = toy.folder / f"growing_{training}_{validation}.py"
        plugin.write_text(GROWING.format(training=training, validation=validation))
        model = [f"model.plugin_modules:{plugin}", f"train.model_type:Growing{training}{validation}"]
        outcome = pysimt("train", "-C", toy.config, *model, "train.max_epochs:3", "train.lr:1e-5", *words)
        assert outcome.status == 0, outcome.err
        return outcome.err

    return train


# Nothing gained


def test_only_the_metric_that_improved_is_called_best():
    bleu, chrf = Metric("bleu", 0.0), Metric("chrf", 0.0)
    progress = Progress(validation=2, best={"BLEU": Best(0.0, 1), "CHRF": Best(0.0, 2)})
    lines, summary = validation_lines(progress, [bleu, chrf], [chrf])
    assert summary == "Validation 2: BLEU 0.000 (best 0.000 at 1), CHRF 0.000 best"
    assert lines[0] == "Validation 2 - BLEU: 0.000 (best: 0.000 at 1)"
    assert lines[1] == "Validation 2 - CHRF: 0.000 (best so far)"


def test_a_run_whose_best_checkpoint_is_its_starting_point_says_so(toy, pysimt):
    words = [train_actor(toy), "train.eval_zero:True", "train.lr:1e-12", "train.eval_metrics:bleu"]
    told = pysimt("train", "-C", toy.config, *words).err
    assert "Warning: the best checkpoint is the starting point (BLEU" in told
    assert "at validation 1, before the first update of the weights, number 1): training brought no improvement" in told
    assert told.splitlines()[-1].startswith("Warning: the best checkpoint is the starting point")
    assert len(lines(toy.run_folder, "is the starting point")) == 1


def test_validations_while_critics_learn_alone_are_of_the_starting_point(toy, pysimt):
    words = [train_actor(toy), "train.model_type:SACNMT", "model.critic_pretrain_updates:20", "model.gate_sentences:0"]
    told = pysimt("train", "-C", toy.config, *words, "train.max_epochs:3", "train.lr:1e-12").err
    assert re.search(r"starting point \(BLEU [\d.]+ at validation 1, before the first update .*, number 21\)", told)


def test_validations_while_critics_learn_alone_use_up_no_patience_and_do_not_lower_the_rate(toy, pysimt):
    words = [train_actor(toy), "train.model_type:SACNMT", "model.critic_pretrain_updates:25", "model.gate_sentences:0"]
    words += ["train.eval_freq:5", "train.patience:2", "train.lr_decay:plateau", "train.lr_decay_patience:0"]
    words += ["train.max_epochs:9", "train.lr:1e-5", "train.lr_decay_min:0", "train.eval_metrics:bleu"]
    outcome = pysimt("train", "-C", toy.config, *words)
    assert outcome.status == 0
    starts = ("Validation", "Learning rate", "Training end")
    told = [line for line in outcome.err.splitlines() if line.startswith(starts)]
    assert ["patience 2" in line for line in told[:6]] == [True] * 5 + [False]
    assert told[6].startswith("Learning rate reduced to")
    assert told[-1] == "Training ended: no gain in 2 validations"
    assert len(told) == 10  # two after the actor's first update, each with a lower rate


def test_no_gain_after_the_first_validation(toy, pysimt):
    words = [train_actor(toy), "train.lr:1e-12", "train.eval_metrics:bleu"]
    told = pysimt("train", "-C", toy.config, *words).err
    assert "the best checkpoint is that of the first validation: none of the 1 later validations improved" in told


def test_a_run_that_gains_is_not_blamed(toy, pysimt):
    told = pysimt("train", "-C", toy.config, "train.eval_zero:True", "train.eval_metrics:loss").err
    assert "Warning" not in told
    assert re.search(r"Best checkpoint: LOSS [\d.]+ at validation 3, simultaneousnmt-r\w+-val003.best.loss_", told)


# Divergence


def test_a_training_loss_that_rises_far_is_told_once(growing, toy):
    told = growing(20, 1)
    (warning,) = [line for line in told.splitlines() if line.startswith("Warning: the training loss")]
    mean, lowest = map(float, re.search(r"loss is ([\d.]+), .* its lowest was ([\d.]+);", warning).groups())
    assert mean > 3 * lowest + 1
    assert "lower lr" in warning


def test_a_diverged_validation_is_not_the_best_so_far(growing, toy):
    """The loss of 16 words' vocabulary is about log 16 = 2.8; times 100 it is worse than any guess."""
    told = growing(1, 100)
    assert re.search(r"Validation 2: BLEU \S+ \(best \S+ at 1\), LOSS [23]\d\d\.\d+ \(best \S+ at 1\)", told)
    assert re.search(
        r"Warning: the validation loss is [23]\d\d\.\d+ per word where guessing gives 2\.77; the run div", told
    )
    assert not list(toy.run_folder.glob("*-val002*"))


def test_not_even_if_it_is_the_first(growing, toy):
    told = growing(1, 100, "train.eval_start:2", "train.max_epochs:2")
    assert "(not counted)" in told
    assert last_state(toy.run_folder)["progress"]["best"] == {}
    assert not list(toy.run_folder.glob("*.best.*"))
    (final,) = toy.run_folder.glob("*-final.ckpt")
    assert load_checkpoint(final).history["diverged"]
    warning = "Warning: the model has diverged; the last checkpoint is of no use, and there is no other"
    assert told.splitlines()[-1] == warning


def test_a_loss_that_is_some_times_its_best_is_only_told(growing):
    told = growing(1, 4.2, "train.lr:0.02", "train.max_epochs:2")
    assert re.search(
        r"Warning: the validation loss is \S+, \S+ times its best, \S+ at validation 1; the run may", told
    ) or ("where guessing gives" in told)


def test_what_counts_as_lost():
    progress = Progress(best={"LOSS": Best(0.5, 1)})
    many = 1000  # words: log 1000 = 6.9
    assert not has_diverged([Metric("LOSS", 6.0)], progress, many)  # many times the best, but better than guessing
    assert has_diverged([Metric("BLEU", 30.0), Metric("LOSS", 7.0)], progress, many)
    assert not has_diverged([Metric("LOSS", 7.0)], Progress(), many)  # a model that knows nothing
    assert has_diverged([Metric("LOSS", 14.0)], Progress(), many)
    assert not has_diverged([Metric("BLEU", 30.0)], progress, many)


def test_single_reports_do_not_make_a_divergence():
    progress = Progress()
    assert [watch_training(progress, loss) for loss in (1.0, 1.0, 1.0, 1.0, 1.0, 9.0, 1.0, 1.0)] == [""] * 8
    told = [watch_training(progress, 30.0) for _ in range(9)]
    assert sum(map(bool, told)) == 1
    assert math.isclose(progress.lowest_loss, 1.0)
