"""Compares the cost of a rule on `cost` with never folding, with folding when the window is full, and with the optimum.

Each recorded session is replayed request by request, and the cost of its input is computed. A request begins with
18,000 tokens of system prompt and tools, and a digest has 2,000 tokens. A cached token costs 0.1 and any other token
1.25. After a pause of more than five minutes, no token is cached. All rules cut at the same floor and use the same
window. Only `keep-all`, which never folds, ignores the window; its cost is 1.00. Sessions shorter than the floor have
nothing to fold and are only counted. The stake was chosen on one half of the files; only the figures of the other half
are quoted.

`bound` is the cheapest schedule that never costs more than keep-all plus the stake, whenever the session ends. No rule
that keeps this bound can cost less. `unpaid` is the number of requests at which the session had cost more so far than
keep-all; if it had ended there, it would count as above keep-all.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import mean

from bench.counting import SOURCES, half, read
from bench.hindsight import Trace, TracedRequest, never, optimum, replay_cost
from foldline.measure.estimator import Count
from foldline.measure.message_size import Framing, message_tokens
from foldline.message import Message
from foldline.plan.cut import floor
from foldline.plan.fold_cost import STAKE, TokenPrices
from foldline.plan.timeline import Timeline
from foldline.policy import Policy

HEAD = 18_000
DIGEST = 2_000
FLOORS = (6_000, 12_000, 20_000)
WINDOWS = (58_000, 98_000, 168_000)
CHARS_PER_TOKEN = {"claude-code": 2.9, "codex": 3.44, "pi": 3.2}
FRAMING = Framing(name="bench", message=0, part=4, call=0, result=0)
GOAL = 1.10
"""Largest cost of the rule, as a multiple of the optimum."""


@dataclass(frozen=True, slots=True)
class CharsBy:
    """A counter that divides the number of characters by a constant."""

    per_token: float
    name: str = "chars"
    exact: bool = False

    def count(self, text: str) -> Count:
        """The size of a text."""
        return Count(round(len(text) / self.per_token), self.exact, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The costs of one session with one floor and one window."""

    name: str
    keep_all: float
    optimum: float
    bound: float
    """The optimum of the schedules that never cost more than keep-all plus the stake."""
    rent: float
    full: float
    folds: int
    unpaid: int
    """Number of requests at which the session had cost more so far than keep-all."""
    forced: bool
    """Whether the session does not fit the window without a fold."""


def main(argv: list[str] | None = None) -> int:
    """Print the table, or every session as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench economy", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the sessions")
    parser.add_argument("--json", action="store_true", help="every session, machine-readable")
    parser.add_argument(
        "--stake", type=float, default=STAKE, help="largest extra cost of a session compared with never folding"
    )
    parser.add_argument(
        "--ttl", type=float, default=300.0, help="time to live of the cache in seconds; inf: it never expires"
    )
    parser.add_argument("--model-digest", action="store_true", help="a model writes the digests, at the same prices")
    options = parser.parse_args(argv)
    prices = TokenPrices(ttl_seconds=options.ttl)
    digester = prices if options.model_digest else None
    report: list[Row] = []
    for source, pattern, form in SOURCES:
        paths = sorted(options.data.glob(pattern))
        talks = {path: read(path, form).messages for path in paths}
        for name, keep in product(("chosen on", "quoted"), FLOORS):
            traces = {path.name: trace(talks[path], form, keep) for path in paths if half(path) == name}
            useful = {file: one for file, one in traces.items() if any(request.floor for request in one.requests)}
            for window in WINDOWS if traces else ():
                found = [
                    measure(file, replace(one, window=window, digester=digester), prices, options.stake)
                    for file, one in useful.items()
                ]
                report.append((source, name, keep, window, len(traces), found))
    print("\n".join(_json(report) if options.json else table(report)))
    return 0


def trace(messages: Sequence[Message], form: str, keep: int) -> Trace:
    """The sizes of a session's requests, and the floor at each request."""
    policy, counter = Policy(keep_tokens=keep), CharsBy(CHARS_PER_TOKEN[form])
    talk, sent, requests = Timeline(), 0, list[TracedRequest]()
    for before, message in zip((None, *messages), messages, strict=False):
        if before is not None and _asks(before, message) and len(talk) > talk.lead:
            total = talk.prefix[-1] - talk.prefix[talk.lead]
            lowest = talk.prefix[floor(talk, policy, 0)] - talk.prefix[talk.lead]
            requests.append(TracedRequest(added=total - sent, floor=lowest, at=before.meta.at or message.meta.at))
            sent = total
        talk.append(message, message_tokens(message, counter, FRAMING))
    return Trace(requests=tuple(requests), head=HEAD, digest=DIGEST)


def _asks(before: Message, message: Message) -> bool:
    """Whether a request was sent between two messages. A request is sent before a reply; a reply may be several
    messages.
    """
    if message.role != "assistant":
        return False
    return before.role != "assistant" or message.meta.reply != before.meta.reply


def measure(name: str, one: Trace, prices: TokenPrices, stake: float) -> Result:
    """The cost of every rule on one session."""
    rent = replay_cost(one, prices, lambda rent, proposal: rent.earned_share(proposal, prices, stake=stake) >= 1)
    total = sum(request.added for request in one.requests)
    return Result(
        name=name,
        keep_all=replay_cost(replace(one, window=None), prices, never).cost,
        optimum=optimum(one, prices).cost,
        bound=optimum(one, prices, stake=stake).cost,
        rent=rent.cost,
        full=replay_cost(one, prices, never).cost,
        folds=len(rent.folds),
        unpaid=rent.unpaid,
        forced=not one.fits(0, total),
    )


Row = tuple[str, str, int, int, int, list[Result]]


def table(report: Sequence[Row]) -> Iterator[str]:
    """The costs by source, half, floor and window, as shares of the cost of keep-all."""
    head = f"{'floor':>6} {'window':>7} {'files':>5} {'used':>4}  {'optimum':>7} {'rent':>6} {'full':>6}  "
    head += f"{'bound/opt':>9} {'rent/opt':>8} {'full/opt':>8} {'worst':>6} {'folds':>5} {'unpaid':>6}  "
    head += "above keep-all (worst)"
    last = ("", "")
    for source, name, keep, window, files, found in report:
        if (source, name) != last:
            yield f"\n{source}, {name}\n{head}"
            last = (source, name)
        line = f"{keep:>6,} {window:>7,} {files:>5} {len(found):>4}  "
        yield line + (_figures(found) if found else "nothing to fold")
    yield f"\n{_verdict(report)}"


def _figures(found: Sequence[Result]) -> str:
    everything, best = sum(it.keep_all for it in found), sum(it.optimum for it in found)
    rent, full = sum(it.rent for it in found), sum(it.full for it in found)
    worst, bound = max(it.rent / it.optimum for it in found), sum(it.bound for it in found)
    unpaid = sum(it.unpaid for it in found if not it.forced)
    return (
        f"{best / everything:>7.3f} {rent / everything:>6.3f} {full / everything:>6.3f}  "
        f"{bound / best:>9.3f} {rent / best:>8.3f} {full / best:>8.3f} {worst:>6.2f} "
        f"{mean(it.folds for it in found):>5.1f} {unpaid:>6}  {_above(found)}"
    )


def _above(found: Sequence[Result]) -> str:
    """The number of sessions in which the rule costs more than keep-all.

    Sessions that do not fit the window without a fold are counted separately.
    """
    free = [it.rent / it.keep_all for it in found if not it.forced and it.rent > it.keep_all * (1 + 1e-9)]
    forced = [it for it in found if it.forced and it.rent > it.keep_all * (1 + 1e-9)]
    said = f"{len(free)} ({max(free):.3f})" if free else "0"
    if forced:
        same = sum(it.optimum > it.keep_all for it in forced)
        said += f"; forced by the window: {len(forced)} ({max(it.rent / it.keep_all for it in forced):.3f})"
        said += f", of these {same} also in the optimum"
    return said


def _verdict(report: Sequence[Row]) -> str:
    rows = [found for _, name, _, _, _, found in report if found and name == "quoted"]
    ratios = [sum(it.rent for it in found) / sum(it.optimum for it in found) for found in rows]
    above = sum(it.rent > it.keep_all * (1 + 1e-9) for found in rows for it in found if not it.forced)
    word = "reached" if max(ratios, default=1.0) <= GOAL else "MISSED"
    return (
        f"goal {word}: at most {max(ratios, default=1.0):.3f} times the optimum on the quoted half (goal {GOAL:.2f}); "
        f"{above} sessions above keep-all where keep-all fits"
    )


def _json(report: Sequence[Row]) -> Iterator[str]:
    for source, name, keep, window, _, found in report:
        for it in found:
            figures = {field: getattr(it, field) for field in Result.__slots__}
            yield json.dumps({"source": source, "half": name, "floor": keep, "window": window, **figures})


if __name__ == "__main__":
    raise SystemExit(main())
