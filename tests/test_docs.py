"""The pages of `docs/` cannot go stale: their links lead somewhere, and their code runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pysimt_sac.cli import COMMANDS
from pysimt_sac.hosts.engine.checkpoint import load_checkpoint
from tests.conftest import load_script
from tests.plain_corpus import CONFIG

ROOT = Path(__file__).parents[1]
PAGES = sorted(ROOT.glob("docs/*.md"))
PATH = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
ALL_PAGES = [*PAGES, *ROOT.glob("*.md"), ROOT / "experiments/RESULTS.md", ROOT / "benchmarks/README.md"]

FOLDERS = (ROOT, ROOT / "docs", ROOT / "experiments/results")
WRITTEN_BY_COMMANDS = {"tables.md"}


def code_blocks(page):
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.name)
def test_links_and_file_names_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for link in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)[^)]*\)", text):
        assert (page.parent / link).exists(), link
    for name in re.findall(r"`((?:docs|experiments|benchmarks|tests|pysimt_sac)/[\w./]+\.\w+)`", text):
        assert (ROOT / name).exists() or Path(name).stem.isupper(), name  # NAME stands for any
    for name in set(re.findall(r"`(\w+\.md)`", text)) - WRITTEN_BY_COMMANDS:
        assert any((folder / name).exists() for folder in (page.parent, *FOLDERS)), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page):
    shown = re.findall(r"^    (?:echo .*\| )?(pysimt(?:-sac)?) ([a-z-]+)", page.read_text(encoding="utf-8"), re.M)
    for program, command in shown:
        assert command in COMMANDS
        assert program == "pysimt-sac" or COMMANDS[command].in_pysimt


def test_the_examples_of_ones_own_train(toy, pysimt):
    """Algorithm, rewards, options and metric of `extending.md` in one run, from an actor."""
    algorithm, reward, metric, options = code_blocks("extending.md")
    lines = [line for line in algorithm.partition("@algorithm")[2].splitlines() if line.strip()]
    assert len(lines) <= 27
    files = {"my_algorithm.py": algorithm, "my_reward.py": reward, "my_metric.py": metric, "variety.py": options}
    for name, text in files.items():
        (toy.folder / name).write_text(text)
    assert pysimt("train", "-C", toy.config).status == 0
    words = [
        "train.model_type:BestOfNMT",
        f"train.pretrained_file:{toy.run_folder}",
        "train.eval_metrics:bleu,exact,loss",
        f"model.plugin_modules:['{toy.folder}/my_algorithm.py', '{toy.folder}/my_metric.py']",
        f"model.reward_modules:['{toy.folder}/my_reward.py', '{toy.folder}/variety.py']",
        "model.reward:quality:0.5,gleu:0.4,variety:0.1",
        "model.variety_power:2",
        "model.reward_unit:word",
        "model.rollout_max_len:8",
        "model.health_freq:5",
    ]
    outcome = pysimt("train", "-C", toy.config, "-s", "own", *words)
    assert outcome.status == 0, outcome.err
    (folder,) = toy.folder.glob("runs/toy-own")
    assert {"reward_quality", "reward_variety"} <= set(next(folder.glob("*.log")).read_text().split())
    (best,) = folder.glob("*.best.exact.ckpt")
    before = load_checkpoint(next(toy.run_folder.glob("*.best.bleu.ckpt"))).weights
    after = load_checkpoint(best).weights
    assert any(not after[name].equal(weight) for name, weight in before.items())


def test_the_code_of_the_api_page_runs(plain_corpus, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    config = CONFIG.format(folder=tmp_path, data=plain_corpus.data).replace("max_epochs: 30", "max_epochs: 2")
    (tmp_path / "my.conf").write_text(config)
    from pysimt_sac import train

    train("my.conf", quiet=True)
    names = {}
    for block in code_blocks("api.md"):
        exec(block, names)
    assert names["run"].folder.name == "my-short"
    assert names["comparison"]["BLEU"].systems[1].against_baseline.difference > 0
    assert "True" in capsys.readouterr().out  # two epochs do not reach 30 BLEU


def shown(cells):
    """The kinds of output of each cell of a notebook."""
    return [
        [(output["output_type"], sorted(output.get("data", {}))) for output in cell["outputs"]]
        for cell in cells
        if cell["cell_type"] == "code"
    ]


@pytest.mark.slow
def test_the_tutorial_runs_and_is_stored_with_what_it_shows(tmp_path):
    pytest.importorskip("matplotlib")
    notebook = load_script("docs/notebook.py")
    stored, done = notebook.read("tutorial"), notebook.execute(notebook.read("tutorial"), tmp_path)
    assert shown(stored["cells"]) == shown(done["cells"])
    assert str(shown(stored["cells"])).count("image/png") == 2
    assert [cell["execution_count"] for cell in stored["cells"] if cell["cell_type"] == "code"] == list(range(1, 11))
    assert "ein mann putzt einen hund." in str(done)  # learned in four epochs
    page = notebook.as_markdown(done, tmp_path)
    assert page.count("![A figure](tutorial-") == len(list(tmp_path.glob("tutorial-*.png"))) == 2


@pytest.mark.slow
def test_the_notebook_about_transformers_runs_and_is_stored_with_what_it_shows(tmp_path):
    """With less training."""
    pytest.importorskip("transformers", reason="the extra `hf` is not installed")
    notebook = load_script("docs/notebook.py")
    stored, done = notebook.read("marian"), notebook.read("marian")
    less = {
        '"max_epochs": 7, "eval_start": 7': '"max_iterations": 9, "eval_freq": 9',
        "60\neval_freq: 30": "2\neval_freq: 1",
    }
    for cell in done["cells"]:
        for old, new in less.items():
            cell["source"] = "".join(cell["source"]).replace(old, new)
    notebook.execute(done, tmp_path)
    assert shown(stored["cells"]) == shown(done["cells"])
    ours, theirs = ("".join(cell["outputs"][-1]["data"]["text/plain"]) for cell in stored["cells"][-2:])
    assert ours.strip("[]").replace(" ", "") == theirs.replace(" ", "")  # of the trained model


@pytest.mark.slow
def test_the_site_has_all_pages_and_needs_no_network(tmp_path):
    pytest.importorskip("sphinx", reason="the extra `dev` is not installed")
    pytest.importorskip("myst_parser", reason="the extra `dev` is not installed")
    words = [sys.executable, ROOT / "docs/site.py", "--out", tmp_path / "site"]
    done = subprocess.run(words, cwd=tmp_path, env={**os.environ, "PYTHONPATH": PATH}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr  # warnings, such as a link to nowhere, are errors
    pages = {path.stem for path in (tmp_path / "site").glob("*.html")}
    assert {path.stem for path in PAGES} | {"index", "tutorial", "marian", "reference", "results", "readme"} <= pages
    for path in (tmp_path / "site").glob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r'<(script|link|img)[^>]*(src|href)="https?:', text), path
        for link in re.findall(r'(?:src|href)="([^"#?:]+)[^":]*"', text):
            assert (path.parent / link).exists(), (path.name, link)
    assert "Translate sentences, in order" in (tmp_path / "site/reference.html").read_text(encoding="utf-8")
