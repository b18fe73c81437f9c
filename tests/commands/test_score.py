"""`pysimt-sac score` from the command line."""

import json
import subprocess
import sys

import pytest
from sacrebleu.metrics.bleu import BLEU

from pysimt_sac.cli import main_sac


def test_scores_are_shown_with_signatures_and_how_to_install_meteor(write, folder, capsys):
    write("a.out", {"mann": "<unk>"})
    write("b.out", {"mann": "junge", "der": "ein"})
    assert main_sac(["score", "--ref", "ref.de", "a.out", "b.out"]) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert " ".join(lines[0].split()) == "hypothesis BLEU ↑ chrF ↑ TER ↓ length ratio unknown words"
    bleu = BLEU(tokenize="none", force=True)
    texts = [(folder / name).read_text(encoding="utf-8").splitlines() for name in ("a.out", "b.out", "ref.de")]
    assert lines[2].split()[:2] == ["a.out", f"{bleu.corpus_score(texts[0], [texts[2]]).score:.2f}"]
    assert lines[2].split()[-2:] == ["5", "(2.2%)"]
    assert f"BLEU: {bleu.get_signature()}" in lines
    assert "pip install 'pysimt_sac[meteor]'" in shown.err
    assert shown.err.count("\n") == 1


def test_json_has_every_number(write, capsys):
    write("a.out", {"mann": "junge"})
    assert main_sac(["score", "--ref", "ref.de", "a.out", "--format", "json", "--metrics", "ter,length"]) == 0
    (text,) = json.loads(capsys.readouterr().out)["hypotheses"]
    assert [score["metric"] for score in text["scores"]] == ["TER", "length"]
    assert text["scores"][0]["value"] == pytest.approx(100 * 5 / 225)
    assert text["length_ratio"] == 1.0


def test_output_goes_to_a_file(write, folder, capsys):
    write("a.out", {"mann": "junge"})
    arguments = ["score", "--ref", "ref.de", "a.out", "--metrics", "bleu", "--format", "markdown", "-o", "table.md"]
    assert main_sac(arguments) == 0
    assert capsys.readouterr().out == ""
    assert (folder / "table.md").read_text(encoding="utf-8").startswith("| hypothesis | BLEU ↑ |")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["short.out"], "short.out: has 7 lines, but the reference ref.de has 30"),
        (["empty.out"], "empty.out: this hypothesis is empty"),
        (["ref.de"], "ref.de: is given both as reference and as hypothesis"),
        (["nowhere.out"], "nowhere.out: no such hypothesis file"),
        (["a.out", "--metrics", "blue"], "did you mean 'bleu'"),
        (["a.out", "--tokenize", "14a"], "no tokeniser '14a'"),
        (["a.out", "--metrics", "meteor", "--lang", "de"], "no metric is left"),
        (["a.out", "--meteor-jar", "nowhere.jar"], "nowhere.jar: no such METEOR jar"),
    ],
)
def test_misuse_is_one_line_and_status_2(write, folder, capsys, arguments, message):
    write("a.out", {"mann": "junge"})
    write("short.out", lines=7)
    (folder / "empty.out").write_text("")
    assert main_sac(["score", "--ref", "ref.de", *arguments]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("pysimt-sac score: error: ")
    assert message in error


def test_bpe_in_the_output_is_a_warning_that_says_so(write, capsys):
    write("a.out", {"bahnhof": "bahn@@ hof"})
    assert main_sac(["score", "--ref", "ref.de", "a.out", "--metrics", "bleu"]) == 0
    assert "warning: a.out: 5 lines have BPE units ('@@ '), ref.de has none" in capsys.readouterr().err


def test_as_a_program_and_without_torch(write):
    write("a.out", {"mann": "junge"})
    code = (
        "import sys; from pysimt_sac.cli import main_sac\n"
        "status = main_sac(['score', '--ref', 'ref.de', 'a.out', '--metrics', 'bleu,chrf,ter'])\n"
        "assert 'torch' not in sys.modules\n"
        "sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    assert "a.out" in done.stdout
