"""`foldline demo`: the main job with no key and no set-up, on a recorded session, through the real parts.

The recording is of a scripted agent at work on foldline's own source, as it was at version 0.1. Its messages go
one by one into a real ledger and a real session; before each reply the view is built that would have been sent, and
what the provider would charge for it is booked beside what sending everything would have cost. Nothing leaves the
machine.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import click

import foldline
from foldline.cli.shared import options
from foldline.cli.shared.output import console, digest_lines, print_json, safe, table
from foldline.cli.shared.settings import Settings
from foldline.fold import Fold
from foldline.measure.estimator import human
from foldline.message import Message
from foldline.plan.timeline import handle
from foldline.replay import Account, Sizes, unmeasured
from foldline.view.compose import View
from foldline.wire import Transcript, parse

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

RECORDING = "demo.json.gz"
WINDOW = 16_000
"""Small, so that a short session has to fold several times."""
STEP_SECONDS, FOLD_SECONDS = 0.05, 1.2
"""How long each is left to be read: the whole takes well under half a minute."""
QUESTION = "AssertionError handle"
"""What is asked of recall at the end; the answer was folded long ago."""
ANSWER_TOKENS = 300
SHOWN = 9
"""Lines of a digest or an answer that are shown."""
BAR, BESIDE = 48, 44
"""How wide the meter is at most, and what is written beside it."""
NEXT = (
    ("foldline inspect FILE", "what fills a transcript of yours, and what is broken in it"),
    ("foldline fold FILE -o OUT", "the same transcript, folded to fit"),
    ("foldline replay FILE -p balanced -p thrifty", "what it would have cost under each policy"),
    ("foldline import FILE", "keep it in a ledger; then foldline recall QUESTION, foldline show"),
)


class Stage:
    """What the demo plays on: a session, the ledger that keeps every message, and two accounts."""

    def __init__(self, transcript: Transcript, chosen: Settings) -> None:
        policy = chosen.policy if chosen.policy.window_tokens else chosen.policy.but(window_tokens=WINDOW)
        sizes = Sizes(chosen.model(transcript.model))
        self.ledger = foldline.open(":memory:")
        self.session = self.ledger.session("demo", model=sizes.model.name, policy=policy, tools=transcript.tools)
        self.messages = unmeasured(transcript.messages)
        fixed = self.session.state.tools
        self.sent, self.everything = Account(sizes, fixed), Account(sizes, fixed)
        self.requests = 0
        self.folded: list[Fold] = []

    def play(self) -> Iterator[Step]:
        """Every message, with the view that was sent before each reply."""
        for place, message in enumerate(self.messages):
            view = self._ask(place) if message.role == "assistant" else None
            self.session.add(message)
            yield Step(message, self.session.size(message), view, self.folded[-1] if view and self._is_new() else None)

    def _ask(self, place: int) -> View:
        before = self.session.timeline.fold
        view = self.session.view()
        self.requests += 1
        self.sent.send(view.messages, None)
        self.everything.send(self.messages[:place], None)
        now = self.session.timeline.fold
        if now is not None and now is not before:
            self.folded.append(now)
        return view

    def _is_new(self) -> bool:
        """Whether the newest fold was made for the request that was just answered."""
        return bool(self.folded) and self.folded[-1].made_at == len(self.session.timeline) - 1

    def recall(self, query: str) -> str:
        """What was said about it, whether the model still sees it or not."""
        return str(self.session.recall(query, tokens=ANSWER_TOKENS))

    def kept(self) -> int:
        """How many messages the ledger holds."""
        return sum(info.messages for info in self.ledger.sessions())


@dataclass(frozen=True, slots=True)
class Step:
    """A message that was said, its size, and what was sent to get it."""

    message: Message
    tokens: int
    view: View | None
    fold: Fold | None


@click.command()
@click.option("--fast", is_flag=True, help="Without pauses.")
@options.chosen
@options.output("Only the summary, as one JSON object.")
def demo(fast: bool, chosen: Settings, as_json: bool) -> None:
    r"""Watch a recorded agent session being kept inside a small window; needs no key and no network.

    \b
    Example:  foldline demo
              foldline demo --policy thrifty --window 24000
    """
    began = time.monotonic()
    stage = Stage(recording(), chosen)
    if as_json:
        for _ in stage.play():
            pass
        print_json(summary(stage, chosen, time.monotonic() - began))
        return
    out = console()
    live = out.is_terminal
    _opening(out, stage, chosen)
    with _meter(out) as update:
        for number, step in enumerate(stage.play(), start=1):
            _show(out, number, step, stage, detailed=live)
            if step.view is not None:
                update(_bar(step.view, stage, min(BAR, out.width - BESIDE)))
            if live and not fast:
                time.sleep(FOLD_SECONDS if step.fold else STEP_SECONDS)
    _recall(out, stage)
    _receipt(out, summary(stage, chosen, time.monotonic() - began))


def recording() -> Transcript:
    """The recorded session, as it was shipped."""
    return parse(gzip.decompress(files("foldline.cli").joinpath(RECORDING).read_bytes()))


def summary(stage: Stage, chosen: Settings, seconds: float) -> dict[str, Any]:
    """The receipt as data."""
    session = stage.session
    return {
        "model": session.model.name,
        "policy": chosen.name,
        "window": session.window,
        "messages": len(stage.messages),
        "requests": stage.requests,
        "folds": len(stage.folded),
        "with": _account(stage.sent),
        "without": _account(stage.everything),
        "recalled": stage.recall(QUESTION),
        "kept": stage.kept(),
        "seconds": round(seconds, 2),
    }


def _account(account: Account) -> dict[str, Any]:
    return {"sent": account.tokens, "read": account.read, "largest": account.largest, "cost": account.dollars}


def _opening(out: Console, stage: Stage, chosen: Settings) -> None:
    session = stage.session
    out.print(f"An agent at work on foldline's own source, as recorded: {len(stage.messages)} messages.")
    out.print(
        f"The window is {session.window:,} tokens, {session.usable:,} usable; policy {chosen.name}.", soft_wrap=True
    )
    out.print("")


def _show(out: Console, number: int, step: Step, stage: Stage, *, detailed: bool) -> None:
    """One step: what the user says always, the agent's own steps where somebody watches."""
    if step.fold is not None:
        _folded(out, step.fold, stage)
    message = step.message
    if message.is_prompt:
        out.print(f"#{number} user: {safe(message.text)}", style="bold")
    elif detailed and message.calls:
        call = message.calls[0]
        out.print(f"#{number} {call.name} {safe(call.arguments)[:60]}", style="dim", overflow="ellipsis", no_wrap=True)
    elif detailed and message.results:
        out.print(f"#{number}   +{step.tokens:,} tokens", style="dim")


def _folded(out: Console, fold: Fold, stage: Stage) -> None:
    digest = fold.digest
    cut = handle(stage.session.timeline.lead, fold.cut - 1)
    sizes = f"{human(fold.before, False)} → {human(fold.after, False)}"
    out.print(f"─── fold {len(stage.folded)}: {cut} leave the view, {sizes} ───", style="cyan")
    out.print(f"    {fold.reason}", style="cyan", soft_wrap=True)
    if digest is None:
        return
    loss = f", {digest.loss.kept} of {digest.loss.facts} facts kept" if digest.loss else ""
    out.print(f"    digest: {digest.by}, {human(fold.digest_tokens, False)} tokens{loss}", style="cyan", soft_wrap=True)


@contextmanager
def _meter(out: Console) -> Iterator[Any]:
    """A meter at the bottom of a terminal, and none elsewhere."""
    if not out.is_terminal:
        yield lambda _bar: None
        return
    from rich.live import Live  # noqa: PLC0415  # only where it is seen

    with Live(console=out, refresh_per_second=20, transient=True) as live:
        yield live.update


def _bar(view: View, stage: Stage, bar: int) -> Text:
    """How full the view is and of what, and the money so far."""
    from rich.text import Text  # noqa: PLC0415

    colours = {"system": "blue", "tools": "blue", "pins": "yellow", "digest": "magenta", "history": "green"}
    made, used = Text("\nview "), 0
    for name, size in view.blocks.items():
        width = max(0, min(bar - used, round(bar * size / max(1, view.usable))))
        made.append("█" * width, style=colours.get(name, "green"))
        used += width
    made.append("░" * (bar - used), style="dim")
    made.append(f" {human(view.tokens, view.exact)} of {human(view.usable, True)}")
    made.append(f"   {_money(stage.sent.dollars)} instead of {_money(stage.everything.dollars)}", style="bold")
    return made


def _recall(out: Console, stage: Stage) -> None:
    """What stands for the folded part, and that the part itself is still there."""
    fold = stage.session.timeline.fold
    if fold is None:
        return
    if fold.digest is not None:
        out.print(
            f"\nwhat the model now reads instead of {handle(stage.session.timeline.lead, fold.cut - 1)}", style="bold"
        )
        _quoted(out, digest_lines(fold.digest.message.text))
    out.print(f"\nfolded away, and still there: recall({QUESTION!r})", style="bold")
    _quoted(out, stage.recall(QUESTION).splitlines())


def _quoted(out: Console, lines: list[str]) -> None:
    for line in lines[:SHOWN]:
        out.print(f"    │ {safe(line)}", style="dim", overflow="ellipsis", no_wrap=True)


def _receipt(out: Console, report: dict[str, Any]) -> None:
    sent, whole = report["with"], report["without"]
    made = table("", "tokens sent", "largest", "from cache", "cost")
    for name, row in (("everything, every time", whole), ("with foldline", sent)):
        share = f"{row['read'] / row['sent']:.0%}"
        made.add_row(name, human(row["sent"], False), f"{row['largest']:,}", share, _money(row["cost"]))
    out.print("")
    out.print(made)
    saved = f"{1 - sent['cost'] / whole['cost']:.0%} saved" if whole["cost"] else "prices unknown"
    out.print(
        f"\n{report['requests']} requests, {report['folds']} folds, {saved}; all {report['kept']} messages are in the "
        f"record. {report['seconds']:.1f} s",
        style="bold",
        soft_wrap=True,
    )
    out.print("\nTry next:")
    width = max(len(command) for command, _ in NEXT)
    for command, what in NEXT:
        out.print(f"  {command:<{width}}  {what}", soft_wrap=True)


def _money(dollars: float | None) -> str:
    return "-" if dollars is None else f"${dollars:,.2f}"
