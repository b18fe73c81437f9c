"""The corpus of a reproduction: how it is prepared, what it depends on, and what is missing."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pysimt_sac import __version__
from pysimt_sac.core.errors import UserError
from pysimt_sac.core.files import require_file
from pysimt_sac.corpora import mlt, multi30k
from pysimt_sac.corpora.record import checksum, versions
from pysimt_sac.corpora.text_files import find_splits, require_folder
from pysimt_sac.reproduce.matrix import Matrix
from pysimt_sac.reproduce.step_records import Step, digest


@dataclass(frozen=True)
class Request:
    """The user's request. prepared: an already prepared corpus, instead of `raw`.

    trusted: run the Python files that configurations name.
    """

    pair: str
    out: Path
    raw: Path | None = None
    mlt: Path | None = None
    prepared: Path | None = None
    seeds: int = 3
    systems: tuple[str, ...] = ()
    short: bool = False
    jobs: int = 1
    threads: int = 1
    device: str = "auto"
    trusted: bool = True


@dataclass(frozen=True)
class Preparation(Step):
    """A step that prepares a corpus in a folder; without words, there is nothing to run.

    content: checksums of a corpus prepared elsewhere.
    """

    folder: Path = Path()
    content: dict[str, str] = field(default_factory=dict)


def preparation(name: str, key: str, folder: Path, **more: Any) -> Preparation:
    """Return the step that prepares a corpus. more: other fields."""
    return Preparation(id=f"prepare-{name}-{key}", title=f"prepare {name}", key=key, folder=folder, **more)


@dataclass(frozen=True)
class Places:
    """Replaces {data}, {mlt}, {pair}, {source}, {target} and {set} in a matrix's strings."""

    data: Path
    mlt: Path
    pair: str

    def fill(self, text: str, test_set: str = "") -> str:
        """Return the string with all names replaced; without a test set, {set} stays."""
        source, _, target = self.pair.partition("-")
        names = {"data": str(self.data), "mlt": str(self.mlt), "pair": self.pair, "source": source, "target": target}
        if test_set:
            names["set"] = test_set
        for name, value in names.items():
            text = text.replace(f"{{{name}}}", value)
        return text


@dataclass(frozen=True)
class Corpus:
    """Prepared data: the text, and the ambiguous words if available."""

    text: Preparation
    ambiguous: Preparation | None
    places: Places
    missing: tuple[str, ...]  # what the tables will lack, and why


def find_corpus(matrix: Matrix, request: Request) -> Corpus:
    """Check the raw or prepared data; return the corpus and how to prepare what is missing."""
    text = demo(request) if matrix.corpus == "demo" else multi30k_text(matrix, request)
    ambiguous, missing = None, []
    if matrix.corpus == "multi30k" and matrix.data.ambiguous:
        ambiguous, reason = multi30k_ambiguous(matrix, request, text)
        missing += [reason] if reason else []
    places = Places(text.folder, ambiguous.folder if ambiguous else request.out / "data/mlt", request.pair)
    if request.prepared:
        for path in [places.fill(matrix.data.reference, name) for name in matrix.data.tests]:
            require_file(Path(path), "reference")
    return Corpus(text, ambiguous, places, tuple(missing))


def demo(request: Request) -> Preparation:
    """Return the preparation of the generated corpus, which needs no raw files."""
    for option, value in (("--raw", request.raw), ("--mlt", request.mlt), ("--prepared", request.prepared)):
        if value:
            raise UserError("the demo corpus is generated", option, "leave it out")
    folder = request.out / "data/demo"
    key = digest(["demo", __version__, versions()["python"].rpartition(".")[0]])
    words = ("prepare", "demo", "--out", str(folder))
    return preparation("demo", key, folder, words=words, outputs=(folder / "corpus.json",))


def multi30k_text(matrix: Matrix, request: Request) -> Preparation:
    """Return the preparation of Multi30K from raw files, or the prepared corpus."""
    if (request.raw is None) == (request.prepared is None):
        raise UserError("give one of them", "--raw or --prepared", "--raw FOLDER of Multi30K's files, SPLIT.LANG[.gz]")
    if request.prepared:
        folder = require_folder(request.prepared.resolve())
        files = sorted(path for path in require_folder(folder / request.pair).iterdir() if path.is_file())
        content = {path.name: checksum(path) for path in files if path.name != "corpus.json"}
        return preparation("multi30k", digest(["prepared", content]), folder, content=content)
    assert request.raw is not None
    raw = multi30k.raw_folder(request.raw.resolve())
    needed = (*multi30k.REQUIRED_SPLITS, *matrix.data.tests)
    splits = find_splits(raw, request.pair, {split: split for split in needed}, needed)
    found = {split: [file.checksum for file in files] for split, files in splits.items()}
    tools = {name: value for name, value in versions().items() if name != "python"}
    folder = request.out / "data/multi30k"
    jobs = str(request.jobs * request.threads)
    words = ("prepare", "multi30k", "--raw", str(raw), "--pair", request.pair, "--out", str(folder), "--jobs", jobs)
    key, record = digest(["multi30k", request.pair, found, tools]), folder / request.pair / "corpus.json"
    return preparation("multi30k", key, folder, words=words, outputs=(record,))


def multi30k_ambiguous(matrix: Matrix, request: Request, text: Preparation) -> tuple[Preparation | None, str]:
    """Return the preparation of MLT's ambiguous words, or the reason why there is none."""
    if request.mlt is None:
        return None, "Ambiguous words (LTA, ALI): MLT's files were not given (--mlt FOLDER)."
    raw = require_folder(request.mlt.resolve())
    lists = [mlt.full_list_path(raw, request.pair)]
    lists += [mlt.later_list_path(raw, request.pair, name) for name in matrix.data.tests if name in mlt.LATER_NAMES]
    found = {path.name: checksum(require_file(path, "list of MLT")) for path in lists}
    folder = request.out / "data/mlt"
    words = ("prepare", "mlt", "--raw", str(raw), "--corpus", str(text.folder / request.pair), "--out", str(folder))
    key, record = digest(["mlt", text.key, found]), folder / request.pair / "corpus.json"
    after = (text.id,) if text.words else ()
    return preparation("mlt", key, folder, words=words, outputs=(record,), after=after), ""
