"""The demo's table: what it shows, in 80 columns, and that equal translations are called that."""

import pytest

from pysimt_sac.cli import main_sac
from pysimt_sac.evaluation.tables import render
from tests.conftest import load_script


@pytest.fixture(scope="module")
def demo():
    return load_script("experiments/demo.py")


@pytest.fixture
def table(demo, tmp_path, monkeypatch):
    """The lines of the table: of the systems, two are perfect on one test set, and all differ on the other."""
    monkeypatch.chdir(tmp_path)
    assert main_sac(["prepare", "demo", "--out", "data/demo"]) == 0
    references = {split: (tmp_path / f"data/demo/{split}.de").read_text().splitlines() for split in demo.SPLITS}
    for number, config in enumerate(demo.SYSTEMS.values()):
        (tmp_path / "runs" / config).mkdir(parents=True)
        for split, lines in references.items():
            wrong = 0 if split == "test" and config in ("demo_mle", "demo_sac_unsup") else number
            text = "\n".join(["falsch"] * wrong + lines[wrong:]) + "\n"
            demo.translation(config, split).write_text(text)
    return render(demo.table(demo.SYSTEMS), "text").splitlines()


def row(table, system, test_set):
    (found,) = [line for line in table if line.startswith(f"{system}  ") and f" {test_set}" in line]
    return found.removeprefix(system).split()


def test_a_system_with_anothers_translations_is_called_identical(table):
    assert row(table, "MLE", "in-domain") == ["in-domain", "100.0", "100.0", "0.0", "100.0", "100.0"]
    assert row(table, "SAC unsuper", "in-domain") == ["in-domain", *["-"] * 5, "identical", "to", "MLE"]
    others = [row(table, name, test_set) for name, test_set in (("branched SAC", "in"), ("SAC unsuper", "out"))]
    assert all(float(figures[1]) < 100 for figures in others)
    assert sum("identical" in line for line in table) == 1


def test_it_fits_a_terminal(table):
    assert max(map(len, table)) <= 80
