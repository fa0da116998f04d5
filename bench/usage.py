"""Compares the size that a session measures for each request with the size that a provider counts.

    python -m bench usage                       # 200 random sessions on SQLite
    python -m bench usage --sessions 20 --seed 7

Each session is a random series of operations: turns with background folds, replies that arrive after a fold, manual
folds, unfolds, branches, rewinds, changes of tools, models and formats, and restarts. The simulated provider of
`foldline.testing` counts every request and reports its usage. The benchmark reports the largest and smallest ratio of
the two sizes, the requests whose error exceeds the estimator's margin, and the folds that were made because of such an
error.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import quantiles
from typing import Any, Protocol

import foldline
from bench.speed import documents
from foldline.digest.digester import Digester
from foldline.errors import ViewTooLarge
from foldline.measure.estimator import MARGIN
from foldline.message import user
from foldline.policy import Policy
from foldline.session import Ledger, Session
from foldline.testing import Scripted, proper
from foldline.testing.provider import Account, ScriptedReply
from foldline.view.compose import View

POLICY = Policy.preset("balanced").but(window_tokens=16_000, reply_tokens=0, digest_tokens=1_500)
MODELS = {"claude-sonnet-4-5": "anthropic", "claude-opus-4-7": "anthropic", "gpt-5.1": "openai"}
FIRST_MODEL = "claude-sonnet-4-5"
STEPS = {"turn": 50, "late": 16, "fold": 4, "unfold": 5, "branch": 3, "tools": 5, "model": 4, "restart": 5, "rewind": 1}
"""The operations with their frequencies."""
KINDS = ("prose", "code", "tool")
"""The kinds of text for which the estimator states its margin."""
BY_HAND = "asked for"
WAIT_S = 60.0


class CountingProvider(Protocol):
    """A provider that counts requests and answers them with usage."""

    def tokens(self, model: str, body: dict[str, Any]) -> int:
        """The size of a request."""

    def answer(self, model: str, body: dict[str, Any], reply: ScriptedReply) -> dict[str, Any] | str:
        """The reply to a request in its format, or the reason for refusing it."""


class StrictProvider:
    """The simulated provider of `foldline.testing`."""

    def __init__(self) -> None:
        self.account = Account()

    def tokens(self, model: str, body: dict[str, Any]) -> int:
        """The size of a request."""
        name = "anthropic" if MODELS[model] == "anthropic" else "openai_chat"
        is_new_claude = model == "claude-opus-4-7"
        return self.account.total(self.account.reader.pieces(name, body, is_new_claude=is_new_claude))

    def answer(self, model: str, body: dict[str, Any], reply: ScriptedReply) -> dict[str, Any] | str:
        """The reply to a request in its format, or the reason for refusing it."""
        done = self.account.answer(MODELS[model], body, reply=reply)
        return done.body if done.error is None else done.error.message


@dataclass(kw_only=True)
class Tally:
    """The figures of a run."""

    ratios: list[float] = field(default_factory=list)
    anchored: int = 0
    """Requests whose size was based on usage."""
    outside: list[str] = field(default_factory=list)
    """Requests whose measured size is outside the margin."""
    folds: int = 0
    """Number of folds that a rule caused."""
    stale: list[str] = field(default_factory=list)
    """Folds that were caused by a size outside the margin."""
    refused: Counter[str] = field(default_factory=Counter)
    """Requests that the provider refused."""
    too_large: int = 0

    @property
    def is_good(self) -> bool:
        """Whether every request was measured within the margin and no fold was due to a wrong figure."""
        return not self.outside and not self.stale

    def figures(self) -> dict[str, Any]:
        """The figures as JSON."""
        cuts = quantiles(self.ratios, n=100)
        return {
            "requests": len(self.ratios),
            "based_on_usage": self.anchored,
            "lowest_ratio": round(min(self.ratios), 3),
            "p1": round(cuts[0], 3),
            "p99": round(cuts[-1], 3),
            "highest_ratio": round(max(self.ratios), 3),
            "outside_margin": len(self.outside),
            "folds": self.folds,
            "folds_by_a_stale_figure": len(self.stale),
            "view_too_large": self.too_large,
            "refused": dict(self.refused),
        }


class RandomSession:
    """One random session."""

    def __init__(self, opens: Callable[[], Ledger], seed: int, tally: Tally, provider: CountingProvider) -> None:
        self.opens, self.tally, self.provider = opens, tally, provider
        self.seed, self.chance = seed, random.Random(seed)
        self.texts = [text for kind in KINDS for text in documents(3, seed)[kind]]
        self.model, self.branches, self.last = FIRST_MODEL, 0, "start"
        self.tools = self.random_tools()
        self.ledger = opens()
        self.session = self.ledger.session("s", model=self.model, policy=POLICY, tools=self.tools)
        self.known_folds = 0

    def step(self, what: str) -> None:
        """Make the operation with this name."""
        getattr(self, f"do_{what}")()
        self.last = what

    def text(self, most: int = 6_000) -> str:
        """A random piece of prose, code or tool output."""
        found = self.chance.choice(self.texts)
        start = self.chance.randrange(max(1, len(found) // 2))
        return found[start : start + self.chance.randint(20, most)].strip() or "and then?"

    def random_tools(self) -> list[dict[str, Any]]:
        """Some tools, in the format of the model."""
        schema = {"type": "object", "properties": {"path": {"type": "string"}}}
        number = self.chance.choice((1, 1, 4, 12, 30))
        tools = [(f"tool_{place}", self.text(400)) for place in range(number)]
        if MODELS[self.model] == "anthropic":
            return [{"name": name, "description": text, "input_schema": schema} for name, text in tools]
        functions = [{"name": name, "description": text, "parameters": schema} for name, text in tools]
        return [{"type": "function", "function": function} for function in functions]

    def request(self, view: View) -> dict[str, Any]:
        """The body of a request."""
        limit = "max_tokens" if MODELS[self.model] == "anthropic" else "max_completion_tokens"
        return {**view.render().body, "model": self.model, limit: 1_000, "tools": self.tools}

    def size(self, view: View) -> int:
        """The size of a view that the provider counts."""
        return self.provider.tokens(self.model, self.request(view))

    # Requests

    def do_turn(self) -> None:
        """Add a prompt and its reply, sometimes with a call and its result."""
        self.session.add(user(self.text()))
        view = self.ask()
        if view is not None:
            self.reply_to(view)

    def do_late(self) -> None:
        """Add a reply that arrives after another operation."""
        self.session.add(user(self.text()))
        view, name = self.ask(), None
        if view is None:
            return
        for what in self.chance.sample(("wait", "message", "fold", "restart"), k=self.chance.randint(1, 2)):
            if what == "wait":
                self.ledger.wait(WAIT_S)
            elif what == "message":
                self.session.add(user(self.text(2_000)))
                name = str(view.identity)
            elif what == "fold":
                self.opens_again().fold(force=self.chance.random() < 0.5)
            else:
                self.do_restart()
                name = str(view.identity) if self.chance.random() < 0.5 else name
        self.reply_to(view, name)

    def ask(self) -> View | None:
        """The next view, after a comparison with the size that the provider counts; None if no view fits."""
        self.session.refresh()
        self.check_folds()
        self.note_size(self.session.state.view())
        try:
            view = self.session.view()
        except ViewTooLarge:
            self.tally.too_large += 1
            self.session.clear()
            return None
        self.check_folds()
        real = self.note_size(view)
        self.tally.ratios.append(view.tokens / real)
        self.tally.anchored += "usage of reply" in view.source
        if sum(view.blocks.values()) != view.tokens:
            raise AssertionError(f"{view.blocks} do not add up to {view.tokens}")
        if abs(view.tokens - real) > MARGIN * real:
            alone = view.identity.tools + view.identity.tokens if view.identity else 0
            source = f"{view.source}; {alone:,} by the estimator alone"
            self.tally.outside.append(f"{self.seed}: {view.tokens:,} for {real:,} after {self.last} ({source})")
        return view

    def reply_to(self, view: View, name: str | None = None) -> None:
        """Add the provider's reply with its usage, and the results of its calls."""
        calls = (("tool_0", {"path": self.text(200)}),) if self.chance.random() < 0.4 else ()
        done = self.provider.answer(self.model, self.request(view), ScriptedReply(text=self.text(2_000), calls=calls))
        if isinstance(done, str):
            self.tally.refused[done[:100]] += 1
            return
        self.session.add(done, view=name)
        for call in self.session.timeline.messages[-1].calls:
            if MODELS[self.model] == "anthropic":
                result = {"type": "tool_result", "tool_use_id": call.id, "content": self.text(8_000)}
                self.session.add({"role": "user", "content": [result]})
            else:
                self.session.add({"role": "tool", "tool_call_id": call.id, "content": self.text(8_000)})

    # Folds

    def note_size(self, view: View) -> int:
        """Store the size of a view that the provider counts. `check_folds` uses it."""
        real = self.size(view)
        self.asked_at, self.asked_size = len(self.session.timeline), real
        return real

    def check_folds(self) -> None:
        """Compare the size that caused a new fold with the size that the provider had counted."""
        store, branch = self.session.record.search_target()
        folds = sum(entry.kind == "fold" for entry in store.state(branch).marks)
        fold, known = self.session.timeline.fold, self.known_folds
        self.known_folds = folds
        if folds <= known or fold is None or fold.reason == BY_HAND:
            return
        self.tally.folds += 1
        added = self.session.record.read(self.asked_at, fold.made_at) if fold.made_at > self.asked_at else ()
        real = self.asked_size + sum(map(self.session.size, added))
        if fold.before > (1 + MARGIN) * real:
            self.tally.stale.append(f"{self.seed}: {fold.before:,} for {real:,} after {self.last} ({fold.reason})")

    def do_fold(self) -> None:
        """Make a manual fold."""
        self.session.fold(force=self.chance.random() < 0.5)
        self.forget_folds()

    def do_unfold(self) -> None:
        """Undo a fold, if there is one."""
        self.ledger.wait(WAIT_S)
        self.session.refresh()
        self.check_folds()
        if self.session.folds:
            self.session.unfold()

    def forget_folds(self) -> None:
        """Do not check the folds that were made so far."""
        store, branch = self.session.record.search_target()
        self.known_folds = sum(entry.kind == "fold" for entry in store.state(branch).marks)

    # Other changes

    def do_branch(self) -> None:
        """Continue on another branch."""
        self.ledger.wait(WAIT_S)
        self.session.refresh()
        self.check_folds()
        self.branches += 1
        at = len(self.session.timeline) - self.chance.choice((0, 0, 1, 5))
        self.session = self.session.branch(f"b{self.branches}", at=max(0, at))
        self.forget_folds()

    def do_restart(self) -> None:
        """Close the ledger and open it again."""
        self.ledger.wait(WAIT_S)
        self.ledger.close()
        self.ledger = self.opens()
        self.session = self.opens_again()

    def opens_again(self) -> Session:
        """Open the session again."""
        return self.ledger.session("s", branch=f"b{self.branches}" if self.branches else "main")

    def do_tools(self) -> None:
        """Change the tools."""
        self.tools = self.random_tools()
        self.session.use(tools=self.tools)

    def do_model(self) -> None:
        """Change the model, its format and the tools."""
        self.model = self.chance.choice([name for name in MODELS if name != self.model])
        self.tools = self.random_tools()
        self.session.use(model=self.model, format=MODELS[self.model], tools=self.tools)

    def do_rewind(self) -> None:
        """Clear the session."""
        self.ledger.wait(WAIT_S)
        self.session.clear()
        self.forget_folds()


def run(url: Callable[[int], str], seeds: range, steps: int, *, say: Callable[[str], object] = lambda _: None) -> Tally:
    """Run random sessions, each in a ledger of its own. Returns the figures."""
    tally = Tally()
    digester = Digester(complete=Scripted(proper), model="simulated", window=200_000)
    for seed in seeds:
        opens = partial(foldline.open, url(seed), digester=digester)
        session = RandomSession(opens, seed, tally, StrictProvider())
        chosen = random.Random(-seed).choices([*STEPS], [*STEPS.values()], k=steps)
        for what in chosen:
            session.step(what)
        session.ledger.wait(WAIT_S)
        session.ledger.close()
        if seed % 10 == 9:
            say(f"{seed + 1}: {len(tally.ratios):,} requests, {len(tally.outside)} outside, {len(tally.stale)} stale")
    return tally


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench usage", description=__doc__)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        tally = run(
            lambda seed: str(Path(folder, f"{seed}.db")),
            range(given.seed, given.seed + given.sessions),
            given.steps,
            say=lambda line: print(line, file=sys.stderr, flush=True),
        )
    print(json.dumps(tally.figures(), indent=2))
    for line in (*tally.outside[:20], *tally.stale[:20]):
        print(line)
    return 0 if tally.is_good else 1
