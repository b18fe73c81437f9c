"""What several processes refuse, in one line that one of them tells."""

import pytest

from tests.distributed.processes import pysimt_sac, start, wait


def error_of(size, folder, *words, **variables):
    """The one line that all processes together tell; all of them must end with status 2."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        assert wait(start(size, pysimt_sac(*words), folder)) == [2] * size
    lines = [line for path in folder.glob("?.err") for line in path.read_text().splitlines()]
    (line,) = [line for line in lines if ": error: " in line]
    return line


def test_a_mistake_is_told_once_and_leaves_nothing(toy):
    line = error_of(3, toy.folder / "out", "train", "-C", toy.config, "model.emb_dim:zero")
    assert "emb_dim" in line
    assert not toy.run_folder.exists()


def test_a_locked_folder_is_told_once(toy):
    from pysimt_sac.hosts.engine.config.parser import read_config
    from pysimt_sac.hosts.engine.training.runs import open_run

    with open_run(read_config(toy.config, [])):
        line = error_of(2, toy.folder / "out", "train", "-C", toy.config)
    assert "another process is training here" in line


def test_standard_input_is_not_divided(toy):
    assert "standard input" in error_of(2, toy.folder / "out", "translate", "any.ckpt")


def test_check_needs_one_process(toy):
    folder = toy.folder / "out"
    assert wait(start(2, pysimt_sac("train", "-C", toy.config, "--check"), folder)) == [0, 0]
    assert "nothing was written" in (folder / "0.err").read_text()
    assert (folder / "1.err").read_text() == ""
