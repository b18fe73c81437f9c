"""What a user of pysimt has keeps working: command line, searches, checkpoints; and ours work in pysimt alone."""

import argparse
import os
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

import pytest

from pysimt_sac.commands.parsers import build_parser, commands_of
from pysimt_sac.hosts.choice import pysimt_folder
from tests.hosts.pysimt.hosts import (
    COMMAND,
    NEEDS_PYSIMT,
    pysimt_commands,
    run_folder,
    start_python,
    train,
    training,
    translating,
)

pytestmark = NEEDS_PYSIMT

WAIT = "[model]\ntranslator_args: {'k': 2}\nenc_bidirectional: False"
SEARCHES = {
    "gs": [],
    "bs": ["-k", "3"],
    "wk": ["--n-init-tokens", "1,2"],
    "sgs": ["--n-init-tokens", "1,2", "--delta", "1", "--criteria", "wait_if_diff,wait_if_worse"],
}
SAC = ["train.model_type:SACNMT", "model.critic_pretrain_updates:0", "model.support_size:6", "model.buffer_size:4"]
SAC += ["model.rollout_max_len:8", "model.known_reward:True", "model.branch_states:2", "train.max_epochs:2"]


def own_script():
    """The script of pysimt itself, which its package lies beside."""
    return pysimt_folder().parent / "bin/pysimt"


def pysimt_itself(*arguments, unsafe=False):
    """Run it without this package on the path. unsafe: load checkpoints as torch did before 2.6."""
    environment = {**os.environ, "PYTHONPATH": str(pysimt_folder().parent), "OMP_NUM_THREADS": "1"}
    environment["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = str(int(unsafe))
    command = [sys.executable, str(own_script()), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]


def outputs(toy, name):
    """The files that a translation has written, by what follows its name."""
    return {path.name.removeprefix(name): path.read_bytes() for path in toy.folder.glob(f"out/{name}.*")}


@pytest.fixture(scope="module")
def waiting(tmp_path_factory):
    """A toy whose configuration waits for two words, and a checkpoint that pysimt itself has trained."""
    from tests.conftest import make_toy

    toy = make_toy(tmp_path_factory.mktemp("waiting") / "toy")
    text = toy.config.read_text().replace("SimultaneousNMT", "SimultaneousWaitKNMT").replace("[model]", WAIT)
    toy.config.write_text(text)
    (toy.folder / "out").mkdir()
    pysimt_itself("train", "-d", "cpu", "-C", toy.config, "-s", "plain", unsafe=True)
    (checkpoint,) = run_folder(toy, "plain").glob("*.best.bleu.ckpt")
    return toy, checkpoint


def options_of(parser):
    """The actions of each sub-command, by their longest name."""
    (commands,) = (action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return {
        name: {max([*action.option_strings, action.dest], key=len): action for action in command._actions}
        for name, command in commands.items()
    }


def test_our_command_line_takes_everything_that_pysimts_takes(monkeypatch):
    class Built(Exception):
        pass

    def stop(parser, *_):
        raise Built(parser)

    loader = SourceFileLoader("pysimt_script", str(own_script()))
    script = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(script)
    with monkeypatch.context() as patched, pytest.raises(Built) as built:
        patched.setattr(argparse.ArgumentParser, "parse_args", stop)
        script.main()
    theirs = options_of(built.value.args[0])
    ours = options_of(build_parser("pysimt", commands_of("pysimt"), ["train", "translate"]))
    for command, options in theirs.items():
        for name, option in options.items():
            own = ours[command][name]
            assert (own.dest, own.nargs) == (option.dest, option.nargs), name
            assert set(own.option_strings) >= set(option.option_strings)
            assert set(own.choices or ()) >= set(option.choices or ())
            if name not in ("--device-id", "--help"):  # ours chooses a device itself
                assert (own.default or None) == (option.default or None) or option.required, name


def test_its_own_checkpoints_are_translated_to_the_same_bytes_by_every_search(waiting):
    toy, checkpoint = waiting
    for search, more in SEARCHES.items():
        words = translating(checkpoint, toy.folder / "out/theirs", "-f", search, *more, split="val,test")
        pysimt_itself(*words, unsafe=True)
    commands = [
        translating(checkpoint, toy.folder / "out/ours", "-f", search, *more, split="val,test")
        for search, more in SEARCHES.items()
    ]
    pysimt_commands("pysimt", *commands)
    theirs, ours = outputs(toy, "theirs"), outputs(toy, "ours")
    assert len(theirs) == 28
    assert {name: ours[name] for name in theirs} == theirs
    of_engine = [[*words[:6], str(toy.folder / "out/engine"), *words[7:]] for words in (commands[0], commands[2])]
    pysimt_commands("embedded", *of_engine)
    engine = outputs(toy, "engine")
    assert engine == {**engine, **{name: theirs[name] for name in engine if name.endswith((".raw", ".acts"))}}
    assert len(engine) == 16


@pytest.mark.parametrize("algorithm", [[], SAC], ids=["maximum likelihood", "SAC"])
def test_wait_k_checkpoints_of_the_engine_translate_to_the_same_bytes_in_pysimt_alone(waiting, algorithm):
    toy, checkpoint = waiting
    name = f"engine{len(algorithm)}"
    run = train("embedded", toy, name, *algorithm, f"train.pretrained_file:{checkpoint}")
    (best,) = run.glob("*.best.bleu.ckpt")
    for search in ("gs", "wk"):
        pysimt_itself(*translating(best, toy.folder / f"out/{name}-alone", "-f", search, *SEARCHES[search]))
        pysimt_commands("embedded", translating(best, toy.folder / f"out/{name}", "-f", search, *SEARCHES[search]))
    alone, ours = outputs(toy, f"{name}-alone"), outputs(toy, name)
    assert {suffix: ours[suffix] for suffix in alone} == alone
    assert len(alone) == 5


@pytest.mark.parametrize(
    ("host", "words", "expected"),
    [
        ("pysimt", ["model.emb_dim:16"], "encoders.src.emb.weight has a different size: (16, 8) in the file, (16, 16)"),
        (
            "pysimt",
            ["model.direction:src:Text, image:ImageFolder -> trg:Text"],
            "SACNMT trains models of src:Text, alone or with image:Numpy or ObjectDetections",
        ),
        ("pysimt", ["model.translator_args:None"], "is a wait-k model, but this configuration reads the whole source"),
        (
            "pysimt",
            ["model.translator_type:bs"],
            "refused by pysimt: Beam search not compatible with simultaneous",
        ),
        ("pysimt", ["train.batchsize:8"], "unknown key 'batchsize' (did you mean 'batch_size'?)"),
        (
            "embedded",
            ["model.model_dim:64", "model.translator_args:None"],
            "[model]: SimultaneousTFNMT is offered only by pysimt itself",
        ),
        (
            "embedded",
            ["model.translator_args:None"],
            "is a wait-k model, but this configuration reads the whole source",
        ),
        ("embedded", ["model.translator_args:{}", "model.translator_type:wk"], "a wait-k model needs its k"),
        ("embedded", ["model.enc_bidirectional:True"], "enc_bidirectional: True reads ahead, which wait-k"),
        ("embedded", ["model.translator_type:bs"], "translator_type: bs reads ahead, which wait-k models do not"),
    ],
)
def test_what_sac_cannot_train_is_refused_in_one_line(waiting, host, words, expected):
    toy, checkpoint = waiting
    words = [*SAC, f"train.pretrained_file:{checkpoint}", *words]
    done = start_python(COMMAND, *training(toy, "refused", *words), PYSIMT_SAC_HOST=host)
    assert done.returncode == 2
    assert expected in done.stderr.splitlines()[-1]
    assert not run_folder(toy, "refused").exists()


def test_another_pysimt_is_refused_in_a_line_that_names_what_has_changed(toy):
    change = "from pysimt import monitor\nmonitor.Monitor.save_model = lambda self: None\n"
    done = start_python(change + COMMAND, *training(toy, "other"), PYSIMT_SAC_HOST="pysimt")
    assert done.returncode == 2
    expected = "pysimt 1.0.0 has no monitor.Monitor.save_model(metric, suffix, do_symlink) (tested with pysimt 1.0.0"
    assert expected in done.stderr.splitlines()[-1]
