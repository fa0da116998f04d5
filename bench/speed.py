"""Measures the speed of counting, and the time that `import foldline` adds to the start of Python.

Exact counting is compared with tiktoken; the estimator is measured in MB/s. Ratios of one run are reported, because
absolute times depend on the machine. The texts are part of every Python installation. Each text is timed once by each
counter, because a session also counts each text once. tiktoken would download its vocabularies, so splintr's
vocabularies are written to the files that tiktoken reads. tiktoken checks the SHA-256 of these files.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from foldline.measure.estimator import CHARS_4, Counter, Estimator
from foldline.measure.message_size import message_tokens
from foldline.measure.tokenizers import _TIKTOKEN_FILES, exact_counter, golden_counts
from foldline.message import user
from foldline.wire.formats import framing_of

SIZES = {"cl100k_base": 100_256, "o200k_base": 199_998}
"""Number of tokens in each vocabulary, without special tokens."""
EXACT_GOAL, IMPORT_GOAL = 2.0, 3.0
ROUNDS = 10

OTHER = (
    "请帮我修复这个程序里的错误，并写一个测试。",
    "このプログラムのバグを修正して、テストを書いてください。",
    "이 프로그램의 오류를 고치고 테스트를 작성해 주세요.",
    "Исправьте, пожалуйста, ошибку в этой программе и напишите тест.",
    "من فضلك أصلح الخطأ في هذا البرنامج واكتب اختبارا.",
    "कृपया इस प्रोग्राम की गलती ठीक करें और एक परीक्षण लिखें।",
)


def documents(count: int, seed: int) -> dict[str, list[str]]:
    """Texts like the messages of a coding session, made from Python's manual and source code."""
    chance = random.Random(seed)
    topics: dict[str, str] = import_module("pydoc_data.topics").topics
    manual = "\n".join(topics.values())
    source = "\n".join(path.read_text("utf-8", "replace") for path in sorted(Path(os.__file__).parent.glob("*.py")))
    lines = source.splitlines()

    def prose() -> str:
        start = chance.randrange(len(manual) - 8_000)
        return manual[start : start + chance.randint(500, 8_000)]

    def code() -> str:
        start = chance.randrange(len(source) - 12_000)
        return source[start : start + chance.randint(500, 12_000)]

    def tool() -> str:
        start = chance.randrange(len(lines) - 100)
        hits = [{"path": f"/usr/lib/{start}.py", "line": start + n, "text": lines[start + n]} for n in range(80)]
        return json.dumps({"matches": hits, "truncated": True})

    def mixed() -> str:
        start = chance.randrange(len(lines) - 100)
        return "\n".join(chance.choice(OTHER) + " " + lines[start + n].strip() for n in range(60))

    return {maker.__name__: [maker() for _ in range(count)] for maker in (prose, code, tool, mixed)}


def lend(folder: Path) -> None:
    """Write splintr's vocabularies to a folder, and make tiktoken read them."""
    tokenizer: Any = import_module("splintr").Tokenizer
    for vocabulary, size in SIZES.items():
        decode = tokenizer.from_pretrained(vocabulary).decode_bytes
        lines = (base64.b64encode(decode([rank])) + f" {rank}\n".encode() for rank in range(size))
        (folder / _TIKTOKEN_FILES[vocabulary][0]).write_bytes(b"".join(lines))
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)


def seconds(work: Callable[[str], object], texts: list[str]) -> float:
    began = time.perf_counter()
    for text in texts:
        work(text)
    return time.perf_counter() - began


def duel(ours: Callable[[str], object], theirs: Callable[[str], object], texts: list[str]) -> tuple[float, float]:
    """The seconds of two counters for all texts, computed from the median of ten rounds with new texts.

    The counters take turns, so that other work on the machine slows both down equally.
    """
    rounds = [texts[start::ROUNDS] for start in range(ROUNDS)]
    pairs = [(seconds(ours, some), seconds(theirs, some)) for some in rounds]
    return median(pair[0] for pair in pairs) * ROUNDS, median(pair[1] for pair in pairs) * ROUNDS


def exact(texts: dict[str, list[str]]) -> list[dict[str, Any]]:
    """The speed of exact counting and of tiktoken, and whether both give the same counts.

    The counts of every text and of the golden vectors are compared.
    """
    tiktoken: Any = import_module("tiktoken")
    rows = []
    for vocabulary in SIZES:
        counter = exact_counter(vocabulary, vocabulary)
        if counter is None:
            raise SystemExit("no exact counter: pip install '.[exact]'")
        encode = tiktoken.get_encoding(vocabulary).encode_ordinary
        same = [len(encode(text)) for text in golden_counts()[0]] == list(golden_counts()[1][vocabulary])
        for kind, some in texts.items():
            mine, theirs = duel(counter.count, encode, some)
            differ = sum(counter.count(text).tokens != len(encode(text)) for text in some)
            size = sum(len(text.encode()) for text in some) / 1e6
            rows.append(
                {
                    "vocabulary": vocabulary,
                    "text": kind,
                    "counter": counter.name,
                    "MB/s": round(size / mine, 1),
                    "tiktoken MB/s": round(size / theirs, 1),
                    "ratio": round(theirs / mine, 2),
                    "differences": differ,
                    "golden vectors equal": same,
                }
            )
    return rows


def estimates(texts: dict[str, list[str]]) -> list[dict[str, Any]]:
    """The speed of the estimator, and the time to measure one message of 2 kB with the fastest counter."""
    counter: Counter = Estimator("o200k_base")
    rows = []
    for kind, some in texts.items():
        best = min(seconds(counter.count, some) for _ in range(3))
        rows.append({"text": kind, "MB/s": round(sum(len(text.encode()) for text in some) / 1e6 / best, 1)})
    message, framing = user("x" * 2_000), framing_of("anthropic")
    began = time.perf_counter()
    for _ in range(20_000):
        message_tokens(message, CHARS_4, framing)
    rows.append({"text": "message_tokens, 2 kB, chars/4", "µs": round((time.perf_counter() - began) / 20_000 * 1e6, 2)})
    return rows


def starts(rounds: int) -> dict[str, float]:
    """The time to start Python with `import json`, and with `import foldline` in addition."""
    times: dict[str, list[float]] = {"import json": [], "import json, foldline": []}
    for _ in range(rounds):
        for code, found in times.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            found.append(time.perf_counter() - began)
    bare, full = (median(found) for found in times.values())
    return {"bare ms": round(bare * 1e3, 1), "foldline ms": round(full * 1e3, 1), "ratio": round(full / bare, 2)}


def main(argv: list[str] | None = None) -> int:
    """Print the figures and whether the goals are met."""
    parser = argparse.ArgumentParser(prog="python -m bench speed", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--documents", type=int, default=400, help="texts of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="machine-readable")
    options = parser.parse_args(argv)
    texts = documents(options.documents, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        lend(Path(folder))
        rows = exact(texts)
    estimated, start = estimates(texts), starts(15)
    middle = round(median(row["ratio"] for row in rows), 2)
    good = all(row["golden vectors equal"] and not row["differences"] for row in rows)
    verdict = {
        "exact: median ratio": middle,
        "exact: equal": good,
        "goals met": bool(good and middle >= EXACT_GOAL and start["ratio"] <= IMPORT_GOAL),
    }
    if options.json:
        report = {"exact": rows, "estimator": estimated, "start": start, "verdict": verdict}
        print(json.dumps(report, ensure_ascii=False, indent=1))
    else:
        for row in (*rows, *estimated, start, verdict):
            print("  ".join(f"{key} {value}" for key, value in row.items()))
    return 0 if verdict["goals met"] else 1


if __name__ == "__main__":
    sys.exit(main())
