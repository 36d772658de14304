"""`python bench/run.py` runs `python -m bench`, from any folder."""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parent.parent)
    runpy.run_module("bench", run_name="__main__", alter_sys=True)
