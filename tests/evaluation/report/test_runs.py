"""What is found in run folders."""

import json

import pytest

from pysimt_sac.core.errors import UserError
from pysimt_sac.evaluation.report.runs import find_outputs, read_curves, read_run


def touch(folder, *names):
    for name in names:
        (folder / name).write_text("x\n")


def test_translations_are_found_by_name(tmp_path):
    touch(
        tmp_path, "out.test.beam6", "out.test.beam6.raw", "out.test.gs", "x.y.test_ood.gs.raw", "m.log", "m-final.ckpt"
    )
    found = find_outputs(tmp_path)
    assert {split: path.name for split, path in found.items()} == {
        "test": "out.test.beam6",  # beam search rather than greedy, joined rather than raw
        "test_ood": "x.y.test_ood.gs.raw",
    }
    assert find_outputs(tmp_path, "gs")["test"].name == "out.test.gs"


def test_one_of_several_translations_must_be_chosen(tmp_path):
    touch(tmp_path, "out.test.beam6", "out.test.beam12")
    with pytest.raises(UserError, match=r"several translations of 'test': out.test.beam12, out.test.beam6.*--search"):
        find_outputs(tmp_path)
    assert find_outputs(tmp_path, "beam12")["test"].name == "out.test.beam12"


def test_curves(tmp_path):
    points = [("a", 1, 0.5), ("b", 1, 3), ("a", 2, None), ("a", 3, 0.25)]
    lines = [json.dumps({"step": step, "name": name, "value": value}) for name, step, value in points]
    path = tmp_path / "run.scalars.jsonl"
    path.write_text("\n".join([*lines, '{"step": 4, "na']))
    assert read_curves(tmp_path, "run") == {"a": ((1, 0.5), (3, 0.25)), "b": ((1, 3),)}
    assert read_curves(tmp_path, "other") == {}
    path.write_text("\n".join(["nonsense", *lines]))
    with pytest.raises(UserError, match="line 1: is not JSON"):
        read_curves(tmp_path, "run")


def test_a_folder_without_a_checkpoint_is_rejected(tmp_path):
    with pytest.raises(UserError, match="no such run folder"):
        read_run(tmp_path / "nowhere")
    with pytest.raises(UserError, match="holds no checkpoint"):
        read_run(tmp_path)
