"""`pysimt-sac report` from the command line, on a run that was really trained."""

import json
import xml.etree.ElementTree as ElementTree

import pytest

from pysimt_sac.cli import main_sac
from pysimt_sac.core.filters import FilterChain
from pysimt_sac.evaluation.report.input import ReportRequest, training_words
from pysimt_sac.evaluation.report.runs import RunFolder, SplitFiles, read_run
from tests.hosts.engine.dying_runs import fork_training

QUICK = ["--shuffles", "20", "--bootstrap", "10", "--metrics", "bleu,chrf"]


def command(*words):
    """A process of its own: training holds its folder's lock until the process ends."""
    assert fork_training(words) == 0


@pytest.fixture
def trained(toy):
    command("train", "-C", str(toy.config), "train.max_epochs:1", "train.eval_filters:lower")
    return toy.run_folder


@pytest.fixture
def run(trained):
    checkpoint = next(trained.glob("*.best.loss.ckpt"))
    command("translate", "-s", "test", "-o", str(trained / "out"), str(checkpoint))
    return trained


def page_data(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(text.split('id="data">')[1].split("</script>")[0])


def test_a_run_folder_is_all_that_a_report_needs(run, toy, tmp_path, capsys):
    found = read_run(run)
    assert set(found.splits) == {"train", "val", "test"}
    assert (found.splits["test"].source, found.splits["test"].target) == (toy.test_src, toy.test_trg)
    assert found.filters.names == ["lower"]
    assert found.outputs == {"test": run / "out.test.gs"}
    assert {"train_LOSS", "val_BLEU", "val_LOSS", "lr"} <= set(found.curves)

    page = tmp_path / "pages" / "report.html"
    assert main_sac(["report", str(run), "--out", str(page), "--figures", str(tmp_path / "figures"), *QUICK]) == 0
    assert capsys.readouterr().out == f"written to {page}\n"
    (one,) = page_data(page)["sets"]
    assert one["systems"] == ["toy"]
    assert one["source"] == toy.test_src.read_text().splitlines()
    assert one["reference"] == toy.test_trg.read_text().lower().splitlines()  # the run's own filter
    assert one["outputs"] == [[(run / "out.test.gs").read_text().splitlines()]]
    assert "Validation BLEU" in page.read_text(encoding="utf-8")
    drawn = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"curve-val_BLEU.svg", "curve-train_LOSS.svg", "frequency-test.svg"} <= drawn
    ElementTree.parse(tmp_path / "figures" / "frequency-test.svg")


def test_what_a_run_has_not_translated_is_translated(trained, tmp_path, capsys):
    command("translate", "-s", "test", "-f", "bs", "-k", "2", "--tune-lp", "-o", str(tmp_path / "out"), str(trained))
    tuned = json.loads((tmp_path / "out.beam2.lp_alpha").read_text())
    assert tuned["BLEU"][str(tuned["lp_alpha"])] == max(tuned["BLEU"].values())
    page = tmp_path / "report.html"
    assert main_sac(["report", str(trained), "--out", str(page), *QUICK, "--search", "beam2"]) == 0
    assert {path.name for path in trained.glob("out.*")} == {"out.test.beam2", "out.test.beam2.raw"}
    (one,) = page_data(page)["sets"]
    assert one["outputs"] == [[(trained / "out.test.beam2").read_text().splitlines()]]
    before = (trained / "out.test.beam2").stat().st_mtime_ns
    assert main_sac(["report", str(trained), "--out", str(page), *QUICK]) == 0
    assert (trained / "out.test.beam2").stat().st_mtime_ns == before


def test_the_sides_of_the_direction_may_have_other_names(toy):
    text = toy.config.read_text().replace("trg:Text", "de:Text").replace("'trg':", "'de':").replace("trg:", "de:")
    toy.config.write_text(text)
    command("train", "-C", str(toy.config), "train.max_iterations:1")
    found = read_run(toy.run_folder)
    assert (found.splits["test"].source, found.splits["test"].target) == (toy.test_src, toy.test_trg)


def test_a_run_whose_data_has_moved(run, toy, tmp_path, capsys):
    (tmp_path / "elsewhere").mkdir()
    for path in (*toy.folder.glob("*.src"), *toy.folder.glob("*.trg")):
        path.rename(tmp_path / "elsewhere" / path.name)
    page, words = tmp_path / "report.html", ["report", str(run), *QUICK]
    assert main_sac([*words, "--out", str(page)]) == 2
    assert "test.trg: no such file (if the data has moved, give its new location: --data" in capsys.readouterr().err
    assert main_sac([*words, "--out", str(page), "--data", str(tmp_path / "nowhere")]) == 2
    assert "nowhere: no such folder" in capsys.readouterr().err
    assert main_sac([*words, "--out", str(page), "--data", str(run)]) == 2
    assert "holds none of the files that" in capsys.readouterr().err
    assert not page.exists()
    assert main_sac([*words, "--out", str(page), "--data", str(tmp_path / "elsewhere")]) == 0
    (one,) = page_data(page)["sets"]
    assert one["source"] == (tmp_path / "elsewhere/test.src").read_text().splitlines()
    assert 'id="frequency"' in page.read_text(encoding="utf-8")  # the training text has been found, too


@pytest.mark.parametrize("joiner", ["de-spm", "de-segment", "c2w"])
def test_a_given_training_text_gets_the_filters_of_the_run_but_its_words_are_not_joined(tmp_path, joiner):
    """Its words are compared with those of filtered hypotheses."""
    text = tmp_path / "train.de"
    text.write_text("ein mann geht\nein t @-@ shirt\n")
    run = RunFolder(tmp_path, {}, FilterChain([joiner, "de-hyphen"]), {}, {})
    expected = {"ein": 2, "mann": 1, "geht": 1, "t-shirt": 1}
    assert training_words(ReportRequest(training=text), run, []) == expected


def test_the_pieces_of_the_training_text_of_the_run_are_joined(tmp_path):
    text = tmp_path / "train.de"
    text.write_text("▁ein ▁ma nn\n")
    run = RunFolder(tmp_path, {"train": SplitFiles(text, text)}, FilterChain(["de-spm"]), {}, {})
    assert training_words(ReportRequest(), run, []) == {"ein": 1, "mann": 1}


def test_a_training_text_of_another_language_is_a_warning(write, folder, capsys):
    write("base.out", {"mann": "junge"})
    write("src.en")
    (folder / "other").write_text("quite another language\n")
    files = ["--hyp", "base:x=base.out", "--src", "x=src.en", "--ref", "x=ref.de", "--out", "r.html"]
    assert main_sac(["report", *files, "--train", "other", *QUICK]) == 0
    assert "warning: x: 100% of the reference's words are not in the training text" in capsys.readouterr().err
    assert main_sac(["report", *files, "--train", "ref.de", *QUICK]) == 0
    assert "are not in the training text" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no runs or hypotheses are given"),
        (["nowhere"], "nowhere: no such run folder"),
        (["--hyp", "base=base.out"], "--hyp: 'base=base.out' is not of the form NAME:SPLIT=FILE"),
        (["--hyp", "a:x=base.out", "--src", "base.out"], "--src: 'base.out' is not of the form SPLIT=FILE"),
        (["--hyp", "a:x=base.out"], "x: left out, because its source and reference are unknown"),
        (["--hyp", "a:x=none", "--src", "x=ref.de", "--ref", "x=ref.de"], "none: no such hypothesis file"),
    ],
)
def test_mistakes_are_one_line_and_status_2(write, folder, capsys, arguments, message):
    write("base.out", {"mann": "junge"})
    assert main_sac(["report", *arguments, "--out", "r.html", *QUICK]) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown
    assert not (folder / "r.html").exists()
