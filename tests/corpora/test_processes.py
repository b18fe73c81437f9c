"""Work spread over processes comes back in order, without being read ahead."""

from pysimt_sac.corpora.processes import Workers, in_chunks, rewrite_file


def shout(lines):
    return [line.upper() for line in lines]


def test_chunks_hold_all_lines():
    assert list(in_chunks(["a", "b", "c"], size=2)) == [["a", "b"], ["c"]]
    assert list(in_chunks([])) == []


def test_results_are_in_order_and_items_are_taken_when_needed():
    taken = []

    def items():
        for number in range(100):
            taken.append(number)
            yield -number

    with Workers(2) as workers:
        results = workers.map(abs, items())
        assert next(results) == 0
        assert len(taken) < 10
        assert list(results) == list(range(1, 100))


def test_a_file_is_rewritten(tmp_path):
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_text("".join(f"line {number}\n" for number in range(2500)))
    rewrite_file(source, target, shout)
    assert target.read_text() == source.read_text().upper()
