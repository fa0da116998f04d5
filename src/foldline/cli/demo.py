"""`foldline demo`: replay a recorded session in a small window, without a key or network access.

The recording shows a scripted agent at work on foldline's source at version 0.1. The recorded messages are added one by
one to a session with a ledger in memory. Before each reply the view is built, and its cost is compared with the cost of
sending everything.
"""

from __future__ import annotations

import gzip
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import click

import foldline
from foldline.cli.shared import options
from foldline.cli.shared.output import console, digest_lines, margin_note, print_json, printable, table
from foldline.cli.shared.settings import Settings
from foldline.fold import Fold
from foldline.measure.estimator import format_tokens
from foldline.message import Message
from foldline.plan.timeline import handle
from foldline.replay import CachedCounter, CostAccount
from foldline.session.transcript_session import without_usage
from foldline.view.compose import View
from foldline.wire import Transcript, parse

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

RECORDING = "demo.json.gz"
WINDOW = 16_000
"""The window in tokens. A small window, so that the short recording folds several times."""
STEP_SECONDS, FOLD_SECONDS = 0.05, 1.2
"""Seconds to pause on a terminal after a step, and after a step with a fold. The demo takes less than 30 seconds."""
QUESTION = "AssertionError handle"
"""The query of the recall at the end. The messages that match the query are folded before."""
ANSWER_TOKENS = 300
QUOTED_LINES = 9
"""How many lines of the recalled text are shown."""
TURN_ENTRIES, ENTRY_LINES = 6, 2
"""How many entries of a digest are shown (the newest), and how many lines of each."""
BAR, BESIDE = 48, 44
"""Largest width of the bar of the meter, and the width of the text next to the bar, in characters."""
NEXT = (
    ("foldline inspect FILE", "show what fills your own transcript"),
    ("foldline fold FILE -o OUT", "fold it to fit"),
    ("foldline replay FILE", "compute its cost under other policies"),
    ("foldline import FILE", "add it to a ledger, and then"),
    ("foldline recall QUESTION", "search all its messages, folded or not"),
)
FACTS = "facts: the requests, errors and changed files in the folded messages, and a sample of their names and values"
TURN_STARTS = ("User: ", "Agent: ")
"""Prefixes of the digest lines that hold the user's requests and the agent's answers."""


class DemoRun:
    """The state of the demo: a session, its ledger, and the costs with and without folding."""

    def __init__(self, transcript: Transcript, settings: Settings) -> None:
        policy = settings.policy if settings.policy.window_tokens else settings.policy.but(window_tokens=WINDOW)
        counter = CachedCounter(settings.model(transcript.model))
        self.ledger = foldline.open(":memory:")
        self.session = self.ledger.session("demo", model=counter.model.name, policy=policy, tools=transcript.tools)
        self.messages = without_usage(transcript.messages)
        fixed = self.session.state.tools
        self.sent, self.everything = CostAccount(counter, fixed), CostAccount(counter, fixed)
        self.requests = 0
        self.folded: list[Fold] = []

    def play(self) -> Iterator[DemoStep]:
        """Add the messages one by one, and yield a `DemoStep` for each. Before a reply is added, the view is built."""
        for place, message in enumerate(self.messages):
            view, fold = self._ask(place) if message.role == "assistant" else (None, None)
            self.session.add(message)
            yield DemoStep(message, self.session.size(message), view, fold)

    def _ask(self, place: int) -> tuple[View, Fold | None]:
        """The view that is sent for the reply at index `place`, and the fold that was made for this view.

        The fold is None if none was made.
        """
        before = self.session.timeline.fold
        view = self.session.view()
        self.requests += 1
        self.sent.send(view.repaired_messages(), None)
        self.everything.send(self.messages[:place], None)
        now = self.session.timeline.fold
        if now is None or now is before:
            return view, None
        self.folded.append(now)
        return view, now

    def recall(self, query: str) -> str:
        """The messages that match a query, as text. Folded messages are searched, too."""
        return str(self.session.recall(query, tokens=ANSWER_TOKENS))


@dataclass(frozen=True, slots=True)
class DemoStep:
    """A step of the demo: a message and its size in tokens.

    A reply also has the view that was sent for it, and the fold if one was made.
    """

    message: Message
    tokens: int
    view: View | None
    fold: Fold | None


@click.command()
@click.option("--fast", is_flag=True, help="Run without pauses.")
@options.policy_options
@options.output_options("Print only the summary, as one JSON object.")
def demo(fast: bool, settings: Settings, as_json: bool) -> None:
    r"""Replay a recorded agent session in a small window. Needs no key and no network.

    \b
    Example:  foldline demo
              foldline demo --policy thrifty --window 24000
    """
    began = time.monotonic()
    run = DemoRun(recording(), settings)
    if as_json:
        for _ in run.play():
            pass
        print_json(summary(run, settings, time.monotonic() - began))
        return
    out = console()
    live = out.is_terminal
    _opening(out, run, settings)
    with _meter(out) as update:
        for number, step in enumerate(run.play(), start=1):
            _show(out, number, step, run, detailed=live)
            if step.view is not None:
                update(_bar(step.view, run, min(BAR, out.width - BESIDE)))
            if live and not fast:
                time.sleep(FOLD_SECONDS if step.fold else STEP_SECONDS)
    _recall(out, run)
    _receipt(out, summary(run, settings, time.monotonic() - began))


def recording() -> Transcript:
    """The recorded session."""
    return parse(gzip.decompress(files("foldline.cli").joinpath(RECORDING).read_bytes()))


def summary(run: DemoRun, settings: Settings, seconds: float) -> dict[str, Any]:
    """The figures of a finished demo as JSON."""
    session = run.session
    return {
        "model": session.model.name,
        "policy": settings.name,
        "window": session.window,
        "messages": len(run.messages),
        "requests": run.requests,
        "folds": len(run.folded),
        "with": _account(run.sent),
        "without": _account(run.everything),
        "recalled": run.recall(QUESTION),
        "kept": sum(info.messages for info in run.ledger.sessions()),
        "seconds": round(seconds, 2),
    }


def _account(account: CostAccount) -> dict[str, Any]:
    return {"sent": account.tokens, "read": account.read, "largest": account.largest, "cost": account.dollars}


def _opening(out: Console, run: DemoRun, settings: Settings) -> None:
    session = run.session
    out.print(f"A recorded agent session on foldline's own source: {len(run.messages)} messages.")
    out.print(
        f"The window is {session.window:,} tokens, {session.usable:,} usable; policy {settings.name}.", soft_wrap=True
    )
    out.print("")


def _show(out: Console, number: int, step: DemoStep, run: DemoRun, *, detailed: bool) -> None:
    """Print one step. Tool calls and results are printed only on a terminal."""
    if step.fold is not None:
        _folded(out, step.fold, run)
    message = step.message
    if message.is_prompt:
        out.print(f"#{number} user: {printable(message.text)}", style="bold")
    elif detailed and message.calls:
        call = message.calls[0]
        out.print(
            f"#{number} {call.name} {printable(call.arguments)[:60]}", style="dim", overflow="ellipsis", no_wrap=True
        )
    elif detailed and message.results:
        out.print(f"#{number}   +{step.tokens:,} tokens", style="dim")


def _folded(out: Console, fold: Fold, run: DemoRun) -> None:
    digest = fold.digest
    cut = handle(run.session.timeline.lead, fold.cut - 1)
    sizes = f"{format_tokens(fold.before, False)} → {format_tokens(fold.after, False)}"
    out.print(f"─── fold {len(run.folded)}: {cut} leave the view, {sizes} ───", style="cyan")
    if digest is not None:
        loss = f", {digest.loss.kept} of {digest.loss.facts} facts kept" if digest.loss else ""
        out.print(
            f"    a digest of {format_tokens(fold.digest_tokens, False)} tokens replaces them{loss}", style="cyan"
        )
    if len(run.folded) == 1:
        notes = (f"why: {fold.reason}", margin_note(fold.reason), FACTS if digest and digest.loss else "")
        for note in filter(None, notes):
            indented = textwrap.wrap(note, out.width - 1, initial_indent="    ", subsequent_indent="    ")
            out.print("\n".join(indented), style="dim")


@contextmanager
def _meter(out: Console) -> Iterator[Any]:
    """Show a meter at the bottom of a terminal. Yields a function that updates it."""
    if not out.is_terminal:
        yield lambda _bar: None
        return
    from rich.live import Live  # noqa: PLC0415  # only on a terminal

    with Live(console=out, refresh_per_second=20, transient=True) as live:
        yield live.update


def _bar(view: View, run: DemoRun, bar: int) -> Text:
    """The meter: the size of the view by block, and the costs so far."""
    from rich.text import Text  # noqa: PLC0415

    colours = {"system": "blue", "tools": "blue", "pins": "yellow", "digest": "magenta", "history": "green"}
    made, used = Text("\nview "), 0
    for name, size in view.blocks.items():
        width = max(0, min(bar - used, round(bar * size / max(1, view.usable))))
        made.append("█" * width, style=colours.get(name, "green"))
        used += width
    made.append("░" * (bar - used), style="dim")
    made.append(f" {format_tokens(view.tokens, view.exact)} of {format_tokens(view.usable, True)}")
    made.append(f"   {_money(run.sent.dollars)} instead of {_money(run.everything.dollars)}", style="bold")
    return made


def _recall(out: Console, run: DemoRun) -> None:
    """Print the current digest, and what a recall finds in the folded messages."""
    fold = run.session.timeline.fold
    if fold is None:
        return
    if fold.digest is not None:
        cut = handle(run.session.timeline.lead, fold.cut - 1)
        out.print(f"\nwhat the model still reads about {cut}: the newest turns in the digest", style="bold")
        _print_turns(out, digest_lines(fold.digest.message.text))
    out.print(f"\nrecalled from the folded messages: recall({QUESTION!r})", style="bold")
    _quoted(out, run.recall(QUESTION).splitlines())


def _print_turns(out: Console, lines: list[str]) -> None:
    """Print the newest requests and answers that a digest lists. Each takes at most `ENTRY_LINES` lines."""
    for line in [line for line in lines if line.startswith(TURN_STARTS)][-TURN_ENTRIES:]:
        wrapped = textwrap.wrap(printable(line), max(20, out.width - 6), max_lines=ENTRY_LINES, placeholder=" …")
        for number, part in enumerate(wrapped):
            out.print(f"    │ {part}", style="dim" if number else None)


def _quoted(out: Console, lines: list[str]) -> None:
    for line in lines[:QUOTED_LINES]:
        out.print(f"    │ {printable(line)}", style="dim", overflow="ellipsis", no_wrap=True)


def _receipt(out: Console, report: dict[str, Any]) -> None:
    sent, whole = report["with"], report["without"]
    made = table("", "tokens sent", "largest", "from cache", "cost")
    for name, row in (("without foldline", whole), ("with foldline", sent)):
        share = f"{row['read'] / row['sent']:.0%}"
        made.add_row(name, format_tokens(row["sent"], False), f"{row['largest']:,}", share, _money(row["cost"]))
    out.print("")
    out.print(made)
    out.print(f"{report['requests']} requests, {report['folds']} folds, {report['seconds']:.1f} s", style="dim")
    paid, price = (f" and {_money(row['cost'])}" if whole["cost"] else "" for row in (sent, whole))
    out.print(
        f"\nWithout foldline, this session needs a window of {whole['largest']:,} tokens{price}. With foldline, "
        f"{report['window']:,} tokens{paid} were enough. All {report['kept']} messages can still be searched.",
        style="bold",
    )
    out.print("\nTry next:")
    width = max(len(command) for command, _ in NEXT)
    for command, what in NEXT:
        out.print(f"  {command:<{width}}  {what}", soft_wrap=True)


def _money(dollars: float | None) -> str:
    return "-" if dollars is None else f"${dollars:,.2f}"
