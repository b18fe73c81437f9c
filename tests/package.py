"""Build the sdist and the wheel, install each in an empty environment, and run the README's first commands there.

    make test-package [ARGS=--tests]

With `--tests`, the quick tests run on the installed wheel, too. The built files stay in dist/.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
FEW = "train.max_iterations:4 train.eval_freq:2 train.eval_max_len:9 model.emb_dim:8 model.enc_dim:8 model.dec_dim:8"
COMMANDS = f"""\
pysimt-sac --version
pysimt-sac prepare demo --out data/demo
pysimt-sac config --copy demo_mle my.conf
pysimt train --check -C my.conf {FEW} model.lr_warmup:2
pysimt train -C my.conf {FEW} model.lr_warmup:2
pysimt-sac config --copy demo_sac_bleu sac.conf
pysimt train -C sac.conf {FEW} train.pretrained_file:./runs/my
pysimt translate runs/my -s val -m 9 -o out/my
pysimt translate runs/sac -s val -m 9 -o out/sac
pysimt-sac score --ref data/demo/val.de --metrics bleu,chrf out/sac.val.gs
pysimt-sac compare --ref data/demo/val.de --metrics bleu --baseline out/my.val.gs --system SAC out/sac.val.gs
pysimt-sac reproduce demo --out runs/demo --plan
"""


def run(*words: object, **options: object) -> None:
    """Show a command, run it, and stop at an error."""
    print("$", *words, flush=True)
    subprocess.run([str(word) for word in words], check=True, **options)  # type: ignore[call-overload]


def main() -> None:
    """Build and try both packages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", action="store_true", help="run the quick tests on the wheel")
    with_tests = parser.parse_args().tests
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", dist, ROOT, stdout=subprocess.DEVNULL)
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    for package in sorted(dist.iterdir()):
        with tempfile.TemporaryDirectory() as folder:
            environment = Path(folder) / "environment"
            venv.create(environment, with_pip=True)
            python, work = environment / "bin/python", Path(folder) / "work"
            extra = "[dev]" if with_tests and package.suffix == ".whl" else ""
            install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            run(*install, "-c", ROOT / "constraints.txt", f"{package}{extra}", env=clean)
            work.mkdir()
            for line in COMMANDS.splitlines():
                program, *words = line.split()
                run(environment / "bin" / program, *words, cwd=work, env=clean)
            if extra:
                shutil.copy(ROOT / "pyproject.toml", work)
                for name in ("tests", "docs", "experiments"):
                    shutil.copytree(ROOT / name, work / name)
                # The files beside these folders are tests of the repository, not of the package.
                folders = [path for path in (work / "tests").iterdir() if path.is_dir() and path.name != "__pycache__"]
                quick = ["-n", "auto", "--dist", "worksteal", "-m", "not slow"]
                run(python, "-m", "pytest", *quick, *sorted(folders), cwd=work, env=clean)
    print(f"Both packages in {dist} work")


if __name__ == "__main__":
    main()
