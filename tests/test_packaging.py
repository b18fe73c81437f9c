"""What is installed is whole: the ready configurations and all other data files are in the package."""

import json
import re
import shutil
import subprocess
import sys
from email import message_from_string
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_an_installed_package_has_its_data(tmp_path):
    command = [
        sys.executable,
        "setup.py",
        "-q",
        "egg_info",
        "--egg-base",
        tmp_path,
        "build_py",
        "--build-lib",
        tmp_path,
    ]
    subprocess.run([str(word) for word in command], cwd=ROOT, check=True, capture_output=True)
    installed = {str(path.relative_to(tmp_path)) for path in (tmp_path / "pysimt_sac").rglob("*") if path.is_file()}
    data = {path for path in (ROOT / "pysimt_sac").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert {str(path.relative_to(ROOT)) for path in data} <= installed
    assert {f"pysimt_sac/experiments/{path.name}" for path in ROOT.glob("experiments/*.conf")} <= installed
    matrices = [*ROOT.glob("experiments/*.toml"), *ROOT.glob("experiments/reproduce/*")]
    assert {f"pysimt_sac/{path.relative_to(ROOT)}" for path in matrices} <= installed
    words = [sys.executable, "-m", "pysimt_sac", "config", "--list"]
    done = subprocess.run(words, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert "sac_bleu" in done.stdout, done.stderr


def metadata(tmp_path):
    """What an index would be told of the package."""
    command = [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert "deprecat" not in done.stderr.lower()
    return message_from_string((tmp_path / "pysimt_sac.egg-info/PKG-INFO").read_text(encoding="utf-8"))


def test_the_licence_is_an_expression_and_no_classifier(tmp_path):
    found = metadata(tmp_path)
    assert (found["License-Expression"], found["License-File"], found["License"]) == ("MIT", "LICENSE", None)
    assert not [name for name in found.get_all("Classifier") if name.startswith("License")]


def test_the_addresses_are_those_that_the_readme_names(tmp_path, monkeypatch):
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    addresses = [line.split(", ")[1] for line in metadata(tmp_path).get_all("Project-URL")]
    assert addresses
    assert [address for address in addresses if address not in readme] == []


def test_a_published_package_says_where_it_comes_from(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_REPOSITORY", "somebody/pysimt_sac")
    addresses = dict(line.split(", ") for line in metadata(tmp_path).get_all("Project-URL"))
    assert addresses["Issues"] == "https://github.com/somebody/pysimt_sac/issues"
    assert {"Source", "Changelog", "Documentation"} < addresses.keys()


def test_a_commit_runs_what_make_lint_runs():
    makefile = (ROOT / "Makefile").read_text()
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)[1].replace("$(BIN)", ".venv/bin")
    hooks = re.findall(r"entry: (.*?),", (ROOT / ".pre-commit-config.yaml").read_text())
    assert hooks == [line.strip() for line in lint.splitlines()]


def test_the_workflows_call_targets_that_the_makefile_has():
    makefile = (ROOT / "Makefile").read_text()
    for path in ROOT.glob(".github/workflows/*.yml"):
        for targets in re.findall(r"make ([a-z0-9. -]+)", path.read_text()):
            for target in targets.split():
                name = re.sub(r"^(test-python-)[\d.]+$", r"\1%", target)
                assert re.search(rf"^{re.escape(name)}:", makefile, re.MULTILINE), target


# No test here can build the image; these check all that it is told against what is there.

INSTRUCTIONS = [
    line.split(maxsplit=1)
    for line in (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    if line and not line.startswith("#")
]


def instructions(name):
    return [argument for word, argument in INSTRUCTIONS if word == name]


def copied():
    """The files and folders that are copied into the image, with the names that they have there."""
    for argument in instructions("COPY"):
        *sources, target = [word for word in argument.split() if not word.startswith("--")]
        yield from ((source, source if target == "./" else target) for source in sources)


def test_the_image_is_made_of_what_is_there_and_what_the_makefile_needs(tmp_path):
    """A copy of what is copied is enough for the demo to begin: nothing is done, but everything is found."""
    allowed = (ROOT / ".dockerignore").read_text().splitlines()
    for source, target in copied():
        assert f"!{source}" in allowed
        copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
        copy(ROOT / source, tmp_path / target)
    for command in [*instructions("RUN")[1:], *(" ".join(json.loads(words)) for words in instructions("CMD"))]:
        subprocess.run([*command.split(), "--dry-run"], cwd=tmp_path, check=True, capture_output=True)
    script = "import sys; sys.argv = ['demo.py', '--help']; import runpy; runpy.run_path('experiments/demo.py')"
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, env={"PYTHONPATH": str(tmp_path)})
    egg_info = [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", "."]
    subprocess.run(egg_info, cwd=tmp_path, check=True, capture_output=True)


def test_the_image_has_the_python_of_the_package_and_runs_as_no_superuser():
    (base,) = instructions("FROM")
    assert re.fullmatch(r"python:3\.11-slim", base)
    assert ">=3.11" in (ROOT / "setup.py").read_text()
    words = [word for word, _ in INSTRUCTIONS]
    assert instructions("USER") == ["user"]
    assert words.index("USER") < min(words.index("WORKDIR"), words.index("COPY"), words.index("CMD"))
    assert "useradd --create-home user" in instructions("RUN")[0]
