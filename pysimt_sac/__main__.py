"""`python -m pysimt_sac` is `pysimt-sac`."""

import sys

from pysimt_sac.cli import main_sac
from pysimt_sac.reproduce.orphans import end_with_parent

if __name__ == "__main__":
    end_with_parent()
    sys.exit(main_sac())
