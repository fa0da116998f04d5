"""Measures whether a local digest shows what an agent needed after a recorded compaction.

An agent needs the locators of its next calls (names and values that must be known exactly) that occurred before the
compaction, but not since. The benchmark prints the share of these locators in several texts: in the summary that a
model wrote, in the newest messages of the same size, in a list of words, in the local digest of the same size, and in a
local digest of a quarter of this size. `plain` counts every locator that a text contains; `in context` counts a locator
only beside other words of a line that it came from. If a log has no compaction, `--made` makes cuts at fixed places and
compares texts of a fixed size. Sizes are in characters. Constants were chosen on one half of the files; only the
figures of the other half are quoted.
"""

from __future__ import annotations

import argparse
import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import NamedTuple

from bench.counting import half
from bench.locators import in_context, locators, said_text, visible_text
from foldline.digest.extract.extraction import extract_facts
from foldline.digest.local import local_digest_text
from foldline.errors import FoldlineError
from foldline.message import Message
from foldline.policy import Policy
from foldline.session import Session
from foldline.wire import read_all

SOURCES = ("entire-claude-code", "entire-codex", "pi-sessions")
BEFORE, AFTER, AHEAD = 20, 10, 60
"""Minimum number of messages before a compaction, minimum number of calls after it, and number of calls that are
examined.
"""
SPEED_TOKENS = 150_000
MADE_CHARS = 11_000
"""Size of the texts for a cut that this benchmark makes: about the size of a recorded summary."""
MADE = (0.4, 0.6, 0.8)
GOALS = {"local": (0.95, 0.70), "local ÷4": (0.80, 0.45)}

HEADER = Policy().digest_header


class Event(NamedTuple):
    """One compaction: the messages before it, the summary that the model wrote, and the locators that were needed
    later.
    """

    source: str
    half: str
    made: bool
    before: tuple[Message, ...]
    summary: str
    needed: tuple[str, ...]


def main(argv: Sequence[str]) -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(prog="python -m bench digest", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--made", action="store_true", help="also make cuts at fixed places in logs without a compaction"
    )
    parser.add_argument("--show", type=int, metavar="N", help="print the digest of the N-th event and stop")
    parser.add_argument(
        "--speed", action="store_true", help="measure the time of a digest, by size and for the tenth of ten folds"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    if options.speed:
        print(speed(options.data))
        return 0
    events = list(found(options.data, made=options.made))
    if options.show is not None:
        event = events[options.show]
        print(local(event, len(event.summary)))
        return 0
    rows: dict[tuple[str, str, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0, 0]))
    for event in events:
        kind = "made cuts" if event.made else "compactions"
        text = said_text(event.before)
        for name, shown in shown_by(event).items():
            row = rows[(event.source, kind, event.half)][name]
            row[0] += len(event.needed)
            row[1] += sum(locator in shown for locator in event.needed)
            row[2] += sum(in_context(locator, text, shown) for locator in event.needed)
    print(json.dumps([{"of": key, **value} for key, value in rows.items()]) if options.json else _table(rows, events))
    return 0


def found(data: Path, *, made: bool) -> Iterator[Event]:
    """All compactions in the data."""
    for source in SOURCES:
        for path in sorted((data / source).rglob("*")):
            if not path.is_file() or path.name.startswith(("LICENSE", "NOTICE")):
                continue
            try:
                transcripts = read_all(path)
            except FoldlineError:
                continue
            for transcript in transcripts:
                yield from _events(source, half(path), transcript.messages, made=made)


def _events(source: str, part: str, messages: tuple[Message, ...], *, made: bool) -> Iterator[Event]:
    places = [place for place, message in enumerate(messages) if message.kind == "digest" and place]
    if not places and made:
        places = [int(share * len(messages)) for share in MADE]
    for place in places:
        before = messages[:place]
        logged = messages[place].kind == "digest"
        after = messages[place + logged :]
        following = next((at for at, message in enumerate(after) if message.kind == "digest"), len(after))
        needed, calls = _needed(before, after[:following])
        if place >= BEFORE and calls >= AFTER and needed:
            summary = messages[place].text if logged else "x" * MADE_CHARS
            yield Event(source, part, not logged, before, summary, needed)


def _needed(before: Sequence[Message], after: Sequence[Message]) -> tuple[tuple[str, ...], int]:
    """The locators of the calls after a cut, and the number of these calls.

    Only locators that occur before the cut, and not between the cut and their call, are returned.
    """
    earlier, since = said_text(before), ""
    wanted: dict[str, None] = {}
    calls = 0
    for message in after:
        for call in message.calls:
            calls += 1
            if calls <= AHEAD:
                wanted |= dict.fromkeys(found for found in sorted(locators(call)) if found not in since)
        since += "\n" + visible_text([message])
    return tuple(word for word in wanted if word in earlier), calls


def shown_by(event: Event) -> dict[str, str]:
    """The texts that are compared."""
    cap = len(event.summary)
    texts = {"tail": visible_text(event.before)[-cap:]}
    if not event.made:
        texts = {"logged summary": event.summary, **texts}
    texts["word list"] = _word_list(event, cap)
    return texts | {"local": local(event, cap), "local ÷4": local(event, cap // 4)}


def local(event: Event, cap: int) -> str:
    """The local digest with at most `cap` characters."""
    return local_digest_text(extract_facts(event.before, 0), max_tokens=cap, count_tokens=len, header=HEADER)


def _word_list(event: Event, cap: int) -> str:
    """The locators of all calls, the newest first, as many as fit."""
    words = dict.fromkeys(
        word for message in reversed(event.before) for call in message.calls for word in sorted(locators(call))
    )
    kept, room = [], cap
    for word in words:
        room -= len(word) + 1
        if room < 0:
            break
        kept.append(word)
    return " ".join(kept)


def _table(rows: dict[tuple[str, str, str], dict[str, list[int]]], events: list[Event]) -> str:
    lines = []
    for (source, kind, part), by in rows.items():
        count = sum((event.source, event.half, event.made) == (source, part, kind == "made cuts") for event in events)
        total = next(iter(by.values()))[0]
        lines.append(f"{source}, {kind}, files {part}: {count} events, {total} locators")
        for name, (all_of, plain, context) in by.items():
            goal = GOALS.get(name)
            met = goal and (plain >= goal[0] * all_of and context >= goal[1] * all_of)
            note = "" if goal is None else f"   goal {goal[0]:.0%} and {goal[1]:.0%}: {'met' if met else 'missed'}"
            lines.append(f"  {name:<16}{plain / all_of:>8.1%} plain{context / all_of:>8.1%} in context{note}")
    return "\n".join(lines)


def speed(data: Path) -> str:
    """The time for the local digest of histories of several sizes, and for the tenth of ten folds.

    The tenth fold reads only the messages since the ninth.
    """
    files = (path for path in sorted((data / SOURCES[0]).rglob("*.jsonl*")) if path.is_file())
    messages: list[Message] = []
    sizes, lines, session = [0], [], Session()
    for path in files:
        for message in read_all(path)[0].messages:
            messages.append(message)
            sizes.append(sizes[-1] + session.size(message))
        if sizes[-1] > 2 * SPEED_TOKENS:
            break
    for share in (0.25, 0.5, 1, 2):
        stop = bisect_left(sizes, int(share * SPEED_TOKENS))
        lines.append(f"{sizes[stop - 1]:>9,} tokens {_milliseconds(messages[:stop], ()):>7.0f} ms")
    stop = bisect_left(sizes, SPEED_TOKENS)
    folds = [stop * fold // 10 for fold in range(1, 10)]
    lines.append(f"the tenth of ten folds of {SPEED_TOKENS:,} tokens {_milliseconds(messages[:stop], folds):.0f} ms")
    return "\n".join(lines)


def _milliseconds(messages: Sequence[Message], folds: Sequence[int]) -> float:
    """Processor time of the last digest: the minimum of three runs. The facts of the earlier folds are extracted
    before.
    """
    facts, start = None, 0
    for fold in folds:
        facts = extract_facts(messages[start:fold], start, facts)
        start = fold
    best = float("inf")
    for _ in range(3):
        began = process_time()
        every = extract_facts(messages[start:], start, facts)
        local_digest_text(
            every,
            max_tokens=Policy.preset("balanced").digest_tokens,
            count_tokens=lambda text: -(-len(text) // 3),
            header=HEADER,
        )
        best = min(best, process_time() - began)
    return 1_000 * best
