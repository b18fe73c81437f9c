"""The keys of a training recipe in pysimt's loop: torch's AdamW, our own engine and numbers by hand as oracles."""

import json

import pytest
import torch
from torch import nn

from pysimt_sac.hosts.engine.checkpoint import load_checkpoint, load_state
from pysimt_sac.hosts.pysimt.recipe import follow_recipe
from tests.hosts.pysimt.hosts import (
    COMMAND,
    needs_pysimt,
    pysimt_command,
    pysimt_commands,
    run_folder,
    run_python,
    start_python,
    train,
    training,
)
from tests.models.runs import points

# One batch holds the whole text, so that both hosts see the same ones.
WHOLE_TEXT = [
    "train.batch_size:200",
    "train.max_epochs:4",
    "train.eval_freq:-1",
    "train.lr:0.01",
    "model.dropout_emb:0",
]
RECIPE = {
    "schedule": ["model.lr_schedule:cosine", "model.lr_warmup:2", "model.lr_final:0.1"],
    "decay": ["model.weight_decay:0.5"],
    "average": ["model.ema_decay:0.6"],
    "smoothing": ["model.label_smoothing:0.2"],
}
ALL = [word for words in RECIPE.values() for word in words]

# Prints the learning rates that Adam computes with.
RATES = """
import json, sys
from torch.optim import adam
from pysimt_sac.cli import main
rates, original = [], adam.adam
def recording(*arguments, lr, **more):
    rates.append(float(lr))
    return original(*arguments, lr=lr, **more)
adam.adam = recording
assert main(sys.argv[1:]) == 0
print(json.dumps(rates))
"""

# Prints the source sentences of each training batch, and how many target words it has with its padding.
BATCHES = """
import json, sys
from pysimt_sac.cli import main
from pysimt_sac.rl.session import Session
batches, original = [], Session.training_loss
def recording(self, batch, update):
    words = self.actor.source_tokens
    lines = [" ".join(words[number] for number in column if number > 2) for column in batch["src"].t().tolist()]
    batches.append([lines, batch["trg"][1:].numel()])
    return original(self, batch, update)
Session.training_loss = recording
assert main(sys.argv[1:]) == 0
print(json.dumps(batches))
"""


def two_layers():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))


def test_hooks_around_adam_make_it_adamw_with_the_rate_of_each_step():
    """The first layer's gradient is missing at every other step: it must then be left alone."""
    factors = [0.5, 1.0, 0.25, 0.0]
    ours, oracle = two_layers(), two_layers()
    optimizer = torch.optim.Adam(ours.parameters(), lr=0.1)
    steps = iter(factors)
    follow_recipe(optimizer, ours, lambda: next(steps), 0.3)
    biases = [weight for name, weight in oracle.named_parameters() if "bias" in name]
    others = [weight for name, weight in oracle.named_parameters() if "bias" not in name]
    adamw = torch.optim.AdamW([{"params": others, "weight_decay": 0.3}, {"params": biases, "weight_decay": 0.0}])
    for number, factor in enumerate(factors):
        for group in adamw.param_groups:
            group["lr"] = 0.1 * factor
        for model, its_optimizer in ((ours, optimizer), (oracle, adamw)):
            its_optimizer.zero_grad()
            hidden = model[0](torch.ones(3))
            model[1](hidden.detach() if number % 2 else hidden).sum().backward()
            its_optimizer.step()
        assert optimizer.param_groups[0]["lr"] == 0.1
        for found, expected in zip(ours.parameters(), oracle.parameters(), strict=True):
            assert torch.allclose(found, expected, rtol=0, atol=1e-7)


def final_weights(run):
    (checkpoint,) = run.glob("*-final.ckpt")
    return load_checkpoint(checkpoint).weights


def distance(some, others):
    return max((some[name] - others[name]).abs().max().item() for name in some)


@needs_pysimt
def test_a_recipe_computes_in_pysimt_what_it_computes_in_the_engine(toy):
    """Every key of it: a run that lacks one ends elsewhere."""
    actor = train("embedded", toy, "actor", "train.max_epochs:1")
    start = [*WHOLE_TEXT, f"train.pretrained_file:{actor}", "train.model_type:SimultaneousNMT"]
    lacking = {name: [word for other, words in RECIPE.items() if other != name for word in words] for name in RECIPE}
    embedded = train("embedded", toy, "engine", *start, *ALL)
    pysimt_commands(
        "pysimt",
        training(toy, "all", *start, *ALL),
        *(training(toy, name, *start, *words) for name, words in lacking.items()),
    )
    expected = final_weights(embedded)
    assert distance(final_weights(run_folder(toy, "all")), expected) < 1e-5
    for name in lacking:
        assert distance(final_weights(run_folder(toy, name)), expected) > 1e-3
    (checkpoint,) = run_folder(toy, "all").glob("*-final.ckpt")
    assert load_checkpoint(checkpoint).options["model"]["weight_decay"] == 0.5
    (log,) = run_folder(toy, "all").glob("*.log")
    assert "Learning rate: cosine, after a warm-up of 2 updates, to 0.1 of lr at update 4" in log.read_text()
    assert "unused model option" not in log.read_text()


@needs_pysimt
@pytest.mark.parametrize("model_type", ["SimultaneousNMT", "MLENMT"])
def test_batches_by_words_and_accumulated_ones_are_the_engines(toy, model_type):
    """Both hosts see the same sentences in every update of two epochs, whose last updates have fewer batches."""
    actor = train("embedded", toy, "actor", "train.max_epochs:1")
    start = [f"train.model_type:{model_type}", f"train.pretrained_file:{actor}", "train.eval_freq:-1"]
    start += ["model.dropout_emb:0", "model.bucket_by:src", "train.disp_freq:1", "train.lr:0.001"]
    words = {"both": ["model.batch_tokens:60", "model.accumulate:3"], "one": ["model.batch_tokens:60"], "none": []}
    expected = train("embedded", toy, "engine", *start, *words["both"])
    pysimt_commands("pysimt", *(training(toy, name, *start, *more) for name, more in words.items()))
    found = {name: run_folder(toy, name) for name in words}
    losses, ours = points(expected, "train_LOSS"), points(found["both"], "train_LOSS")
    assert losses == pytest.approx(ours, abs=1e-4)
    assert len(points(found["one"], "train_LOSS")) > 2 * len(losses) > 20
    assert distance(final_weights(found["both"]), final_weights(expected)) < 1e-4
    assert min(distance(final_weights(found[name]), final_weights(expected)) for name in ("one", "none")) > 1e-3


@needs_pysimt
def test_two_halves_of_the_corpus_train_as_the_whole(toy):
    words = [*WHOLE_TEXT, "train.optimizer:sgd", "train.lr:0.1", "train.model_type:MLENMT"]
    halves = [*words, "train.batch_size:100", "model.accumulate:2"]
    pysimt_commands("pysimt", training(toy, "one", *words), training(toy, "two", *halves))
    one, two = (load_state(run_folder(toy, name))[0] for name in ("one", "two"))
    assert one["progress"]["uctr"] == two["progress"]["uctr"] == 4
    assert distance(one["weights"], two["weights"]) < 1e-6
    assert one["progress"]["train_loss"] == pytest.approx(two["progress"]["train_loss"], abs=1e-5)
    assert one["progress"]["train_loss"][-1] < one["progress"]["train_loss"][0] - 0.01


@needs_pysimt
def test_no_batch_by_words_is_too_large_and_every_sentence_is_in_one_batch_of_an_epoch(toy):
    words = ["train.model_type:REINFORCENMT", "model.rollout_max_len:4", "model.batch_tokens:40", "train.eval_freq:-1"]
    seen = json.loads(run_python(BATCHES, *training(toy, "words", *words), PYSIMT_SAC_HOST="pysimt").splitlines()[-1])
    sentences, lines = sorted(toy.src.read_text().splitlines()), [line for batch, _ in seen for line in batch]
    half = len(sentences)
    assert sorted(lines[:half]) == sorted(lines[half:]) == sentences
    assert lines[:half] != lines[half:]
    assert max(n_words for _, n_words in seen) <= 40
    assert sum(n_words for _, n_words in seen) > 30 * len(seen)


@needs_pysimt
def test_the_schedule_multiplies_the_algorithms_own_warm_up_and_keeps_its_length(toy):
    """Rates by hand: linear from update 2 on to 0 at update 6, times (1/4, 2/4, 3/4, 1, 1, 1) of the actor's."""
    words = [*WHOLE_TEXT, "train.model_type:MLENMT", "model.actor_warmup:4", "model.lr_schedule:linear"]
    words += ["model.lr_warmup:2", "train.max_epochs:6", "train.lr:0.008"]
    rates = json.loads(run_python(RATES, *training(toy, "warm", *words), PYSIMT_SAC_HOST="pysimt").splitlines()[-1])
    factors = [0.5 * 0.25, 1 * 0.5, 0.75 * 0.75, 0.5, 0.25, 0]
    assert rates == pytest.approx([0.008 * factor for factor in factors])
    assert load_state(run_folder(toy, "warm"))[0]["progress"]["lr_total"] == 6
    more = training(toy, "warm", *words, "train.max_epochs:8")
    done = start_python(RATES, *more, PYSIMT_SAC_HOST="pysimt")
    assert "schedule keeps the 6 updates that the run began with; a new run would have 8" in done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [0, 0]


@needs_pysimt
def test_every_checkpoint_holds_the_average_and_the_weights_go_on_without_it(toy):
    """The run without an average shows the weights of every update; the average of them is computed by hand."""
    words = ["train.max_iterations:6", "train.eval_freq:3", "train.checkpoint_freq:1", "train.n_checkpoints:9"]
    words += ["train.eval_zero:True", "train.eval_metrics:loss", "train.batch_size:100", "train.max_epochs:3"]
    pysimt_commands("pysimt", training(toy, "plain", *words), training(toy, "average", *words, "model.ema_decay:0.9"))
    plain, average = run_folder(toy, "plain"), run_folder(toy, "average")
    assert distance(load_state(plain)[0]["weights"], load_state(average)[0]["weights"]) == 0

    def weights(run, label):
        (path,) = run.glob(f"*-{label}.ckpt")
        return load_checkpoint(path).weights

    # The best of the plain run's validations before the first update is replaced: its seed repeats the first weights.
    pysimt_command("pysimt", *training(toy, "start", *words, "train.max_iterations:1", "train.lr:1e-30"))
    expected = weights(run_folder(toy, "start"), "update1")
    for number in range(1, 7):
        kept = min(0.9, number / (9 + number))
        raw = weights(plain, f"update{number}")
        expected = {name: kept * expected[name] + (1 - kept) * raw[name] for name in raw}
        assert distance(weights(average, f"update{number}"), expected) < 1e-6
        assert distance(raw, expected) > 1e-4
    (best,) = average.glob("*.best.loss.ckpt")
    number = {"val002": 3, "val003": 6}[best.readlink().name.split("-")[2].split(".")[0]]
    assert distance(load_checkpoint(best).weights, weights(average, f"update{number}")) == 0


@needs_pysimt
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["model.accumulate:2", "train.model_type:SACNMT"], "accumulate: SACNMT makes its own updates (only "),
        (["model.accumulate:2", "model.precision:bfloat16"], "precision (pysimt computes in float32): only the "),
        (["model.label_smoothing:0.1", "train.model_type:MLENMT"], "MLENMT has its own loss, which is not smooth"),
        (["model.lr_schedule:cosine", "train.lr_decay:plateau"], "both change the learning rate"),
        (["train.model_type:MLENMT", "train.eval_metrics:bleu", "train.pretrained_file:nowhere"], "no such checkpoint"),
        (["train.model_type:SACNMT", "model.reward:blue"], "'blue'"),
    ],
)
def test_a_refused_start_is_one_line_and_leaves_nothing_behind(toy, words, expected):
    before = sorted(toy.folder.rglob("*"))
    done = start_python(COMMAND, *training(toy, "refused", *words), PYSIMT_SAC_HOST="pysimt")
    assert done.returncode == 2
    assert expected in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert sorted(toy.folder.rglob("*")) == before


@needs_pysimt
def test_validations_while_critics_learn_alone_use_up_no_patience(toy):
    words = ["train.model_type:SACNMT", "model.critic_pretrain_updates:5", "model.rollout_max_len:5"]
    words += ["train.eval_freq:1", "train.patience:2", "train.max_iterations:6", "train.lr:0.003"]
    (curves,) = train("pysimt", toy, "alone", *words).glob("*.scalars.jsonl")
    points = map(json.loads, curves.read_text().splitlines())
    assert [point["step"] for point in points if point["name"] == "val_LOSS"] == [1, 2, 3, 4, 5, 6]
