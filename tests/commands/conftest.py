"""Files to run the evaluation commands on, in the working directory."""

from collections.abc import Callable
from pathlib import Path

import pytest

SENTENCES = [
    "ein mann mit hut steht im park .",
    "eine frau spielt mit einem ball .",
    "zwei hunde laufen durch das gras .",
    "ein kind isst ein eis am strand .",
    "der zug hält an einem kleinen bahnhof .",
    "drei mädchen tanzen auf der bühne .",
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a reference; METEOR's program is nowhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("METEOR_JAR", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (tmp_path / "ref.de").write_text("".join(f"{line}\n" for line in SENTENCES * 5), encoding="utf-8")
    return tmp_path


@pytest.fixture
def write(folder: Path) -> Callable[..., None]:
    """Write the reference with some words replaced, as a system's output."""

    def write_output(name: str, replaced: dict[str, str] | None = None, lines: int = 30) -> None:
        text = "".join(f"{line}\n" for line in (SENTENCES * 5)[:lines])
        for old, new in (replaced or {}).items():
            text = text.replace(old, new)
        (folder / name).write_text(text, encoding="utf-8")

    return write_output
