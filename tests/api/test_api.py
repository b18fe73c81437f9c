"""The Python API: typed, lazy, and in agreement with the command line."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import pysimt_sac
from pysimt_sac import UserError
from pysimt_sac.core.files import read_lines
from pysimt_sac.hosts.engine.checkpoint import load_checkpoint
from tests.plain_corpus import SENTENCES


@pytest.fixture(scope="module")
def model(plain_corpus):
    return pysimt_sac.load(plain_corpus.run, device="cpu")


def test_importing_the_package_imports_nothing_heavy():
    script = "import sys, pysimt_sac; dir(pysimt_sac); assert not {'torch', 'numpy', 'sacrebleu'} & set(sys.modules)\n"
    script += "pysimt_sac.bleu(['a'], ['a']); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_all_public_names_exist_and_others_do_not():
    for name in pysimt_sac.__all__:
        assert getattr(pysimt_sac, name).__doc__
        assert name in dir(pysimt_sac)
    with pytest.raises(AttributeError, match="has no attribute 'tarin'"):
        _ = pysimt_sac.tarin


def test_the_package_is_typed():
    """mypy checks the package itself; programs that use it see its types if it says so."""
    assert (Path(pysimt_sac.__file__).parent / "py.typed").is_file()
    for function in (pysimt_sac.load, pysimt_sac.train, pysimt_sac.bleu, pysimt_sac.compare, pysimt_sac.lexical):
        assert "return" in function.__annotations__
    assert pysimt_sac.load.__annotations__["return"] in ("Model", pysimt_sac.Model)


# Translating


@pytest.mark.parametrize(
    ("search", "words"), [({}, []), ({"beam": 2}, ["-f", "bs", "-k", "2"]), ({"beam": 6}, ["-f", "bs"])]
)
@pytest.mark.parametrize("raw", [True, False])
def test_translations_are_those_of_the_command_line(plain_corpus, model, pysimt, tmp_path, search, words, raw):
    """Also without any options: both have the same default search."""
    source = plain_corpus.raw / "val.en" if raw else plain_corpus.data / "val.lc.norm.tok.en"
    words = [*words, "-s", "x", "-S", f"src:{source}", "-o", tmp_path / "out", *(["--raw"] if raw else [])]
    assert pysimt("translate", plain_corpus.run, *words, "-m", 30).status == 0
    (found,) = tmp_path.glob("out.x.*[!w]")
    assert model.translate(read_lines(source), **search, raw=raw, max_len=30) == read_lines(found)


def test_plain_text_is_translated_in_its_order_and_empty_stays_empty(model):
    texts = ["", *SENTENCES["en"], "  ", "\0\r\n\u2028", SENTENCES["en"][0]]
    german = [line.lower() for line in SENTENCES["de"]]
    assert model.translate(texts) == ["", *german, "", "", german[0]]
    assert model.translate([]) == []


def test_n_best_translations_are_those_of_the_command_line(model, plain_corpus, pysimt, tmp_path):
    found = model.translate(["", *SENTENCES["en"]], beam=4, n_best=3, max_len=30)
    assert [len(one) for one in found] == [0, 3, 3, 3, 3, 3]
    assert [one[0].text for one in found[1:]] == model.translate(SENTENCES["en"], beam=4, max_len=30)
    (tmp_path / "x.en").write_text("".join(f"{line}\n" for line in ["", *SENTENCES["en"]]))
    words = ["-s", "x", "-S", f"src:{tmp_path}/x.en", "-o", tmp_path / "out", "-f", "bs", "-k", 4, "-N", "-m", 30]
    assert pysimt("translate", "--raw", plain_corpus.run, *words).status == 0
    lines = [f"{number} ||| {one.text} ||| {one.score:.6f}" for number, several in enumerate(found) for one in several]
    theirs = read_lines(tmp_path / "out.x.beam4.nbest")
    assert set(lines) <= set(theirs)
    assert len(theirs) == 20


# Scoring


def test_scores_are_log_probabilities_computed_one_word_at_a_time(model):
    sources, targets = SENTENCES["en"][:3], [*SENTENCES["de"][1:3], ""]
    expected = [directly(model, *pair) for pair in zip(sources, targets, strict=True)]
    assert model.score(sources, targets) == pytest.approx(expected, abs=1e-4)
    assert model.score(sources, targets, batch_size=1) == pytest.approx(expected, abs=1e-4)
    prepared = model.plain.source.prepare(sources), model.plain.target.prepare(targets)
    assert model.score(*prepared, raw=False) == pytest.approx(expected, abs=1e-4)
    assert model.score([], []) == []


@torch.no_grad()
def directly(model, source, target):
    """The sum of log-softmax values, with the decoder stepped by hand in double precision."""
    network = model.network
    (words,) = model.plain.target.prepare([target])
    ids = network.trg_vocab.sent_to_idxs(words, explicit_bos=True)
    (line,) = model.plain.source.prepare([source])
    src = torch.tensor(network.src_vocab.sent_to_idxs(line)).unsqueeze(1)
    states = {"src": network.encoders["src"](src, torch.tensor([len(src)]))}
    total = 0.0
    for place in range(1, len(ids)):
        prefix = torch.tensor(ids[:place]).unsqueeze(1)
        readout = network.dec.readouts(states, prefix, torch.arange(place))
        logits = network.dec.out2prob(readout)[-1].double()
        total += float(logits[ids[place]] - logits.exp().sum().log())
    return total


def test_scores_agree_with_the_beams(model):
    """A hypothesis' score is its log-probability per unit; what search forbids has almost no probability here."""
    (found,) = model.translate(SENTENCES["en"][:1], beam=2, n_best=2)
    best = found[0]
    units = len(model.plain.target.prepare([best.text])[0].split())
    assert model.score(SENTENCES["en"][:1], [best.text])[0] / units == pytest.approx(best.score, abs=1e-3)


# Errors


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: model.translate("A man."), "texts: is one string, not a list of sentences"),
        (lambda model: model.translate(["a", 5]), "texts: number 2 is 5, not a sentence"),
        (lambda model: model.translate(["word " * 5001]), "texts: line 1 has 5001 words"),
        (lambda model: model.translate(["a"], beam=0), "beam: 0 must be at least 1"),
        (lambda model: model.translate(["a"], beam=10**6), "beam: 1000000 must be at most 1000"),
        (
            lambda model: model.translate(["a"], beam=6, n_best=7),
            "n_best: 7 must be at least 1, and at most",
        ),
        (lambda model: model.translate(["a"], lp_alpha=-1), "lp_alpha: -1.0 must be at least 0"),
        (lambda model: model.translate(["a"], batch_size=0), "batch_size: 0 must be at least 1"),
        (lambda model: model.score(["a"], ["b"], batch_size=0), "batch_size: 0 must be at least 1"),
        (lambda model: model.score(["a"], []), "sources, targets: 1 and 0"),
        (lambda model: pysimt_sac.load("nowhere.ckpt"), "nowhere.ckpt: no such checkpoint"),
        (lambda model: pysimt_sac.load(model.path, prepare="nowhere"), "nowhere: no such folder"),
        (lambda model: pysimt_sac.load(model.path, device="abacus"), "unknown device 'abacus'"),
        (lambda model: pysimt_sac.train("nowhere.conf"), "nowhere.conf: no such"),
        (lambda model: pysimt_sac.train("nowhere.conf", seed=1), "seed: 1 is not a dictionary of keys and values"),
        (lambda model: pysimt_sac.bleu("a", ["a"]), "hypotheses: is not a list of sentences"),
        (lambda model: pysimt_sac.bleu(["a"], ["a", "b"]), "hypotheses: has 1 lines, but references has 2"),
        (lambda model: pysimt_sac.bleu(["a"], ["a"], tokenize="13b"), "no tokeniser '13b'"),
        (lambda model: pysimt_sac.lexical({}, "x"), "systems: no hypotheses are given"),
    ],
)
def test_mistakes_are_user_errors_of_one_line(model, call, message):
    with pytest.raises(UserError) as caught:
        call(model)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_a_record_plain_text_is_an_error_and_prepared_text_is_not(plain_corpus, tmp_path):
    content = torch.load(plain_corpus.checkpoint, weights_only=True)
    del content["history"]["preparation"]
    torch.save(content, tmp_path / "old.ckpt")
    old = pysimt_sac.load(tmp_path / "old.ckpt", device="cpu")
    with pytest.raises(UserError, match="does not record how its text was prepared"):
        old.translate(["A man."])
    with pytest.raises(UserError, match="does not record how its text was prepared"):
        old.score(["A man."], ["Ein Mann."])
    assert old.translate(["a man ."], raw=False) != [""]
    given = pysimt_sac.load(tmp_path / "old.ckpt", prepare=plain_corpus.data, device="cpu")
    assert given.translate(SENTENCES["en"][:1]) == [SENTENCES["de"][0].lower()]


# Training


def test_training_is_that_of_the_command_line(toy, pysimt):
    run = pysimt_sac.train(toy.config, suffix="api", quiet=True, train={"seed": 7}, **{"model.emb_dim": 9})
    assert run.finished
    assert run.outcome == "2 epochs done"
    assert run.folder.name == "toy-api"
    assert pysimt("train", "-C", toy.config, "-s", "cli", "train.seed:7", "model.emb_dim:9").status == 0
    (theirs,) = (toy.folder / "runs/toy-cli").glob("*.best.bleu.ckpt")
    ours, theirs = load_checkpoint(run.checkpoint), load_checkpoint(theirs)
    assert all(torch.equal(weight, theirs.weights[name]) for name, weight in ours.weights.items())
    assert run.load(device="cpu").translate(["one two"], raw=False) != [""]
    again = pysimt_sac.train(toy.config, suffix="api", quiet=True, train={"seed": 7}, **{"model.emb_dim": 9})
    assert "is finished" in again.outcome
    assert again.finished
    with pytest.raises(UserError, match=r"another configuration was trained here; changed: train.seed: 7 -> 8"):
        pysimt_sac.train(toy.config, suffix="api", quiet=True, train={"seed": 8}, **{"model.emb_dim": 9})


def test_callbacks_receive_every_point_of_the_curves(toy):
    told = []
    run = pysimt_sac.train(toy.config, quiet=True, callbacks=[lambda *point: told.append(point)])
    assert {"train_LOSS", "lr", "val_BLEU", "val_LOSS"} <= set(run.curves)
    points = [(name, value, update) for name, found in run.curves.items() for update, value in found]
    assert sorted(points) == sorted(told)
    assert [update for update, _ in run.curves["val_BLEU"]] == [10, 20]
    assert all(math.isfinite(value) for _, value in run.curves["train_LOSS"])


def test_a_callback_can_stop_a_run_and_the_same_call_resumes_it(toy):
    whole = pysimt_sac.train(toy.config, suffix="whole", quiet=True)
    stopped = pysimt_sac.train(
        toy.config, suffix="parts", quiet=True, callbacks=[lambda name, value, update: update >= 4]
    )
    assert not stopped.finished
    assert stopped.outcome == "stopped by SIGINT"
    assert max(update for points in stopped.curves.values() for update, _ in points) == 4
    rest = pysimt_sac.train(toy.config, suffix="parts", quiet=True)
    assert rest.finished
    assert rest.exp_id == stopped.exp_id
    assert rest.curves == whole.curves
    assert load_checkpoint(rest.checkpoint).history == load_checkpoint(whole.checkpoint).history


def test_a_reward_that_exits_is_an_error_and_does_not_end_the_program(toy):
    path = toy.folder / "mine.py"
    reward = '@reward("leaver")\ndef leaver(translations):\n    raise SystemExit\n'
    path.write_text(f"from pysimt_sac.rewards import reward\n\n{reward}")
    changes = {"reward": "leaver", "reward_modules": str(path)}
    with pytest.raises(UserError, match=r"mine.py: line 5, `raise SystemExit"):
        pysimt_sac.train(toy.config, quiet=True, train={"model_type": "REINFORCENMT"}, model=changes)


# Evaluation


def test_scores_and_tests_are_those_of_the_command_line(tmp_path, capsys):
    from pysimt_sac.cli import main_sac

    references = [f"a man walks {number} dogs in the park ." for number in range(40)]
    baseline = [line.replace("walks", "sees") if number % 2 else line for number, line in enumerate(references)]
    better = [line.replace("walks", "sees") if number % 5 == 0 else line for number, line in enumerate(references)]
    texts = {"ref.en": references, "base.en": baseline, "better.en": better}
    for name, lines in texts.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    where = {name: str(tmp_path / name) for name in texts}

    def command(*words):
        capsys.readouterr()
        assert main_sac([*words, "--format", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    scored = command("score", "--ref", where["ref.en"], where["base.en"], "--metrics", "bleu")
    assert pysimt_sac.bleu(baseline, references) == scored["hypotheses"][0]["scores"][0]["value"]
    words = ["--ref", where["ref.en"], "--baseline", where["base.en"], "--system", "better", where["better.en"]]
    theirs = command("compare", *words, "--metrics", "bleu,ter", "--shuffles", "200")["comparisons"][0]["metrics"]
    ours = pysimt_sac.compare(baseline, {"better": [better]}, references, metrics=["bleu", "ter"], shuffles=200)
    for part, metric in zip(theirs, ours.metrics, strict=True):
        assert [row["average"] for row in part["systems"]] == [row.average for row in metric.systems]
        assert part["systems"][1]["against_baseline"]["p"] == metric.systems[1].against_baseline.p
    cases = tmp_path / "x.mlt.tsv"
    cases.write_text("word\tcorrect\tcandidates\tline\trare\nwalks\twalks\twalks:5|sees:2\t1\t0\n")
    theirs = command("lexical", "--mlt", str(cases), where["base.en"], where["better.en"], "--shuffles", "200")
    ours = pysimt_sac.lexical({"base.en": baseline, "better.en": better}, cases, shuffles=200)
    assert [row["all"]["lta"] for row in theirs["comparison"]["systems"]] == [row.all.lta for row in ours.systems]
    assert [row.all.lta for row in ours.systems] == [0.0, 100.0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bootstrap": 1}, "bootstrap: 1 must be at least 2"),
        ({"shuffles": 0}, "shuffles: 0 must be at least 1"),
        ({"seed": -1}, "seed: -1 must be at least 0"),
        ({"metrics": ["blue"]}, "no metric 'blue'"),
    ],
)
def test_a_comparisons_settings_are_checked(settings, message):
    with pytest.raises(UserError, match=message):
        pysimt_sac.compare(["a b"], {"new": ["a c"]}, ["a b"], **settings)


def test_a_metric_of_a_comparison_is_found_in_any_case():
    found = pysimt_sac.compare(["a b"], {"new": ["a c"]}, ["a b"], metrics=["bleu"], shuffles=9, bootstrap=9)
    assert found["bleu"] is found["BLEU"]
    with pytest.raises(UserError, match="there is no 'ter'"):
        found["ter"]
