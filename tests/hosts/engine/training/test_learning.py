"""What training must achieve: a learned task, the same run from the same seed, translation by the command line."""

import io
import json
import subprocess
import sys

import pytest
import torch

from pysimt_sac.cli import main
from pysimt_sac.core.vocabulary import Vocabulary
from pysimt_sac.hosts.engine.checkpoint import load_checkpoint
from tests.conftest import make_toy

LEARN = ["train.max_epochs:25", "train.lr:0.01", "model.emb_dim:16", "model.enc_dim:32", "model.dec_dim:32"]
LEARN += ["model.out_logic:deep", "model.bucket_by:src", "train.patience:25"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    toy = make_toy(tmp_path_factory.mktemp("learned") / "toy")
    assert main(["train", "-C", str(toy.config), *LEARN]) == 0
    return toy


def best(toy, metric="bleu"):
    (checkpoint,) = toy.folder.glob(f"runs/*/*.best.{metric}.ckpt")
    return checkpoint


def test_a_task_is_learned(trained):
    scores = load_checkpoint(best(trained)).history["val_scores"]["BLEU"]
    assert scores[0] < 30
    assert max(scores) > 90


def test_the_same_seed_repeats_the_run_and_another_does_not(toy):
    weights = []
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        assert main(["train", "-C", str(toy.config), "-s", name, f"train.seed:{seed}", "train.max_epochs:1"]) == 0
        (checkpoint,) = toy.folder.glob(f"runs/*-{name}/*.best.loss.ckpt")
        weights.append(load_checkpoint(checkpoint).weights)
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert not all(torch.equal(weights[0][name], weights[2][name]) for name in weights[0])


def test_all_searches_write_their_files(trained):
    prefix = str(trained.folder / "out/sys")
    for arguments in (["-f", "gs"], ["-f", "bs", "-k", "3", "-N"], ["-f", "sample", "--seed", "7"]):
        assert main(["translate", "-s", "val,test", "-o", prefix, *arguments, str(best(trained))]) == 0
    written = {path.name for path in (trained.folder / "out").iterdir()}
    kinds = ("gs", "gs.raw", "beam3", "beam3.raw", "beam3.nbest", "sample", "sample.raw")
    assert written == {f"sys.{split}.{kind}" for split in ("val", "test") for kind in kinds}
    n_best = (trained.folder / "out/sys.val.beam3.nbest").read_text().splitlines()
    number, text, score = n_best[0].split(" ||| ")
    assert number == "0"
    assert text == (trained.folder / "out/sys.val.beam3.raw").read_text().splitlines()[0]
    assert float(score) <= 0


def test_filters_apply_unless_disabled(trained):
    prefix = trained.folder / "out/filtered"
    override = ["-x", "train.eval_filters:lower"]
    assert main(["translate", str(best(trained)), "-s", "val", "-o", str(prefix), *override]) == 0
    raw = (trained.folder / "out/filtered.val.gs.raw").read_text()
    assert (trained.folder / "out/filtered.val.gs").read_text() == raw.lower() != raw
    assert main(["translate", str(best(trained)), "-s", "val", "-n", "-o", f"{prefix}2", *override]) == 0
    assert (trained.folder / "out/filtered2.val.gs").read_text() == raw


def test_a_run_folder_stands_for_its_best_checkpoint(trained, pysimt):
    """By the first of its metrics, BLEU here; and a folder to write to gets files that are named after the run."""
    out, folder = trained.folder / "new", best(trained).parent
    outcome = pysimt("translate", folder, "-s", "val", "-o", f"{out}/")
    assert outcome.status == 0
    assert f"Translating with {best(trained)}" in outcome.err
    assert {path.name for path in out.iterdir()} == {f"{folder.name}.val.gs", f"{folder.name}.val.gs.raw"}
    assert pysimt("translate", best(trained), "-s", "val", "-o", f"{out}/again/").status == 0
    assert pysimt("translate", best(trained), "-s", "val", "-o", out / "same").status == 0
    for other in (out / "again" / f"{folder.name}.val.gs", out / "same.val.gs"):
        assert other.read_text() == (out / f"{folder.name}.val.gs").read_text()


def test_another_file_under_a_name_of_its_own(trained):
    source = trained.folder / "mine.src"
    source.write_text("one two\n\nsix seven\n")
    prefix = trained.folder / "out/mine"
    arguments = ["-s", "extra", "-S", f"src:{source}", "-o", str(prefix)]
    assert main(["translate", str(best(trained)), *arguments]) == 0
    assert (trained.folder / "out/mine.extra.gs.raw").read_text() == "TWO ONE\n\nSEVEN SIX\n"  # as from standard input


def test_standard_input_to_standard_output(trained, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"three one two\n\nfour five\n")))
    assert main(["translate", str(best(trained))]) == 0
    assert capsys.readouterr().out == "TWO ONE THREE\n\nFIVE FOUR\n"


def test_a_pipe_gets_each_answer_before_the_next_question(trained):
    script = "import sys; from pysimt_sac.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, "translate", str(best(trained))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for question, answer in (("one two", "TWO ONE"), ("six seven", "SEVEN SIX")):
            process.stdin.write(question + "\n")
            process.stdin.flush()
            assert process.stdout.readline() == answer + "\n"
        process.stdin.close()
        assert process.wait() == 0


def test_a_checkpoint_needs_no_vocabulary_files(trained, tmp_path, monkeypatch, capsys):
    moved = tmp_path / "shared.ckpt"
    moved.write_bytes(best(trained).read_bytes())
    hidden = trained.folder.rename(trained.folder.with_name("elsewhere"))
    try:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one two\n")))
        assert main(["translate", str(moved)]) == 0
        assert capsys.readouterr().out == "TWO ONE\n"
    finally:
        hidden.rename(trained.folder)


def test_pretrained_and_frozen_layers(trained, tmp_path):
    changes = [f"train.pretrained_file:{best(trained)}", "train.pretrained_layers:dec", "train.freeze_layers:dec.emb"]
    changes += [f"train.save_path:{tmp_path}/runs", "train.eval_freq:-1", "train.max_iterations:3"]
    assert main(["train", "-C", str(trained.config), *LEARN, *changes]) == 0
    (final,) = tmp_path.glob("runs/*/*-final.ckpt")
    before, after = load_checkpoint(best(trained)).weights, load_checkpoint(final).weights
    assert torch.equal(before["dec.emb.weight"], after["dec.emb.weight"])
    assert not torch.equal(before["dec.dec0.weight_hh"], after["dec.dec0.weight_hh"])
    assert torch.allclose(before["dec.dec0.weight_hh"], after["dec.dec0.weight_hh"], atol=0.05)
    assert not torch.allclose(before["encoders.src.emb.weight"], after["encoders.src.emb.weight"], atol=0.05)


def test_the_run_leaves_its_curves(trained):
    (curves,) = trained.folder.glob("runs/*/*.scalars.jsonl")
    points = [json.loads(line) for line in curves.read_text().splitlines()]
    assert {"train_LOSS", "gradient_norm", "lr", "val_BLEU", "val_LOSS"} <= {point["name"] for point in points}


def test_vocabularies_read_what_they_wrote(trained):
    vocab = Vocabulary.read(trained.folder / "vocab.src")
    assert vocab.idxs_to_sent(vocab.sent_to_idxs("one two")) == "one two"
    assert vocab[vocab["one"]] == "one"
    assert len(Vocabulary.read(trained.folder / "vocab.src", short_list=6)) == 6
