"""Files are rewritten line by line, in order, whatever the number of processes."""

import gzip
from functools import partial

import pytest

from pysimt_sac.core import files
from pysimt_sac.core.errors import UserError
from pysimt_sac.corpora.text_files import map_in_processes, rewrite_file, scan_text
from pysimt_sac.text.plain_text import tokenise_lines
from pysimt_sac.text.preparation import SidePreparation


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_file_of_several_chunks_is_rewritten_in_order(tmp_path, jobs):
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_text("".join(f"LINE {number}\n" for number in range(2500)))
    with map_in_processes(jobs) as map_chunks:
        rewrite_file(source, target, partial(tokenise_lines, SidePreparation("en", ("lowercase",))), map_chunks)
    assert target.read_text() == source.read_text().lower()


def test_a_line_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    """A few megabytes of a compressed file can be gigabytes of one line."""
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"short\n" + b"a" * (1 << 20) + b"\n" + b"a" * (1 << 21)))
    with pytest.raises(UserError, match=r"bomb.gz: line 2 is longer than 1 MB"):
        scan_text(path)
