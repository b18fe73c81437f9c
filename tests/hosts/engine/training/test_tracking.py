"""Weights & Biases, offline: the curves of a run and of its continuation are in the run's folder, under one id."""

import sys

import pytest

from pysimt_sac.cli import main


def test_the_curves_are_kept_for_weights_and_biases(toy, monkeypatch):
    pytest.importorskip("wandb", reason="the extra `wandb` is not installed")
    monkeypatch.setenv("WANDB_MODE", "offline")
    words = ["train", "-C", str(toy.config), "--quiet", "model.wandb_project:pysimt_sac"]
    for updates in (4, 6):
        assert main([*words, f"train.max_iterations:{updates}"]) == 0
    files = sorted((toy.run_folder / "wandb").glob("offline-run-*/*.wandb"))
    assert len({file.name for file in files}) == 1
    (log,) = toy.run_folder.glob("*.log")
    assert files[0].name == f"run-{log.stem}.wandb"
    content = b"".join(file.read_bytes() for file in files)
    assert b"train_LOSS" in content
    assert b"gradient_norm" in content


def test_without_the_extra_the_error_says_what_to_install(toy, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert main(["train", "-C", str(toy.config), "model.wandb_project:pysimt_sac"]) == 2
    assert "pip install 'pysimt_sac[wandb]'" in capsys.readouterr().err
