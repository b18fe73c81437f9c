"""The page that `pysimt-sac report` makes of runs that were really trained: an actor, and one fine-tuned from it."""

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import pytest

from tests.conftest import make_toy
from tests.evaluation.report.browser import CHROMIUM, Browser, change
from tests.hosts.engine.dying_runs import fork_training

ROOT = Path(__file__).parents[2]
RL = ["train.model_type:REINFORCENMT", "train.eval_zero:True", "train.lr:0.002", "model.health_freq:2"]


@dataclass(frozen=True)
class Made:
    """A page, the run folders that it is about, and its text."""

    path: Path
    actor: Path
    tuned: Path

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")


def command(*words):
    """A process of its own: training holds its folder's lock until the process ends."""
    assert fork_training(words) == 0


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """MLE, RL, and a copy of MLE's translations under another name."""
    toy = make_toy(tmp_path_factory.mktemp("page") / "toy")
    runs = toy.run_folder.parent
    every_other = ["train.eval_freq:4", "train.disp_freq:2", "train.max_epochs:2"]
    command("train", "-C", toy.config, *every_other)
    command("train", "-C", toy.config, "-s", "rl", *every_other, f"train.pretrained_file:{toy.run_folder}", *RL)
    tuned = runs / "toy-rl"
    for run in (toy.run_folder, tuned):
        command("translate", "-s", "test,val", "-o", run / "out", run)
    for split in ("test", "val"):
        shutil.copy(toy.run_folder / f"out.{split}.gs", toy.folder / f"copy.{split}")
    log = next(tuned.glob("*.log"))
    with log.open("a") as stream:
        stream.write("2026-01-02 03:04:05 Warning: <the> entropy fell\n")
    page = toy.folder / "report.html"
    copies = [word for split in ("test", "val") for word in ("--hyp", f"copy:{split}={toy.folder}/copy.{split}")]
    quick = ["--shuffles", 20, "--bootstrap", 10, "--metrics", "bleu,length"]
    command("report", f"MLE={toy.run_folder}", f"RL={tuned}", *copies, "--out", page, *quick)
    return Made(page, toy.run_folder, tuned)


def cells(made, first):
    """The cells of a table's row, by the label of its column."""
    (row,) = re.findall(
        rf'<tr role="row"[^>]*><th[^>]*>{re.escape(first)}</th>(?:(?!</tr>).)*data-label.*?</tr>', section(made, "runs")
    )[:1]
    return {
        unescape(name): unescape(re.sub("<.*?>", "", value))
        for name, value in re.findall(r'data-label="(.*?)">(.*?)</td>', row)
    }


def section(made, name):
    return re.search(rf'<section id="{name}">.*?</section>', made.text, re.DOTALL)[0]


def test_where_each_system_comes_from(made):
    actor, tuned = cells(made, "MLE"), cells(made, "RL")
    assert (actor["run"], actor["model"], actor["starts from"]) == ("toy", "SimultaneousNMT", "random weights")
    assert (tuned["run"], tuned["model"], tuned["starts from"]) == ("toy-rl", "REINFORCENMT", "runs/toy")
    for run, shown in ((made.actor, actor), (made.tuned, tuned)):
        log = next(run.glob("*.log")).read_text()
        assert shown["seed"] == re.search(r"; seed (\d+)", log)[1]
        best = next(run.glob("*.best.bleu.ckpt")).resolve().name
        assert shown["checkpoint"] == best
        assert re.fullmatch(r"\d+ of \d+", shown["at update"])
        assert f"trained with {re.search(r'Host: embedded engine of (.*)', log)[1]}</li>" in section(made, "runs")
    assert actor["trained"].startswith(re.match(r"[\d-]+ \d\d:\d\d", next(made.actor.glob("*.log")).read_text())[0])


def test_the_commit_is_recorded(made):
    words = ["git", "-C", str(ROOT), "describe", "--always", "--exclude=*"]
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("this is no clone of the repository, or there is no git to ask")
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"git does not tell: {done.stderr}")
    commit = done.stdout.strip()
    assert re.search(
        rf"<li>MLE \(toy\), RL \(toy-rl\): trained with pysimt_sac \S+ \(commit {commit}", section(made, "runs")
    )
    assert f"(commit {commit}" in re.search(r"<footer>.*?</footer>", made.text)[0]


def test_how_configurations_differ(made):
    assert cells(made, "train.lr")["RL"] == "0.002"
    assert cells(made, "train.lr")["MLE"] != "0.002"
    assert cells(made, "model.health_freq") == {"MLE": "-", "RL": "2"}  # set, although only one model knows it
    shown, folded = re.split(r"<summary>\d+ settings ", section(made, "runs"))
    assert "train.lr" not in shown
    assert "train.batch_size" not in folded  # the same in both
    assert "model.reward_scale" not in folded  # only one model knows it, and no configuration sets it
    assert str(made.actor.parent) not in made.text  # local folders stay private


def test_warnings_of_the_log(made):
    assert "2026-01-02 03:04: &lt;the&gt; entropy fell" in section(made, "runs")


def captions(part):
    return [unescape(found) for found in re.findall(r"<figcaption><b>(.*?)</b>", part)]


def test_curves_that_cannot_be_compared_are_in_figures_of_their_own(made):
    shown = section(made, "curves").split("<details>")[0]
    found = captions(shown)
    assert found[:4] == [
        "Validation BLEU: from random weights",
        "Validation BLEU: fine-tuning",
        "Validation loss: from random weights",
        "Validation loss: fine-tuning",
    ]
    assert "Training loss: from random weights, likelihood" in found
    assert "Training loss: fine-tuning, reinforcement" in found
    figures = dict(zip(found, re.findall(r"<svg class=\"figure\".*?</svg>", shown), strict=True))
    for title in found[:4]:
        names = set(re.findall(r'data-name="(.*?)"', figures[title]))
        assert names == ({"RL"} if "fine-tuning" in title else {"MLE"})
    begins = re.search(r'data-values="(\S+),', figures["Validation BLEU: fine-tuning"])[1]
    assert begins == "0"  # its own zero


def test_few_diagnostics_are_shown_and_all_of_them_explained(made):
    shown, folded = section(made, "curves").split("<details>")
    diagnostics = shown.split("Diagnostics of the algorithm")[1]
    titles = captions(diagnostics)
    assert titles[0] == "Reward: bleu"
    assert titles[1:4] == ["BLEU of rollouts", "Length ratio of rollouts", "Entropy of the policy"]
    assert len(titles) <= 7
    assert diagnostics.count('class="note"') == len(titles)
    assert "Return spread" in captions(folded)


def test_tick_labels_are_all_different(made):
    for figure in re.findall(r"<svg class=\"figure\".*?</svg>", made.text):
        for anchor in ("end", "middle"):
            labels = [text.text for text in ElementTree.fromstring(figure) if text.get("text-anchor") == anchor]
            assert len(set(labels)) == len(labels), labels


def test_the_length_is_called_a_percentage(made):
    assert "length, % of reference" in section(made, "scores")


def test_a_system_with_the_baselines_translations_is_called_identical(made):
    assert "copy, identical to MLE" in re.search(r"<header>.*?</header>", made.text, re.DOTALL)[0]
    assert "RL, identical" not in made.text


# In a real browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed (Debian: apt install chromium)")
    running = Browser(tmp_path_factory.mktemp("profile"))
    yield running
    running.close()


@pytest.fixture
def page(browser, made):
    return browser.open(made.path.as_uri())


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_tables_fit_and_use_the_width(browser, made, width, dark):
    page = browser.open(made.path.as_uri(), width=width, dark=dark)
    page.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    sizes = page.run("[...document.querySelectorAll('.scroll')].map(e => [e.scrollWidth, e.clientWidth, innerWidth])")
    assert len(sizes) >= 6
    assert all(inside <= outside for inside, outside, _ in sizes)  # nothing to scroll sideways
    assert all(outside >= 0.9 * window for _, outside, window in sizes)
    tables = page.run("[...document.querySelectorAll('table')].map(e => e.getBoundingClientRect().width)")
    assert all(size >= 0.9 * width for size in tables)
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    label = "getComputedStyle(document.querySelector('td[data-label=average]'), '::before').content"
    assert page.run(label).strip('" ') == ("average" if width == 400 else "none")
    assert page.errors() == []


VALIDATION = "document.querySelectorAll('#curves svg.figure')[1]"
TIP = "[...document.querySelectorAll('.tip:not([hidden]) p')].map(p => p.textContent)"


def test_values_under_the_pointer(page, made):
    page.run(f"{VALIDATION}.scrollIntoView()")
    left, top, width = page.run(f"(r => [r.left, r.top, r.width])({VALIDATION}.getBoundingClientRect())")
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=left + 0.13 * width, y=top + 40)
    history = [line for line in curve_points(made.tuned, "val_BLEU") if line[0] == 0]
    assert page.run(TIP) == ["updates 0", f"RL {history[0][1]:.5g}"]
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    assert page.run(TIP) == []


def test_values_by_the_arrow_keys(page, made):
    page.run(f"{VALIDATION}.scrollIntoView()")
    page.run(f"{VALIDATION}.focus()")
    page.press("Home", 36)
    assert page.run(TIP)[0] == "updates 0"
    page.press("ArrowRight", 39)
    second = curve_points(made.tuned, "val_BLEU")[1]
    assert page.run(TIP) == [f"updates {second[0]}", f"RL {second[1]:.5g}"]
    page.press("Escape", 27)
    assert page.run(TIP) == []


def curve_points(run, name):
    entries = map(json.loads, next(run.glob("*.scalars.jsonl")).read_text().splitlines())
    return [(entry["step"], entry["value"]) for entry in entries if entry["name"] == name]


def test_identical_systems_are_not_repeated(page):
    rows = page.run("[...document.querySelectorAll('#list li:first-child .row')].map(e => e.textContent)")
    assert rows[-1] == "copyidentical to MLE in every sentence"


def test_the_sorting_stays_when_the_test_set_changes(page):
    change(page, "sort", "gain:RL")
    change(page, "set", "val")
    assert page.run("document.getElementById('sort').value") == "gain:RL"
    assert page.run("document.querySelectorAll('#list li').length") == 12
