"""What an agent has spent, and what happens when that reaches a limit: a warning, a pause, a question, a wrap-up.

The stream's own figure wins where it gives one, since it knows what the provider charged. Between two such figures the
usage of every reply is priced by the model table, so that a limit is noticed in the middle of a long turn.

A project's limit holds over all its jobs, in whatever process they run: each run appends what it has spent to one file,
and the project's spending is the sum of every run's last row. Two runs of one name are two rows, be it at the same time
or one after the other.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from foldline.errors import ConfigError
from foldline.message import Usage
from foldline.watch.agent_events import AgentEvent, RawEvent, text_at
from foldline.watch.safe_files import PRIVATE_FILE, append_line

if TYPE_CHECKING:
    from foldline.models.table import Prices

WARN_RATIO = 0.80
COST_WARNING, COST_LIMIT, INPUT_REQUESTED = "COST_WARNING", "COST_LIMIT", "INPUT_REQUESTED"
WRAP_UP = (
    "The cost budget of this {scope} is used up (${spent:.2f} of ${limit:.2f}). Start nothing new. "
    "Finish or undo the step you are in so that nothing is left half done, then say in a few lines what is done, "
    "what is not, and what you would do next. Then stop."
)
_PROJECT_STEP = 0.01
"""The share of a project's limit after which a job tells the project what it has spent, also in mid turn."""
_HAIR = 1e-9
"""The share of a limit that may be missing: sums of cents are no more exact than that in floats."""
_MILLION = 1_000_000
_LARGEST_USD = 1e9
_REPLIES = 100
"""How many replies are remembered: more than ever arrive at the same time."""
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_SESSIONS = 1_000
"""How many sessions' last figures are remembered: far more than one job resumes."""


class Spending:
    """The money that a stream's calls cost, main agent and sub-agents together."""

    def __init__(self) -> None:
        self.usd = 0.0
        self.source = "nothing spent yet"
        self.unpriced: str = ""
        """A model that was used and has no price: what it cost is not in the figure."""
        self._since: dict[str, float] = {}
        """Priced since the stream's last figure, by session."""
        self._replies: dict[str, float] = {}
        """What the latest replies cost, as far as they have arrived."""
        self._last: dict[str, float] = {}
        self._prices: dict[str, Prices | None] = {}

    def feed(self, event: RawEvent) -> None:
        """Take one event."""
        self.see(AgentEvent(event))

    def see(self, seen: AgentEvent) -> None:
        """The same for an event that was read already."""
        if seen.kind == "assistant":
            usage = seen.usage
            if usage is not None:
                self._price(seen.session, seen.message, usage)
        elif seen.kind == "result":
            self._told(seen.session, seen.event.get("total_cost_usd"))
        elif seen.kind == "cost-state":
            self._told(text_at(seen.event, "sessionId"), seen.event.get("totalCostUSD"))

    def _price(self, session: str, message: dict[str, Any], usage: Usage) -> None:
        """Add a reply. It comes in pieces, others' in between; each repeats the usage, and the last knows most."""
        usd, reply = self._cost(text_at(message, "model"), usage), text_at(message, "id")
        self.source = "usage and the price table"
        more = usd - self._replies.get(reply, 0.0)
        if more <= 0:
            return
        if reply:
            self._replies[reply] = usd
            if len(self._replies) > _REPLIES:
                del self._replies[next(iter(self._replies))]
        self._since[session] = self._since.get(session, 0.0) + more
        self.usd += more

    def _told(self, session: str, figure: Any) -> None:
        """Take the stream's own figure for a session, in place of what was priced since the last one.

        Some versions count on when a session is resumed, others begin anew in every process. What was priced since
        says which it is: the step from the last figure, or the whole figure, whichever is nearer to it.
        """
        if type(figure) not in (int, float) or not 0 <= figure <= _LARGEST_USD:
            return
        last, since = self._last.pop(session, 0.0), self._since.pop(session, 0.0)
        goes_on = figure >= last and abs(figure - last - since) <= abs(figure - since)
        step = figure - last if goes_on else figure
        self._last[session] = figure
        for known in (self._last, self._since):
            if len(known) > _SESSIONS:
                known.pop(next(iter(known)))
        self.usd = max(0.0, self.usd + step - since)
        self.source = "the stream's own figure"

    def _cost(self, model: str, usage: Usage) -> float:
        if model not in self._prices:
            from foldline.models.table import model as look_up  # noqa: PLC0415

            if len(self._prices) > _SESSIONS:
                self._prices.clear()
            self._prices[model] = look_up(model).prices if model else None
        prices = self._prices[model]
        if prices is None:
            if not model.startswith("<"):
                self.unpriced = model or "a model without a name"
            return 0.0
        fresh, read, written, output, _, hour = usage
        usd: float = fresh * prices.input + read * prices.read + written * prices.write + output * prices.output
        if hour:
            usd += min(hour, written) * (prices.write_1h - prices.write)
        return usd / _MILLION


class CostEvent(NamedTuple):
    """Something that happened to a budget: its name as the design has it, and the figures."""

    name: str
    scope: str
    spent: float
    limit: float

    @property
    def text(self) -> str:
        """One sentence for a person."""
        figures = f"${self.spent:.2f} of ${self.limit:.2f}"
        if self.name == COST_WARNING:
            return f"the {self.scope} has spent {figures} ({self.spent / self.limit:.0%})"
        if self.name == COST_LIMIT:
            return f"the {self.scope} has used up its budget: {figures}"
        return f"the {self.scope} has used up its budget ({figures}): continue?"


@dataclass(slots=True, kw_only=True)
class CostBudget:
    """A limit on spending: what it says, it says once, and at the limit it waits for an answer."""

    limit_usd: float
    scope: str = "job"
    warn_ratio: float = WARN_RATIO
    spent: float = 0.0
    warned: bool = False
    stopped: bool = False
    paused: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.limit_usd <= _LARGEST_USD or not 0 < self.warn_ratio <= 1:
            raise ConfigError(f"a cost limit of {self.limit_usd!r} dollars cannot work", hint="give dollars above 0")

    def check(self, spent: float) -> list[CostEvent]:
        """Compare what is spent with the limit; the events that are due now."""
        self.spent = spent
        found: list[CostEvent] = []
        near = spent + self.limit_usd * _HAIR
        if near >= self.limit_usd * self.warn_ratio and not self.warned:
            self.warned = True
            found.append(self._event(COST_WARNING))
        if near >= self.limit_usd and not self.stopped:
            self.stopped = self.paused = True
            found += [self._event(COST_LIMIT), self._event(INPUT_REQUESTED)]
        return found

    def answer(self, *, go_on: bool, limit_usd: float | None = None) -> str:
        """What the person said at the limit. A no gives the prompt that lets the agent wrap up; a yes lifts the limit.

        With a new limit, warning and limit hold again for that one.
        """
        self.paused = False
        if not go_on:
            return WRAP_UP.format(scope=self.scope, spent=self.spent, limit=self.limit_usd)
        if limit_usd is not None and limit_usd > self.spent:
            self.limit_usd, self.stopped, self.warned = limit_usd, False, self.spent >= limit_usd * self.warn_ratio
        return ""

    def _event(self, name: str) -> CostEvent:
        return CostEvent(name, self.scope, self.spent, self.limit_usd)


class CostRecorder(Protocol):
    """Who knows what a project's jobs have spent: `ProjectCosts`, or one that gives way where its file does."""

    def record(self, usd: float) -> float:
        """Note what this run has spent; what the project has."""


class CostLimits:
    """A job's limit and its project's, each where there is one."""

    def __init__(
        self, *, job: CostBudget | None = None, project: CostBudget | None = None, costs: CostRecorder | None = None
    ) -> None:
        self._job, self._project, self._costs = job, project, costs
        self._told: float | None = None
        """What the project knows of; None before the first look, when others may have used it up already."""

    def check(self, spent: float, *, turn_ended: bool = False) -> list[CostEvent]:
        """Compare what the job has spent with both limits; the events that are due now."""
        found = self._job.check(spent) if self._job is not None else []
        if self._project is not None and self._costs is not None:
            step = self._project.limit_usd * _PROJECT_STEP
            told = self._told
            if told is None or (spent != told and (turn_ended or abs(spent - told) >= step)):
                self._told = spent
                found = [*found, *self._project.check(self._costs.record(spent))]
        return found

    def answer(self, *, go_on: bool) -> list[str]:
        """What the person said; for each limit that waited and was refused, the prompt to wrap up."""
        waiting = [limit for limit in (self._job, self._project) if limit is not None and limit.paused]
        return [text for limit in waiting if (text := limit.answer(go_on=go_on))]

    @property
    def over(self) -> CostBudget | None:
        """The limit that is used up."""
        return next((limit for limit in (self._job, self._project) if limit is not None and limit.stopped), None)


class ProjectCosts:
    """What all jobs of a project have spent, in a file of rows that only grows."""

    def __init__(self, path: Path, job: str, run: str = "") -> None:
        self.path, self.job = path, job
        self._run = job, run or os.urandom(8).hex()
        """Who spends: one process, or whoever reads the same session file, however often."""
        self._earlier = 0.0
        """What was noted for this run before: reading a file again costs nothing."""
        self._others: dict[tuple[str, str], float] = {}
        """The last row of every other run. Earlier versions named no run: their job's last row is all that it spent."""
        self._read = 0
        self._torn = False
        """Whether the file ends with half a row, as a full disk leaves it."""
        self._written = 0.0
        os.close(_opened(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NO_LINK))
        self._look()

    def record(self, usd: float) -> float:
        """Note what this run has spent; what the project has."""
        usd = round(usd, 6)
        if usd != self._written and usd > self._earlier:
            row = json.dumps({"job": self.job, "run": self._run[1], "usd": usd})
            append_line(self.path, f"\n{row}" if self._torn else row)
            self._written = usd
        self._look()
        return self.known(usd)

    def known(self, usd: float) -> float:
        """What the project has spent by all that was read so far, when this run has spent so much."""
        return sum(self._others.values()) + max(usd, self._earlier)

    def _look(self) -> None:
        """Read on from where the last look ended."""
        with os.fdopen(_opened(self.path, os.O_RDONLY | os.O_CREAT), "rb") as file:
            if file.seek(0, os.SEEK_END) < self._read:
                self._others, self._read, self._earlier = {}, 0, 0.0
            file.seek(self._read)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        self._torn = len(whole) < len(text)
        for line in whole.splitlines():
            run, usd = _row(line)
            if run == self._run:
                self._earlier = max(self._earlier, usd)
            elif run is not None:
                self._others[run] = usd


def _opened(path: Path, flags: int) -> int:
    """A plain file, opened; nothing else is waited for or written to."""
    flags |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        file = os.open(path, flags, PRIVATE_FILE)
    except OSError as error:
        raise _unusable(path, "it is a link" if error.errno == errno.ELOOP else str(error.strerror)) from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise _unusable(path, "it is no plain file")
    return file


def _unusable(path: Path, why: str) -> ConfigError:
    return ConfigError(
        f"{path}: costs cannot be kept there ({why})", hint="name a plain file in a folder of yours for --project-costs"
    )


def _row(line: bytes) -> tuple[tuple[str, str] | None, float]:
    """A job's run and what it has spent; no run for a row that somebody else wrote."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None, 0.0
    job = text_at(row, "job")
    usd: Any = row["usd"] if job and "usd" in row else None
    if type(usd) not in (int, float) or not 0 <= usd <= _LARGEST_USD:
        return None, 0.0
    return (job, text_at(row, "run")), float(usd)
