"""Export a checkpoint as a folder that transformers loads: weights, configuration, tokenizer and a model card."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pysimt_sac import __version__
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import atomic_write, make_folder, read_json
from pysimt_sac.hosts.engine.checkpoint import Checkpoint
from pysimt_sac.hosts.engine.data.moved_files import is_path
from pysimt_sac.hosts.huggingface.network import HuggingFaceNMT

FRONT_MATTER = {"library_name": "transformers", "pipeline_tag": "translation", "tags": ["pysimt_sac"]}


def export(network: HuggingFaceNMT, folder: Path, card: str, merge: bool = False) -> None:
    """Write a model as `save_pretrained` does. merge: of LoRA, the merged weights instead of the adapters alone."""
    if folder.exists() and any(folder.iterdir() if folder.is_dir() else [folder]):
        raise UserError("exists already", folder, "name a new folder")
    if merge and not network.peft_model:
        raise UserError("has no adapters to merge", network.opts.filename, "leave out --merge")
    make_folder(folder)
    network.text.save(folder)
    if merge:
        network.peft_model[0].merge_and_unload().save_pretrained(folder)
    elif network.peft_model:
        (adapters,) = network.peft_model
        adapters.peft_config["default"].base_model_name_or_path = network.settings.hf_model
        adapters.save_pretrained(folder, save_embedding_layers=False)  # else it looks for the base model on the hub
    else:
        network.hf.save_pretrained(folder)
    with atomic_write(folder / "README.md") as stream:
        stream.write(card)


def model_card(checkpoint: Checkpoint, network: HuggingFaceNMT, results: Path | None, system: str) -> str:
    """Return a model card: how the model was trained, on what, with which reward, and how good it is.

    results: a `results.json` of `pysimt-sac reproduce`; system: the model's name there.
    """
    options, history = network.opts, checkpoint.history
    train, model, data = options.train, options.model, options.data.get("train_set", {})
    updates = f"{history.get('uctr', 0)} updates, seed {train.get('seed')}"
    facts = {
        "trained from": Path(network.settings.hf_model).name,
        "by": f"{checkpoint.options['train']['model_type']}, {updates}",
        "reward": model.get("reward"),
        "on": ", ".join(Path(str(file)).name for file in data.values()),
        "languages": " to ".join(filter(None, (network.settings.source_language, network.settings.target_language))),
        "adapters": f"LoRA, rank {network.settings.lora_rank}" if network.settings.lora_rank else "",
        "with": f"pysimt_sac {__version__}",
    }
    lines = ["---", *(f"{key}: {json.dumps(value)}" for key, value in FRONT_MATTER.items()), "---", ""]
    lines += [f"# {checkpoint.path.resolve().parent.name}", "", "A translation model, fine-tuned with pysimt_sac.", ""]
    lines += [f"- {name}: {value}" for name, value in facts.items() if value]
    lines += ["", "## Validation", "", "| metric | best score |", "|---|---|"]
    for name, scores in history.get("val_scores", {}).items():
        lines.append(f"| {name} | {min(scores) if name in ('LOSS', 'TER') else max(scores):.2f} |")
    if results:
        lines += ["", "## Test", "", *score_lines(results, system)]
    shown = {key: Path(value).name if is_path(value) else value for key, value in sorted(model.items())}
    settings = json.dumps(shown, indent=2, default=str)
    return "\n".join([*lines, "", "## Settings", "", "```json", settings, "```", ""])


def score_lines(results: Path, system: str) -> Iterator[str]:
    """Yield a table of a system's scores in a `results.json`, one line for each test set, search and metric."""
    found = read_json(results, "results", "it is written by pysimt-sac reproduce")
    scores = found.get("scores", []) if isinstance(found, Mapping) else []
    if not all(isinstance(row, Mapping) and {"system", "part", "runs"} <= row.keys() for row in scores):
        raise UserError("has other rows than a results.json", results, "it is written by pysimt-sac reproduce")
    own: list[Mapping[str, Any]] = [row for row in scores if row["system"] == system and row["part"] == "all"]
    if not own:
        known = ", ".join(dict.fromkeys(row["system"] for row in scores))
        raise UserError(f"has no scores of {system!r}", results, f"name one with --system: {known}")
    seeds = [str(run["seed"]) for run in found["runs"] if run["system"] == system]
    yield f"{len(seeds)} runs, of seeds {', '.join(seeds)}; data: {found['title']}."
    yield ""
    yield "| test set | search | metric | mean | runs |"
    yield "|---|---|---|---|---|"
    for row in own:
        runs = ", ".join(f"{value:.2f}" for value in row["runs"])
        mean = sum(row["runs"]) / len(row["runs"])
        yield f"| {row['test_set']} | {row['search']} | {row['metric']} | {mean:.2f} | {runs} |"
