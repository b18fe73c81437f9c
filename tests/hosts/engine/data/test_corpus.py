"""Text becomes batches: nothing lost, nothing doubled, little padding, the same again for the same seed."""

import itertools
import subprocess

import numpy as np
import pytest
import torch

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.vocabulary import BOS, EOS, PAD, UNK
from pysimt_sac.hosts.engine.data.corpus import ParallelCorpus, Text, cut_by_tokens, find_files, read_sentences
from tests.hosts.engine.tiny import tiny_sentences, tiny_vocabulary


def corpus(n=200, **options):
    vocab = tiny_vocabulary(5)
    sides = {
        "src": Text(tiny_sentences(n, longest=12), vocab, is_target=False),
        "trg": Text(tiny_sentences(n, seed=1, longest=12), vocab, is_target=True),
    }
    return ParallelCorpus(sides, options.pop("batch_size", 16), **options)


def test_words_become_indices_between_special_tokens():
    text = Text(["w0 w4 nowhere <pad> <eos>", "w1"], tiny_vocabulary(5), is_target=True)
    assert text.pad([0, 1]).t().tolist() == [[BOS, 4, 8, UNK, UNK, UNK, EOS], [BOS, 5, EOS, PAD, PAD, PAD, PAD]]


@pytest.mark.parametrize(
    "options", [{}, {"bucket_by": "src"}, {"bucket_by": "trg"}, {"bucket_by": "src", "sampler_type": "approximate"}]
)
def test_an_epoch_visits_every_sentence_once(options):
    training = corpus(training=True, **options)
    for epoch in (1, 2):
        visited = np.concatenate(training.batches(epoch))
        assert sorted(visited) == list(range(200))


@pytest.mark.parametrize(
    "options", [{}, {"bucket_by": "src"}, {"bucket_by": "trg", "sampler_type": "approximate"}], ids=str
)
def test_batches_by_target_words_are_full_and_not_too_full(options):
    """Every sentence once; with the next sentence of its bucket a batch would be too large."""
    training = corpus(training=True, batch_tokens=50, batch_size=1, bucket_order="ascending", **options)
    lengths = training.sides["trg"].lengths - 1
    for epoch in (1, 2):
        batches = training.batches(epoch)
        assert sorted(np.concatenate(batches)) == list(range(200))
        assert all(len(batch) * lengths[batch].max() <= 50 for batch in batches)
        for batch, after in itertools.pairwise(batches):
            same_bucket = (
                options.get("bucket_by") != "src"
                or training.bucket_lengths[batch[0]] == training.bucket_lengths[after[0]]
            )
            grown = np.append(batch, after[0])
            assert not same_bucket or len(grown) * lengths[grown].max() > 50


def test_a_sentence_beyond_the_limit_is_a_batch_of_its_own():
    order, lengths = np.array([3, 1, 0, 2]), np.array([2, 9, 2, 3])
    assert [batch.tolist() for batch in cut_by_tokens(order, lengths, 6)] == [[3], [1], [0, 2]]
    assert [batch.tolist() for batch in cut_by_tokens(order, lengths, 1)] == [[3], [1], [0], [2]]


@pytest.mark.parametrize("batch_tokens", [0, 40])
def test_epochs_differ_and_seeds_repeat_them(batch_tokens):
    options = {"training": True, "bucket_by": "src", "batch_tokens": batch_tokens}
    first, again, other = (corpus(**options, seed=seed) for seed in (1, 1, 2))
    order = [batch.tolist() for batch in first.batches(3)]
    assert order == [batch.tolist() for batch in again.batches(3)]
    assert order != [batch.tolist() for batch in first.batches(4)]
    assert order != [batch.tolist() for batch in other.batches(3)]


def test_buckets_have_one_source_length_and_similar_target_lengths():
    training = corpus(2000, training=True, bucket_by="src")
    padding = words = 0
    for batch in training.batches(1):
        assert len(set(training.bucket_lengths[batch])) == 1
        lengths = training.tie_lengths[batch]
        padding += (lengths.max() - lengths).sum()
        words += lengths.sum()
    assert padding / words < 0.1


def test_batches_can_be_ordered_by_length():
    up = corpus(training=True, bucket_by="src", bucket_order="ascending")
    assert [up.bucket_lengths[batch[0]] for batch in up.batches()] == sorted(
        up.bucket_lengths[batch[0]] for batch in up.batches()
    )
    down = corpus(training=True, bucket_by="src", bucket_order="descending")
    assert [down.bucket_lengths[b[0]] for b in down.batches()] == sorted(
        (down.bucket_lengths[b[0]] for b in down.batches()), reverse=True
    )


def test_long_sentences_are_left_out_of_training_only():
    assert 0 < len(corpus(training=True, bucket_by="src", max_len=5)) < 200
    assert len(corpus(bucket_by="src", max_len=5)) == 200
    with pytest.raises(UserError, match="max_len = 1"):
        corpus(training=True, bucket_by="src", max_len=1)


@pytest.mark.filterwarnings("ignore:This DataLoader will create")  # on a machine with a single core
@pytest.mark.parametrize("num_workers", [0, 2])
def test_loading_leaves_the_runs_random_state_alone_and_may_start_anywhere(num_workers):
    training = corpus(training=True, bucket_by="src")
    before = torch.get_rng_state()
    whole = [batch["src"] for batch in training.loader(2, num_workers=num_workers)]
    rest = [batch["src"] for batch in training.loader(2, start=5, num_workers=num_workers)]
    assert torch.equal(before, torch.get_rng_state())
    assert len(rest) == len(whole) - 5
    assert all(torch.equal(one, other) for one, other in zip(whole[5:], rest, strict=True))


def test_batches_know_their_lengths_on_the_host():
    batch = next(corpus(training=True, bucket_by="src").loader())
    assert torch.equal(batch.lengths["trg"], batch["trg"].ne(PAD).sum(0))
    assert batch.size == batch["src"].size(1)


def test_patterns_find_files_in_order(tmp_path):
    for name in ("ref.b", "ref.a", "other"):
        (tmp_path / name).write_text("x\n")
    assert [path.name for path in find_files(tmp_path / "ref.*")] == ["ref.a", "ref.b"]
    with pytest.raises(UserError, match="no file matches"):
        find_files(tmp_path / "none.*")


def test_the_command_against_empty_lines_keeps_the_sides_parallel(tmp_path):
    (tmp_path / "a.en").write_text("one two\n\nthree\tx\n \t\nfive\n")
    (tmp_path / "a.de").write_text("eins\nzwei\n\ndrei\nfünf\n")
    with pytest.raises(UserError, match="2 of 5 lines are empty, the first is line 2") as caught:
        read_sentences(tmp_path / "a.en")
    command = caught.value.hint.partition(": ")[2].replace("OTHER_SIDE", str(tmp_path / "a.de"))
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    assert [(tmp_path / f"side.{n}").read_text() for n in (1, 2)] == ["one two\nfive\n", "eins\nfünf\n"]
