"""Packaging. Linters and tests are configured in pyproject.toml."""

import os
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
VERSION = next(
    line.split('"')[1]
    for line in (HERE / "pysimt_sac/__init__.py").read_text().splitlines()
    if line.startswith("__version__")
)
# Where this is built from, as the host of the repository says; a clone does not know.
REPOSITORY = os.environ.get("GITHUB_REPOSITORY", "")
OWNER, _, NAME = REPOSITORY.partition("/")
ADDRESSES = {
    "Source": f"https://github.com/{REPOSITORY}",
    "Issues": f"https://github.com/{REPOSITORY}/issues",
    "Changelog": f"https://github.com/{REPOSITORY}/blob/main/CHANGELOG.md",
    "Documentation": f"https://{OWNER}.github.io/{NAME}/",
}

setup(
    name="pysimt_sac",
    version=VERSION,
    description="Reinforcement learning for machine translation: Soft Actor-Critic and its peers, as a pysimt plugin",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license_expression="MIT",
    license_files=["LICENSE"],
    author="The pysimt_sac authors",
    keywords="machine translation, reinforcement learning, soft actor-critic, BLEU, pysimt, sequence to sequence",
    project_urls={
        **(ADDRESSES if REPOSITORY else {}),
        "Paper": "https://aclanthology.org/2021.eacl-main.164/",
        "pysimt": "https://github.com/ImperialNLP/pysimt",
    },
    python_requires=">=3.11",
    # The ready configurations stay where people look for them, and are installed inside the package.
    packages=[*find_packages(include=["pysimt_sac", "pysimt_sac.*"]), "pysimt_sac.experiments"],
    package_dir={"pysimt_sac.experiments": "experiments"},
    package_data={
        "pysimt_sac": ["py.typed", "corpora/*.tsv.gz", "reproduce/*.json", "evaluation/report/assets/*"],
        "pysimt_sac.experiments": ["*.conf", "*.toml", "reproduce/*.toml", "workers/*.py", "small_marian.py"],
    },
    install_requires=[
        "torch>=2.6,<3",
        "numpy>=1.26",
        "sacrebleu>=2.4",
        "sacremoses>=0.1",
        "subword-nmt>=0.3.8",
        "tqdm>=4.60",
    ],
    extras_require={
        "meteor": ["pycocoevalcap>=1.2"],
        "sentencepiece": ["sentencepiece>=0.2"],
        "completion": ["shtab>=1.13"],
        "tensorboard": ["tensorboard>=2.15"],
        "hf": ["transformers>=5.23,<6", "peft>=0.17", "sentencepiece>=0.2"],
        "wandb": ["wandb>=0.20"],
        "dev": [
            "pytest>=8",
            "pytest-xdist>=3.2",
            "hypothesis>=6",
            "ruff>=0.6",
            "mypy>=1.11",
            "types-tqdm",
            "setuptools>=77",
            "matplotlib>=3.8",
            "sphinx>=8",
            "myst-parser>=4",
            "furo>=2024.8",
            "shtab>=1.13",
            "tensorboard>=2.15",
            "coverage>=7.10",
            "pre-commit>=4",
            "build>=1.2",
            "transformers>=5.23,<6",
            "peft>=0.17",
            "sentencepiece>=0.2",
            "wandb>=0.20",
        ],
    },
    entry_points={
        "console_scripts": ["pysimt = pysimt_sac.cli:main", "pysimt-sac = pysimt_sac.cli:main_sac"],
    },
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Science/Research",
        *(f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13, 14)),
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
)
