"""`pysimt-sac completion`: the scripts are asked as a shell would ask them."""

import os
import shutil
import subprocess
import sys

import pytest

from pysimt_sac.cli import COMMANDS, main_sac

# What a shell offers at the end of a command line, one word a line.
BASH = """
source {script}
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_pysimt_sac; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
FISH = """
source {script}
complete -C {line} | string replace -r '\\t.*' ''
"""


@pytest.fixture
def offered(tmp_path, capsys):
    """A function that completes a line; the last word is what is typed of the one to come."""

    def complete(line, shell="bash"):
        if not shutil.which(shell):
            pytest.skip(f"{shell} is not here")
        assert main_sac(["completion", shell]) == 0
        script = tmp_path / f"script.{shell}"
        script.write_text(capsys.readouterr().out)
        *before, current = line.split(" ")
        text = {
            "bash": BASH.format(script=script, words=" ".join([*before, f"'{current}'"])),
            "fish": FISH.format(script=script, line=f"'{line}'"),
        }[shell]
        done = subprocess.run([shell, "-c", text], capture_output=True, text=True, cwd=tmp_path, timeout=60)
        assert not done.stderr, done.stderr
        return set(done.stdout.split())

    return complete


CASES = [
    ("pysimt ", {"train", "translate", "build-vocab"}),
    ("pysimt-sac c", {"config", "compare", "completion"}),
    ("pysimt-sac completion ", {"bash", "zsh", "fish"}),
    ("pysimt translate --fu", {"--func"}),
    ("pysimt translate -f ", {"gs", "bs", "sample", "bs-pysimt"}),
    ("pysimt-sac translate runs/a --func b", {"bs", "bs-pysimt"}),
    ("pysimt-sac rank s", {"sample", "score"}),
    ("pysimt-sac rank score --k", {"--key"}),
    ("pysimt-sac score --k", set()),
    ("pysimt-sac config --res", {"--resolved"}),
    ("/usr/bin/pysimt-sac train --che", {"--check"}),
]


@pytest.mark.parametrize("shell", ["bash", "fish"])
@pytest.mark.parametrize(("line", "expected"), CASES)
def test_what_is_offered(offered, line, expected, shell):
    if shell == "fish" and line.startswith("/"):
        line = line.removeprefix("/usr/bin/")  # fish looks for the program first
    assert offered(line, shell) == expected


def test_every_command_is_offered(offered):
    assert offered("pysimt-sac ") == set(COMMANDS)


def test_files_are_left_to_the_shell(offered, tmp_path):
    assert offered("pysimt train -C ") == set()  # `-o default` takes over
    (tmp_path / "my.conf").touch()
    assert offered("pysimt train -C my", "fish") == {"my.conf"}


def test_zsh_understands_its_script(tmp_path, capsys):
    if not shutil.which("zsh"):
        pytest.skip("zsh is not here")
    assert main_sac(["completion", "zsh"]) == 0
    script = tmp_path / "_pysimt-sac"
    script.write_text(capsys.readouterr().out)
    # Its building blocks are replaced: what they are given is what would be offered.
    ask = """
        _describe() { print -rl -- ${(P)@[-1]}; }
        _files() { print files; }
        compadd() { shift; print -rl -- $@; }
        compdef() { :; }
        source $SCRIPT; words=(${=LINE} ''); CURRENT=$#words; PREFIX=$TYPED; _pysimt_sac
    """
    for line, typed, expected in [
        ("pysimt", "", "train:train a model from a configuration file"),
        ("pysimt translate -f", "", "bs-pysimt"),
        ("pysimt train", "--", "--check:check everything without training, and report"),
        ("pysimt-sac rank score", "-", "--key:key of the sheets"),
        ("pysimt train -C", "", "files"),
        ("pysimt-sac completion", "", "fish"),
    ]:
        environment = {"LINE": line, "TYPED": typed, "SCRIPT": str(script), "PATH": os.environ["PATH"]}
        done = subprocess.run(["zsh", "-fc", ask], capture_output=True, text=True, env=environment)
        assert not done.stderr, done.stderr
        assert expected in done.stdout.splitlines(), (line, done.stdout)


def test_an_unknown_shell_is_refused(capsys):
    with pytest.raises(SystemExit):
        main_sac(["completion", "tcsh"])
    assert "invalid choice: 'tcsh'" in capsys.readouterr().err


def test_nothing_heavy_is_imported():
    script = "import sys; from pysimt_sac.cli import main_sac; main_sac(['completion', 'bash'])\n"
    script += "assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
