"""Folders of tiny models with tokenizers, as `save_pretrained` leaves them, and a corpus to train them on."""

import json

import pytest

from tests.conftest import load_script

CONFIG = """\
[train]
model_type: MLENMT
seed: 1
lr: 0.003
batch_size: 20
max_epochs: 1
max_iterations: 4
eval_metrics: sacrebleu,loss
eval_freq: 2
eval_max_len: 12
checkpoint_freq: 0
n_checkpoints: 0
save_path: {folder}/runs

[model]
hf_model: {model}
{more}
rollout_max_len: 8
health_freq: 2
emb_dim: 8
enc_dim: 8
dec_dim: 8

[data]
train_set: {{'src': '{toy}/train.src', 'trg': '{toy}/train.trg'}}
val_set: {{'src': '{toy}/val.src', 'trg': '{toy}/val.trg'}}
test_set: {{'src': '{toy}/test.src', 'trg': '{toy}/test.trg'}}
"""
LANGUAGES = "source_language: eng_Latn\ntarget_language: deu_Latn"


@pytest.fixture(scope="session")
def marian_folder(toy_texts):
    """A tiny Marian model without weights."""
    module = load_script("experiments/small_marian.py")
    folder = toy_texts.parent / "marian"
    module.make([toy_texts / "train.src", toy_texts / "train.trg"], folder, pieces=70, size=16, layers=1, heads=2)
    return folder


@pytest.fixture(scope="session")
def nllb_folder(toy_texts):
    """A tiny NLLB model with random weights, and two languages."""
    import tokenizers
    import torch
    import transformers

    base = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    base.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    first = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=70, special_tokens=first, show_progress=False)
    base.train([str(toy_texts / f"train.{side}") for side in ("src", "trg")], trainer)
    learned = json.loads(base.to_str())["model"]
    tokenizer = transformers.NllbTokenizer(
        vocab=learned["vocab"],
        merges=[tuple(pair) for pair in learned["merges"]],
        extra_special_tokens=["eng_Latn", "deu_Latn"],
    )
    sizes = {f"{side}_layers": 1 for side in ("encoder", "decoder")} | {"d_model": 16, "max_position_embeddings": 64}
    sizes |= {f"{side}_ffn_dim": 16 for side in ("encoder", "decoder")}
    sizes |= {f"{side}_attention_heads": 2 for side in ("encoder", "decoder")}
    config = transformers.M2M100Config(vocab_size=len(tokenizer), decoder_start_token_id=2, **sizes)
    torch.manual_seed(1)
    folder = toy_texts.parent / "nllb"
    transformers.M2M100ForConditionalGeneration(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def toy_texts(tmp_path_factory):
    """A folder with a small parallel corpus."""
    from tests.conftest import make_toy

    return make_toy(tmp_path_factory.mktemp("hf") / "toy").folder


@pytest.fixture
def configure(tmp_path, toy_texts):
    """Write a configuration of one of the models; more: lines of `[model]`."""

    def write(model, more="", name="hf"):
        path = tmp_path / f"{name}.conf"
        path.write_text(CONFIG.format(folder=tmp_path, model=model, toy=toy_texts, more=more))
        return path

    return write
