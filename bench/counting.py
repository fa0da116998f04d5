"""Measures how well foldline predicts the size of the next request, compared with the usage in recorded sessions.

Each session with usage is replayed message by message. Before each reply, `Gauge` predicts the size of the request; the
usage of the reply is its true size. No request is left out. Two kinds of request have rows of their own, because no
earlier figure helps: the first request, whose system prompt and tools are not in the log, and the request after a fold.
Constants were chosen on the files whose name has an even SHA-256; only the figures of the other half are quoted. The
hash is computed without `.gz`, because the published sessions were sampled by the full name.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from math import ceil
from pathlib import Path
from typing import Any

from foldline.measure.calibration import Calibration
from foldline.measure.estimator import Estimator
from foldline.measure.message_size import Framing, message_tokens, part_tokens
from foldline.measure.usage_anchor import Gauge
from foldline.message import Media, Message, Part, Thinking, ToolResult
from foldline.models.table import model
from foldline.wire import reader
from foldline.wire.formats import Transcript, framing_of

SOURCES = (
    ("entire-claude-code", "entire-claude-code/*.jsonl*", "claude-code"),
    ("entire-codex (Claude Code)", "entire-codex/claude-*.jsonl*", "claude-code"),
    ("entire-codex (Codex)", "entire-codex/codex-*.jsonl*", "codex"),
    ("pi-sessions", "pi-sessions/*.jsonl*", "pi"),
)
GOAL = {"p50": 0.3, "p95": 3.0}
"""Largest error in per cent of the true size, for requests with an anchor."""
OFF = 0.01
"""If an error is a larger share of the true size than this, its cause is reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The predicted and the true size of one request."""

    place: str
    tokens: int
    upper: int
    void: tuple[int, int]
    """`tokens` and `upper` without the anchor. They show how good the first prediction after a fold can be."""
    true: int
    reports: int
    """Number of usage figures of this session that the gauge had seen."""
    anchored: bool
    thinks: bool
    media: bool
    cause: str

    @property
    def error(self) -> float:
        """The error as a share of the true size; negative if the prediction is too small."""
        return (self.tokens - self.true) / self.true


ROWS: tuple[tuple[str, Callable[[Prediction], bool]], ...] = (
    ("anchored", lambda it: it.anchored),
    ("  with thinking since the figure", lambda it: it.anchored and it.thinks),
    ("  with media since the figure", lambda it: it.anchored and it.media),
    ("  after exactly 1 figure", lambda it: it.anchored and it.reports == 1),
    ("  after exactly 3", lambda it: it.anchored and it.reports == 3),
    ("  after exactly 10", lambda it: it.anchored and it.reports == 10),
    ("anchor void after a fold", lambda it: not it.anchored and it.reports > 0),
    ("every request but the first", lambda it: it.reports > 0),
    ("first request (system, tools hidden)", lambda it: it.reports == 0),
)
VOID = "anchored, predicted without the anchor"


def main(argv: list[str] | None = None) -> int:
    """Print the results as a table or as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench counting", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the sessions")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.add_argument("--worst", type=int, default=0, metavar="N", help="also show the N largest errors of each half")
    options = parser.parse_args(argv)
    report = []
    for source, pattern, form in SOURCES:
        halves: dict[str, list[Prediction]] = {"chosen on": [], "quoted": []}
        for path in sorted(options.data.glob(pattern)):
            halves[half(path)].extend(predictions(read(path, form), path.name))
        report += [entry(source, name, found, options.worst) for name, found in halves.items() if found]
    print(json.dumps(report, indent=1) if options.json else "\n".join(map(table, report)))
    return 0


def half(path: Path) -> str:
    """The half of the files that a file belongs to."""
    digest = sha256(path.name.removesuffix(".gz").encode()).digest()
    return "quoted" if digest[-1] % 2 else "chosen on"


def read(path: Path, form: str) -> Transcript:
    """A session file as a transcript."""
    return reader.read(path, form)


def predictions(transcript: Transcript, name: str) -> Iterator[Prediction]:
    """The prediction for each request of a session whose reply reports usage."""
    first = next((message.meta.model for message in transcript.messages if message.meta.model), "")
    gauge = Gauge(calibration=Calibration(drops_thinking=model(first).drops_thinking))
    reports = figure = 0
    last_model, thinks, media = "", False, False
    for group in _replies(transcript.messages):
        if group[0].kind == "digest":
            gauge = gauge.after_fold(())
        usage = next((message.meta.usage for message in reversed(group) if message.meta.usage), None)
        if usage is not None and usage.prompt > 0:
            bare = replace(gauge, anchor=None)
            guess = Prediction(
                place=f"{name}:{group[0].meta.source}",
                tokens=gauge.tokens,
                upper=gauge.upper,
                void=(bare.tokens, bare.upper),
                true=usage.prompt,
                reports=reports,
                anchored=gauge.is_anchored,
                thinks=thinks,
                media=media,
                cause="",
            )
            switched = group[0].meta.model != last_model
            yield replace(guess, cause=_cause(guess, gauge.tokens - figure, figure, switched=switched))
            reports, figure, last_model, thinks, media = reports + 1, usage.prompt, group[0].meta.model, False, False
        for message in map(_with_signatures, group):
            count, framing = _counter(message.meta.model or transcript.model)
            thinking = [part for part in message.parts if isinstance(part, Thinking)]
            gauge = gauge.add(
                message,
                message_tokens(message, count, framing),
                thinking=sum(part_tokens(part, count, framing) for part in thinking),
            )
            thinks = thinks or bool(thinking)
            media = media or any(_has_media(part) for part in message.parts)


def _replies(messages: Iterable[Message]) -> Iterator[list[Message]]:
    """The messages in groups. The messages of one reply are one group, and every other message is a group of its own.

    A request was sent before each reply.
    """
    group: list[Message] = []
    for message in messages:
        if group and not (message.meta.reply and message.meta.reply == group[-1].meta.reply):
            yield group
            group = []
        group.append(message)
    if group:
        yield group


def _has_media(part: Part) -> bool:
    return isinstance(part, Media) or (isinstance(part, ToolResult) and any(map(_has_media, part.parts)))


def _with_signatures(message: Message) -> Message:
    """The message with signatures of the right length. The published data has only the length of each signature."""
    parts = tuple(_signed(part) for part in message.parts)
    return message if parts == message.parts else replace(message, parts=parts)


def _signed(part: Part) -> Part:
    value: Any = part.wire.value if isinstance(part, Thinking) and part.wire else None
    length = value.get("signature_len") if isinstance(value, dict) else None
    return replace(part, signature="A" * length) if isinstance(part, Thinking) and isinstance(length, int) else part


@cache
def _counter(name: str) -> tuple[Estimator, Framing]:
    """The default estimator and the framing of a model's wire format."""
    known = model(name)
    return Estimator(known.family), framing_of(known.format, known.media)


def _cause(guess: Prediction, added: int, figure: int, *, switched: bool) -> str:
    """The most likely cause of an error in words; empty if the error is small."""
    if abs(guess.error) <= OFF:
        return ""
    if not guess.anchored:
        return "no anchor"
    if switched:
        return "another model than before"
    if guess.true < figure:
        return "the prompt became smaller: old content or thinking was removed"
    if added > 0.1 * guess.true:
        return "a large addition, wrongly estimated"
    return "more was sent than is logged" if guess.error < 0 else "less was sent than is logged"


def entry(source: str, name: str, found: list[Prediction], worst: int) -> dict[str, Any]:
    """The results for one half of one source."""
    causes = Counter(guess.cause for guess in found if guess.cause and guess.reports)
    rows = {label.strip(): figures([guess for guess in found if test(guess)]) for label, test in ROWS}
    rows[VOID] = figures(
        [replace(guess, tokens=guess.void[0], upper=guess.void[1]) for guess in found if guess.anchored]
    )
    top = sorted((guess for guess in found if guess.reports), key=lambda guess: -abs(guess.error))[:worst]
    return {
        "source": source,
        "half": name,
        "files": len({guess.place.partition(":")[0] for guess in found}),
        "rows": rows,
        "off_by_more_than_1_percent": dict(causes.most_common()),
        "worst": [f"{guess.error:+.1%} {guess.tokens:,} for {guess.true:,} {guess.place}" for guess in top],
    }


def figures(found: list[Prediction]) -> dict[str, float]:
    """Statistics of the errors, in per cent of the true size."""
    if not found:
        return {"n": 0}
    errors = sorted(100 * abs(guess.error) for guess in found)
    under = sorted(100 * max(0.0, -guess.error) for guess in found)
    over_upper = sum(guess.true > guess.upper * (1 + OFF) for guess in found)
    return {
        "n": len(found),
        "p50": round(_at(errors, 0.5), 3),
        "p95": round(_at(errors, 0.95), 3),
        "p99": round(_at(errors, 0.99), 3),
        "under_p95": round(_at(under, 0.95), 3),
        "above_upper": round(100 * over_upper / len(found), 3),
    }


def _at(ordered: list[float], share: float) -> float:
    return ordered[max(ceil(share * len(ordered)) - 1, 0)]


def table(one: dict[str, Any]) -> str:
    """The results for one half of one source, as a table."""
    lines = [f"{one['source']}, files {one['half']}: {one['files']}"]
    lines.append(
        f"  {'error of the predicted request, % of the true size':52}     n    p50    p95    p99  under95  >upper"
    )
    for label in (*(label for label, _ in ROWS), VOID):
        row = one["rows"][label.strip()]
        if row["n"]:
            lines.append(
                f"  {label:52}{row['n']:6}{row['p50']:7.2f}{row['p95']:7.2f}{row['p99']:7.2f}"
                f"{row['under_p95']:9.2f}{row['above_upper']:8.2f}"
            )
    anchored = one["rows"]["anchored"]
    if anchored["n"]:
        met = all(anchored[name] <= bound for name, bound in GOAL.items())
        lines.append(f"  goal p50 {GOAL['p50']} %, p95 {GOAL['p95']} %: {'met' if met else 'missed'}")
    causes = one["off_by_more_than_1_percent"].items()
    lines += [f"  off by more than 1 %: {number} x {cause}" for cause, number in causes]
    return "\n".join([*lines, *(f"  {line}" for line in one["worst"]), ""])
