"""Computes what an agent has spent, and handles cost limits with a warning, a pause, a question and a wrap-up prompt.

If the stream contains a cost figure, this figure is used, because it is what the provider charged. Between two such
figures, the cost of each reply is computed from the model table. So a limit is noticed in the middle of a long turn.

The limit of a project applies to all jobs of the project, in any process. All runs append rows to one file; each row
has everything that its run has spent so far. So the project's spending is the sum of the last row of each run. Runs
with the same job name count separately.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from foldline.errors import ConfigError
from foldline.message import Usage
from foldline.watch.agent_events import AgentEvent, RawEvent, dict_at, text_at
from foldline.watch.safe_files import append_line, open_plain_file
from foldline.wire.session_logs.usage import codex_usage

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
"""Within a turn, a job's spending is recorded when it has changed by this share of the project's limit.

At the end of a turn, every change is recorded.
"""
_ROUNDING = 1e-9
"""A limit counts as reached if at most this share of the limit is left, because sums of floats are not exact."""
_MILLION = 1_000_000
_MAX_USD = 1e9
_MAX_REPLIES = 100
"""Maximum number of replies that are remembered. Far fewer replies arrive at the same time."""
_MAX_SESSIONS = 1_000
"""Maximum number of sessions whose last figure is remembered. A job resumes far fewer sessions than this."""


class Spending:
    """The cost of all model replies in a stream, for the main agent and its sub-agents."""

    def __init__(self) -> None:
        self.usd = 0.0
        self.source = "nothing spent yet"
        self.unpriced: str = ""
        """The name of a model that was used but has no price. The cost of this model is missing from `usd`."""
        self._priced: dict[str, float] = {}
        """For each session, the cost computed from the price table since the stream last reported a cost figure."""
        self._replies: dict[str, float] = {}
        """The cost of each of the latest replies, by reply id.

        For an incomplete reply, this is the cost of the pieces so far.
        """
        self._last_figures: dict[str, float] = {}
        """The cost figure that the stream reported last, for each session that has replies."""
        self._prices: dict[str, Prices | None] = {}
        self._codex_model, self._codex_total = "", None
        """The model of a Codex session, and the total usage that the session reported last."""

    def feed(self, raw: RawEvent) -> None:
        """Take one event."""
        self.observe(AgentEvent(raw))

    def observe(self, event: AgentEvent) -> None:
        """Update the cost from one parsed event."""
        if event.kind == "assistant":
            usage = event.usage
            if usage is not None:
                self._add_reply(event.session, event.message, usage)
        elif event.kind == "result":
            self._set_figure(event.session, event.raw.get("total_cost_usd"))
        elif event.kind == "cost-state":
            self._set_figure(text_at(event.raw, "sessionId"), event.raw.get("totalCostUSD"))
        elif event.kind in ("turn_context", "event_msg"):
            self._read_codex(dict_at(event.raw, "payload"))

    def _read_codex(self, payload: dict[str, Any]) -> None:
        """Add the cost of a Codex request.

        If the total usage is the same as in the previous event, the event reports the same request again and is
        ignored.
        """
        self._codex_model = text_at(payload, "model") or self._codex_model
        total = dict_at(payload, "info").get("total_token_usage")
        usage = codex_usage(payload) if payload.get("type") == "token_count" else None
        if usage is not None and (total is None or total != self._codex_total):
            self._codex_total = total
            self._add_reply("", {"model": self._codex_model}, usage)

    def _add_reply(self, session: str, message: dict[str, Any], usage: Usage) -> None:
        """Add the cost of a reply.

        A reply arrives in pieces. Each piece has usage figures, but only the figures in the last piece are final.
        """
        usd, reply = self._cost(text_at(message, "model"), usage), text_at(message, "id")
        self.source = "usage and the price table"
        more = usd - self._replies.get(reply, 0.0)
        if more <= 0:
            return
        if reply:
            self._replies[reply] = usd
            if len(self._replies) > _MAX_REPLIES:
                del self._replies[next(iter(self._replies))]
        self._priced[session] = self._priced.get(session, 0.0) + more
        self.usd += more

    def _set_figure(self, session: str, figure: Any) -> None:
        """Take `figure`, the cost of the session that the stream reports, and drop the cost computed since the last
        figure.

        If a session is resumed, some versions of the agent report the cost of all runs of the session. Other versions
        report only the cost of the new run. So the new cost is either the increase since the last figure, or the whole
        figure. Of these two, the one that is nearer to the computed cost is added to `usd`. If a session has no
        replies, the whole figure is added.
        """
        if type(figure) not in (int, float) or not 0 <= figure <= _MAX_USD:
            return
        has_replies = session in self._priced or session in self._last_figures
        last, priced = self._last_figures.pop(session, 0.0), self._priced.pop(session, 0.0)
        is_continued = figure >= last and abs(figure - last - priced) <= abs(figure - priced)
        increase = figure - last if is_continued else figure
        if has_replies:
            self._last_figures[session] = figure
        for figures in (self._last_figures, self._priced):
            if len(figures) > _MAX_SESSIONS:
                figures.pop(next(iter(figures)))
        self.usd = max(0.0, self.usd + increase - priced)
        self.source = "the stream's own figure"

    def _cost(self, model: str, usage: Usage) -> float:
        if model not in self._prices:
            from foldline.models.table import model as look_up  # noqa: PLC0415

            if len(self._prices) > _MAX_SESSIONS:
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
    """An event of a cost budget (COST_WARNING, COST_LIMIT or INPUT_REQUESTED) with its figures."""

    name: str
    scope: str
    spent: float
    limit: float

    @property
    def text(self) -> str:
        """One sentence for the user."""
        figures = f"${self.spent:.2f} of ${self.limit:.2f}"
        if self.name == COST_WARNING:
            return f"the {self.scope} has spent {figures} ({self.spent / self.limit:.0%})"
        if self.name == COST_LIMIT:
            return f"the {self.scope} has used up its budget: {figures}"
        return f"the {self.scope} has used up its budget ({figures}): continue?"


@dataclass(slots=True, kw_only=True)
class CostBudget:
    """A limit on spending. Each event is reported once. At the limit, the budget is paused until `answer` is called."""

    limit_usd: float
    scope: str = "job"
    warn_ratio: float = WARN_RATIO
    spent: float = 0.0
    warned: bool = False
    stopped: bool = False
    """Whether the limit is reached and the user has not allowed more."""
    paused: bool = False
    accepted: bool = False
    """Whether the user has allowed more than this limit."""

    def __post_init__(self) -> None:
        if not 0 < self.limit_usd <= _MAX_USD or not 0 < self.warn_ratio <= 1:
            raise ConfigError(
                f"a cost limit of {self.limit_usd!r} dollars is impossible", hint="give an amount above 0"
            )

    def check(self, spent: float) -> list[CostEvent]:
        """Compare the spending with the limit; returns the events that are due."""
        self.spent = spent
        events: list[CostEvent] = []
        rounded = spent + self.limit_usd * _ROUNDING
        if rounded >= self.limit_usd * self.warn_ratio and not self.warned:
            self.warned = True
            events.append(self._event(COST_WARNING))
        if rounded >= self.limit_usd and not self.stopped and not self.accepted:
            self.stopped = self.paused = True
            events += [self._event(COST_LIMIT), self._event(INPUT_REQUESTED)]
        return events

    def answer(self, *, go_on: bool, limit_usd: float | None = None) -> str:
        """Apply the user's answer to the question of whether the agent may go on after this limit.

        If `go_on` is False, returns the prompt that tells the agent to finish its work and stop. If `go_on` is True,
        returns "", and this limit is not reported again. If `limit_usd` is also given and is above the spending, it
        becomes the new limit.
        """
        self.paused = False
        if not go_on:
            return WRAP_UP.format(scope=self.scope, spent=self.spent, limit=self.limit_usd)
        self.stopped, self.accepted = False, True
        if limit_usd is not None and limit_usd > self.spent:
            self.limit_usd, self.accepted, self.warned = limit_usd, False, self.spent >= limit_usd * self.warn_ratio
        return ""

    def _event(self, name: str) -> CostEvent:
        return CostEvent(name, self.scope, self.spent, self.limit_usd)


class CostRecorder(Protocol):
    """An object that records the spending of a project's jobs, such as `ProjectCosts`."""

    def record(self, usd: float) -> float:
        """Record what this run has spent; returns what the project has spent."""


class CostLimits:
    """The limit of a job and the limit of its project. Each of these limits is optional."""

    def __init__(
        self, *, job: CostBudget | None = None, project: CostBudget | None = None, costs: CostRecorder | None = None
    ) -> None:
        self._job, self._project, self._costs = job, project, costs
        self._recorded: float | None = None
        """Spending of this job when it was last recorded for the project; None before the first record."""

    def check(self, spent: float, *, turn_ended: bool = False) -> list[CostEvent]:
        """Compare the spending with the limits of the job and the project; returns the events that are due."""
        events = self._job.check(spent) if self._job is not None else []
        if self._project is not None and self._costs is not None:
            step = self._project.limit_usd * _PROJECT_STEP
            last = self._recorded
            if last is None or (spent != last and (turn_ended or abs(spent - last) >= step)):
                self._recorded = spent
                events = [*events, *self._project.check(self._costs.record(spent))]
        return events

    def answer(self, *, go_on: bool) -> list[str]:
        """Apply the user's answer to each limit that waits for an answer (see `CostBudget.answer`).

        If `go_on` is False, returns one prompt for each of these limits.
        """
        paused = [limit for limit in (self._job, self._project) if limit is not None and limit.paused]
        return [text for limit in paused if (text := limit.answer(go_on=go_on))]

    @property
    def over(self) -> CostBudget | None:
        """The limit that has been reached; None if no limit has been reached.

        If the job and the project have both reached their limits, the job's limit is returned.
        """
        return next((limit for limit in (self._job, self._project) if limit is not None and limit.stopped), None)


class ProjectCosts:
    """The spending of all jobs of a project. The figures are stored in a file of JSON lines that only grows."""

    def __init__(self, path: Path, job: str, run: str = "") -> None:
        self.path, self.job = path, job
        self._run = job, run or os.urandom(8).hex()
        """The job and the id of this run. A run is one process, but all processes that read the same session file count
        as one run.
        """
        self._earlier = 0.0
        """The spending that the file already holds for this run, for example because a session file is read again. This
        amount is not added again.
        """
        self._others: dict[tuple[str, str], float] = {}
        """The last recorded spending of every other run. Old versions wrote rows without a run id. All rows of a job
        that have no run id count as one run.
        """
        self._offset = 0
        self._is_torn = False
        """Whether the file ends with an incomplete row, for example because the disk was full."""
        self._last_row = 0.0
        os.close(self._open(os.O_WRONLY | os.O_APPEND | os.O_CREAT))
        self._read_new_rows()

    def record(self, usd: float) -> float:
        """Record what this run has spent; returns what the project has spent."""
        usd = round(usd, 6)
        if usd != self._last_row and usd > self._earlier:
            row = json.dumps({"job": self.job, "run": self._run[1], "usd": usd})
            append_line(self.path, f"\n{row}" if self._is_torn else row)
            self._last_row = usd
        self._read_new_rows()
        return self.total(usd)

    def total(self, usd: float) -> float:
        """The project's spending: `usd` for this run, plus what other runs had spent when the file was last read."""
        return sum(self._others.values()) + max(usd, self._earlier)

    def _read_new_rows(self) -> None:
        with os.fdopen(self._open(os.O_RDONLY | os.O_CREAT), "rb") as file:
            if file.seek(0, os.SEEK_END) < self._offset:
                self._others, self._offset, self._earlier = {}, 0, 0.0
            file.seek(self._offset)
            text = file.read()
        complete = text[: text.rfind(b"\n") + 1]
        self._offset += len(complete)
        self._is_torn = len(complete) < len(text)
        for line in complete.splitlines():
            run, usd = _parse_row(line)
            if run == self._run:
                self._earlier = max(self._earlier, usd)
            elif run is not None:
                self._others[run] = usd

    def _open(self, flags: int) -> int:
        try:
            return open_plain_file(self.path, flags)
        except OSError as error:
            raise ConfigError(
                f"{self.path}: the project's costs cannot be stored in this file ({error.strerror})",
                hint="name another file with --project-costs, in a folder that you may write to",
            ) from None


def _parse_row(line: bytes) -> tuple[tuple[str, str] | None, float]:
    """The run (job and run id) and the spending in a row of the file. The run is None if the row cannot be read."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None, 0.0
    job = text_at(row, "job")
    usd: Any = row["usd"] if job and "usd" in row else None
    if type(usd) not in (int, float) or not 0 <= usd <= _MAX_USD:
        return None, 0.0
    return (job, text_at(row, "run")), float(usd)
