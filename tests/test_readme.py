"""The README cannot go stale: its files and commands exist, run in its order, and its first training gains."""

import io
import re
import shlex
import shutil
import sys
import textwrap
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from pysimt_sac.cli import COMMANDS, main, main_sac
from pysimt_sac.core.vocabulary import Vocabulary
from pysimt_sac.corpora.mlt import LATER_NAMES
from tests.models.runs import points
from tests.plain_corpus import write_raw

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
# Blocks of commands and of configurations, indented by four spaces, and those of Python.
BLOCK = re.compile(r"(?:^    .*\n|^\n(?=    ))+|^```python\n(?:.*\n)*?^```$", re.MULTILINE)
SPLITS = ("train", "val", "test", "test_ood")
SMALL = ["model.emb_dim:8", "model.enc_dim:8", "model.dec_dim:8", "train.batch_size:8", "train.eval_max_len:9"]
SMALL += ["train.max_iterations:4", "train.eval_freq:2", "train.disp_freq:2", "model.rollout_max_len:5"]
SMALL += ["model.critic_pretrain_updates:1", "model.gate_sentences:2"]
QUICKER = {
    "multi30k": ["--bpe-merges", "60", "--jobs", "1"],
    "reproduce": ["--plan"],
    "report": ["--bootstrap", "9"],
}


def snippet():
    """The configuration that the README says to write, and the name that it gives it."""
    (text,) = re.findall(r"^    \[include\]\n(?:    .*\n|\n(?=    ))*", README, flags=re.MULTILINE)
    (name,) = re.findall(r"Write `(\w+\.conf)`", README)
    return name, textwrap.dedent(text)


def run_command(line, monkeypatch):
    """Run a line of the README, in this process, on less text and with less training."""
    words = shlex.split(line, comments=True)
    if "|" in words:
        spoken = words[1 : words.index("|")]
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(" ".join(spoken).encode())))
        words = words[words.index("|") + 1 :]
    program, *words = words
    words += SMALL if words[0] == "train" else []
    words += [more for name, added in QUICKER.items() if name in words[:2] for more in added]
    assert {"pysimt": main, "pysimt-sac": main_sac}[program](words) in ({0, 3} if "--check" in words else {0}), line
    if words[:2] == ["prepare", "demo"]:
        for path in Path("data/demo").iterdir():
            lines = path.read_text().splitlines(keepends=True)
            if path.name.endswith(".mlt.tsv"):
                path.write_text("".join(lines[:1] + [line for line in lines[1:] if int(line.split("\t")[3]) < 60]))
            elif path.stem in SPLITS:
                path.write_text("".join(lines[:60]))


@pytest.mark.slow
def test_every_command_runs_in_order_in_an_empty_folder(tmp_path, monkeypatch, capsys):
    """With its configuration and its Python in their places. `make` has tests of its own."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "experiments", "experiments", ignore=shutil.ignore_patterns("results"))
    write_raw(Path("dataset/data/task1/raw"), ("en", "de", "fr"), more=("test_2017_flickr", "test_2017_mscoco"))
    Path("mlt/test_sets").mkdir(parents=True)
    for pair in ("ende", "enfr"):
        names = [f"{pair.upper()}_MLTD_full.txt", *(f"test_sets/{pair}_{name}.txt" for name in LATER_NAMES.values())]
        for name in names:
            Path("mlt", name).write_text("")
    n_run, written = 0, snippet()
    for block in BLOCK.findall(README):
        if block.startswith("```python"):
            code = block.removeprefix("```python\n").removesuffix("```")
            exec(code.replace("suffix=", "model={'emb_dim': 8, 'enc_dim': 8, 'dec_dim': 8}, quiet=True, suffix="), {})
        elif textwrap.dedent(block).strip() == written[1].strip():
            Path(written[0]).write_text(written[1])
        for line in textwrap.dedent(block).splitlines():
            if line.startswith(("pysimt", "echo")):
                run_command(line, monkeypatch)
                n_run += 1
    assert n_run == len(re.findall(r"^    (?:pysimt|echo)", README, flags=re.MULTILINE)) > 25
    assert Path("report.html").is_file()
    assert "Validation BLEU" in capsys.readouterr().out  # plotted


@pytest.mark.slow
def test_its_fine_tuning_gains_over_continued_maximum_likelihood(tmp_path, monkeypatch):
    """The snippet as it is, but with fewer and smaller updates, for three seeds."""
    monkeypatch.chdir(tmp_path)
    assert main_sac(["prepare", "demo", "--out", "data/demo"]) == 0
    assert main_sac(["config", "--copy", "demo_mle", "my.conf"]) == 0
    name, text = snippet()
    Path(name).write_text(text)
    assert main(["train", "--quiet", "-C", "my.conf"]) == 0
    fewer = ["train.batch_size:16", "train.max_iterations:100", "train.eval_freq:100", "train.eval_zero:False"]
    gains = []
    for seed in (1, 2, 3):
        words = ["train", "--quiet", "-C", name, *fewer, f"train.seed:{seed}", "-s"]
        assert main([*words, f"s{seed}"]) == 0
        assert main([*words, f"c{seed}", "train.model_type:MLENMT"]) == 0
        sac, control = (points(Path(f"runs/sac-{system}{seed}"), "val_BLEU")[100] for system in "sc")
        gains.append(sac - control)
    assert min(gains) > 0, gains
    assert sum(gains) / 3 > 0.15, gains


def test_the_commands_it_shows_exist():
    shown = set(re.findall(r"^    (?:echo .*\| )?(pysimt(?:-sac)?) ([\w-]+)", README, flags=re.MULTILINE))
    assert len(shown) > 3
    for program, command in shown:
        assert command in COMMANDS
        assert program == "pysimt-sac" or COMMANDS[command].in_pysimt


@pytest.mark.parametrize("target", ["demo", "test", "reproduce-demo"])
def test_its_commands_are_targets_of_the_makefile(target):
    assert f"make {target}" in README
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)


def test_the_files_it_names_exist():
    names = set(re.findall(r"`((?:docs|experiments|benchmarks|pysimt_sac)/[\w./]+|[A-Z]+\.\w+)`", README))
    for name in names | set(re.findall(r"\]\((?!http)([^)]+)\)", README)):
        assert (ROOT / name).exists(), name


def test_its_sentence_is_one_that_the_demo_model_can_know(tmp_path):
    assert main_sac(["prepare", "demo", "--out", str(tmp_path / "demo")]) == 0
    known = Vocabulary.read(tmp_path / "demo/train.vocab.en").index
    (sentence,) = re.findall(r'^    echo "(.*)" \| pysimt translate runs', README, flags=re.MULTILINE)
    assert [word for word in sentence.split() if word not in known] == []


def test_versions_agree():
    from pysimt_sac import __version__

    assert f"version: {__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["strict"]
