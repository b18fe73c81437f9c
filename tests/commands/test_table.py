"""`pysimt-sac table` from the command line."""

import json

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


def test_the_example_can_be_saved_and_read(folder, capsys):
    assert main_sac(["table", "--example", "-o", "runs.toml"]) == 0
    assert main_sac(["table", "runs.toml"]) == 2
    assert "no output of the system 'MLE' exists, e.g. out/mle-seed*.test_2016_flickr.beam6" in capsys.readouterr().err
