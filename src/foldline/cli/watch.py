"""`foldline watch`: watches an agent's stream or session file. The command shows a meter, or prints events as JSON."""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from pathlib import Path
from typing import Any, Self

import click

from foldline.cli.shared.live_meter import LiveMeter
from foldline.cli.shared.options import WholeNumber
from foldline.cli.shared.watch_io import (
    DeferredSignals,
    TolerantCostRecorder,
    TolerantScratchWriter,
    UnbufferedOutput,
    WriteFailures,
)
from foldline.text_lines import CHUNK_BYTES, LineSplitter, raw_lines_of_file, raw_lines_of_stream
from foldline.watch.agent_events import DELTA_PREFIX, RawEvent, load
from foldline.watch.cost import CostBudget, CostLimits, ProjectCosts
from foldline.watch.meter import COMPACT_RATIO, WARN_RATIO, Meter
from foldline.watch.scratch import ScratchModel
from foldline.watch.scratch_files import ScratchWriter
from foldline.watch.watcher import Watcher, WatchEvent

ENDED, FAILED, REFUSED, UNWRITTEN, COMPACT, COST, CUT, STOPPED = 0, 1, 2, 4, 10, 11, 12, 128
EXITS = {
    ENDED: "the agent finished, and no compaction is due",
    FAILED: "the agent finished with an error",
    REFUSED: "wrong usage, or a file or folder that cannot be used",
    UNWRITTEN: "the agent finished, and no compaction is due, but not everything could be written",
    COMPACT: "a compaction is due before the agent's next turn",
    COST: "a cost limit is reached",
    CUT: "the stream ended in the middle of a turn",
    STOPPED + 2: "stopped by Ctrl-C (129: by a hangup, 143: by kill); all notes are written",
}
"""For each exit code, the reason why the command ended."""
NOT_A_LOG = (
    "no events were read: watch reads session files of Claude Code and Codex; for other files use foldline inspect"
)
NO_EVENTS = (
    "no events were read: make the agent print them (claude -p ... --output-format stream-json --verbose), "
    "or name its session file"
)


@click.command(epilog="Exit codes: " + "; ".join(f"{code} {why}" for code, why in EXITS.items()) + ".")
@click.argument("file", type=click.Path(), required=False)
@click.option("--follow", "-f", is_flag=True, help="Keep reading while the file grows.")
@click.option(
    "--idle", type=float, metavar="SECONDS", help="With --follow, stop when the file has not grown for this time."
)
@click.option("--scratch", type=click.Path(), metavar="FOLDER", help="Keep working notes in FOLDER/.context.")
@click.option("--job", default="", help="Name the job; notes and compactions mention it.")
@click.option("--state", default="", help="Give the state of the job; compactions mention it.")
@click.option("--window", type=WholeNumber(min=1), metavar="TOKENS", help="Set the size of the window.")
@click.option("--warn", type=float, default=WARN_RATIO, show_default=True, help="Warn at this share of the window.")
@click.option(
    "--compact",
    type=float,
    default=COMPACT_RATIO,
    show_default=True,
    help="Report a compaction as due at this share of the window.",
)
@click.option("--cost-limit", type=float, metavar="USD", help="Limit what the job may cost.")
@click.option("--project-limit", type=float, metavar="USD", help="Limit what all jobs of the project may cost.")
@click.option(
    "--project-costs",
    type=click.Path(),
    metavar="FILE",
    help="Use this file to add up the costs of all jobs of the project.",
)
@click.option("--ask", is_flag=True, help="At a cost limit, ask on the terminal whether to go on; the agent waits.")
@click.option("--json", "as_json", is_flag=True, help="Print events as JSON, one object per line.")
@click.option("--pass-through", is_flag=True, help="Copy the input to standard output; events go to stderr.")
def watch(file: str | None, **options: Any) -> int:
    r"""Show how full an agent's window is, what the agent costs and where it is stuck.

    FILE is a session file of Claude Code or Codex. Without FILE, the agent's stream is read from standard input.

    \b
    Example:  foldline watch -f ~/.claude/projects/.../session.jsonl
              claude -p "fix the tests" --output-format stream-json --verbose | foldline watch --scratch .
    """
    _check(file, options)
    with DeferredSignals() as signals:
        return _run(file, options, signals)


def _check(file: str | None, options: dict[str, Any]) -> None:
    """Raise a usage error for impossible options, before anything is read or written."""
    follow, idle = options["follow"], options["idle"]
    if file is None or file == "-":
        if follow:
            raise click.UsageError("--follow needs a session file; a stream is always read to its end")
        if sys.stdin is None or sys.stdin.isatty():
            raise click.UsageError("nothing on standard input: pipe an agent's stream in, or name a session file")
    if idle is not None and not follow:
        raise click.UsageError("--idle needs --follow")
    if idle is not None and not 0 < idle < math.inf:
        raise click.UsageError(f"--idle {idle:g} is impossible: give seconds above 0")
    if options["pass_through"] and sys.stdout is None:
        raise click.UsageError("--pass-through cannot copy the stream, because standard output is closed")
    if (options["project_limit"] is None) != (options["project_costs"] is None):
        raise click.UsageError(
            "use --project-limit and --project-costs together: one sets the limit, the other names the shared file"
        )


def _run(file: str | None, options: dict[str, Any], signals: DeferredSignals) -> int:
    """Feed every line to the watcher; returns the exit code."""
    failures = WriteFailures(lambda text: view.fail(text))  # noqa: PLW0108  # `view` is created below and needs `failures`
    view, splitter = _view(options["as_json"], options["pass_through"], failures), LineSplitter()
    copy = UnbufferedOutput(sys.stdout, "the copy of the stream", failures) if options["pass_through"] else None

    def receive(chunk: bytes) -> None:
        with signals.busy():
            if copy is not None:
                copy.send(chunk)
            behind = len(chunk) == CHUNK_BYTES
            watcher.pace(behind=behind)
            view.pace(behind=behind)
            if not chunk:
                watcher.save()

    if file is None or file == "-":
        lines = raw_lines_of_stream(sys.stdin.fileno(), splitter, receive)
    else:
        follow, idle = options["follow"], options["idle"] or 0.0
        lines = raw_lines_of_file(file, splitter, follow=follow, idle_seconds=idle, tee=receive)
    watcher = _watcher(file, options, failures)
    garbage, go_on = 0, True
    with view:
        try:
            while go_on and signals.signal is None:
                signals.is_waiting = True
                line = next(lines, None)
                signals.is_waiting = False
                if line is None:
                    break
                event = load(line)
                if event is None:
                    garbage += not line.startswith(DELTA_PREFIX)
                else:
                    go_on = _feed(watcher, view, event, signals if options["ask"] else None)
        except KeyboardInterrupt:
            if signals.signal is None:
                raise
        finally:
            signals.is_waiting = False
            for report in watcher.end():
                view.show(watcher, report)
        facts = _end(watcher, signals, failures, is_file=file not in (None, "-"))
        view.end(watcher, {**facts, "garbage": garbage + splitter.too_long})
    return int(facts["code"])


def _feed(watcher: Watcher, view: LiveMeter | _JsonOutput, event: RawEvent, signals: DeferredSignals | None) -> bool:
    """Feed one event to the watcher, and show its reports. Returns False if the user wants to stop.

    With `--ask`, `signals` is given, and the user is asked at a cost limit whether to go on.
    """
    reports = watcher.feed(event)
    for report in reports:
        view.show(watcher, report)
    questions = [report.facts["text"] for report in reports if report.event == "input_requested"] if signals else []
    if signals is None or not questions:
        return True
    signals.is_waiting = True
    go_on = view.ask(questions[0])
    signals.is_waiting = False
    for report in watcher.answer(go_on=go_on):
        view.show(watcher, report)
    return go_on


def _end(watcher: Watcher, signals: DeferredSignals, failures: WriteFailures, *, is_file: bool) -> dict[str, Any]:
    """The data of the last report: exit code, reason, and what could not be written."""
    if watcher.limits is not None and watcher.limits.over is not None:
        code = COST
    elif watcher.meter.should_compact:
        code = COMPACT
    else:
        code = {None: CUT, True: FAILED, False: ENDED}[watcher.last_error]
    reason = EXITS[code]
    if code == CUT and not (watcher.meter.session or watcher.meter.used or watcher.spending.usd):
        code, reason = (REFUSED, NOT_A_LOG) if is_file else (CUT, NO_EVENTS)
    if signals.signal is not None:
        code, reason = STOPPED + signals.signal, f"stopped by {signals.signal.name}"
    elif code == ENDED and failures.texts:
        code, reason = UNWRITTEN, EXITS[UNWRITTEN]
    facts: dict[str, Any] = {"code": code, "reason": reason}
    return {**facts, "missing": failures.texts} if failures.texts else facts


def _watcher(file: str | None, options: dict[str, Any], failures: WriteFailures) -> Watcher:
    """The watcher for these options.

    Raises `ConfigError` for impossible values and for a folder that cannot be used.
    """
    meter = Meter(window=options["window"], warn_ratio=options["warn"], compact_ratio=options["compact"])
    model, notes = ScratchModel(job=options["job"], phase=options["state"]), None
    limits = _limits(file, options, failures)
    if options["scratch"]:
        folder = Path(options["scratch"])
        folder.mkdir(parents=True, exist_ok=True)
        writer = ScratchWriter(folder)
        writer.write_scratch(model)
        notes = TolerantScratchWriter(writer, failures)
    return Watcher(meter=meter, writer=notes, model=model, limits=limits, state=options["state"])


def _limits(session: str | None, options: dict[str, Any], failures: WriteFailures) -> CostLimits | None:
    job, project, file = options["cost_limit"], options["project_limit"], options["project_costs"]
    if job is None and project is None:
        return None
    run = ""  # a session file has an id of its own, so that reading it twice counts once
    if session is not None and os.path.isfile(session):
        run = hashlib.sha256(os.path.realpath(session).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    name = options["job"] or f"job-{run or os.getpid()}"
    return CostLimits(
        job=CostBudget(limit_usd=job) if job is not None else None,
        project=CostBudget(limit_usd=project, scope="project") if project is not None else None,
        costs=TolerantCostRecorder(ProjectCosts(Path(file), name, run), failures) if file is not None else None,
    )


class _JsonOutput:
    """Prints reports as JSON lines."""

    def __init__(self, out: UnbufferedOutput) -> None:
        self._out = out
        self._session = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._out.pace(behind=False)

    def pace(self, *, behind: bool) -> None:
        """Batch the output while more input is waiting."""
        self._out.pace(behind=behind)

    def show(self, watcher: Watcher, report: WatchEvent) -> None:  # noqa: ARG002  # same signature as LiveMeter.show
        """Print one report."""
        self._session = report.session
        self._write(report.as_json())

    def fail(self, text: str) -> None:
        """Report a write error as an event. If events cannot be written, print the error on standard error."""
        if self._out.closed:
            UnbufferedOutput(sys.stderr, "").write(f"foldline: {text}\n")
        else:
            self._write({"event": "not_written", "session": self._session, "text": text})

    def ask(self, question: str) -> bool:
        """Write all reports, then ask on the terminal. Without a terminal, the answer is no."""
        self._out.pace(behind=False)
        return _ask_terminal(question)

    def end(self, watcher: Watcher, facts: dict[str, Any]) -> None:
        """Print the final figures."""
        self._write({"event": "end", "session": watcher.meter.session, **watcher.figures(), **facts})

    def _write(self, value: dict[str, Any]) -> None:
        self._out.write(json.dumps(value, ensure_ascii=True) + "\n")


def _ask_terminal(question: str) -> bool:
    """Ask on the terminal device, because standard input is the agent's stream.

    Meanwhile, the agent runs until its pipe is full, and then waits.
    """
    try:
        with open("/dev/tty", "w", encoding="utf-8") as terminal, open("/dev/tty", encoding="utf-8") as keys:
            terminal.write(f"{question} [y/N] ")
            terminal.flush()
            return keys.readline().strip().lower() in ("y", "yes")
    except OSError:
        return False


def _view(as_json: bool, pass_through: bool, failures: WriteFailures) -> LiveMeter | _JsonOutput:
    if as_json:
        return _JsonOutput(UnbufferedOutput(sys.stderr if pass_through else sys.stdout, "the events", failures))
    return LiveMeter(_ask_terminal, UnbufferedOutput(sys.stderr, "the meter", failures))
