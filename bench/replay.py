"""Replays recorded agent sessions request by request under policies and budgets, and checks that every request is
valid.

For each reply of a session, the request is built from the messages before it. The request is rendered in the session's
own format and checked by the provider's rules. The request without a policy is checked, too, to tell new faults from
faults in the recording. The benchmark also counts requests above the budget and requests that foldline refused. It
measures the share of the previous request that stays an unchanged prefix, and the cost of the input with a prompt
cache, compared with sending everything. The usage figures in a log are ignored, because they belong to other requests.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from foldline.errors import FoldlineError
from foldline.measure.message_size import message_tokens
from foldline.message import Message
from foldline.policy import Policy, presets
from foldline.replay import replay_steps, request_positions
from foldline.session import Session
from foldline.session.transcript_session import context_segments, without_usage
from foldline.wire import REQUEST_FORMATS, Transcript, read_all, render
from foldline.wire.formats import element_format
from foldline.wire.validate import check

AGENTS = ("entire-claude-code", "entire-codex", "pi-sessions", "tau-bench", "swe-agent", "openhands")
BUDGETS = (20_000, 40_000, 80_000)
READ, WRITE, LEAST = 0.1, 1.25, 1024
TOLERANCE = 1.02
"""A request counts as over the budget if it is larger than this multiple of the budget."""


@dataclass
class Tally:
    """The counts for the requests of one source under one policy and budget."""

    sessions: int = 0
    requests: int = 0
    invalid: int = 0
    invalid_new: int = 0
    """Number of invalid requests that are valid without a policy."""
    worse: int = 0
    """Number of requests with more violations than without a policy."""
    over: int = 0
    refused: int = 0
    folds: int = 0
    prompt_lost: int = 0
    """Number of requests that do not contain the newest prompt word for word."""
    kept_tokens: int = 0
    seen_tokens: int = 0
    cost: float = 0.0
    cost_all: float = 0.0

    def add(self, other: Tally) -> None:
        """Add another tally to this one."""
        for name, value in asdict(other).items():
            setattr(self, name, getattr(self, name) + value)

    @property
    def reuse(self) -> float:
        """The share of the previous request that stayed a prefix."""
        return self.kept_tokens / self.seen_tokens if self.seen_tokens else 1.0


@dataclass(frozen=True)
class Job:
    """One file to replay under several policies and budgets."""

    source: str
    path: Path
    policies: tuple[str, ...]
    budgets: tuple[int, ...]
    every: int


def main(argv: Sequence[str]) -> int:
    """Run the benchmark. The exit status is 1 if a policy made a request invalid or worse, lost a prompt, or exceeded
    the budget.
    """
    parser = argparse.ArgumentParser(prog="python -m bench replay", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--policy", action="append", choices=presets(), help="by default all presets")
    parser.add_argument("--budget", action="append", type=int, help=f"by default {BUDGETS}")
    parser.add_argument("--every", type=int, default=1, help="check only every n-th request")
    parser.add_argument("--files", type=int, default=10**6, help="maximum number of files per source")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    policies, budgets = tuple(options.policy or presets()), tuple(options.budget or BUDGETS)
    jobs = [
        Job(source, path, policies, budgets, options.every)
        for source in AGENTS
        for path in sorted((options.data / source).rglob("*"))[: options.files]
        if path.is_file() and not path.name.startswith(("LICENSE", "NOTICE"))
    ]
    totals: dict[tuple[str, str, int], Tally] = {}
    with ProcessPoolExecutor(options.jobs) as pool:
        for done, result in enumerate(pool.map(run, jobs), start=1):
            for key, tally in result.items():
                totals.setdefault(key, Tally()).add(tally)
            print(f"\r{done}/{len(jobs)} files", end="", file=sys.stderr)
    print(file=sys.stderr)
    if options.json:
        rows = [{"source": key[0], "policy": key[1], "budget": key[2], **asdict(t)} for key, t in totals.items()]
        print(json.dumps(rows))
    else:
        _print(totals)
    return int(any(t.invalid_new or t.worse or t.over or t.prompt_lost for t in totals.values()))


def run(job: Job) -> dict[tuple[str, str, int], Tally]:
    """Replay one file under all its policies and budgets."""
    found: dict[tuple[str, str, int], Tally] = {}
    try:
        transcripts = read_all(job.path)
    except FoldlineError:
        return found
    for transcript in transcripts:
        for messages in context_segments(transcript):
            points = request_positions(messages)[:: job.every]
            if not points:
                continue
            provider = _provider(transcript)
            before = {point: _violations(messages[:point], provider) for point in points}
            for name in job.policies:
                for budget in job.budgets:
                    tally = _replay(messages, before, provider, name, budget)
                    found.setdefault((job.source, name, budget), Tally()).add(tally)
    return found


def _provider(transcript: Transcript) -> str:
    spoken = element_format(transcript.format)
    return spoken if spoken in REQUEST_FORMATS else "anthropic"


def _violations(messages: Sequence[Message], provider: str) -> int:
    return len(check(provider, render(messages, provider).body))


def _replay(messages: tuple[Message, ...], before: dict[int, int], provider: str, name: str, budget: int) -> Tally:
    policy = Policy.preset(name).but(window_tokens=budget, reply_tokens=0, reserve_tokens=0)
    session = Session(model=_model(messages), policy=policy)
    tally = Tally(sessions=1)
    last: list[str] = []
    everything = 0
    for step in replay_steps(without_usage(messages), session, before):
        tally.requests += 1
        tally.cost_all += _cost(step.total_tokens, min(everything, step.total_tokens))
        everything = step.total_tokens
        if step.view is None:
            tally.refused += 1
            last = []
            continue
        body = step.view.render(provider).body
        _judge(tally, session, step.view.messages, len(check(provider, body)), before[step.reply_index])
        sent = [json.dumps(_unmarked(element)) for element in _elements(body)]
        _reuse(tally, last, sent, step.total_tokens if session.timeline.fold is None else step.view.tokens)
        last = sent
    tally.folds += session.folds
    return tally


def _judge(tally: Tally, session: Session, messages: tuple[Message, ...], now: int, before: int) -> None:
    tally.invalid += now > 0
    tally.invalid_new += now > 0 and before == 0
    tally.worse += now > before
    size = sum(
        message_tokens(message, session.state.setup.counter, session.state.setup.framing) for message in messages
    )
    tally.over += size > TOLERANCE * session.usable
    prompts = session.timeline.prompts
    if prompts:
        wanted = session.timeline.messages[prompts[-1]].text
        tally.prompt_lost += not any(wanted in message.text for message in messages)


def _reuse(tally: Tally, last: list[str], sent: list[str], tokens: int) -> None:
    """Count how much of the previous request is a prefix of this one, in characters."""
    same = 0
    for old, new in zip(last, sent, strict=False):
        if old != new:
            break
        same += len(old)
    tally.kept_tokens += same
    tally.seen_tokens += sum(map(len, last))
    size = sum(map(len, sent))
    share = same / size if size else 0.0
    tally.cost += _cost(tokens, int(share * tokens))


def _cost(tokens: int, common: int) -> float:
    read = common if common >= LEAST else 0
    return READ * read + WRITE * (tokens - read)


def _elements(body: dict[str, Any]) -> list[Any]:
    system = [body[key] for key in ("system", "instructions", "systemInstruction") if key in body]
    return [*system, *next(body[key] for key in ("messages", "input", "contents") if key in body)]


def _unmarked(value: Any) -> Any:
    """The element without cache breakpoints. They move, but the provider's cache ignores that."""
    if isinstance(value, dict):
        return {key: _unmarked(item) for key, item in value.items() if key != "cache_control"}
    if isinstance(value, list):
        return [_unmarked(item) for item in value]
    return value


def _model(messages: Sequence[Message]) -> str:
    return next((message.meta.model for message in messages if message.meta.model), "")


def _print(totals: dict[tuple[str, str, int], Tally]) -> None:
    head = (
        f"{'source':<20}{'policy':<16}{'budget':>7}{'sessions':>9}{'requests':>9}{'invalid':>8}{'new':>5}{'worse':>6}"
    )
    print(head + f"{'over':>6}{'refused':>8}{'no prompt':>10}{'folds':>7}{'reuse':>7}{'cost':>6}")
    for (source, policy, budget), t in sorted(totals.items()):
        row = f"{source:<20}{policy:<16}{budget:>7}{t.sessions:>9}{t.requests:>9}{t.invalid:>8}{t.invalid_new:>5}"
        row += f"{t.worse:>6}{t.over:>6}{t.refused:>8}{t.prompt_lost:>10}{t.folds:>7}{t.reuse:>7.3f}"
        print(row + f"{t.cost / t.cost_all if t.cost_all else 1:>6.2f}")
