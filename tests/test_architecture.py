"""The house's rules: who may import whom, and who may call what."""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "pysimt_sac"
MODULES = sorted(PACKAGE.rglob("*.py"))

# The house, from the ground up. A room may import rooms above its line, and itself; nothing below. Rooms of one line do
# not know each other. Only the tools and the front doors know a host; `hosts.choice` chooses one without importing it.
FLOORS = [
    ["core"],
    ["network", "rewards", "text"],
    ["rl"],
    ["models"],
    ["hosts.network_actor", "hosts.choice"],
    # the engine, in its own order
    ["hosts.engine.config", "hosts.engine.device"],
    ["hosts.engine.data"],
    ["hosts.engine.checkpoint"],
    ["hosts.engine.averaging", "hosts.engine.preparation", "hosts.engine.nmt"],
    ["hosts.engine.decoding"],
    ["hosts.engine.training"],
    ["hosts.engine.actor"],
    ["hosts.engine.shell"],
    ["hosts.pysimt", "hosts.huggingface"],
    # tools
    ["evaluation", "corpora"],
    ["reproduce"],
    # front doors
    ["api"],
    ["commands"],
    ["cli"],
]
ROOMS = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def room_of(module):
    """The room that a module lies in: `hosts.engine.data` of pysimt_sac.hosts.engine.data.corpus; None: the package."""
    parts = module.split(".")[1:]
    return next((name for size in (3, 2, 1) if (name := ".".join(parts[:size])) in ROOMS), None)


def imports(path):
    """All names imported anywhere in a file, as dotted strings."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    module = module_name(path)
    room = room_of(module)
    if room is None:
        assert module in ("pysimt_sac", "pysimt_sac.__main__", "pysimt_sac.hosts", "pysimt_sac.hosts.engine"), module
        return
    for name in imports(path):
        other = room_of(name) if name.startswith("pysimt_sac.") else None
        if other not in (None, room):
            assert ROOMS[other] < ROOMS[room], f"{module} imports {name}"


def test_every_room_exists():
    assert {room_of(module_name(path)) for path in MODULES} == {*ROOMS, None}


def test_only_its_own_host_imports_pysimt():
    guilty = {room_of(module_name(path)) for path in MODULES if imports_pysimt(path)}
    assert guilty == {"hosts.pysimt"}


def test_pysimts_actor_and_stepper_do_not_import_pysimt():
    for name in ("actor", "stepper", "transformer", "recipe", "resume"):
        assert not imports_pysimt(PACKAGE / f"hosts/pysimt/{name}.py")


def imports_pysimt(path):
    return any(re.match(r"pysimt(\.|$)", name) for name in imports(path))


def test_no_algorithm_knows_another():
    for path in (PACKAGE / "models").glob("[!_]*.py"):
        assert not [name for name in imports(path) if name.startswith("pysimt_sac.models")], path


def module_name(path):
    """`pysimt_sac/rl/losses.py` is pysimt_sac.rl.losses, `pysimt_sac/rl/__init__.py` is pysimt_sac.rl."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def import_graph(modules):
    """Which module imports which, anywhere in its file. By name: what is imported may be a module or something in it.

    Importing a module runs the packages around it, too; a module's own packages are already running.
    """
    texts = {module_name(path): path for path in modules}
    graph = {}
    for module, path in texts.items():
        found = set()
        for name in imports(path):
            parts = name.split(".")
            found.update(".".join(parts[:size]) for size in range(1, len(parts) + 1))
        graph[module] = {name for name in found & set(texts) if not f"{module}.".startswith(f"{name}.")}
    return graph


def cycles(graph):
    """The strongly connected components with more than one member: all that can reach each other (Tarjan 1972)."""
    number, lowest, path, found = {}, {}, [], []

    def visit(node):
        number[node] = lowest[node] = len(number)
        path.append(node)
        for other in sorted(graph[node]):
            if other not in number:
                visit(other)
            if other in path:
                lowest[node] = min(lowest[node], lowest[other])
        if lowest[node] == number[node]:
            component = set(path[path.index(node) :])
            del path[path.index(node) :]
            if len(component) > 1:
                found.append(component)

    for node in sorted(graph):
        if node not in number:
            visit(node)
    return found


def test_cycles_are_found():
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"a"}}) == [{"a", "b", "c"}]
    assert cycles({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set()}) == []


def test_no_import_goes_in_a_circle():
    """Also not through imports within functions."""
    graph = import_graph(MODULES)
    assert "pysimt_sac.hosts.pysimt.actor" in graph["pysimt_sac.hosts.pysimt.host"]
    assert "pysimt_sac.rl.critic" in graph["pysimt_sac.models.sac"]
    assert cycles(graph) == []


def test_only_the_checkpoint_module_saves_and_loads():
    for path in MODULES:
        if path.name != "checkpoint.py":
            assert not re.search(r"torch\.(save|load)\(", path.read_text()), path


def test_only_the_command_line_prints():
    for path in MODULES:
        if room_of(module_name(path)) not in ("cli", "commands"):
            calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
            assert not any(getattr(call.func, "id", "") == "print" for call in calls), path


def test_asking_for_help_is_quick_because_nothing_heavy_is_imported():
    import subprocess
    import sys

    script = "import sys; from pysimt_sac.cli import main_sac; import contextlib\n"
    script += "with contextlib.suppress(SystemExit): main_sac(['train', '--help'])\n"
    script += "assert 'torch' not in sys.modules and 'sacrebleu' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
