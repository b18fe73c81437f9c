"""Mistakes in configurations, overrides and arguments of `pysimt train`: one line, exit status 2, nothing written."""

import re
import subprocess
import sys

import pytest

OVERRIDES = [
    # not an override at all
    ("banana", "override 'banana': not of the form section.key:value"),
    ("train.lr", "not of the form"),
    ("train.:1", "not of the form"),
    ("train:3", "not of the form"),
    ("", "not of the form"),
    (".lr:1", "no section"),
    ("trian.lr:1", "did you mean 'train'"),
    ("data.val_set.src.deep:1", "has no dictionary 'src'"),
    ("data.nothing.src:1", "has no dictionary 'nothing'"),
    ("train.pretrained_file:" + "a" * 70_000, "file name too long"),
    # unknown keys
    ("train.optimzer:adam", r"unknown key 'optimzer' \(did you mean 'optimizer'\?\)"),
    ("train.learning_rate:1", "unknown key 'learning_rate'"),
    ("model.emb_dimm:3", r"unknown key 'emb_dimm' \(did you mean 'emb_dim'\?\)"),
    ("model.qwertz:3", r"unknown key 'qwertz' \(known: "),
    # wrong types
    ("train.lr:fast", "lr: 'fast' is not a finite number"),
    ("train.lr:nan", "'nan' is not a finite number"),
    ("train.lr:1e400", "inf is not a finite number"),
    ("train.lr:[1]", "is not a finite number"),
    ("train.lr:" + "9" * 400, "is not a finite number"),
    ("train.lr:", "'' is not a finite number"),
    ("train.batch_size:1.5", "1.5 is not a whole number"),
    ("train.batch_size:True", "True is not a whole number"),
    ("train.batch_size:None", "None is not a whole number"),
    ("train.batch_size:" + "9" * 30, "absurdly large"),
    ("train.batch_size:0x" + "f" * 5000, "is not a whole number"),
    ("train.nesterov:maybe", "'maybe' is not True or False"),
    ("train.nesterov:1", "1 is not True or False"),
    ("train.adam_betas:0.9", "is not 2 numbers in brackets"),
    ("train.adam_betas:(0.9,nan)", "is not 2 numbers in brackets"),
    ("train.eval_metrics:5", "5 is not a list of words"),
    ("train.model_type:5", "5 is not a word"),
    ("train.save_path:7", "7 is not a word"),
    ("model.direction:5", "5 is not"),
    ("model.translator_args:5", "5 is not a dictionary"),
    ("model.enc_bidirectional:yes", "'yes' is not True or False"),
    ("model.plugin_modules:5", "5 is not a list of words"),
    # out of range
    ("train.batch_size:0", "0 must be at least 1"),
    ("train.batch_size:-5", "-5 must be at least 1"),
    ("train.lr:-1", "-1.0 must be at least 0"),
    ("train.gclip:-1", "must be at least 0"),
    ("train.seed:-1", "must be at least 0"),
    ("train.seed:" + "9" * 25, "absurdly large"),
    ("train.disp_freq:0", "must be at least 1"),
    ("train.max_epochs:0", "must be at least 1"),
    ("train.eval_beam:0", "must be at least 1"),
    ("train.eval_beam:100000", r"\[train\] eval_beam: 100000 must be at most 1000 \(4 to 12 are usual\)"),
    ("train.eval_max_len:1000000000000", "must be at most 100000"),
    ("train.num_workers:1000000", "must be at most 256"),
    ("train.lr_decay_factor:1", "must be less than 1"),
    ("train.patience:0", "must be at least 1"),
    ("model.emb_dim:-8", "must be at least 1"),
    ("model.enc_dim:0", "must be at least 1"),
    ("model.n_encoders:1000000000", "must be at most 100"),
    ("model.dropout_emb:1", "must be less than 1"),
    ("model.dropout_emb:-0.1", "must be at least 0"),
    ("model.att_temp:0", "must be more than 0"),
    ("model.max_len:1", "must be at least 2"),
    ("model.short_list:3", "leaves no word besides the 4 special tokens"),
    ("model.emb_dim:1000000000000", "cannot build the network: out of memory"),
    ("model.emb_dim:1000000000000000000", "cannot build the network"),
    ("model.dec_dim:1000000000", "cannot build the network"),
    # unknown choices
    ("train.model_type:SimultaneusNMT", "unknown model 'SimultaneusNMT'.*did you mean 'SimultaneousNMT'"),
    ("train.model_type:SimultaneousTFNMT", "is offered only by pysimt itself"),
    ("train.model_type:EncoderSelfAttentionSimultaneousWaitKNMT", "is offered only by pysimt itself"),
    ("train.model_type:''", "no model is named"),
    ("train.optimizer:adamw", "'adamw' is not one of adam, sgd"),
    ("train.lr_decay:sometimes", "'sometimes' is not one of False, plateau, noam"),
    ("train.lr_decay:True", "True is not one of"),
    ("train.lr_decay:noam", "noam needs tf_model_dim and lr_warmup_steps"),
    ("train.eval_metrics:bleuu", "unknown metric 'bleuu'.*did you mean"),
    ("train.eval_metrics:,", "no metric is named"),
    ("train.eval_filters:de-bp", "unknown filter 'de-bp'.*did you mean 'de-bpe'"),
    ("train.adam_betas:(1.5,2)", "optimizer: Invalid beta"),
    ("train.freeze_layers:nothing", "no weight begins with 'nothing'"),
    ("train.freeze_layers:enc,dec", "all layers are frozen"),
    ("model.enc_type:rnn", "'rnn' is not one of gru, lstm"),
    ("model.att_activ:tanhh", "is not one of linear, tanh"),
    ("model.att_bottleneck:big", "is not one of ctx, hid or a whole number"),
    ("model.att_bottleneck:0", "must be at least 1"),
    ("model.bucket_by:source", "'source' is not a side of the corpus.*one of src, trg"),
    ("model.tied_emb:4way", "'4way' is not one of False, 2way, 3way"),
    # the direction
    ("model.direction:src", "'src' is not a direction"),
    ("model.direction:src:Text -> trg:Text -> x:Text", "is not a direction"),
    ("model.direction:src:Text, image:Image -> trg:Text", "only by pysimt itself"),
    ("model.direction:src:Image -> trg:Text", "only by pysimt itself"),
    ("model.direction:en:Text -> de:Text", r"is not a direction from one text to another \(write `src:Text -> "),
    ("model.direction:src:Text -> ", "is not a direction"),
    ("model.direction:src:Text -> src:Text", "is not a direction"),
    ("model.direction:src:Text -> de:Text", "no vocabulary for 'de'"),
    # data and vocabularies
    ("data.train_set:./train.src", "is not a dictionary of files"),
    ("data.train_set:{}", "is not a dictionary of files"),
    ("data.train_set:{'src': 5, 'trg': None}", "is not a dictionary of files"),
    ("data.train_set:{'source': './x'}", "no file for 'src'"),
    ("data.train_set.src:./nowhere/at.all", "no such corpus file"),
    ("data.train_set.src:./nowhere/*.all", "no file matches this pattern"),
    ("data.train_set.src:./**", "no file matches this pattern"),
    ("data.train_set.src:" + "x" * 300, "file name too long"),
    ("data.train_set.src:.", "is a folder, not a corpus file"),
    ("data.train_set.src:/dev/null", "a device or a pipe"),
    ("data.val_set.trg:./nowhere", "no such corpus file"),
    ("vocabulary.src:./nowhere", "no such vocabulary file"),
    ("vocabulary.src:.", "is a folder, not a vocabulary file"),
    ("vocabulary.src:5", "no vocabulary for 'src'"),
    ("vocabulary.src:", "no vocabulary for 'src'"),
    # values that no file can hold
    ("train.save_path:'a\\x00b'", "a character that no text or file name can have"),
    ("train.tensorboard_dir:'\\ud800'", "a character that no text or file name can have"),
    ("train.save_path:~nobody_of_this_name/x", "not a usable path"),
    ("train.save_path:''", "save_path is not set"),
    ("train.save_path:/proc/nowhere", "cannot create this folder"),
    ("train.save_path:" + "y" * 300, "file name too long"),
    ("train.pretrained_file:./nowhere", "no such checkpoint"),
    ("train.pretrained_file:.", "holds no best checkpoint by bleu"),
    ("model.plugin_modules:./nowhere.py", "no such Python file"),
]


def test_a_section_that_is_almost_one_of_pysimts_is_a_mistake(toy, refused):
    """With an `[include]`, none is missing."""
    (toy.folder / "base.conf").write_text(toy.config.read_text())
    toy.config.write_text("[include]\nbase: base.conf\n\n[modle]\nemb_dim: 4\n")
    refused(r"has a section \[modle\] \(is \[model\] meant\?\)")


@pytest.mark.parametrize(("override", "pattern"), OVERRIDES, ids=lambda value: value[:40])
def test_a_wrong_override_is_refused_in_one_line(refused, override, pattern):
    refused(pattern, override)


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        (["-d", "tpu"], "unknown device 'tpu'"),
        (["-d", "cuda:7"], "GPU"),
        (["-d", "3gpu"], "asks for 3 GPUs"),
        (["-d", ""], "unknown device ''"),
        (["-s", "../elsewhere"], "'../elsewhere' cannot be part of a file name"),
        (["--rubbish"], "unrecognized arguments"),
    ],
)
def test_a_wrong_argument_is_refused_in_one_line(refused, words, pattern):
    refused(pattern, *words)


# Configuration files

CONFIGS = [
    ("", r"has no section \[train\]"),
    ("junk", "no section headers"),
    ("[train\n", "no section headers"),
    ("[train]\nlr: 1\n", r"has no section \[model\] \(see experiments/mle.conf"),
    ("[train]\nlr: 1\n[modle]\nemb_dim: 8\n", r"has no section \[model\] \(is \[modle\] meant\?\)"),
    ("[trian]\nlr: 1\n", r"has no section \[train\] \(is \[trian\] meant\?\)"),
    ("[train]\nlr: 1\nlr: 2\n", "option 'lr' in section 'train' already exists"),
    ("[train]\nlr: 1\n[train]\n", "section 'train' already exists"),
    ("[train]\nlr: ${nothing:there}\n", "Bad value substitution"),
    ("[train]\nlr: ${lr}\n", "nterpolation|recursion"),
    ("[train]\nlr: $(x)\n", "'\\$' must be followed by"),
    ("[train]\nlr: ${\n", "bad interpolation"),
    ("[train]\nlr\n 0.1\n", "a key without a value is followed by an indented line"),
    ("[sections]\nx: 1\n", r"cannot be called \[sections\]"),
    ("[override]\nx: 1\n", r"cannot be called \[override\]"),
    ("[a b]\nx: 1\n", r"cannot be called \[a b\]"),
    ("[DEFAULT]\nx: 1\n", "unknown key 'x'"),
    ("[train]\nlr: 1\n[model]\nemb_dim: 8\n", r"has no section \[data\]"),
    ("\\ufeff[train]\n", "no section headers"),
]


@pytest.mark.parametrize(("text", "pattern"), CONFIGS, ids=lambda value: value[:30])
def test_a_broken_configuration_is_refused_in_one_line(toy, refused, text, pattern):
    path = toy.folder / "bad.conf"
    whole = toy.config.read_text() if pattern.startswith(("cannot", "unknown")) else ""
    path.write_text(text + whole)
    refused(pattern, config=path)


# The user's own Python files

PLUGINS = [
    ("def f(:\n", "SyntaxError"),
    ("import nothing_of_this_name\n", "ModuleNotFoundError"),
    ("x = 1\nraise ValueError('no good')\n", "line 2, .*: ValueError: no good"),
    ("raise SystemExit(0)\n", "SystemExit"),
    ("x = 1\n", "unknown model 'Mine'"),
]


@pytest.mark.parametrize(("code", "pattern"), PLUGINS, ids=[case[1] for case in PLUGINS])
def test_a_broken_file_of_ones_own_is_refused_in_one_line(toy, refused, code, pattern):
    path = toy.folder / "mine.py"
    path.write_text(code)
    refused(pattern, f"model.plugin_modules:{path}", "train.model_type:Mine")


# The real command line


@pytest.mark.slow
def test_the_command_itself_answers_in_one_line(toy):
    command = [sys.executable, "-m", "pysimt_sac", "train", "-C", str(toy.config), "train.lr:nan"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert re.fullmatch(r"pysimt\S* train: error: \S*toy.conf \[train\] lr: 'nan' is not a finite number .*", line)
    assert not toy.run_folder.parent.exists()


def test_a_metric_is_needed_without_validation_too(refused):
    refused("no metric is named", "train.eval_metrics:,", "train.eval_freq:-1")
