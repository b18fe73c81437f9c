"""Imports between the rooms go one way, function-level ones included, and no module imports itself in a circle."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "pysimt_sac"
MAY_IMPORT = {"scoring": set(), "lexical": {"scoring"}, "ranking": {"scoring"}, "report": {"scoring", "lexical"}}


def module_name(path):
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def imported(path, modules):
    """The package's modules that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                yield submodule if submodule in modules else node.module


def import_graph(*parts):
    modules = {module_name(path): path for part in parts for path in (PACKAGE / part).rglob("*.py")}
    return {name: set(imported(path, modules)) for name, path in modules.items()}


def test_rooms_import_one_way():
    for name, others in import_graph("evaluation").items():
        room = name.split(".")[2] if name.count(".") > 1 else None
        for other in others:
            if room and other.startswith("pysimt_sac.evaluation"):
                assert other.split(".")[2] in MAY_IMPORT[room] | {room}, f"{name} imports {other}"


def test_no_module_imports_itself_in_a_circle():
    TopologicalSorter(import_graph("evaluation", "corpora", "commands")).prepare()
