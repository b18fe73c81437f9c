"""Registries of models, metrics and rewards by name.

Ours register when their module is imported; other packages register through entry points of the groups
`pysimt_sac.models`, `pysimt_sac.metrics` and `pysimt_sac.rewards`; a user's own file is named in the configuration.
"""

import importlib.util
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Generic, TypeVar

from pysimt_sac.core.errors import PLUGIN, UserError, did_you_mean, error_in_own_file
from pysimt_sac.core.files import require_file

T = TypeVar("T")


class Registry(Generic[T]):
    """Items of one kind by name, matched case-insensitively."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.items: dict[str, T] = {}
        self._entry_points_read = False

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that registers an item under `name`."""

        def add(item: T) -> T:
            self.items[name] = item
            return item

        return add

    def get(self, name: str, where: object = "") -> T:
        """Return the item of that name, or raise an error that suggests the nearest one."""
        self.read_entry_points()
        for known, item in self.items.items():
            if known.lower() == name.lower():
                return item
        raise UserError(f"unknown {self.kind} {name!r}", where, did_you_mean(name, self.items))

    def read_entry_points(self) -> None:
        """Add what other installed packages register; our own names take precedence."""
        if self._entry_points_read:
            return
        for point in entry_points(group=f"pysimt_sac.{self.kind}s"):
            if point.name not in self.items:
                try:
                    self.items[point.name] = point.load()
                except Exception as error:  # another package may raise anything; name it
                    raise UserError(
                        f"cannot load: {error}", f"entry point {point.value}", "repair or remove that package"
                    ) from error
        self._entry_points_read = True


MODELS: Registry[Any] = Registry("model")
METRICS: Registry[Any] = Registry("metric")
REWARDS: Registry[Any] = Registry("reward")


def load_plugin_modules(paths: Iterable[str | Path]) -> None:
    """Run the user's own Python files, once each; they register what they define."""
    for path in map(Path, paths):
        require_file(path, "Python file")
        name = f"{PLUGIN}{path.resolve().as_posix().replace('/', '_').removesuffix('.py')}"
        if name in sys.modules:
            continue
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise UserError("is not a Python file", path, "its name must end in .py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except UserError:
            del sys.modules[name]
            raise
        except (Exception, SystemExit) as error:  # the user's file may raise anything; report it
            del sys.modules[name]
            what = f"{type(error).__name__}: {error}"
            raise error_in_own_file(error) or UserError(what, path, "correct that file") from error
