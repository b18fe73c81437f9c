"""`pysimt-sac table` from the command line."""

import json

import pytest

from pysimt_sac.cli import main_sac


def test_the_paper_alone(capsys):
    assert main_sac(["table", "--table", "iwslt14"]) == 0
    shown = capsys.readouterr().out
    assert "| de-en | MLE | paper | **29.8** | **31.2** | 48.9 |" in shown
    assert r"|  | SAC BLEU | paper | 29.6\* | 31.0\* | **48.8**\* |" in shown
    assert main_sac(["table", "--format", "latex"]) == 0
    assert capsys.readouterr().out.count(r"\begin{tabular}") == 6


def test_own_runs(write, folder, capsys):
    write("mle.1", {"mann": "junge"})
    write("mle.2", {"der": "ein"})
    write("sac.1")
    (folder / "runs.toml").write_text(
        "[iwslt14.de-en]\nreference = 'ref.de'\nsystems = {MLE = 'mle.?', 'my SAC' = 'sac.1'}\n"
    )
    arguments = ["table", "runs.toml", "--shuffles", "100", "--bootstrap", "20"]
    assert main_sac(arguments) == 0
    shown = capsys.readouterr()
    assert "|  | MLE | own, 2 runs |" in shown.out
    assert r"|  | my SAC | own, 1 run | **100.0**\* | - | **0.0**\* |" in shown.out
    assert shown.out.count("| model |") == 1  # only the table that there are runs for
    assert "METEOR is left out" in shown.err
    assert main_sac([*arguments, "--format", "json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    assert table["rows"][-1]["cells"][0] == {"value": 100.0, "significant": True, "spread": None}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ['reference = "ref.de"', 'systems = {MLE = "mle.{set}"}'],
            'runs.toml: [multi30k.en-de]: reference = "ref.de" has no {set}, but there are 3 test sets '
            "(write {set} in place of the test set's name, which is one of test_2016_flickr, test_2017_flickr, ",
        ),
        (
            ['reference = "x/test_2017_flickr.de"', 'systems = {MLE = "mle.{set}"}'],
            '(write "x/{set}.de")',
        ),
        (
            ['reference = "ref.{set}"', 'systems = {MLE = ["mle.{set}", "mle.2"]}'],
            'MLE = "mle.2" has no {set}',
        ),
        (
            ['reference = "ref.{set}"', 'ambiguous = "words.tsv"', 'systems = {MLE = "mle.{set}"}'],
            'ambiguous = "words.tsv" has no {set}',
        ),
    ],
)
def test_one_file_for_all_test_sets_is_refused(write, folder, capsys, lines, message):
    for name in ("mle.2", *(f"mle.test_{each}" for each in ("2016_flickr", "2017_flickr", "2017_mscoco"))):
        write(name, {"mann": "junge"})
    (folder / "runs.toml").write_text("\n".join(["[multi30k.en-de]", *lines]))
    assert main_sac(["table", "runs.toml", "--shuffles", "10", "--bootstrap", "10"]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""


def test_a_missing_translation_of_one_run_is_refused(write, folder, capsys):
    for test_set in ("2016_flickr", "2017_flickr", "2017_mscoco"):
        write(f"ref.test_{test_set}")
        for seed in (1, 2, 3):
            write(f"mle-{seed}.test_{test_set}", {"mann": "junge"})
    (folder / "mle-2.test_2017_mscoco").unlink()
    lines = ["[multi30k.en-de]", 'reference = "ref.{set}"', 'systems = {MLE = "mle-*.{set}"}']
    (folder / "runs.toml").write_text("\n".join(lines))
    assert main_sac(["table", "runs.toml", "--shuffles", "10", "--bootstrap", "10"]) == 2
    shown = capsys.readouterr()
    assert (
        "runs.toml: [multi30k.en-de]: the system 'MLE' has different numbers of outputs: "
        "3 of test_2016_flickr, 3 of test_2017_flickr, 2 of test_2017_mscoco (translate the missing ones"
    ) in shown.err
    assert shown.out == ""


def test_the_example_can_be_saved_and_read(folder, capsys):
    assert main_sac(["table", "--example", "-o", "runs.toml"]) == 0
    assert main_sac(["table", "runs.toml"]) == 2
    assert "no output of the system 'MLE' exists, e.g. out/mle-seed*.test_2016_flickr.beam6" in capsys.readouterr().err
