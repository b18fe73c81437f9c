"""`pysimt-sac domain` from the command line."""

import json

from pysimt_sac.cli import main_sac


def test_table_and_json(write, folder, capsys):
    write("near.de")
    write("far.de", {"mann": "bär", "frau": "katze", "hunde": "vögel"})
    arguments = ["domain", "--train", "ref.de", "near.de", "far.de"]
    assert main_sac(arguments) == 0
    shown = capsys.readouterr()
    assert "3-gram model, interpolated modified Kneser-Ney, of 30 sentences" in shown.out
    assert "too small to estimate discounts" in shown.err
    assert main_sac([*arguments, "--order", "2", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    near, far = found["sets"]
    assert found["order"] == 2
    assert near["unknown_rate"] == 0
    assert far["unknown_words"] == 15
    assert near["perplexity"] < far["perplexity"]


def test_mistakes_are_one_line_and_status_2(folder, capsys):
    (folder / "empty").write_text("\n")
    assert main_sac(["domain", "--train", "empty", "ref.de"]) == 2
    assert "empty: this training text is empty" in capsys.readouterr().err
    assert main_sac(["domain", "--train", "ref.de", "empty"]) == 2
    assert "empty: this test set is empty" in capsys.readouterr().err
