"""Print the local digest of a session file, with at most the given number of characters.

python examples/local_digest.py examples/broken-session.json 3000
"""

from __future__ import annotations

import sys
from pathlib import Path

from foldline.digesters import local_digest
from foldline.wire import read_all

EXAMPLE = ("examples/broken-session.json", "3000")


def main(path: str, cap: str) -> None:
    """Print the digest of the first transcript in a file."""
    print(local_digest(read_all(Path(path))[0].messages, cap=int(cap)))


if __name__ == "__main__":
    main(*(sys.argv[1:] or EXAMPLE))
