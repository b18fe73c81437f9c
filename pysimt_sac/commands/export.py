"""`pysimt-sac export`: write a model of transformers as others load it."""

import argparse
from pathlib import Path

EPILOG = """The folder has weights (safetensors), configuration, tokenizer and a model card, and loads with
AutoModelForSeq2SeqLM.from_pretrained. It is for models that were trained with `hf_model`; docs/huggingface.md."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.epilog = EPILOG
    parser.add_argument("model", metavar="RUN", help="a run's folder: its best checkpoint; or a checkpoint")
    parser.add_argument("--to", required=True, type=Path, metavar="FOLDER", help="the folder to write")
    parser.add_argument("--last", action="store_true", help="of a run's folder: its last checkpoint, not the best one")
    parser.add_argument("--merge", action="store_true", help="of LoRA: weights that need no peft, not adapters alone")
    parser.add_argument("--results", type=Path, metavar="JSON", help="results.json whose scores the model card shows")
    parser.add_argument("--system", default="", metavar="NAME", help="--results: the model's name there")


def run(args: argparse.Namespace) -> int:
    """Export a model."""
    import torch

    import pysimt_sac.models  # noqa: F401 - registers our models
    from pysimt_sac.core.errors import UserError
    from pysimt_sac.hosts.engine.decoding.translation import load_best, load_model
    from pysimt_sac.hosts.huggingface.export import export, model_card
    from pysimt_sac.hosts.huggingface.network import HuggingFaceNMT

    checkpoint = load_best(args.model, args.last)
    if not checkpoint.options["model"].get("hf_model"):
        hint = "share the checkpoint itself: it has all that pysimt translate needs"
        raise UserError("is not a model of transformers", checkpoint.path, hint)
    network = load_model(checkpoint, torch.device("cpu"))
    assert isinstance(network, HuggingFaceNMT)
    export(network, args.to, model_card(checkpoint, network, args.results, args.system), args.merge)
    print(f"{args.to}: load it with AutoModelForSeq2SeqLM.from_pretrained, or as hf_model")
    return 0
