"""What is installed is whole: the ready configurations and all other data files are in the package."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_an_installed_package_has_its_data(tmp_path):
    pytest.importorskip("setuptools")
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
    assert {
        f"pysimt_sac/experiments/reproduce/{path.name}" for path in ROOT.glob("experiments/reproduce/*")
    } <= installed
    words = [sys.executable, "-m", "pysimt_sac", "config", "--list"]
    done = subprocess.run(words, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert "sac_bleu" in done.stdout, done.stderr
