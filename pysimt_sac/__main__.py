"""`python -m pysimt_sac` is `pysimt-sac`."""

import sys

from pysimt_sac.cli import main_sac

if __name__ == "__main__":
    sys.exit(main_sac())
