"""`pysimt-sac frequency` from the command line."""

import json

from pysimt_sac.cli import main_sac


def test_table_json_and_plots(write, folder, capsys):
    write("base.out", {"mann": "junge", "park": "wald"})
    write("new.out", {"mann": "junge"})
    arguments = ["frequency", "--train", "ref.de", "--ref", "ref.de", "base=base.out", "new.out"]
    assert main_sac([*arguments, "--plot", "plots/f.svg"]) == 0
    shown = capsys.readouterr()
    assert "all sentences (30)" in shown.out
    assert "sentences that new.out improved over base (5)" in shown.out
    assert {path.name for path in (folder / "plots").iterdir()} == {"f.svg", "f-1.svg"}
    assert main_sac([*arguments, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    reference, base, new = found["all"]["texts"]
    assert reference["unseen"] == 0
    assert base["unseen"] == 10 / base["words"]
    assert new["unseen"] == 5 / new["words"]
    assert new["type_token_ratio"] == new["types"] / new["words"]


def test_mistakes_are_one_line_and_status_2(write, folder, capsys):
    write("base.out", {"mann": "junge"})
    write("short", lines=3)
    (folder / "empty").write_text("\n\n")
    (folder / "other").write_text("quite another language\n")
    (folder / "split").write_text("ein t @-@ shirt\n")
    for arguments, message in (
        (["--train", "empty", "base.out"], "empty: this training text is empty"),
        (["--train", "none", "base.out"], "none: no such training text file"),
        (["--train", "ref.de", "short"], "short: has 3 lines, but the reference ref.de has 30"),
        (["--train", "ref.de", "base.out", "base.out"], "two systems are called 'base.out'"),
        (["--train", "ref.de", "base.out", "--plot", "f.pdf"], "f.pdf: figures are written as .svg"),
    ):
        assert main_sac(["frequency", "--ref", "ref.de", *arguments]) == 2
        assert message in capsys.readouterr().err
    assert main_sac(["frequency", "--ref", "ref.de", "--train", "other", "base.out"]) == 0
    assert "100% of the reference's words are not in the training text" in capsys.readouterr().err
    assert main_sac(["frequency", "--ref", "ref.de", "--train", "split", "base.out"]) == 0
    assert "split: 1 line has split hyphens (' @-@ '), ref.de has none; these words" in capsys.readouterr().err
