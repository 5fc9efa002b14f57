"""`make bench`: every benchmark that this machine can run, one after another."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = ("startup.py", "calls.py", "trace.py", "compile.py", "vector_add.py")


def main():
    worst = 0
    for name in PROGRAMS:
        if (HERE / name).exists():
            print(f"== bench/{name}", flush=True)
            worst = max(worst, subprocess.run([sys.executable, str(HERE / name)]).returncode)
            print(flush=True)
    return worst


if __name__ == "__main__":
    sys.exit(main())
