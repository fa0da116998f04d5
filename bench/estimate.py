"""Compares token estimates with the counts of real tokenizers, for each source: a folder of text files or session
files.

Every file is cut into texts of at most 8,000 characters, about the size of a message. Each text is counted by the
estimator of a tokenizer family, and by the tokenizer itself. JSON escapes stay as they are, because models also read
session files. The number of characters divided by 4 is printed for comparison.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from foldline.measure.estimator import CHARS_4, MARGIN, Counter, Estimator
from foldline.measure.estimator_weights import families
from foldline.measure.tokenizers import exact_counter

MOST_CHARS = 8_000
MOST_BYTES = 2_000_000
"""Only this many bytes of a file are read, so that one large file does not decide the result of its source."""


def texts(folder: Path, most: int) -> Iterator[str]:
    """The texts of one source, at most `most` of them."""
    for path in sorted(found for found in folder.rglob("*") if found.is_file()):
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            text = file.read(MOST_BYTES).decode("utf-8", "replace")
        if "\0" in text:
            continue
        for start in range(0, len(text), MOST_CHARS):
            if most <= 0:
                return
            if len(piece := text[start : start + MOST_CHARS]) > 200:
                most -= 1
                yield piece


def errors(counter: Counter, some: list[str], truth: list[int]) -> dict[str, float]:
    """The absolute error (median and 95th percentile), the error of the total, and how often the margin is too
    small.
    """
    found = [counter.count(text).tokens for text in some]
    off = sorted(abs(mine - real) / real for mine, real in zip(found, truth, strict=True))
    short = sum(mine * (1 + MARGIN) < real for mine, real in zip(found, truth, strict=True))
    return {
        "p50 %": round(off[len(off) // 2] * 100, 1),
        "p95 %": round(off[len(off) * 95 // 100] * 100, 1),
        "total %": round((sum(found) / sum(truth) - 1) * 100, 1),
        "short with margin %": round(short / len(truth) * 100, 1),
    }


def main(argv: list[str] | None = None) -> int:
    """Print one row per source, family and counter."""
    parser = argparse.ArgumentParser(prog="python -m bench estimate", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per source")
    parser.add_argument("--family", action="append", help="which families; by default o200k_base")
    parser.add_argument("--most", type=int, default=400, help="texts of each source")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    options = parser.parse_args(argv)
    report: list[dict[str, Any]] = []
    for source in sorted(found for found in options.data.iterdir() if found.is_dir()):
        some = list(texts(source, options.most))
        for family in options.family or ["o200k_base"]:
            exact = exact_counter(family, family) if family in families() else None
            if exact is None:
                raise SystemExit(f"no exact counter for {family}: pip install '.[exact]', or another family")
            truth = [exact.count(text).tokens for text in some]
            for counter in (Estimator(family), CHARS_4) if some else ():
                row = {"source": source.name, "texts": len(some), "family": family, "counter": counter.name}
                report.append({**row, **errors(counter, some, truth)})
                if not options.json:
                    print("  ".join(f"{key} {value}" for key, value in report[-1].items()))
    if options.json:
        print(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
