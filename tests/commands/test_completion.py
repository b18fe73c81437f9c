"""`pysimt-sac completion`: the scripts are asked as a shell would ask them."""

import shutil
import subprocess
import sys

import pytest

from pysimt_sac.cli import COMMANDS, main_sac

# What a shell offers at the end of a command line, one word a line.
BASH = """
compopt() {{ :; }}
source {script}
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_shtab_{function} {program} '{typed}' "${{COMP_WORDS[COMP_CWORD-1]}}"; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
FISH = """
source {script}
complete -C '{line}' | string replace -r '\\t.*' ''
"""


@pytest.fixture
def offered(tmp_path, capsys):
    """A function that completes a line; the last word is what is typed of the one to come."""

    def complete(line, shell="bash"):
        if not shutil.which(shell):
            pytest.skip(f"{shell} is not installed")
        *before, typed = line.split(" ")
        assert main_sac(["completion", shell, before[0]]) == 0
        script = tmp_path / f"script.{shell}"
        script.write_text(capsys.readouterr().out)
        text = BASH.format(
            script=script,
            words=" ".join([*before, f"'{typed}'"]),
            function=before[0].replace("-", "_"),
            program=before[0],
            typed=typed,
        )
        text = text if shell == "bash" else FISH.format(script=script, line=line)
        done = subprocess.run([shell, "-c", text], capture_output=True, text=True, cwd=tmp_path, timeout=60)
        assert not done.stderr, done.stderr
        return set(done.stdout.split())

    return complete


CASES = [
    ("pysimt ", {"train", "translate", "build-vocab"}),
    ("pysimt-sac ", set(COMMANDS)),
    ("pysimt-sac c", {"config", "compare", "completion"}),
    ("pysimt-sac completion ", {"bash", "zsh", "fish"}),
    ("pysimt translate --fu", {"--func"}),
    ("pysimt translate -f ", {"gs", "bs", "sample", "sgs", "wk", "bs-pysimt"}),
    ("pysimt-sac translate runs/a --func b", {"bs", "bs-pysimt"}),
    ("pysimt-sac rank s", {"sample", "score"}),
    ("pysimt-sac rank score --k", {"--key"}),
    ("pysimt-sac score --k", set()),
    ("pysimt-sac config --res", {"--resolved"}),
    ("pysimt train -C my", {"my.conf"}),
    ("pysimt-sac config my", {"my.conf"}),
]


@pytest.mark.parametrize("shell", ["bash", "fish"])
@pytest.mark.parametrize(("line", "expected"), CASES)
def test_commands_options_choices_and_files_are_offered(offered, tmp_path, line, expected, shell):
    (tmp_path / "my.conf").touch()
    assert offered(line, shell) == expected


def test_zsh_can_parse_its_script(tmp_path, capsys):
    if not shutil.which("zsh"):
        pytest.skip("zsh is not installed")
    assert main_sac(["completion", "zsh"]) == 0
    script = tmp_path / "_pysimt-sac"
    script.write_text(capsys.readouterr().out)
    subprocess.run(["zsh", "-n", script], check=True)


def test_an_unknown_shell_is_refused(capsys):
    with pytest.raises(SystemExit):
        main_sac(["completion", "tcsh"])
    assert "invalid choice: 'tcsh'" in capsys.readouterr().err


def test_without_shtab_one_line_names_the_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main_sac(["completion", "bash"]) == 2
    message = "bash: needs shtab, which is not installed (pip install 'pysimt_sac[completion]')"
    assert capsys.readouterr().err == f"pysimt-sac completion: error: {message}\n"


def test_torch_is_not_imported():
    script = "import sys; from pysimt_sac.cli import main_sac; main_sac(['completion', 'bash'])\n"
    script += "assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
