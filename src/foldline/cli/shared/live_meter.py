"""The meter of `foldline watch`: one line that is redrawn on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any, Self, cast

from foldline.cli.shared.output import plural, printable
from foldline.cli.shared.watch_io import UnbufferedOutput
from foldline.measure.estimator import format_tokens
from foldline.watch.watcher import Watcher, WatchEvent

if TYPE_CHECKING:
    from rich.text import Text

BAR = 30
_STYLES = {"warning": "yellow", "compact": "bold red", "cost_limit": "bold red", "cost_warning": "yellow"}
_MESSAGES = {
    "session": "session {session}",
    "warning": "{share:.0%} of the window is used: a compaction is near",
    "compact": "{share:.0%} of the window is used: compact at the end of the turn",
    "intervention": "for the next turn of {session}: {text}",
    "dead_end": "dead end ({kind}): {text}",
    "cost_warning": "{text}",
    "cost_limit": "{text}",
    "input_requested": "{text}",
}


class LiveMeter:
    """Shows the reports of one watcher to the user."""

    def __init__(self, ask: Callable[[str], bool], out: UnbufferedOutput) -> None:
        from rich.console import Console  # noqa: PLC0415  # takes a quarter of the start-up time
        from rich.live import Live  # noqa: PLC0415

        self._out = Console(file=cast("IO[str]", out), highlight=False, markup=False, emoji=False)
        self._live = Live(console=self._out, refresh_per_second=8, transient=True) if self._out.is_terminal else None
        self._ask = ask

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, watcher: Watcher, report: WatchEvent) -> None:
        """Print the report as a line if it has a text for the user, then redraw the meter."""
        if report.event == "compacted":
            self._print(_describe_compaction(report.facts), "bold")
        elif report.event in _MESSAGES:
            text = _MESSAGES[report.event].format(session=report.session, **report.facts)
            self._print(text, _STYLES.get(report.event, ""))
        if self._live is not None:
            self._live.update(meter_line(watcher))

    def pace(self, *, behind: bool) -> None:
        """Do nothing: the meter is redrawn a few times a second, whether or not more input is waiting (`behind`)."""

    def fail(self, text: str) -> None:
        """Print the text of a write error."""
        self._print(text, "bold red")

    def ask(self, question: str) -> bool:
        """Ask the user a yes-or-no question. The meter is hidden meanwhile."""
        if self._live is not None:
            self._live.stop()
        answer = self._ask(question)
        if self._live is not None:
            self._live.start()
        return answer

    def end(self, watcher: Watcher, facts: dict[str, Any]) -> None:
        """Print the final figures and why the watch ended."""
        if self._live is not None:
            self._live.stop()
        self._out.print(meter_line(watcher), soft_wrap=True)
        figures = watcher.figures()
        counts = [
            plural(figures[name], word)
            for name, word in (("turns", "turn"), ("compactions", "compaction"), ("dead_ends", "dead end"))
        ]
        self._print(f"{', '.join(counts)}; {facts['reason']}", "")
        if facts["garbage"]:
            self._print(f"left out because it is no event: {plural(facts['garbage'], 'line')}", "yellow")
        for text in facts.get("missing", ()):
            self._print(text, "bold red")
        if watcher.writer is not None:
            self._print(f"notes: {watcher.writer.path}", "")

    def _print(self, text: str, style: str) -> None:
        self._out.print(printable(text), style=style or None, soft_wrap=True)


def meter_line(watcher: Watcher) -> Text:
    """The meter as one line: a bar with marks at the two thresholds (warn, compact), then tokens, model and cost."""
    from rich.text import Text  # noqa: PLC0415

    meter = watcher.meter
    full = max(0, min(BAR, round(meter.share * BAR)))
    cells = ["█" if place < full else "·" for place in range(BAR)]
    for ratio in (meter.warn_ratio, meter.compact_ratio):
        place = min(BAR - 1, int(ratio * BAR))
        cells[place] = "█" if place < full else "|"
    style = "red" if meter.share >= meter.compact_ratio else "yellow" if meter.share >= meter.warn_ratio else "green"
    line = Text("".join(cells), style=style)
    line.append(f" {meter.share:4.0%}", style="bold")
    line.append(f"  {format_tokens(meter.used, exact=True)} of {format_tokens(meter.window.tokens, exact=True)}")
    line.append(f"  {printable(meter.model) or 'model unknown'}")
    if watcher.spending.usd:
        line.append(f"  ${watcher.spending.usd:.2f}")
    return line


def _describe_compaction(facts: dict[str, Any]) -> str:
    before = format_tokens(facts["before"], exact=True) if facts["before"] else "?"
    after = f" → {format_tokens(facts['after'], exact=True)}" if facts["after"] else ""
    return f"compacted ({printable(facts['trigger'])}): {before}{after} tokens"
