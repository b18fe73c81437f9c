"""`pysimt train --check` does everything but train, says what it found, and writes nothing."""

import json
import re

import pytest

from pysimt_sac.hosts.engine.config.parser import read_config
from pysimt_sac.hosts.engine.nmt import SimultaneousNMT
from pysimt_sac.hosts.engine.training.check import in_units
from tests.models.runs import train_actor


def content_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_it_says_what_it_found_and_writes_nothing(toy, pysimt):
    before = content_of(toy.folder)
    outcome = pysimt("train", "-C", toy.config, "--check", "model.bucket_by:src", "model.max_len:6")
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


def test_disk_space_is_that_of_weights_and_the_optimisers_state(toy, pysimt):
    """Adam keeps two numbers for each weight, and one step count for each of its tensors."""
    model = SimultaneousNMT(read_config(toy.config))
    model.setup()
    weights = 4 * sum(parameter.numel() for parameter in model.parameters())
    state = 3 * weights + 4 * len(list(model.parameters()))
    told = pysimt("train", "-C", toy.config, "--check").err
    assert f"Disk: {in_units(2 * state)} for two saved states, {in_units(weights)} for each checkpoint; " in told
    assert re.search(r"Memory: at most [\d.]+ [MG]B on cpu with that batch", told)


def test_it_says_whether_a_run_would_begin_or_resume(toy, pysimt):
    assert pysimt("train", "-C", toy.config, "train.max_iterations:5").status == 0
    before = content_of(toy.folder)
    told = pysimt("train", "-C", toy.config, "--check").err
    assert re.search(r"simultaneousnmt-r\w+ in .*/toy would resume after update 5", told)
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
    assert re.search(r"Loaded (\d+) of \1 weights from", told)
    assert "Froze encoders.src.emb.weight" in told
    assert "of them trained" in told
    outcome = pysimt(*words, "model.dec_dim:17")
    assert outcome.status == 2
    assert "has a different size" in outcome.error


# Every stage is tried


def test_critics_alone_and_beside_the_actor_are_both_tried(toy, pysimt):
    words = [train_actor(toy), "train.model_type:SACNMT", "model.critic_pretrain_updates:5", "model.gate_sentences:8"]
    words += ["model.health_freq:2", "train.lr:0.005"]
    before = content_of(toy.folder)
    told = pysimt("train", "-C", toy.config, "-s", "sac", "--check", *words).err
    assert content_of(toy.folder) == before
    (alone,) = [line for line in told.splitlines() if line.startswith("Tried 'critics alone': critic loss ")]
    assert "loss per word" not in alone
    assert "Tried 'actor and critics': loss per word " in told
    assert "No problems found; nothing was written" in told


def test_an_actor_that_never_learns_is_named(toy, pysimt):
    words = [train_actor(toy), "train.model_type:SACNMT", "model.critic_pretrain_updates:90", "train.eval_start:10"]
    words.append("train.lr:0.005")
    told = pysimt("train", "-C", toy.config, "-s", "sac", "--check", *words).err
    assert "Warning: the model never learns within max_epochs (2)" in told
    assert "Warning: there will be no validation: it starts in epoch 10 (eval_start) of 2" in told
    assert told.splitlines()[-1] == "2 things look wrong (see above); nothing was written."


def test_the_critics_warm_up_is_a_stage(toy, pysimt):
    words = [train_actor(toy), "train.model_type:SACNMT", "model.critic_pretrain_updates:5", "model.gate_sentences:0"]
    told = pysimt("train", "-C", toy.config, "-s", "sac", "--check", *words, "train.lr:0.005").err
    tried = [line for line in told.splitlines() if line.startswith("Tried")]
    assert tried[0].startswith("Tried 'critics alone'")
    assert tried[1].startswith("Tried 'actor and critics': loss per word")
    assert "greedy BLEU" in tried[1]
    assert "No problems found" in told


def test_what_goes_wrong_in_a_later_stage_is_found(toy, pysimt):
    words = [train_actor(toy), "train.model_type:SACNMT", "model.critic_pretrain_updates:5", "model.gate_sentences:0"]
    outcome = pysimt("train", "-C", toy.config, "-s", "sac", "--check", *words, "model.lambda_rl:1e300")
    assert outcome.status == 2
    assert "toy.conf (actor and critics): the first loss or gradient is not finite" in outcome.error


# The verdict


def verdict(pysimt, toy, *words):
    """The warnings of a check; with any, it ends with a status of its own."""
    outcome = pysimt("train", "-C", toy.config, "--check", *words)
    found = [line for line in outcome.err.splitlines() if line.startswith("Warning: ")]
    assert outcome.status == (3 if found else 0), outcome.err
    assert ("No problems found" in outcome.err) == (found == [])
    assert outcome.err.splitlines()[-1].endswith(
        "To train, leave out --check." if not found else "nothing was written."
    )
    return found


def test_nothing_is_wrong_with_the_toy(toy, pysimt):
    assert verdict(pysimt, toy) == []


def test_swapped_vocabularies_are_named(toy, pysimt):
    found = verdict(pysimt, toy, f"vocabulary.src:{toy.trg_vocab}", f"vocabulary.trg:{toy.src_vocab}")
    assert f"100% of the words of {toy.src} are not in the vocabulary of 'src'" in found[0]
    assert "in that of 'trg' only 0.0% are missing; are the vocabularies, or the files, swapped?" in found[0]
    assert len([line for line in found if "swapped?" in line]) == 4  # both sides of training and validation text


def test_a_vocabulary_of_another_text_is_named(toy, pysimt):
    toy.src.write_text(toy.src.read_text().replace("one", "zilch"))
    (found,) = verdict(pysimt, toy)
    assert re.search(r"\d+% of the words of .*train.src are not in the vocabulary of 'src': does it belong", found)


def test_lengths_that_do_not_fit_are_named(toy, pysimt):
    letters = [" ".join(line.replace(" ", "_")) for line in toy.trg.read_text().splitlines()]
    toy.trg.write_text("".join(f"{line}\n" for line in letters))
    found = verdict(pysimt, toy)
    assert any("sentences of the training text have" in line and "segmented" in line for line in found)
    sources = [" ".join(line) for line in toy.src.read_text().splitlines()]
    toy.src.write_text("".join(f"{line}\n" for line in sources))
    toy.trg.write_text("".join(f"{line}\n" for line in letters[::-1]))
    assert any("are their lines translations of each other?" in line for line in verdict(pysimt, toy))


def test_many_pairs_left_out_are_named(toy, pysimt):
    found = verdict(pysimt, toy, "model.bucket_by:src", "model.max_len:6")
    assert len(found) == 1
    assert "of the training pairs are longer than max_len and left out" in found[0]


def test_an_actor_that_knows_nothing_is_named(toy, pysimt):
    """Another vocabulary of the same size: the weights fit, the words do not."""
    actor = train_actor(toy)
    assert verdict(pysimt, toy, "-s", "next", actor) == []
    words = json.loads(toy.trg_vocab.read_text())
    tokens = list(words)
    shuffled = tokens[:4] + tokens[:3:-1]
    toy.trg_vocab.write_text(json.dumps({token: f"{index} 1" for index, token in enumerate(shuffled)}))
    named = f"was trained with another vocabulary of 'trg': word 4 is {tokens[4]!r} there and {tokens[-1]!r} here"
    for check in (["--check"], []):
        outcome = pysimt("train", *check, "-C", toy.config, "-s", "next", actor)
        assert outcome.status == 2
        assert named in outcome.error
    assert not (toy.folder / "runs/toy-next").exists()
    some = f"train.pretrained_layers:{['enc', 'dec']}"  # all of them, as it happens, but by the user's own will
    found = verdict(pysimt, toy, "-s", "next", actor, some)
    assert "the actor knows nothing" in found[0]


def test_a_warm_up_that_is_longer_than_the_run_is_named(toy, pysimt):
    words = ["model.lr_schedule:constant", "train.max_iterations:9", "train.eval_freq:3"]
    assert verdict(pysimt, toy, *words, "model.lr_warmup:8") == []
    (found,) = verdict(pysimt, toy, *words, "model.lr_warmup:9")
    assert "the learning rate never reaches lr: lr_warmup is 9, and the run has 9 updates" in found


@pytest.mark.parametrize("change", ["train.eval_freq:3000", "train.max_iterations:9"])
def test_a_run_that_ends_before_its_first_validation_is_named(toy, pysimt, change):
    """An epoch has ten updates."""
    assert verdict(pysimt, toy, "train.max_epochs:4", "train.eval_freq:0") == []
    (found,) = verdict(pysimt, toy, "train.max_epochs:4", "train.eval_freq:0", change)
    assert "there will be no validation of what is learned: the first is after" in found


def test_no_actor_at_all_is_named(toy, pysimt):
    (found,) = verdict(pysimt, toy, "train.model_type:REINFORCENMT")
    assert "there is no pretrained_file" in found


def test_weights_that_are_not_there_are_named(toy, pysimt):
    actor = train_actor(toy)
    found = verdict(pysimt, toy, "-s", "next", actor, "model.enc_lnorm:True")
    assert any("and start at random" in line for line in found)


@pytest.mark.parametrize(
    "override", ["train.eval_metrics:bleuu", "data.val_set.src:./no", "model.emb_dim:10000000000000"]
)
def test_what_training_would_refuse_is_refused(toy, pysimt, override):
    outcome = pysimt("train", "-C", toy.config, "--check", override)
    assert outcome.status == 2
    assert outcome.error


def test_the_rate_of_pre_training_is_noticed_when_fine_tuning(toy, pysimt):
    actor = train_actor(toy)
    words = ["train", "--check", "-C", toy.config, actor, "train.model_type:REINFORCENMT"]
    assert "Warning: lr as in pre-training, from random weights: include base_fine_tuning.conf" in pysimt(*words).err
    assert "pre-training" not in pysimt(*words, "train.lr:0.001").err
    assert "pre-training" not in pysimt(*words[:-1]).err  # more of the same
