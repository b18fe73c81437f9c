"""Text, vocabularies, checkpoints and folders that training cannot use: one line, exit status 2, nothing written."""

import json
import os
import pickle
from pathlib import Path

import pytest
import torch

from pysimt_sac.core.errors import UserError
from pysimt_sac.hosts.engine.checkpoint import find_checkpoint

BYTES = [
    (b"\xef\xbb\xbf", b"", "begins with a byte-order mark"),
    (b"", b"x\0y\n", "has a NUL byte"),
    (b"", b"x\r\n", "has a carriage return"),
    (b"", b"caf\xe9\n", "is not valid UTF-8"),
    (b"", b"\xff\xfe\n", "is not valid UTF-8"),
]


@pytest.mark.parametrize("name", ["config", "src", "val_trg", "src_vocab"])
@pytest.mark.parametrize(("before", "after", "pattern"), BYTES, ids=[case[2] for case in BYTES])
def test_files_with_bytes_that_are_no_text_are_refused(toy, refused, name, before, after, pattern):
    path = getattr(toy, name)
    path.write_bytes(before + path.read_bytes() + after)
    refused(f"{path.name}.*{pattern}")


@pytest.mark.parametrize("name", ["config", "src", "trg", "val_src", "val_trg", "src_vocab", "trg_vocab"])
def test_missing_files_and_folders_in_their_place_are_refused(toy, refused, name):
    path = getattr(toy, name)
    path.unlink()
    refused(f"{path.name}: no such")
    path.mkdir()
    refused(f"{path.name}: is a folder")


TEXTS = [
    (lambda lines: [], "is empty"),
    (lambda lines: ["one two", " \t ", *lines[2:]], "1 of 200 lines are empty, the first is line 2 .remove them"),
    (lambda lines: lines[:-3], "unequal numbers of lines: .*train.* has .*, .* has "),
    (lambda lines: [*lines, "one"], "unequal numbers of lines"),
    (lambda lines: ["one " * 100_000, *lines[1:]], "line 1 has 100000 words"),
]


@pytest.mark.parametrize("name", ["src", "trg"])
@pytest.mark.parametrize(("change", "pattern"), TEXTS, ids=[case[1] for case in TEXTS])
def test_unusable_training_texts_are_refused(toy, refused, name, change, pattern):
    path = getattr(toy, name)
    path.write_text("".join(f"{line}\n" for line in change(path.read_text().splitlines())))
    refused(pattern)


def test_sides_of_unequal_length_are_named_with_their_numbers(toy, refused):
    toy.val_trg.write_text("ONE\n" * 11)
    refused(f"{toy.val_src} has 12, {toy.val_trg} has 11")


def test_references_of_another_length_than_the_source_are_refused(toy, refused):
    (toy.folder / "ref.0").write_text("ONE\n" * 12)
    (toy.folder / "ref.1").write_text("ONE\n" * 13)
    refused("ref.1: has 13 lines, the source has 12", f"data.val_set.trg:{toy.folder}/ref.*")


def test_a_corpus_without_a_short_enough_sentence_is_refused(refused):
    refused("all sentences are longer than max_len = 2", "model.max_len:2", "model.bucket_by:src")


SPECIAL = {"<pad>": "0 0", "<bos>": "1 0", "<eos>": "2 0", "<unk>": "3 0"}
VOCABULARIES = [
    ("", "is not JSON"),
    ("{", "is not JSON"),
    ("[" * 100_000, "is not JSON"),
    ('{"a": ' + "9" * 5000 + "}", "is not JSON"),
    ("5", "is not a JSON object of words"),
    ("[1, 2]", "is not a JSON object of words"),
    ('[["<pad>", "0 0"]]', "is not a JSON object of words"),
    ("{}", "<pad> must have index 0; this vocabulary lacks it"),
    (json.dumps({"a": "0 1", "b": "1 1"}), "<pad> must have index 0; this vocabulary lacks it"),
    (json.dumps({**SPECIAL, "<eos>": "4 0", "a": "2 1"}), "<eos> must have index 2; this vocabulary has it at 4"),
    (json.dumps({**SPECIAL, "a": "5 1"}), "no word has index 4"),
    (json.dumps({**SPECIAL, "a": "-1 1"}), "no word has index 4"),
    (json.dumps({**SPECIAL, "a": "4 1", "b": "4 1"}), "'b' and 'a' have the same index 4"),
    (json.dumps(SPECIAL)[:-1] + ', "a": "4 1", "a": "5 1"}', "'a' occurs twice"),
    (json.dumps({**SPECIAL, "a": 4}), "entry 'a' is 4, not \"index count\""),
    (json.dumps({**SPECIAL, "a": "4"}), "entry 'a' is '4'"),
    (json.dumps({**SPECIAL, "a": "four 1"}), "entry 'a' is 'four 1'"),
    (json.dumps({**SPECIAL, "a": None}), "entry 'a' is None"),
    (json.dumps({**SPECIAL, "a": "4 " + "9" * 400}), "entry 'a' is '4 99"),
    (json.dumps({**SPECIAL, "a\nb": "4 1"}), ".*cannot be one word of a line of text"),
    (json.dumps({**SPECIAL, "a b": "4 1"}), ".*cannot be one word of a line of text"),
    (json.dumps({**SPECIAL, "\x1b[2J": "4 1"}), ".*cannot be one word of a line of text"),
    (json.dumps({**SPECIAL, "": "4 1"}), ".*cannot be one word of a line of text"),
    (json.dumps({**SPECIAL, "\ud800": "4 1"}), "is not JSON: .*surrogates not allowed"),
]


@pytest.mark.parametrize(("text", "pattern"), VOCABULARIES, ids=[case[0][:40] for case in VOCABULARIES])
def test_unusable_vocabularies_are_refused(toy, refused, text, pattern):
    toy.trg_vocab.write_text(text)
    refused(f"vocab.trg: {pattern}")


def test_embeddings_tied_three_ways_need_one_vocabulary(toy, refused):
    toy.trg_vocab.write_text(json.dumps({**SPECIAL, "ONE": "4 1"}))
    refused("3way needs one vocabulary for both sides; these have 16 and 5 words", "model.tied_emb:3way")


def test_as_many_words_are_not_the_same_words(toy, refused):
    refused("these have 16 and 16 words, and not the same", "model.tied_emb:3way")


# Where nothing can be written


def test_a_file_in_place_of_an_output_folder_is_refused(toy, refused):
    (toy.folder / "runs").write_text("mine")
    refused("runs/toy: cannot create this folder: not a directory")
    (toy.folder / "runs").unlink()
    (toy.folder / "runs").mkdir()
    toy.run_folder.write_text("mine")
    refused("runs/toy: cannot create this folder: file exists")
    refused(
        "tb.*cannot create this folder",
        f"train.tensorboard_dir:{toy.config}/tb",
        "train.save_path:" + str(toy.folder / "b"),
    )


def test_a_read_only_folder_is_refused(toy, refused, monkeypatch):
    """Permissions do not stop an administrator, who may well run the tests: the system's answer is imitated."""
    toy.run_folder.mkdir(parents=True)
    real = os.open

    def read_only(path, flags, *args, **kwargs):
        if str(path).startswith(str(toy.run_folder)) and flags & os.O_RDWR:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, flags, *args, **kwargs)

    monkeypatch.setattr("os.open", read_only)
    refused("runs/toy/.lock: cannot be written: permission denied")


# Pre-trained weights


class Hostile:
    """Creates a file when it is unpickled without care."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture
def checkpoint(trained_toy):
    """A checkpoint's content; its sizes are the toy's."""
    return torch.load(trained_toy.final_checkpoint, weights_only=True)


def without(content, key):
    return {name: value for name, value in content.items() if name != key}


CHECKPOINTS = [
    (lambda c: 5, "is not a checkpoint of pysimt"),
    (lambda c: {}, "is not a checkpoint of pysimt"),
    (lambda c: [c], "is not a checkpoint of pysimt"),
    (lambda c: torch.zeros(3), "is not a checkpoint of pysimt"),
    (lambda c: c["model"], "is not a checkpoint of pysimt"),
    (lambda c: without(c, "opts"), "is not a checkpoint of pysimt"),
    (lambda c: {**c, "model": {}}, "is not a checkpoint of pysimt"),
    (lambda c: {**c, "model": {"a": 5}}, "its weights are not tensors"),
    (lambda c: {**c, "model": {5: torch.zeros(1)}}, "its weights are not tensors"),
    (lambda c: {**c, "model": {"a": torch.zeros(2, 2).to_sparse()}}, "its weights are not tensors"),
    (lambda c: {**c, "model": {"a": torch.zeros(2, device="meta")}}, "its weights are not tensors|damaged"),
    (lambda c: {**c, "opts": {}}, "its options are incomplete"),
    (lambda c: {**c, "opts": {**c["opts"], "sections": [["x"]]}}, "its options are incomplete"),
    (lambda c: {**c, "opts": {**c["opts"], "train": 5}}, "its options are incomplete"),
    (lambda c: {**c, "vocabularies": torch.zeros(2)}, "its vocabularies are damaged"),
    (lambda c: {**c, "vocabularies": 5}, "its vocabularies are damaged"),
    (lambda c: {**c, "vocabularies": {"src": 5}}, "its vocabularies are damaged"),
    (lambda c: {**c, "vocabularies": {"src": {"tokens": [5], "counts": [1]}}}, "its vocabularies are damaged"),
    (lambda c: {**c, "vocabularies": {"src": {"tokens": ["a"], "counts": [1]}}}, "<pad> must have index 0"),
    (
        lambda c: {**c, "model": {**c["model"], "dec.emb.weight": torch.zeros(7, 8)}},
        r"dec.emb.weight has a different size: \(7, 8\) in the file, \(16, 8\) in the model",
    ),
    (lambda c: {**c, "model": {**c["model"], "dec.emb.weight": torch.full((16, 8), torch.nan)}}, "not finite numbers"),
    (lambda c: {**c, "model": {"other.weight": torch.zeros(1)}}, "lacks the weights dec"),
]


@pytest.mark.parametrize(
    ("change", "pattern"), CHECKPOINTS, ids=[f"{i}-{c[1][:30]}" for i, c in enumerate(CHECKPOINTS)]
)
def test_unusable_pretrained_files_are_refused(toy, refused, checkpoint, change, pattern):
    path = toy.folder / "pretrained.ckpt"
    torch.save(change(checkpoint), path)
    refused(f"pretrained.ckpt.*({pattern})", f"train.pretrained_file:{path}")


def test_pretrained_layers_must_exist(toy, refused, checkpoint):
    path = toy.folder / "pretrained.ckpt"
    torch.save(checkpoint, path)
    words = [f"train.pretrained_file:{path}", "train.pretrained_layers:decoder"]
    refused("no weight begins with 'decoder'", *words)


@pytest.mark.parametrize("way", ["torch", "legacy", "pickle"])
def test_hostile_files_run_nothing(toy, refused, checkpoint, way):
    path, trace = toy.folder / "pretrained.ckpt", toy.folder / "executed"
    content = {**checkpoint, "history": Hostile(trace)}
    if way == "pickle":
        path.write_bytes(pickle.dumps(content))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=way == "torch")
    refused("is not a checkpoint, or is damaged: it holds objects", f"train.pretrained_file:{path}")
    assert not trace.exists()
    pickle.loads(pickle.dumps(Hostile(trace)))
    assert trace.exists()  # it would have


def test_a_link_whose_checkpoint_is_deleted_is_not_taken(tmp_path):
    (tmp_path / "x.best.bleu.ckpt").symlink_to(tmp_path / "deleted.ckpt")
    with pytest.raises(UserError, match="holds no best checkpoint by bleu"):
        find_checkpoint(tmp_path, "bleu")
