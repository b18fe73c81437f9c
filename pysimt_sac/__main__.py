"""`python -m pysimt_sac` is `pysimt-sac`."""

from pysimt_sac.cli import main_sac

if __name__ == "__main__":
    raise SystemExit(main_sac())
