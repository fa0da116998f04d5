"""`foldline watch`: an agent's stream or session file, with a meter for people and events for machines."""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import click

from foldline.cli.shared.live_meter import LiveMeter
from foldline.cli.shared.watch_io import (
    DeferredSignals,
    TolerantCostRecorder,
    TolerantScratchWriter,
    UnbufferedOutput,
    WriteFailures,
)
from foldline.text_lines import CHUNK_BYTES, LineSplitter, Tee, raw_lines_of_file, raw_lines_of_stream
from foldline.watch.agent_events import DELTA_PREFIX, RawEvent, load
from foldline.watch.cost import CostBudget, CostLimits, ProjectCosts
from foldline.watch.meter import COMPACT_RATIO, WARN_RATIO, Meter
from foldline.watch.scratch import ScratchModel
from foldline.watch.scratch_files import ScratchWriter
from foldline.watch.watcher import Watcher

ENDED, FAILED, REFUSED, UNWRITTEN, COMPACT, COST, CUT, STOPPED = 0, 1, 2, 4, 10, 11, 12, 128
EXITS = {
    ENDED: "the agent finished and nothing is due",
    FAILED: "the agent finished with an error",
    REFUSED: "wrong use, or a file or folder that cannot be used",
    UNWRITTEN: "the agent finished and nothing is due, but something could not be written",
    COMPACT: "a compaction is due before its next turn",
    COST: "a cost limit is reached",
    CUT: "the stream ended in the middle of a turn",
    STOPPED + 2: "stopped by Ctrl-C, 129 by a hangup, 143 by kill: what was noted is written",
}
"""Why the command ended, as its exit code says it."""
NOTHING = (
    "no event of an agent came: have it print them (claude -p ... --output-format stream-json --verbose), "
    "or name its session file"
)


@click.command(epilog="Exit codes: " + "; ".join(f"{code} {why}" for code, why in EXITS.items()) + ".")
@click.argument("file", type=click.Path(), required=False)
@click.option("--follow", "-f", is_flag=True, help="Go on while the file grows.")
@click.option("--idle", type=float, metavar="SECONDS", help="With --follow: end when it rests that long.")
@click.option("--scratch", type=click.Path(), metavar="FOLDER", help="Keep working notes in FOLDER/.context.")
@click.option("--job", default="", help="What the agent is working on, for notes and compactions.")
@click.option("--state", default="", help="The state the job is in, for compactions.")
@click.option("--window", type=click.IntRange(min=1), metavar="TOKENS", help="The window, instead of the model's own.")
@click.option(
    "--warn", type=float, default=WARN_RATIO, show_default=True, help="Warn from this share of the window on."
)
@click.option("--compact", type=float, default=COMPACT_RATIO, show_default=True, help="Compact from this share on.")
@click.option("--cost-limit", type=float, metavar="USD", help="What the job may cost.")
@click.option("--project-limit", type=float, metavar="USD", help="What all jobs of the project may cost together.")
@click.option("--project-costs", type=click.Path(), metavar="FILE", help="Where the project's jobs note their costs.")
@click.option("--ask", is_flag=True, help="At a cost limit, hold the agent and ask on the terminal.")
@click.option("--json", "as_json", is_flag=True, help="Events for an orchestrator, one JSON object a line.")
@click.option("--pass-through", is_flag=True, help="Copy the input to standard output unchanged; events go to stderr.")
def watch(file: str | None, **options: Any) -> int:
    r"""Watch an agent: how full its window is, what it costs, what it tried in vain.

    Without a file, the stream is read from standard input.

    \b
    Example:  foldline watch -f ~/.claude/projects/.../session.jsonl
              claude -p "fix the tests" --output-format stream-json --verbose | foldline watch --scratch .
    """
    _check(file, options)
    with DeferredSignals() as stop:
        return _run(file, options, stop)


def _check(file: str | None, options: dict[str, Any]) -> None:
    """Refuse what cannot work before anything is made or read."""
    follow, idle = options["follow"], options["idle"]
    if file is None or file == "-":
        if follow:
            raise click.UsageError("--follow goes with a session file; a stream is read to its end anyway")
        if sys.stdin is None or sys.stdin.isatty():
            raise click.UsageError("nothing on standard input: pipe a stream in, or name a session file")
    if idle is not None and not follow:
        raise click.UsageError("--idle goes with --follow")
    if idle is not None and not 0 < idle < math.inf:
        raise click.UsageError(f"--idle {idle:g} cannot work: give seconds above 0")
    if options["pass_through"] and sys.stdout is None:
        raise click.UsageError("--pass-through needs a standard output")
    if (options["project_limit"] is None) != (options["project_costs"] is None):
        raise click.UsageError("--project-limit and --project-costs go together: a limit, and the file that is shared")


def _run(file: str | None, options: dict[str, Any], stop: DeferredSignals) -> int:
    """Feed every line to the watch; why it ended."""
    missing = WriteFailures(lambda text: view.fail(text))  # noqa: PLW0108  # the view comes later, as it needs this one
    view, splitter = _view(options["as_json"], options["pass_through"], missing), LineSplitter()
    passing = (
        UnbufferedOutput(sys.stdout, "the stream that passes through", missing) if options["pass_through"] else None
    )

    def hear(chunk: bytes) -> None:
        with stop.busy():
            if passing is not None:
                passing.send(chunk)
            behind = len(chunk) == CHUNK_BYTES
            watching.pace(behind=behind)
            view.pace(behind=behind)
            if not chunk:
                watching.save()

    lines = _lines(file, options, splitter, hear)
    watching = _watch(file, options, missing)
    garbage, go_on = 0, True
    with view:
        try:
            while go_on and stop.signal is None:
                stop.waits = True
                line = next(lines, None)
                stop.waits = False
                if line is None:
                    break
                event = load(line)
                if event is None:
                    garbage += not line.startswith(DELTA_PREFIX)
                else:
                    go_on = _feed(watching, view, event, stop if options["ask"] else None)
        except KeyboardInterrupt:
            if stop.signal is None:
                raise
        finally:
            stop.waits = False
            for notice in watching.end():
                view.show(watching, notice)
        facts = _end(watching, stop, missing)
        view.end(watching, {**facts, "garbage": garbage + splitter.too_long})
    return int(facts["code"])


def _feed(watching: Watcher, view: LiveMeter | _JsonOutput, event: RawEvent, asks: DeferredSignals | None) -> bool:
    """Take one event and show what there is to tell; False when a person said that it is enough."""
    notices = watching.feed(event)
    for notice in notices:
        view.show(watching, notice)
    questions = [notice.facts["text"] for notice in notices if notice.event == "input_requested"] if asks else []
    if asks is None or not questions:
        return True
    asks.waits = True
    go_on = view.ask(questions[0])
    asks.waits = False
    for notice in watching.answer(go_on=go_on):
        view.show(watching, notice)
    return go_on


def _end(watching: Watcher, stop: DeferredSignals, missing: WriteFailures) -> dict[str, Any]:
    """Why it ended, and what is missing."""
    code = _why(watching)
    reason = EXITS[code]
    if code == CUT and not (watching.meter.session or watching.meter.used or watching.spending.usd):
        reason = NOTHING
    if stop.signal is not None:
        code, reason = STOPPED + stop.signal, f"stopped by {stop.signal.name}"
    elif code == ENDED and missing.texts:
        code, reason = UNWRITTEN, EXITS[UNWRITTEN]
    facts: dict[str, Any] = {"code": code, "reason": reason}
    return {**facts, "missing": missing.texts} if missing.texts else facts


def _why(watching: Watcher) -> int:
    if watching.limits is not None and watching.limits.over is not None:
        return COST
    if watching.meter.should_compact:
        return COMPACT
    if watching.last_error is None:
        return CUT
    return FAILED if watching.last_error else ENDED


def _watch(file: str | None, options: dict[str, Any], missing: WriteFailures) -> Watcher:
    """What watches; whatever cannot work is refused here."""
    meter = Meter(window=options["window"], warn_ratio=options["warn"], compact_ratio=options["compact"])
    model, notes = ScratchModel(job=options["job"], phase=options["state"]), None
    limits = _limits(file, options, missing)
    if options["scratch"]:
        writer = ScratchWriter(Path(options["scratch"]))
        writer.write_scratch(model)
        notes = TolerantScratchWriter(writer, missing)
    return Watcher(meter=meter, writer=notes, model=model, limits=limits, state=options["state"])


def _run_of(session: str | None) -> str:
    """What names the spending of a session file, so that reading it again counts nothing twice; "" for a stream."""
    if session is None or not os.path.isfile(session):
        return ""
    return hashlib.sha256(os.path.realpath(session).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _limits(session: str | None, options: dict[str, Any], missing: WriteFailures) -> CostLimits | None:
    job, project, file = options["cost_limit"], options["project_limit"], options["project_costs"]
    if job is None and project is None:
        return None
    run = _run_of(session)
    name = options["job"] or f"job-{run or os.getpid()}"
    return CostLimits(
        job=CostBudget(limit_usd=job) if job is not None else None,
        project=CostBudget(limit_usd=project, scope="project") if project is not None else None,
        costs=TolerantCostRecorder(ProjectCosts(Path(file), name, run), missing) if file is not None else None,
    )


def _lines(file: str | None, options: dict[str, Any], splitter: LineSplitter, hear: Tee) -> Iterator[bytes]:
    if file is None or file == "-":
        return raw_lines_of_stream(sys.stdin.fileno(), splitter, hear)
    return raw_lines_of_file(file, splitter, follow=options["follow"], idle_seconds=options["idle"] or 0.0, tee=hear)


class _JsonOutput:
    """Notices as JSON lines."""

    def __init__(self, out: UnbufferedOutput) -> None:
        self._out = out
        self._session = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._out.pace(behind=False)

    def pace(self, *, behind: bool) -> None:
        """Hear whether more waits to be read: events then go out together."""
        self._out.pace(behind=behind)

    def show(self, watching: Watcher, notice: Any) -> None:  # noqa: ARG002  # the same call as the live view's
        """Print one notice."""
        self._session = notice.session
        self._write(notice.as_json())

    def fail(self, text: str) -> None:
        """Something cannot be written; where that is the events themselves, standard error is left to say so."""
        if self._out.closed:
            UnbufferedOutput(sys.stderr, "").write(f"foldline: {text}\n")
        else:
            self._write({"event": "not_written", "session": self._session, "text": text})

    def ask(self, question: str) -> bool:
        """Ask when the orchestrator has heard why; without a terminal the answer is no."""
        self._out.pace(behind=False)
        return _ask_terminal(question)

    def end(self, watching: Watcher, facts: dict[str, Any]) -> None:
        """Print how things stand at the end."""
        self._write({"event": "end", "session": watching.meter.session, **watching.figures(), **facts})

    def _write(self, value: dict[str, Any]) -> None:
        self._out.write(json.dumps(value, ensure_ascii=True) + "\n")


def _ask_terminal(question: str) -> bool:
    """Ask on the terminal itself, since standard input is the stream; the agent waits on its full pipe meanwhile."""
    try:
        with open("/dev/tty", "w", encoding="utf-8") as terminal, open("/dev/tty", encoding="utf-8") as keys:
            terminal.write(f"{question} [y/N] ")
            terminal.flush()
            return keys.readline().strip().lower() in ("y", "yes")
    except OSError:
        return False


def _view(as_json: bool, pass_through: bool, missing: WriteFailures) -> LiveMeter | _JsonOutput:
    if as_json:
        return _JsonOutput(UnbufferedOutput(sys.stderr if pass_through else sys.stdout, "the events", missing))
    return LiveMeter(_ask_terminal, UnbufferedOutput(sys.stderr, "the meter", missing))
