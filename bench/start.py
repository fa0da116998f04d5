"""Measures the start of `import foldline` and of `foldline --help`, each in a new process.

The shortest times of several rounds are printed, also as multiples of the time of bare Python. The goals are three
times bare Python for the import, and 150 ms for the help. The first import compiles the package and is not counted.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence

IMPORT_RATIO, HELP_MS = 3.0, 150.0
STARTS = {
    "python -c pass": ["-c", "pass"],
    "python -c 'import foldline'": ["-c", "import foldline"],
    "foldline --help": ["-m", "foldline.cli", "--help"],
}


def main(argv: Sequence[str]) -> int:
    """Print the times. The exit code is 1 if a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench start", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args(argv).rounds
    times = {
        name: [_milliseconds(arguments) for arguments in [given] * (rounds + 1)][1:] for name, given in STARTS.items()
    }
    bare, imported, helped = (min(found) for found in times.values())
    for name, found in times.items():
        print(f"{name:<28} {min(found):7.1f} ms  {min(found) / bare:5.2f} x bare Python")
    is_met = imported <= IMPORT_RATIO * bare and helped <= HELP_MS
    print(f"goals (import at most {IMPORT_RATIO:g} x, help at most {HELP_MS:g} ms): {'met' if is_met else 'missed'}")
    return int(not is_met)


def _milliseconds(arguments: Sequence[str]) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return 1000 * (time.perf_counter() - began)
