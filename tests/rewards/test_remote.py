"""Rewards from another process or a server: right numbers, in batches, once each; and every way to fail."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.filters import FilterChain
from pysimt_sac.core.options import read_section
from pysimt_sac.rewards import Rewarder, SourceTexts, Translations
from pysimt_sac.rewards.remote import Example, RemoteOptions, Worker

ROOT = Path(__file__).parents[2]
LENGTHS = """
import json, sys
for line in sys.stdin:
    if line.strip():
        pair = json.loads(line)
        print(len(pair["hypothesis"].split()) / len(pair["reference"].split()), flush=True)
"""
PAIRS = [Example(f"s{number}", "a " * number + "b", "c d") for number in range(5)]
EXPECTED = [(number + 1) / 2 for number in range(5)]


def worker(folder, code, **options):
    """A worker whose program is given, or its options."""
    path = Path(folder) / "worker.py"
    path.write_text(code)
    return Worker(RemoteOptions(remote_worker=f"{sys.executable} -S {path}", **{"remote_timeout": 30.0, **options}))


def stop(made):
    made.ask.stop()


def test_scores_come_in_order_and_each_translation_is_sent_once(tmp_path):
    made = worker(tmp_path, LENGTHS.replace("print(", f"open({str(tmp_path / 'seen')!r}, 'a').write('x'); print("))
    assert made.scores([*PAIRS, *PAIRS]) == EXPECTED * 2
    process = made.ask.process
    assert made.scores(PAIRS[::-1]) == EXPECTED[::-1]
    assert (tmp_path / "seen").read_text() == "x" * 5
    assert made.ask.process is process
    assert process.poll() is None
    stop(made)


def test_the_cache_has_a_limit_and_forgets_what_was_not_asked_for_longest(tmp_path):
    made = worker(tmp_path, LENGTHS, remote_cache=2, remote_batch=2)
    assert made.scores(PAIRS) == EXPECTED
    assert list(made.cache) == PAIRS[3:]
    made.scores([PAIRS[3], PAIRS[0]])
    assert list(made.cache) == [PAIRS[3], PAIRS[0]]
    stop(made)


def test_a_worker_that_dies_is_started_again(tmp_path):
    once = f"""
import os
if not os.path.exists({str(tmp_path / "died")!r}):
    open({str(tmp_path / "died")!r}, "w").close()
    sys.exit(1)
"""
    made = worker(tmp_path, LENGTHS.replace("for line", once + "for line", 1))
    assert made.scores(PAIRS) == EXPECTED
    assert (tmp_path / "died").exists()
    stop(made)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; sys.exit('no model here')", "died twice on the same batch, with status 1: no model here"),
        ("import sys\nfor line in sys.stdin: print('well', flush=True)", "'well', which is not a finite number"),
        ("import sys\nfor line in sys.stdin: print('nan', flush=True)", "'nan', which is not a finite number"),
        ("import time\ntime.sleep(100)", "wrote 0 of 5 numbers, and then nothing for 0.5 s"),
        (
            "import sys\nsys.stdin.readline()\nprint(1, flush=True)\nsys.stdin.read()",
            "wrote 1 of 5 numbers, and then nothing",
        ),
    ],
    ids=["dies", "nonsense", "not finite", "hangs", "too few"],
)
def test_failures_are_one_line_that_says_what_happened(code, message, tmp_path):
    made = worker(tmp_path, code, remote_timeout=0.5 if "nothing" in message else 30.0)
    with pytest.raises(UserError, match=message):
        made.scores(PAIRS)
    stop(made)


def test_a_worker_that_does_not_read_is_not_waited_for(tmp_path):
    made = worker(tmp_path, "import time\ntime.sleep(100)", remote_timeout=0.5, remote_batch=1000)
    with pytest.raises(UserError, match="wrote 0 of 1000 numbers, and then nothing"):
        made.scores([Example(f"s{number}", "a " * 100, "c d") for number in range(1000)])  # more than a pipe holds


def test_too_many_numbers_are_noticed_with_the_next_batch(tmp_path):
    made = worker(tmp_path, LENGTHS.replace("print(", "print(0, flush=True); print("))
    made.scores(PAIRS[:1])
    made.ask.answers.put("0.5")  # in case that the second number is not there yet
    with pytest.raises(UserError, match="more lines than it was asked for"):
        made.scores(PAIRS[1:])


def test_a_command_that_does_not_exist_and_none_at_all():
    with pytest.raises(UserError, match="cannot be started"):
        Worker(RemoteOptions(remote_worker="/no/such/program")).scores(PAIRS)
    with pytest.raises(UserError, match="is missing"):
        Worker(RemoteOptions())


class Handler(BaseHTTPRequestHandler):
    part = "pairs"
    answer = staticmethod(lambda pairs: {"scores": [len(pair["hypothesis"].split()) / 2 for pair in pairs]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(self.answer(body[self.part] if self.part else body)).encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    made = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{made.server_port}"
    made.shutdown()
    thread.join()
    made.server_close()


def test_a_server_scores(server, monkeypatch):
    made = Worker(RemoteOptions(remote_worker=server, remote_timeout=30.0))
    assert made.scores(PAIRS) == EXPECTED
    monkeypatch.setattr(Handler, "answer", staticmethod(lambda pairs: {"scores": [1.0]}))
    with pytest.raises(UserError, match="answered 1 scores for 2 translations"):
        made.scores([Example("x", "y", "z"), Example("x", "z", "z")])


def test_the_judge_asks_a_language_model_and_divides_by_a_hundred(server, monkeypatch):
    asked = []

    def answer(body):
        asked.append(body["messages"][0]["content"])
        return {"choices": [{"message": {"content": f"Rating: {len(asked)}0"}}]}

    monkeypatch.setattr(Handler, "answer", staticmethod(answer))
    monkeypatch.setattr(Handler, "part", None)
    judge = ROOT / "experiments/workers/judge.py"
    command = f"{sys.executable} {judge} --url {server} --model any --at-once 1"
    made = Worker(RemoteOptions(remote_worker=command, remote_timeout=120.0))
    assert made.scores(PAIRS[1:3]) == [0.1, 0.2]
    assert "Source: s1" in asked[0]
    assert "Translation: a b" in asked[0]
    stop(made)


def test_a_server_that_is_not_there():
    with pytest.raises(UserError, match="does not answer"):
        Worker(RemoteOptions(remote_worker="http://127.0.0.1:9", remote_timeout=5.0)).scores(PAIRS)


TOKENS = ["<pad>", "<bos>", "<eos>", "<unk>", "so@@", "on", "da", "hier"]


def translations():
    import torch

    source = SourceTexts(torch.tensor([[4, 6], [5, 2], [2, 0]]), TOKENS)
    sampled = torch.tensor([[1, 1], [4, 6], [5, 7], [2, 2]])
    return Translations.from_ids(sampled, torch.tensor([[1, 1], [6, 6], [7, 2], [2, 0]]), TOKENS, source=source)


def rewarder(folder, **options):
    made = worker(folder, LENGTHS).options.remote_worker
    values = {"reward": "remote:2,gleu:1", "remote_worker": made, "reward_scale": 1.0, **options}
    return Rewarder(lambda cls: read_section(cls, values, "[model]"), FilterChain(["de-bpe"]))


def test_in_a_mixture_the_worker_gets_words_and_pays_at_the_end(tmp_path):
    mixture = rewarder(tmp_path)
    found = mixture(translations())
    assert found.parts["remote"].tolist() == [1 / 2, 2 / 1]  # `soon` for `da hier`, `da hier` for `da`
    examples = list(mixture.parts["remote"].worker.cache)
    assert examples == [Example("soon", "soon", "da hier"), Example("da", "da hier", "da")]
    alone = rewarder(tmp_path, reward="gleu")(translations())
    gain_TB = found.potentials_TB - alone.potentials_TB
    assert gain_TB[-1].tolist() == pytest.approx([1.0, 4.0])
    assert not gain_TB[:-1].any()
    stop(mixture.parts["remote"].worker)


def test_next_words_earn_something_only_if_they_end_the_translation(tmp_path):
    mixture = rewarder(tmp_path, reward="remote")
    candidates_TBK = np.array([[[2, 6], [2, 6]], [[5, 2], [7, 2]], [[2, 6], [2, 0]]])
    found = mixture.next_rewards(translations(), candidates_TBK, np.array([3, 9]))
    assert found[..., 0].tolist() == [[0.0, 0.0], [0.0, 0.0], [0.5, 2.0]]
    assert found[0, :, 1].tolist() == [0.0, 0.0]
    assert found[1, :, 1].tolist() == [0.5, 1.0]  # `so` is left of the first one
    assert found[2, 0, 1] == 1.0  # truncated: `soon da`
    stop(mixture.parts["remote"].worker)


def test_score_and_compare_take_workers_as_metrics(tmp_path, capsys):
    from pysimt_sac.cli import main_sac

    texts = {"ref": "a b\na b\nc d\n", "src": "x\ny\nz\n", "one": "a b\na b\nc d\n", "two": "a\na b c\nd\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    seen = tmp_path / "seen"
    (tmp_path / "worker.py").write_text(LENGTHS.replace("print(", f"open({str(seen)!r}, 'a').write(line); print("))
    words = ["--worker", f"length by it={sys.executable} -S {tmp_path}/worker.py", "--metrics", "bleu"]
    files = {name: str(tmp_path / name) for name in texts}
    common = ["--ref", files["ref"], "--src", files["src"], *words, "--format", "json"]
    assert main_sac(["score", files["one"], files["two"], *common]) == 0
    found = json.loads(capsys.readouterr().out)["hypotheses"]
    scores = [text["scores"][1] for text in found]
    assert [(score["metric"], score["value"]) for score in scores] == [
        ("length by it", 100.0),
        ("length by it", pytest.approx(100 * (0.5 + 1.5 + 0.5) / 3)),
    ]
    pairs = [json.loads(line) for line in seen.read_text().splitlines()]
    assert {pair["source"] for pair in pairs if pair["reference"] == "a b"} == {"x", "y"}
    systems = ["--baseline", files["one"], "--system", "B", files["two"], "--shuffles", "50", "--bootstrap", "50"]
    assert main_sac(["compare", *systems, *common]) == 0
    assert "length by it" in capsys.readouterr().out
    assert main_sac(["score", files["one"], "--ref", files["ref"], *words]) == 2
    assert "needs the source text" in capsys.readouterr().err
