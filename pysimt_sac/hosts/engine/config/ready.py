"""The experiments shipped with this package: inside it if it is installed, else beside it."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[3]


def ready_folder() -> Path | None:
    """Return the folder of the shipped configurations, if there is one."""
    places = (PACKAGE / "experiments", PACKAGE.parent / "experiments")
    return next((folder for folder in places if folder.is_dir()), None)


def ready_configs(with_bases: bool = False) -> dict[str, Path]:
    """Return the shipped experiments by name. with_bases: also files that exist only to be included."""
    folder = ready_folder()
    paths = sorted(folder.glob("*.conf")) if folder else []
    return {path.stem: path for path in paths if with_bases or not path.name.startswith("base_")}
