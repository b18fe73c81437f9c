"""What `make demo` runs: prepare the demo corpus, train, translate, score, show a table and make the report.

With `--all` (`make demo-all`) every algorithm is trained, each from the same actor; with `--rare` the actor trains for
longer, so that it knows a quarter of the rare senses, and the rewards for rare words act on it; with `--hf` the actor
is a small Transformer of Hugging Face's transformers, in the shape of Marian.

Every step is a command that you could type yourself; it is shown before it runs. A step whose result is there already
is not done again: training resumes where it stopped, or says that it has ended.
"""

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

from pysimt_sac.core.files import read_lines
from pysimt_sac.evaluation.lexical import lexical_accuracy, read_cases
from pysimt_sac.evaluation.scores import choose_metrics, score_text
from pysimt_sac.evaluation.tables import Table, render

HERE = Path(__file__).parent
DATA, RUNS, REPORT = Path("data/demo"), Path("runs"), Path("runs/demo_report.html")
SYSTEMS = {
    "MLE": "demo_mle",
    "continued MLE": "demo_control",
    "branched SAC": "demo_branched_sac",
    "SAC unsuper": "demo_sac_unsup",
}
ALL_SYSTEMS = {
    **SYSTEMS,
    "SAC BLEU": "demo_sac_bleu",
    "Vine": "demo_vine",
    "Vine rare": "demo_vine_rare",
    "REINFORCE": "demo_reinforce",
    "MIXER": "demo_mixer",
    "MRT": "demo_mrt",
    "AC": "demo_ac",
    "ERAC": "demo_erac",
}
RARE = {
    "MLE": "demo_mle",
    "continued MLE": "demo_control",
    "SAC unsuper": "demo_sac_unsup",
    "Vine": "demo_vine",
    "Vine rare": "demo_vine_rare",
}
HUGGING_FACE = {
    "MLE": "hf_demo_mle",
    "continued MLE": "hf_demo_control",
    "Vine": "hf_demo_vine",
    "branched SAC": "hf_demo_branched_sac",
}
SPLITS = {"test": "in-domain", "test_ood": "out-of-domain"}
SEARCH = "beam6"
FIGURES = ("BLEU", "chrF", "TER", "common", "rare")


def run(*words: object) -> None:
    """Show a command and run it with the Python that runs this."""
    command = [str(word) for word in words]
    print(f"\n$ {shlex.join(command)}", flush=True)
    if command[0].endswith(".py"):
        start = [str(HERE / command[0])]
    else:
        program = "main" if command[0] == "pysimt" else "main_sac"
        start = ["-c", f"import sys; from pysimt_sac.cli import {program}; sys.exit({program}())"]
    done = subprocess.run([sys.executable, *start, *command[1:]])
    if done.returncode:
        sys.exit(done.returncode)


def translation(config: str, split: str) -> Path:
    """Where a run's translation is: in the run's folder, where the report looks for it."""
    return RUNS / config / f"out.{split}.{SEARCH}.raw"


def translate(config: str) -> None:
    """Translate the test sets with the run's best checkpoint, unless that has been done."""
    checkpoints = sorted((RUNS / config).glob("*.best.bleu.ckpt"), key=lambda path: path.stat().st_mtime)
    outputs = [translation(config, split) for split in SPLITS]
    newest = checkpoints[-1].stat().st_mtime
    if all(output.is_file() and output.stat().st_mtime > newest for output in outputs):
        return
    prefix = RUNS / config / "out"
    run("pysimt", "translate", "-s", ",".join(SPLITS), "-f", "bs", "-b", 64, "-o", prefix, checkpoints[-1])


def table(systems: dict[str, str]) -> Table:
    """Scores of every system on every test set, with the accuracy on ambiguous words."""
    outputs = {
        (name, split): read_lines(translation(config, split)) for name, config in systems.items() for split in SPLITS
    }
    rows = []
    for (name, split), output in outputs.items():
        same = next(other for other, set_name in outputs if set_name == split and outputs[other, split] == output)
        figures = ("-",) * len(FIGURES) if same != name else figures_of(split, output, name)
        rows.append((name, SPLITS[split], *figures, f"identical to {same}" if same != name else ""))
    note = "common, rare: ambiguous words translated right, in %, by frequency of sense"
    return Table(("system", "test set", *FIGURES, ""), tuple(rows), "Demo corpus, beam 6", left=2, notes=(note,))


def figures_of(split: str, output: list[str], name: str) -> tuple[str, ...]:
    """A translation's figures."""
    scores = score_text(read_lines(DATA / f"{split}.de"), output, choose_metrics(("bleu", "chrf", "ter")).metrics)
    cases = read_cases(DATA / f"{split}.mlt.tsv")
    common, rare = ([case for case in cases if case.rare == is_rare] for is_rare in (False, True))
    words = (lexical_accuracy(senses, output, name).all.lta for senses in (common, rare))
    return tuple(f"{figure:.1f}" for figure in (scores["BLEU"], scores["chrF"], scores["TER"], *words))


def main() -> None:
    """All steps."""
    parser = argparse.ArgumentParser(description="Train on the generated demo corpus, translate, score and report.")
    parser.add_argument("--all", action="store_true", help="train every algorithm, not only the first ones")
    parser.add_argument("--rare", action="store_true", help="train longer, then with rewards for rare words")
    parser.add_argument("--hf", action="store_true", help="train a small Marian model of transformers instead")
    args = parser.parse_args()
    systems = HUGGING_FACE if args.hf else RARE if args.rare else ALL_SYSTEMS if args.all else SYSTEMS
    if not (DATA / "corpus.json").is_file():
        run("pysimt-sac", "prepare", "demo", "--out", DATA)
    if args.hf and not (DATA / "marian/config.json").is_file():
        run("small_marian.py", DATA / "train.en", DATA / "train.de", "--out", DATA / "marian")
    runs = {name: f"{config}-long" if args.rare else config for name, config in systems.items()}
    for name, config in systems.items():
        longer = "train.max_epochs:14" if name == "MLE" else "vars.actor:demo_mle-long"
        run("pysimt", "train", "-C", HERE / f"{config}.conf", *(["-s", "long", longer] if args.rare else []))
        translate(runs[name])
    run("pysimt-sac", "report", *(f"{name}={RUNS / folder}" for name, folder in runs.items()), "--out", REPORT)
    print(f"\n{render(table(runs), 'text')}")
    print(f"\nData: {DATA}/  runs, checkpoints and translations: {RUNS}/demo_*/")
    print(f"Open {REPORT} in a browser to see what became of every sentence.")


if __name__ == "__main__":
    main()
