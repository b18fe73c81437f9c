"""Models of transformers through the real command line: training, resuming, translating, and what goes wrong."""

import io
import json
import subprocess
import sys

import pytest
import torch

pytest.importorskip("transformers", reason="the extra `hf` is not installed")

import pysimt_sac
from pysimt_sac.cli import main, main_sac
from pysimt_sac.core.vocabulary import BOS, EOS, UNK
from pysimt_sac.hosts.engine.checkpoint import load_checkpoint_of_run, load_state
from pysimt_sac.hosts.huggingface.text import ModelText
from tests.hosts.huggingface.conftest import LANGUAGES

ALGORITHMS = {
    "MLENMT": [],
    "HuggingFaceNMT": ["model.label_smoothing:0.1"],
    "REINFORCENMT": ["model.n_samples:2"],
    "GRPONMT": ["model.n_samples:2"],
    "MIXERNMT": [],
    "MRTNMT": ["model.n_samples:2"],
    "ACNMT": [],
    "ERACNMT": [],
    "SACNMT": ["model.kl_weight:0.1", "model.critic_pretrain_updates:0"],
    "SACUnsupNMT": [],
    "VineNMT": ["model.reward_unit:word"],
    "BranchedSACNMT": [],
    "OwnPrefixesNMT": [],
}


def train(path, *words):
    return main(["train", "-C", str(path), "--quiet", *words])


def weights(folder):
    return load_state(folder)[0]["weights"]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_learns_and_resumes_exactly(name, marian_folder, configure, tmp_path, monkeypatch):
    monkeypatch.setattr("pysimt_sac.rl.session.NO_ACTOR", "starts at random")
    path = configure(marian_folder)
    words = [f"train.model_type:{name}", "train.eval_freq:-1", "train.checkpoint_freq:2", *ALGORITHMS[name]]
    assert train(path, *words, "-s", "whole") == 0
    for updates in (2, 4):
        assert train(path, *words, "-s", "parts", f"train.max_iterations:{updates}") == 0
    whole, parts = (load_state(tmp_path / f"runs/hf-{suffix}")[0] for suffix in ("whole", "parts"))
    for key, weight in whole["weights"].items():
        assert torch.equal(weight, parts["weights"][key]), key
        assert bool(weight.isfinite().all())
    assert whole["progress"]["first_update"]


@pytest.fixture
def nllb_run(nllb_folder, configure, tmp_path):
    assert train(configure(nllb_folder, LANGUAGES)) == 0
    return tmp_path / "runs/hf"


def test_a_run_validates_translates_and_scores_plain_text(nllb_run, toy_texts, tmp_path, monkeypatch, capsysbinary):
    search = ["-f", "bs", "-k", "3", "-m", "6"]
    assert main(["translate", str(nllb_run), "-s", "test", *search, "-o", f"{tmp_path}/o"]) == 0
    written = (tmp_path / "o.test.beam3").read_text().splitlines()
    sources = (toy_texts / "test.src").read_text().splitlines()
    model = pysimt_sac.load(nllb_run)
    assert written == model.translate(sources, beam=3, max_len=6)
    assert not any("▁" in line or "deu_Latn" in line for line in written)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{sources[0]}\n".encode())))
    capsysbinary.readouterr()
    assert main(["translate", "--raw", "-m", "6", str(nllb_run)]) == 0
    assert capsysbinary.readouterr().out.decode().strip() == model.translate(sources[:1], max_len=6)[0]
    (score,) = model.score(sources[:1], ["EINS ZWEI"])
    assert -100 < score < 0


def test_scores_are_those_of_transformers_with_its_own_labels(nllb_run, toy_texts):
    """What the tokenizer makes of a pair, with the language first, but without its own loss."""
    model = pysimt_sac.load(nllb_run)
    source, target = (path.read_text().splitlines()[0] for path in (toy_texts / "val.src", toy_texts / "val.trg"))
    tokenizer, network = model.network.text.tokenizer, model.network.hf
    tokenizer.tgt_lang = "deu_Latn"
    inputs = tokenizer(source, text_target=target, return_tensors="pt")
    assert tokenizer.convert_ids_to_tokens(inputs.labels[0, 0].item()) == "deu_Latn"
    labels = inputs.labels.clone()
    given = torch.cat((torch.tensor([[2]]), labels[:, :-1]), 1)
    logits = network(inputs.input_ids, attention_mask=inputs.attention_mask, decoder_input_ids=given).logits
    log_p = logits.detach().log_softmax(-1).gather(2, labels.unsqueeze(2)).squeeze(2)[0, 1:]
    assert model.score([source], [target])[0] == pytest.approx(log_p.sum().item(), abs=1e-4)


def test_a_checkpoint_needs_no_other_file(nllb_folder, configure, tmp_path):
    import shutil

    moved = tmp_path / "elsewhere"
    shutil.copytree(nllb_folder, moved)
    assert train(configure(moved, LANGUAGES)) == 0
    before = pysimt_sac.load(tmp_path / "runs/hf").translate(["one two"], max_len=5)
    shutil.rmtree(moved)
    assert pysimt_sac.load(tmp_path / "runs/hf").translate(["one two"], max_len=5) == before


def test_sentences_of_the_vocabulary_are_the_tokenizers(nllb_run):
    vocab = pysimt_sac.load(nllb_run).network.trg_vocab
    numbers = vocab.sent_to_idxs("ONE TWO", explicit_bos=True)
    assert numbers[0] == BOS
    assert numbers[-1] == EOS
    assert UNK not in numbers
    assert vocab.idxs_to_sent(numbers[1:]) == "ONE TWO"
    assert "".join(vocab.tokens[number] for number in numbers[1:-1]) == "▁ONE▁TWO"
    source = vocab.sent_to_idxs("one")
    assert vocab.tokens[source[0]] == ""  # the language
    assert source[-1] == EOS


REWARD = """\
from pathlib import Path
from pysimt_sac.rewards import reward

@reward("seen")
def seen(translations):
    Path(__file__).with_suffix(".txt").write_text("\\n".join(translations.sources))
    return [0.0] * len(translations.hypotheses)
"""


def test_rewards_see_the_sources_without_what_the_model_wants_before_them(
    nllb_folder, toy_texts, configure, tmp_path, monkeypatch
):
    monkeypatch.setattr("pysimt_sac.rl.session.NO_ACTOR", "starts at random")
    (tmp_path / "seen.py").write_text(REWARD)
    reward = ["model.reward:seen", f"model.reward_modules:{tmp_path}/seen.py", "model.reward_unit:word"]
    words = ["train.model_type:REINFORCENMT", *reward, "model.source_prefix:one two", "train.max_iterations:1"]
    assert train(configure(nllb_folder, LANGUAGES), *words) == 0
    seen = (tmp_path / "seen.txt").read_text().split("\n")
    assert {*seen} <= {*(toy_texts / "train.src").read_text().splitlines()}
    assert len({*seen}) > 1


def test_only_adapters_learn_with_lora(nllb_folder, configure, tmp_path):
    path = configure(nllb_folder, f"{LANGUAGES}\nlora_rank: 2\ngradient_checkpointing: True\nprecision: bfloat16")
    assert train(path, "train.eval_freq:-1", "train.max_iterations:2") == 0
    trained = weights(tmp_path / "runs/hf")
    original = pysimt_sac.load(tmp_path / "runs/hf").network
    assert any("lora_A" in name for name in trained)
    from transformers import AutoModelForSeq2SeqLM

    theirs = AutoModelForSeq2SeqLM.from_pretrained(nllb_folder).state_dict()
    for name, weight in trained.items():
        bare = name.removeprefix("hf.").replace(".base_layer", "")
        assert "lora_" in name or torch.equal(weight, theirs[bare]), name
    assert any(float(weight.abs().sum()) > 0 for name, weight in trained.items() if "lora_B" in name)
    assert original.settings.lora_rank == 2


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("", "source_language"),
        ("source_language: eng_Latn\ntarget_language: klingon", "no language 'klingon'"),
        (f"{LANGUAGES}\nlora_rank: 2\nlora_modules: nothing", "lora_modules"),
        (f"{LANGUAGES}\nhf_modle: x", "unknown key 'hf_modle'"),
    ],
)
def test_mistakes_are_named(more, message, nllb_folder, configure, capsys):
    assert train(configure(nllb_folder, more)) == 2
    assert message in capsys.readouterr().err


def test_pieces_without_a_mark_of_words_are_refused_for_rewards(nllb_folder, configure, capsys, monkeypatch):
    whole = ModelText.shown_tokens
    monkeypatch.setattr(ModelText, "shown_tokens", lambda text: [token.replace("▁", "") for token in whole(text)])
    assert train(configure(nllb_folder, LANGUAGES), "train.model_type:VineNMT") == 2
    assert "its tokenizer does not mark words with ▁" in capsys.readouterr().err


def test_a_folder_without_a_model_is_a_mistake(configure, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    assert train(configure(tmp_path / "empty")) == 2
    assert "cannot be loaded" in capsys.readouterr().err


def test_check_tries_the_model_and_writes_nothing(nllb_folder, configure, tmp_path, capsys):
    assert main(["train", "-C", str(configure(nllb_folder, LANGUAGES)), "--check"]) == 3  # its weights are random
    out = capsys.readouterr()
    assert "Memory: at most" in out.err + out.out
    assert "the actor knows nothing" in out.err + out.out
    assert not (tmp_path / "runs").exists()


def test_the_best_checkpoint_is_a_start_for_reinforcement_learning(nllb_run, nllb_folder, configure, tmp_path):
    path = configure(nllb_folder, LANGUAGES, name="rl")
    words = ["train.model_type:REINFORCENMT", "model.n_samples:2", f"train.pretrained_file:{nllb_run}"]
    assert train(path, *words, "train.max_iterations:1", "train.eval_freq:-1") == 0
    begun = load_checkpoint_of_run(nllb_run).weights
    assert begun.keys() == weights(tmp_path / "runs/rl").keys()


def test_an_exported_model_is_transformers_own_with_a_card(nllb_run, toy_texts, tmp_path, capsys):
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    results = tmp_path / "results.json"
    row = {
        "search": "beam6",
        "test_set": "test",
        "part": "all",
        "metric": "BLEU",
        "system": "SAC",
        "runs": [30.0, 31.0],
    }
    runs = [{"system": "SAC", "seed": seed} for seed in (1, 2)]
    results.write_text(json.dumps({"title": "A corpus", "scores": [row], "runs": runs}))
    out = tmp_path / "out"
    command = ["export", str(nllb_run), "--to", str(out), "--results", str(results), "--system"]
    assert main_sac([*command, "SAK"]) == 2
    assert "name one with --system: SAC" in capsys.readouterr().err
    assert not out.exists()
    assert main_sac([*command, "SAC"]) == 0
    card = (out / "README.md").read_text()
    assert "| test | beam6 | BLEU | 30.50 | 30.00, 31.00 |" in card
    assert "by: MLENMT, " in card
    assert "train.src, train.trg" in card
    assert str(tmp_path) not in card
    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(out).eval(), AutoTokenizer.from_pretrained(out)
    tokenizer.src_lang = "eng_Latn"
    source = (toy_texts / "test.src").read_text().splitlines()[0]
    start = tokenizer.convert_tokens_to_ids("deu_Latn")
    limits = {"max_new_tokens": 7, "num_beams": 1, "do_sample": False, "suppress_tokens": [1]}
    found = model.generate(**tokenizer(source, return_tensors="pt"), forced_bos_token_id=start, **limits)
    translated = tokenizer.decode(found[0], skip_special_tokens=True, clean_up_tokenization_spaces=False)
    assert pysimt_sac.load(nllb_run).translate([source], max_len=6) == [" ".join(translated.split())]
    assert main_sac(["export", str(nllb_run), "--to", str(out)]) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing. is deprecated:FutureWarning")  # peft's
@pytest.mark.parametrize("merge", [False, True])
def test_adapters_are_exported_alone_or_merged(merge, nllb_folder, configure, tmp_path):
    import peft
    from transformers import AutoModelForSeq2SeqLM

    path = configure(nllb_folder, f"{LANGUAGES}\nlora_rank: 2")
    assert train(path, "train.eval_freq:-1", "train.max_iterations:2", "train.lr:0.1") == 0
    run, out = tmp_path / "runs/hf", tmp_path / "out"
    assert main_sac(["export", str(run), "--to", str(out), *["--merge"] * merge]) == 0
    if merge:
        found = AutoModelForSeq2SeqLM.from_pretrained(out)
    else:
        assert {path.name for path in out.glob("*.safetensors")} == {"adapter_model.safetensors"}
        found = peft.PeftModel.from_pretrained(AutoModelForSeq2SeqLM.from_pretrained(nllb_folder), str(out))
    inputs = {"input_ids": torch.tensor([[5, 6, 2]]), "decoder_input_ids": torch.tensor([[2, 7, 8]])}
    ours = pysimt_sac.load(run).network.hf
    original = AutoModelForSeq2SeqLM.from_pretrained(nllb_folder).eval()
    with torch.no_grad():
        torch.testing.assert_close(found.eval()(**inputs).logits, ours(**inputs).logits)
        assert not torch.allclose(original(**inputs).logits, ours(**inputs).logits)


def test_without_the_extra_the_error_says_what_to_install(monkeypatch, configure, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert train(configure(tmp_path)) == 2
    assert "pip install 'pysimt_sac[hf]'" in capsys.readouterr().err


def test_what_does_not_use_it_does_not_import_it():
    code = "import sys, pysimt_sac, pysimt_sac.api.model, pysimt_sac.api.training\n"
    code += "assert not {'transformers', 'peft', 'wandb'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
