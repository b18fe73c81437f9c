"""A made-up request for a report, as large as asked for, with texts that try to break the page."""

import random
from pathlib import Path

from pysimt_sac.evaluation.metrics import BleuMetric, ChrfMetric
from pysimt_sac.evaluation.report.data import ReportData, analyse
from pysimt_sac.evaluation.report.input import ReportRequest, gather
from pysimt_sac.evaluation.significance import Resampling

NASTY = '<script>window.harm = 1</script> & "quotes" \'n </script><!-- <b>bold</b> \\u003c ]]>'
NASTY_NAME = '<i>sys</i> & "co"'
GERMAN = "ein mann eine frau hund steht im park mit rotem ball am ufer bank schläft und liest heute dort"
ENGLISH = "a man woman dog stands in the park with red ball on shore bank sleeps and reads today there"
WORDS, SOURCE_WORDS = GERMAN.split(), ENGLISH.split()
QUICK = Resampling(shuffles=50, bootstrap=20)


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def make_request(folder: Path, sentences: int, systems: list[str]) -> ReportRequest:
    """One test set `test`; sentence 3 is nasty everywhere; every tenth has the ambiguous word `bank`."""
    rng = random.Random(2)
    sources, references = [], []
    for line in range(sentences):
        sources.append(" ".join(rng.choices(SOURCE_WORDS, k=rng.randint(4, 18))) + " .")
        references.append(" ".join(rng.choices(WORDS, k=rng.randint(4, 18))) + " .")
        if line % 10 == 0:
            sources[-1] = f"the bank {sources[-1]}"
            references[-1] = f"das ufer {references[-1]}"
    sources[2] = references[2] = NASTY
    outputs: dict[tuple[str, str], tuple[Path, ...]] = {}
    for number, name in enumerate(systems):
        noise = 0.4 / (number + 1)
        lines = [
            " ".join(rng.choice(WORDS) if rng.random() < noise and word != "ufer" else word for word in text.split())
            for text in references
        ]
        if number == 0:
            lines = [line.replace("ufer", "bank") for line in lines]
        lines[2] = NASTY
        outputs[name, "test"] = (write(folder / f"output{number}", lines),)
    rows = [f"bank\tufer\tbank:9|ufer:3\t{line}\t1" for line in range(0, sentences, 10)]
    return ReportRequest(
        outputs=outputs,
        sources={"test": write(folder / "source", sources)},
        references={"test": write(folder / "reference", references)},
        ambiguous={"test": write(folder / "cases.tsv", ["word\tcorrect\tcandidates\tline\trare", *rows])},
        training=write(folder / "training", references[: sentences // 2]),
    )


def make_report(folder: Path, sentences: int = 60, systems: list[str] | None = None) -> ReportData:
    """Everything computed, with little resampling."""
    request = make_request(folder, sentences, systems or ["base", NASTY_NAME, "third"])
    return analyse(gather(request), [BleuMetric(), ChrfMetric()], QUICK)
