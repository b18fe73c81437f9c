"""Plain text on both hosts: pysimt's loop stores how text was prepared, and either host translates with it."""

from pysimt_sac.hosts.engine.checkpoint import load_checkpoint
from tests.hosts.pysimt.hosts import NEEDS_PYSIMT, pysimt_command
from tests.plain_corpus import SENTENCES

pytestmark = NEEDS_PYSIMT


def test_a_checkpoint_of_pysimts_loop_translates_plain_text_on_both_hosts(plain_corpus, tmp_path):
    words = ["-d", "cpu", "-C", plain_corpus.config, f"train.save_path:{tmp_path}", "train.max_epochs:3"]
    pysimt_command("pysimt", "train", *words)
    (checkpoint,) = (tmp_path / "plain").glob("*.best.bleu.ckpt")
    assert load_checkpoint(checkpoint).preparation == load_checkpoint(plain_corpus.checkpoint).preparation
    text = "".join(f"{line}\n" for line in ["", *SENTENCES["en"]])
    outputs = [
        pysimt_command(host, "translate", "-d", "cpu", "--raw", path, "-m", "20", stdin=text)
        for path in (checkpoint, plain_corpus.checkpoint)
        for host in ("pysimt", "embedded")
    ]
    assert outputs[0] == outputs[1]
    assert outputs[2] == outputs[3]
    assert [output.count("\n") for output in outputs] == [6] * 4
    source = tmp_path / "x.en"
    source.write_text(text)
    pysimt_command(
        "pysimt", "translate", "-d", "cpu", "--raw", checkpoint, "-m", "20",
        "-s", "x", "-S", f"src:{source}", "-o", tmp_path / "out",
    )  # fmt: skip
    assert (tmp_path / "out.x.gs").read_text() == outputs[0]
