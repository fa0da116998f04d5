"""Measures whether the view of each policy contains what the agent needed next. Sessions are replayed request by
request.

For every reply, the view is built that the policy would have sent within a budget. Sessions that fit the budget are
left out, because no policy folds them. The agent's own summaries are left out, too.

The agent needs the locators of its calls (names and values that must be known exactly). The benchmark counts the
locators that occurred earlier, and prints the share that the view contains, verbatim or in a digest. `long-range` is
this share for locators that the newest messages do not contain, and `in context` counts them only beside other words of
a line that they came from. `edits` is the share of edits whose replaced line is in the view word for word.

foldline's presets are compared with four simple policies: everything, a sliding window, dropping to half, and clearing
old results. `cost` is the cost of the input with a prompt cache that never expires, compared with sending everything.
`paused` is the same with a cache that expires in every long pause.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench.counting import half
from bench.locators import edited_line, in_context, locators, said_text, visible_text
from bench.replay import LEAST, READ, TOLERANCE, WRITE
from foldline.errors import FoldlineError, ViewTooLarge
from foldline.message import Message, Part, Text, ToolResult
from foldline.policy import Policy
from foldline.replay import request_positions
from foldline.session import Session
from foldline.session.transcript_session import without_usage
from foldline.wire import read_all

SOURCES = ("entire-claude-code", "entire-codex", "pi-sessions")
BUDGET = 40_000
NEAR = 10
"""Number of newest messages that count as near. `long-range` leaves out the locators that they contain."""
LIFE = 300.0
"""Time to live of the prompt cache, in seconds."""
PRESETS = ("balanced", "thrifty")
HAND = ("everything", "sliding window", "drop to half", "clear old results")


@dataclass
class Tally:
    """The counts for the requests of one source under one policy."""

    sessions: int = 0
    requests: int = 0
    folds: int = 0
    over: int = 0
    refused: int = 0
    needed: int = 0
    shown: int = 0
    far: int = 0
    far_shown: int = 0
    far_context: int = 0
    edits: int = 0
    edits_shown: int = 0
    cost: float = 0.0
    cost_all: float = 0.0
    paused: float = 0.0
    paused_all: float = 0.0

    def add(self, other: Tally) -> None:
        """Add another tally to this one."""
        for name, value in asdict(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass(frozen=True)
class Job:
    """One file to replay under several policies."""

    source: str
    path: Path
    policies: tuple[str, ...]
    budget: int
    knobs: str


def main(argv: Sequence[str]) -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(prog="python -m bench foresight", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--policy", action="append", help=f"by default {', '.join((*HAND, *PRESETS))}")
    parser.add_argument("--budget", type=int, default=BUDGET)
    parser.add_argument("--knobs", default="{}", help="knobs that differ from the presets, as JSON")
    parser.add_argument("--source", action="append", choices=SOURCES)
    parser.add_argument("--half", choices=("chosen on", "quoted"), help="only this half of the files")
    parser.add_argument("--files", type=int, default=10**6, help="maximum number of files per source")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    policies = tuple(options.policy or (*HAND, *PRESETS))
    jobs = [
        Job(source, path, policies, options.budget, options.knobs)
        for source in options.source or SOURCES
        for path in sorted((options.data / source).rglob("*"))[: options.files]
        if path.is_file() and not path.name.startswith(("LICENSE", "NOTICE")) and options.half in {None, half(path)}
    ]
    totals: dict[tuple[str, str], Tally] = {}
    with ProcessPoolExecutor(options.jobs) as pool:
        for done, result in enumerate(pool.map(run, jobs), start=1):
            for policy, tally in result.items():
                totals.setdefault((jobs[done - 1].source, policy), Tally()).add(tally)
            print(f"\r{done}/{len(jobs)} files", end="", file=sys.stderr)
    print(file=sys.stderr)
    rows = [{"source": source, "policy": policy, **asdict(tally)} for (source, policy), tally in totals.items()]
    print(json.dumps(rows) if options.json else _table(totals))
    return 0


def run(job: Job) -> dict[str, Tally]:
    """Replay one file under all its policies."""
    found: dict[str, Tally] = {}
    try:
        transcripts = read_all(job.path)
    except FoldlineError:
        return found
    for transcript in transcripts:
        messages = without_usage(message for message in transcript.messages if message.kind != "digest")
        model = next((message.meta.model for message in messages if message.meta.model), "")
        if sum(map(Session(model=model).size, messages)) > job.budget:
            for policy in job.policies:
                _replay(messages, _policy(policy, job, model), found.setdefault(policy, Tally()))
    return found


class Hand:
    """A simple policy: a list of messages from which the oldest content is removed when it is too large."""

    def __init__(self, name: str, budget: int, model: str) -> None:
        self.session = Session(model=model, policy=Policy.preset("verbatim").but(window_tokens=1 << 40, reply_tokens=0))
        self.name, self.budget, self.cut, self.folds = name, budget, 0, 0
        self.cleared: dict[int, Message] = {}

    def add(self, message: Message) -> None:
        """Add a message."""
        self.session.add(message)

    def size(self, message: Message) -> int:
        """The size of a message in tokens."""
        return self.session.size(message)

    def messages(self) -> Sequence[Message]:
        """The messages to send."""
        if self.name != "everything" and self._total() > self.budget:
            self.folds += 1
            if self.name == "clear old results":
                self._clear(self.budget // 2)
            else:
                self._drop(self.budget if self.name == "sliding window" else self.budget // 2)
        timeline = self.session.timeline
        return [
            *timeline.messages[: timeline.lead],
            *(
                self.cleared.get(index, timeline.messages[index])
                for index in range(max(timeline.lead, self.cut), len(timeline))
            ),
        ]

    def _total(self) -> int:
        timeline = self.session.timeline
        saved = sum(
            timeline.tokens(index) - self.size(stub) for index, stub in self.cleared.items() if index >= self.cut
        )
        return timeline.prefix[-1] - timeline.prefix[self.cut] - saved

    def _drop(self, room: int) -> None:
        timeline = self.session.timeline
        cuts = [cut for cut in timeline.cuts["step"] if timeline.prefix[-1] - timeline.prefix[cut] <= room]
        self.cut = max(self.cut, cuts[0] if cuts else timeline.tail)

    def _clear(self, room: int) -> None:
        timeline = self.session.timeline
        for index in range(timeline.tail):
            message = timeline.messages[index]
            if index not in self.cleared and message.results:
                self.cleared[index] = message.with_parts(*map(_cleared, message.parts))
                if self._total() <= room:
                    return
        if self._total() > self.budget:
            self._drop(room)


def _cleared(part: Part) -> Part:
    return replace(part, parts=(Text(text="[cleared]"),)) if isinstance(part, ToolResult) else part


class Ours:
    """A preset of foldline."""

    def __init__(self, policy: Policy, model: str) -> None:
        self.session = Session(model=model, policy=policy)
        self.add, self.size = self.session.add, self.session.size

    @property
    def folds(self) -> int:
        """The number of folds."""
        return self.session.folds

    def messages(self) -> Sequence[Message]:
        """The messages to send."""
        return self.session.view().messages


def _policy(name: str, job: Job, model: str) -> Hand | Ours:
    if name in HAND:
        return Hand(name, job.budget, model)
    knobs = json.loads(job.knobs)
    return Ours(Policy.preset(name).but(window_tokens=job.budget, reply_tokens=0, reserve_tokens=0, **knobs), model)


def _replay(messages: Sequence[Message], policy: Hand | Ours, tally: Tally) -> None:
    texts: list[str] = []
    memo: dict[int, tuple[Message, str, int]] = {}
    sent: Sequence[Message] = ()
    total = everything = 0
    last: float | None = None

    def known(message: Message) -> tuple[Message, str, int]:
        if id(message) not in memo:
            memo[id(message)] = (message, visible_text([message]), policy.size(message))
        return memo[id(message)]

    points = set(request_positions(messages))
    tally.sessions += 1
    for index, message in enumerate(messages):
        if index in points:
            tally.requests += 1
            cold = last is not None and message.meta.at is not None and message.meta.at - last > LIFE
            last = message.meta.at if message.meta.at is not None else last
            tally.paused_all += cost(total, 0 if cold else everything)
            tally.cost_all += cost(total, everything)
            everything = total
            try:
                view = policy.messages()
            except ViewTooLarge:
                tally.refused += 1
                view, sent = (), ()
            else:
                sizes = [known(each)[2] for each in view]
                same = sum(sizes[: _common(sent, view)])
                tally.over += sum(sizes) > TOLERANCE * (policy.session.usable if isinstance(policy, Ours) else 1 << 40)
                tally.paused += cost(sum(sizes), 0 if cold else same)
                tally.cost += cost(sum(sizes), same)
                sent = view
            _judge(tally, list(_reply(messages, index)), texts, "\n".join(known(each)[1] for each in view))
        policy.add(message)
        texts.append(said_text([message]))
        total += policy.size(message)
    tally.folds += policy.folds


def _reply(messages: Sequence[Message], index: int) -> Iterator[Message]:
    for message in messages[index:]:
        if message.role != "assistant":
            return
        yield message


def _common(old: Sequence[Message], new: Sequence[Message]) -> int:
    count = 0
    for one, other in zip(old, new, strict=False):
        if one is not other and one != other:
            break
        count += 1
    return count


def cost(tokens: int, common: int) -> float:
    """The price of a request, if its first `common` tokens are in the cache."""
    read = min(common, tokens) if common >= LEAST else 0
    return READ * read + WRITE * (tokens - read)


def _judge(tally: Tally, reply: list[Message], texts: list[str], shown: str) -> None:
    calls = [call for message in reply for call in message.calls]
    wanted = sorted({locator for call in calls for locator in locators(call)})
    lines = [line for line in map(edited_line, calls) if line]
    if not wanted and not lines:
        return
    earlier, near = "\n".join(texts), "\n".join(texts[-NEAR:])
    for locator in wanted:
        if locator in near:
            tally.needed += 1
            tally.shown += locator in shown
        elif locator in earlier:
            visible = locator in shown
            tally.needed += 1
            tally.shown += visible
            tally.far += 1
            tally.far_shown += visible
            tally.far_context += visible and in_context(locator, earlier, shown)
    for line in lines:
        if line in earlier:
            tally.edits += 1
            tally.edits_shown += line in shown


def _table(totals: dict[tuple[str, str], Tally]) -> str:
    head = f"{'source':<20}{'policy':<18}{'sessions':>9}{'requests':>9}{'folds':>6}{'over':>6}{'refused':>8}"
    lines = [head + f"{'cost':>6}{'paused':>8}{'FRR':>7}{'long-range':>12}{'in context':>12}{'edits':>7}"]
    for (source, policy), t in totals.items():
        row = f"{source:<20}{policy:<18}{t.sessions:>9}{t.requests:>9}{t.folds:>6}{t.over:>6}{t.refused:>8}"
        row += (
            f"{t.cost / max(1, t.cost_all):>6.2f}{t.paused / max(1, t.paused_all):>8.2f}{_share(t.shown, t.needed):>7}"
        )
        lines.append(
            row
            + f"{_share(t.far_shown, t.far):>12}{_share(t.far_context, t.far):>12}{_share(t.edits_shown, t.edits):>7}"
        )
    return "\n".join(lines)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "-"
