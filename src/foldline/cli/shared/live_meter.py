"""The meter that `foldline watch` draws: one line that is redrawn on a terminal, plain lines anywhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any, Self, cast

from foldline.cli.shared.output import printable
from foldline.cli.shared.watch_io import UnbufferedOutput
from foldline.measure.estimator import human
from foldline.watch.watcher import Watcher, WatchEvent

if TYPE_CHECKING:
    from rich.text import Text

BAR = 30
_STYLES = {"warning": "yellow", "compact": "bold red", "cost_limit": "bold red", "cost_warning": "yellow"}
_SAID = {
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
    """Shows one watch to a person."""

    def __init__(self, ask: Callable[[str], bool], out: UnbufferedOutput) -> None:
        from rich.console import Console  # noqa: PLC0415  # a quarter of the start-up time
        from rich.live import Live as Screen  # noqa: PLC0415

        self._out = Console(file=cast("IO[str]", out), highlight=False, markup=False, emoji=False)
        self._screen = (
            Screen(console=self._out, refresh_per_second=8, transient=True) if self._out.is_terminal else None
        )
        self._ask = ask

    def __enter__(self) -> Self:
        if self._screen is not None:
            self._screen.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._screen is not None:
            self._screen.stop()

    def show(self, watching: Watcher, notice: WatchEvent) -> None:
        """One notice: the meter is redrawn, everything else is a line that stays."""
        if notice.event == "compacted":
            self._say(_compacted(notice.facts), "bold")
        elif notice.event in _SAID:
            said = _SAID[notice.event].format(session=notice.session, **notice.facts)
            self._say(said, _STYLES.get(notice.event, ""))
        if self._screen is not None:
            self._screen.update(meter_line(watching))

    def pace(self, *, behind: bool) -> None:
        """Hear whether more waits to be read: the meter is redrawn a few times a second in any case."""

    def fail(self, text: str) -> None:
        """Something cannot be written."""
        self._say(text, "bold red")

    def ask(self, question: str) -> bool:
        """Ask the person, with the meter out of the way."""
        if self._screen is not None:
            self._screen.stop()
        answer = self._ask(question)
        if self._screen is not None:
            self._screen.start()
        return answer

    def end(self, watching: Watcher, facts: dict[str, Any]) -> None:
        """The last word: how things stand and why it ended."""
        if self._screen is not None:
            self._screen.stop()
        self._out.print(meter_line(watching), soft_wrap=True)
        figures = watching.figures()
        many = [
            f"{figures[name]} {word}{'' if figures[name] == 1 else 's'}"
            for name, word in (("turns", "turn"), ("compactions", "compaction"), ("dead_ends", "dead end"))
        ]
        self._say(f"{', '.join(many)}; {facts['reason']}", "")
        if facts["garbage"]:
            self._say(f"{facts['garbage']} lines were no events", "yellow")
        for text in facts.get("missing", ()):
            self._say(text, "bold red")
        if watching.writer is not None:
            self._say(f"notes: {watching.writer.path}", "")

    def _say(self, text: str, style: str) -> None:
        self._out.print(printable(text), style=style or None, soft_wrap=True)


def meter_line(watching: Watcher) -> Text:
    """The meter: a bar with both thresholds marked, tokens, model, cost."""
    from rich.text import Text  # noqa: PLC0415

    meter = watching.meter
    full = max(0, min(BAR, round(meter.share * BAR)))
    cells = ["█" if place < full else "·" for place in range(BAR)]
    for ratio in (meter.warn_ratio, meter.compact_ratio):
        place = min(BAR - 1, int(ratio * BAR))
        cells[place] = "█" if place < full else "|"
    style = "red" if meter.share >= meter.compact_ratio else "yellow" if meter.share >= meter.warn_ratio else "green"
    line = Text("".join(cells), style=style)
    line.append(f" {meter.share:4.0%}", style="bold")
    line.append(f"  {human(meter.used, exact=True)} of {human(meter.window.tokens, exact=True)}")
    line.append(f"  {printable(meter.model) or 'model unknown'}")
    if watching.spending.usd:
        line.append(f"  ${watching.spending.usd:.2f}")
    return line


def _compacted(facts: dict[str, Any]) -> str:
    before = human(facts["before"], exact=True) if facts["before"] else "?"
    after = f" → {human(facts['after'], exact=True)}" if facts["after"] else ""
    return f"compacted ({printable(facts['trigger'])}): {before}{after} tokens"
