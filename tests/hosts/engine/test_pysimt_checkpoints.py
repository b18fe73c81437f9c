"""Checkpoints as pysimt writes them: paths, a defaultdict and metrics inside; and the one in the research data."""

from collections import defaultdict
from pathlib import Path

import pytest
import torch

from pysimt_sac.cli import main
from pysimt_sac.core.registry import METRICS
from pysimt_sac.hosts.engine.checkpoint import load_checkpoint


def test_one_with_pysimts_types_translates(toy):
    assert main(["train", "-C", str(toy.config), "train.max_epochs:1"]) == 0
    (ours,) = toy.run_folder.glob("*.best.bleu.ckpt")
    loaded = load_checkpoint(ours)
    options = dict(loaded.options)
    for section in ("data", "vocabulary"):
        options[section] = as_paths(options[section])
    scores = defaultdict(list)
    scores["LOSS"].append(1.0)
    theirs = toy.folder / "pysimt.ckpt"
    history = {"uctr": 1, "val_scores": scores}
    torch.save({"opts": options, "model": loaded.weights, "history": history}, theirs)
    outputs = []
    for checkpoint in (ours, theirs):
        prefix = toy.folder / f"out/{checkpoint.stem}"
        assert main(["translate", "-s", "val", "-o", str(prefix), str(checkpoint)]) == 0
        outputs.append(prefix.with_name(f"{prefix.name}.val.gs.raw").read_text())
    assert outputs[0] == outputs[1]


def as_paths(value):
    if isinstance(value, dict):
        return {key: as_paths(item) for key, item in value.items()}
    return Path(value) if isinstance(value, str) and value.startswith("/") else value


@pytest.mark.slow
def test_the_given_one_reaches_the_bleu_that_pysimt_measured(research_data, tmp_path):
    paper, split = research_data / "data/multi30k/paper/en-de", "test_2017_mscoco"
    source = ["-s", split, "-S", f"src:{paper}/{split}.lc.norm.tok.en"]
    vocabularies = [
        f"vocabulary.src:{paper}/train.lc.norm.tok.vocab.en",
        f"vocabulary.trg:{paper}/train.lc.norm.tok.bpe.vocab.de",
    ]
    arguments = [*source, "-o", str(tmp_path / "x"), "-b", "64", "-x", *vocabularies]
    assert main(["translate", str(research_data / "checkpoints/pysimt-mle-en-de.ckpt"), *arguments]) == 0
    hypotheses = (tmp_path / f"x.{split}.gs").read_text().splitlines()
    references = (paper / f"{split}.lc.norm.tok.de.dehyph").read_text().splitlines()
    assert METRICS.get("bleu").compute(hypotheses, [references]) == pytest.approx(25.1, abs=0.05)
