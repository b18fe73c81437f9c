"""Matrices: the ready ones can be run, and mistakes in others are named before anything is trained."""

from pathlib import Path

import pytest

from pysimt_sac.cli import main_sac
from pysimt_sac.core.errors import UserError
from pysimt_sac.hosts.engine.config.ready import ready_folder
from pysimt_sac.reproduce.corpus import Corpus, Places, Request, preparation
from pysimt_sac.reproduce.matrix import choose_systems, find_matrix, read_matrix
from pysimt_sac.reproduce.steps import plan_work
from tests.reproduce.tiny import MATRIX, words

FOLDER = ready_folder()
assert FOLDER is not None
SHIPPED = sorted(FOLDER.rglob("*.toml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
@pytest.mark.parametrize("short", [False, True])
def test_every_configuration_of_a_shipped_matrix_is_valid(path, short, tmp_path):
    matrix = read_matrix(path)
    for pair in matrix.pairs:
        everything = tuple(system.name for system in matrix.systems if not system.pairs or pair in system.pairs)
        corpus = Corpus(preparation("text", "key", tmp_path), None, Places(tmp_path, tmp_path, pair), ())
        work = plan_work(matrix, corpus, Request(pair, tmp_path / "out", seeds=2, systems=everything, short=short))
        assert {step.system for step in work.trainings} == set(everything)
        assert len({step.id for step in work.steps()}) == len(work.steps())
        folders = [str(step.options.data["train_set"]) for step in work.trainings]
        assert pair == "demo" or all(str(tmp_path / pair) in folder for folder in folders)


def test_the_matrices_that_documents_name_are_shipped():
    assert {path.stem for path in SHIPPED} == {"ablations", "demo", "equal_time", "multi30k", "unsupervised"}


def test_the_papers_systems_and_their_controls_are_there():
    matrix = find_matrix("en-de", None)
    seeds = {system.name: system.seeds or 3 for system in choose_systems(matrix, "en-de", [])}
    once = {"C3", "MIXER", "AC", "ERAC"}
    assert {name for name, n in seeds.items() if n == 1} == once
    assert seeds.keys() - once == {"MLE", "C1", "SAC BLEU", "Branched SAC", "SAC unsuper", "Vine", "REINFORCE", "MRT"}
    french = [system.name for system in choose_systems(matrix, "en-fr", [])]
    assert french == ["MLE", "C1", "SAC BLEU", "Branched SAC", "SAC unsuper"]


def test_a_shipped_matrix_is_found_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_matrix("en-de", Path("equal_time")).title == "Multi30K, equal time"
    with pytest.raises(UserError, match="equal_tim"):
        find_matrix("en-de", Path("equal_tim"))


def test_named_systems_come_with_what_they_start_from():
    matrix = find_matrix("en-de", None)
    assert [system.name for system in choose_systems(matrix, "en-de", ["sac bleu"])] == ["MLE", "SAC BLEU"]
    with pytest.raises(UserError, match="did you mean 'Vine'"):
        choose_systems(matrix, "en-de", ["vine1"])
    with pytest.raises(UserError, match="no system of en-fr is called 'Vine'"):
        choose_systems(matrix, "en-fr", ["Vine"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("beam = 2", "beams = 2", "decoding: unknown key 'beams' (did you mean 'beam'?)"),
        ("beam = 2", "beam = 'two'", "decoding: beam: 'two' is not a whole number"),
        ("greedy = false", "greedy = 0", "decoding: greedy: 0 is not True or False"),
        ('start = "MLE"', 'start = "MLX"', "starts from 'MLX', which is not a system above it (did you mean 'MLE'?)"),
        ('config = "sac_bleu"', 'config = "sac_blue"', "no experiment is called 'sac_blue' (did you mean 'sac_bleu'?)"),
        ('name = "SAC BLEU"', 'name = "MLE"', "its name is another system's"),
        ('name = "SAC BLEU"', 'name = "a=b"', "its name cannot contain any of =:,"),
        ("[scoring]", '[primary]\ntest_set = "val"\n[scoring]', "primary: test_set: there is no 'val'"),
        ("[scoring]", '[primary]\nmetric = "bleu"\n[scoring]', "metric: there is no 'bleu' (did you mean 'BLEU'?)"),
        ('baselines = ["MLE"]', 'baselines = ["C1"]', "baselines: no system is called 'C1'"),
        ('baselines = ["MLE"]', "baselines = 1", "scoring: baselines: 1 is not "),
        ('corpus = "multi30k"', 'corpus = "multi31k"', "no corpus is called 'multi31k' (did you mean 'multi30k'?)"),
        ('reference = "', 'preference = "', "data: unknown key 'preference'"),
        ("[[system]]", "[system", "is not TOML"),
        ("beam = 2", "beam = 0", "decoding: beam: 0 must be at least 1"),
        ("bootstrap = 10", "bootstrap = 1", "scoring: bootstrap: 1 must be at least 2"),
    ],
)
def test_a_mistake_is_named(tmp_path, old, new, message):
    assert old in MATRIX
    path = tmp_path / "matrix.toml"
    path.write_text(MATRIX.replace(old, new))
    with pytest.raises(UserError) as error:
        read_matrix(path)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ((), ["--raw", "nowhere"], "no such folder"),
        (("train.eval_freq:4", "train.eval_frequ:4"), [], "unknown key 'eval_frequ'"),
        ((), ["--systems", "SAC"], "no system of en-de is called 'SAC'"),
        ((), ["--mlt", "raw"], "no such list of MLT"),
        ((), ["--prepared", "raw"], "give one of them"),
    ],
)
def test_what_can_be_checked_is_checked_before_anything_is_written(
    inputs, capsys, monkeypatch, change, options, message
):
    from tests.reproduce.tiny import words

    monkeypatch.chdir(inputs)
    if change:
        (inputs / "matrix.toml").write_text(MATRIX.replace(*change))
    assert main_sac([*words(inputs, "out"), *options]) == 2
    assert message in capsys.readouterr().err
    assert not (inputs / "out").exists()


def test_a_matrix_can_be_printed_and_changed(tmp_path, capsys):
    assert main_sac(["reproduce", "en-de", "--print-matrix"]) == 0
    (tmp_path / "mine.toml").write_text(capsys.readouterr().out)
    assert read_matrix(tmp_path / "mine.toml").systems == find_matrix("en-de", None).systems


def test_a_test_set_that_the_configurations_do_not_have(tmp_path, capsys):
    assert main_sac(["reproduce", "demo", "--print-matrix"]) == 0
    path = tmp_path / "mine.toml"
    path.write_text(capsys.readouterr().out.replace('"test_ood"', '"test_odd"'))
    assert main_sac(["reproduce", "demo", "--matrix", str(path), "--out", str(tmp_path / "out"), "--plan"]) == 2
    assert "has no test set 'test_odd' (did you mean 'test_ood'?)" in capsys.readouterr().err


def test_a_plan_does_not_run_the_code_that_a_configuration_names(tmp_path, capsys):
    assert main_sac(["reproduce", "demo", "--print-matrix"]) == 0
    matrix, plugin, ran = (tmp_path / name for name in ("mine.toml", "mine.py", "ran"))
    text = capsys.readouterr().out
    matrix.write_text(text.replace("overrides = [", f'overrides = ["model.plugin_modules:{plugin}", ', 1))
    plugin.write_text(f"import pathlib; pathlib.Path({str(ran)!r}).touch()")
    plan = ["reproduce", "demo", "--matrix", str(matrix), "--out", str(tmp_path / "out"), "--plan"]
    assert main_sac(plan) == 2
    assert f"would run {plugin} (read that code first; --trust runs it)" in capsys.readouterr().err
    assert not ran.exists()
    assert main_sac([*plan, "--trust"]) == 0
    assert ran.exists()


def test_a_pair_that_no_matrix_knows(capsys):
    assert main_sac(["reproduce", "en-dk", "--out", "x"]) == 2
    assert "no matrix is for 'en-dk' (did you mean 'en-de'?)" in capsys.readouterr().err
    assert main_sac(["reproduce", "demo"]) == 2
    assert "--out FOLDER: missing" in capsys.readouterr().err


def test_a_test_set_that_is_missing_is_named_at_once(inputs, capsys):
    (inputs / "raw/test_2017_mscoco.de").unlink()
    assert main_sac(words(inputs, "out")) == 2
    assert "test_2017_mscoco.de[.gz] missing here" in capsys.readouterr().err
