"""The house's rules: who may import whom, and who may call what."""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "pysimt_sac"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Each part may import those below it in its list, and itself; `errors` and `files` are everybody's.
MAY_IMPORT = {
    "cli": {"commands"},
    "commands": {"host", "bridge", "models", "rl", "rewards", "engine", "evaluation", "corpora"},
    "bridge": {"bridge_state", "host", "models", "engine"},
    "bridge_state": {"engine"},
    "host": {"bridge", "engine"},
    "models": {"host", "rl", "rewards", "engine"},
    "rl": {"rewards", "engine"},
    "rewards": {"engine"},
    "evaluation": {"engine"},
    "corpora": {"engine"},
    "engine": set(),
}
EVERYBODYS = {"errors", "files", "__init__"}


def part_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path):
    """All names imported anywhere in a file, as dotted strings."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    part = part_of(path)
    if part in EVERYBODYS | {"__main__"}:
        return
    for name in imports(path):
        if name.startswith("pysimt_sac."):
            other = name.split(".")[1]
            assert other in MAY_IMPORT[part] | EVERYBODYS | {part, "__version__"}, f"{part} imports {name}"


def test_only_host_and_bridge_import_pysimt():
    guilty = {part_of(path) for path in MODULES for name in imports(path) if re.match(r"pysimt(\.|$)", name)}
    assert guilty <= {"host", "bridge"}


def test_only_the_checkpoint_module_saves_and_loads():
    for path in MODULES:
        if path.name != "checkpoint.py":
            assert not re.search(r"torch\.(save|load)\(", path.read_text()), path


def test_only_the_command_line_prints():
    for path in MODULES:
        if part_of(path) not in ("cli", "commands"):
            calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
            assert not any(getattr(call.func, "id", "") == "print" for call in calls), path


def test_asking_for_help_is_quick_because_nothing_heavy_is_imported():
    import subprocess
    import sys

    script = "import sys; from pysimt_sac.cli import main_sac; import contextlib\n"
    script += "with contextlib.suppress(SystemExit): main_sac(['train', '--help'])\n"
    script += "assert 'torch' not in sys.modules and 'sacrebleu' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
