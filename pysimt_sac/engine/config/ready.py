"""The experiments that come with this package: inside it if it was installed, else beside it."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]


def ready_folder() -> Path | None:
    """The folder of the ready configurations."""
    places = (PACKAGE / "experiments", PACKAGE.parent / "experiments")
    return next((folder for folder in places if folder.is_dir()), None)


def ready_configs() -> dict[str, Path]:
    """The ready experiments by name, without the files that only others include."""
    folder = ready_folder()
    paths = sorted(folder.glob("*.conf")) if folder else []
    return {path.stem: path for path in paths if not path.name.startswith("base_")}
