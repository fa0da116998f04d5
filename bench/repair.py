"""Repairs a million broken transcripts, and checks that each of them can be sent in every format.

Each transcript is repaired, rendered and validated in all four request formats. Four kinds of faults are counted:
violations of a provider's rules, repaired transcripts that a second repair would change, valid inputs that were
changed, and, in a sample, lost texts and wrong incremental repairs. A text is lost if the output lacks it and no note
says so. An incremental repair (message by message) is wrong if its result differs from a repair of the whole
transcript. All counts must be 0. A failure prints its seed: `--seed N --count 1`.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Sequence
from operator import is_not

from bench.transcripts import transcript
from foldline.message import Message, Opaque, Text, Thinking, ToolCall, ToolResult
from foldline.wire.formats import REQUEST_FORMATS
from foldline.wire.rendering import render
from foldline.wire.repair import Repaired, RepairedHistory, repair
from foldline.wire.validate import check

CHUNK = 2000
SAMPLE = 20
"""One of this many transcripts is in the sample: its texts are compared, and it is repaired message by message."""
HARMLESS = {"blank", "empty", "no-output", "thinking-unsigned"}
"""Codes of changes that the renderer would make, too."""
DUPLICATES = {"result-duplicate", "result-interim", "call-duplicate", "item-duplicate"}
"""Codes of notes about duplicates that were left out. The texts of a duplicate may be missing."""


def main(argv: Sequence[str]) -> int:
    """Run the bench and print its figures."""
    parser = argparse.ArgumentParser(prog="python -m bench repair", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000, help="transcripts")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first transcript")
    options = parser.parse_args(argv)
    starts = range(options.seed, options.seed + options.count, CHUNK)
    chunks = [(start, min(start + CHUNK, options.seed + options.count)) for start in starts]
    total: Counter[str] = Counter()
    failures: list[str] = []
    began, done = time.perf_counter(), 0
    with multiprocessing.Pool(options.jobs) as pool:
        for counts, failed in pool.imap_unordered(run, chunks):
            total += counts
            failures += failed
            done += 1
            if done % 10 == 0 or done == len(chunks):
                rate = total["transcripts"] / (time.perf_counter() - began)
                print(f"\r{total['transcripts']:,} transcripts, {rate:,.0f}/s", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    report(total, failures, time.perf_counter() - began)
    return 1 if failures else 0


def report(total: Counter[str], failures: list[str], seconds: float) -> None:
    for key in (
        "transcripts",
        "repairs",
        "inputs that were sendable",
        "violations",
        "not idempotent",
        "changed",
        "lost",
        "not incremental",
    ):
        print(f"{key:28} {total[key]:>12,}")
    for key, count in sorted(total.items()):
        if key.startswith("code "):
            print(f"  {key[5:]:26} {count:>12,}")
    print(f"{'seconds':28} {seconds:>12,.0f}")
    print(f"{'transcripts per second':28} {total['transcripts'] / seconds:>12,.0f}")
    for failure in failures[:20]:
        print(failure)
    if len(failures) > 20:
        print(f"... and {len(failures) - 20:,} more")


def run(chunk: tuple[int, int]) -> tuple[Counter[str], list[str]]:
    """Repair all transcripts of a chunk. Garbage is collected once per chunk, because that is faster."""
    gc.disable()
    gc.collect()
    counts: Counter[str] = Counter()
    failures: list[str] = []
    for seed in range(*chunk):
        messages, whole = transcript(seed)
        counts["transcripts"] += 1
        for format in REQUEST_FORMATS:
            for kind, words in failures_of(messages, format, whole=whole, compare=seed % SAMPLE == 0, counts=counts):
                counts[kind] += 1
                failures.append(f"--seed {seed} --count 1  {format}: {kind}: {words}")
    return counts, failures


def failures_of(
    messages: list[Message], format: str, *, whole: bool, compare: bool, counts: Counter[str]
) -> list[tuple[str, str]]:
    """The faults in the repair of one transcript in one format."""
    found: list[tuple[str, str]] = []
    repaired = repair(messages, format)
    counts["repairs"] += 1
    violations = check(format, render(repaired.messages, format).body)
    for violation in violations:
        found.append(("violations", str(violation)))
        counts[f"code {violation.code}"] += 1
    again = repair(repaired.messages, format) if repaired.notes else repaired
    if (again.notes and repaired.notes) or any(map(is_not, again.messages, repaired.messages)):
        found.append(("not idempotent", "; ".join(map(str, again.notes))))
    if not repaired.notes:
        counts["inputs that were sendable"] += 1
        if len(messages) != len(repaired.messages) or any(map(is_not, messages, repaired.messages)):
            found.append(("changed", "no note, but other messages"))
    elif (whole or not is_harmless(messages, repaired)) and not check(format, render(messages, format).body):
        found.append(("changed", "; ".join(map(str, repaired.notes))))
    if compare and not DUPLICATES & {note.code for note in repaired.notes}:
        found += [("lost", repr(text)) for text in missing(messages, repaired)]
    if compare:
        history = RepairedHistory(format)
        for count in range(len(messages) + 1):
            if history.update(messages[:count]) != repair(messages[:count], format):
                found.append(("not incremental", f"after {count} messages"))
                break
    return found


def is_harmless(messages: list[Message], repaired: Repaired) -> bool:
    """Whether a repair of valid messages changed no visible content."""
    codes = {note.code for note in repaired.notes}
    return (
        codes <= HARMLESS
        or ("empty" in codes and codes <= {*HARMLESS, "start", "system-moved"})
        or has_part_in_wrong_role(messages)
    )


def has_part_in_wrong_role(messages: list[Message]) -> bool:
    """Whether a result, a call or thinking is in a message whose role cannot have it. No parser makes such a message.

    In a format in which results are separate elements (OpenAI), such a message may be valid. It is still repaired.
    """
    return any(
        (isinstance(part, ToolCall | Thinking) and (message.role != "assistant" or bool(message.kind)))
        or (isinstance(part, ToolResult) and message.role not in ("user", "tool"))
        or (isinstance(part, Opaque) and message.wire is None)
        for message in messages
        for part in message.parts
    )


def missing(messages: list[Message], repaired: Repaired) -> list[str]:
    """The texts of the input that the output does not contain."""
    held = "\n".join(texts(list(repaired.messages)))
    return [text for text in texts(messages) if text.strip() and text not in held]


def texts(messages: list[Message]) -> list[str]:
    """All texts in messages and in results."""
    parts = [part for message in messages for part in message.parts]
    inner = [part for result in parts if isinstance(result, ToolResult) for part in result.parts]
    return [part.text for part in (*parts, *inner) if isinstance(part, Text)]
