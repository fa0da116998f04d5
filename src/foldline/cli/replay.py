"""`foldline replay`: what policies would have sent, cost, folded and lost on sessions that are over."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from foldline.cli.shared import options
from foldline.cli.shared.files import gathered, refuse_to_overwrite
from foldline.cli.shared.output import console, counted, print_json, progress, safe, table
from foldline.cli.shared.parallel import cores, spread
from foldline.cli.shared.settings import Settings
from foldline.errors import FoldlineError, InputError
from foldline.measure.estimator import human
from foldline.replay import Replay, Sizes
from foldline.replay import replay as replay_one
from foldline.wire import Transcript, read_all

SKIPPED = 3
"""How many of the files that are no transcripts are named."""
EVERYTHING = "everything"
"""The row of sending all of it, whether it fits or not."""


@dataclass(frozen=True, slots=True)
class Job:
    """One file under all policies. Sent to another process, so it holds values only."""

    file: str
    form: str | None
    chosen: tuple[Settings, ...]
    beside: int
    lenient: bool
    """A file that only lies in a folder may be something else."""


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a file: for each conversation in it, a replay for each policy."""

    file: str
    replays: tuple[Replay, ...] = ()
    skipped: str = ""


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE|FOLDER...")
@options.chosen_each
@options.form
@click.option(
    "--beside",
    type=click.IntRange(min=0),
    default=0,
    metavar="TOKENS",
    help="What every request carried and no file shows: system prompt, tool schemas.",
)
@click.option("--plot", type=click.Path(), metavar="FILE", help="Draw it, as .png or .svg (needs foldline[plot]).")
@click.option("--force", is_flag=True, help="Replace a plot that exists.")
@click.option("--jobs", "-j", type=click.IntRange(min=1), default=None, help="Processes; by default one for each core.")
@click.option(
    "--executor", default="", metavar="dask://HOST", help="Workers of a Dask cluster instead (needs foldline[dask])."
)
@options.output("One JSON object: totals by policy, and every session.")
def replay(files: tuple[str, ...], chosen: tuple[Settings, ...], as_json: bool, **given: Any) -> None:
    r"""Replay old sessions request by request: what would each policy have sent, cost, folded and lost?

    Costs are those of what is sent, with the prompt cache's prices; replies cost the same under every policy. Counted
    is what the files hold.

    \b
    Example:  foldline replay session.jsonl --policy balanced --policy thrifty
              foldline replay ~/.claude/projects -p balanced -p thrifty --plot costs.svg
    """
    if given["plot"]:
        from foldline.cli.shared.replay_plot import check  # noqa: PLC0415  # before any work is done

        refuse_to_overwrite(given["plot"], files, force=given["force"])
        check(given["plot"])
    began = time.monotonic()
    results = sorted(_run(_jobs(files, chosen, given), given), key=lambda done: done.file)
    report = summary(results, chosen, seconds=time.monotonic() - began)
    if not report["sessions"]:
        reason = f" ({results[0].skipped})" if results else ""
        raise InputError(
            f"no session with a request in {', '.join(files)}{reason}", hint="name a transcript or a folder of them"
        )
    if given["plot"]:
        from foldline.cli.shared.replay_plot import draw  # noqa: PLC0415  # heavy, and an extra

        draw(report, given["plot"])
    if as_json:
        print_json(report)
    else:
        _print(report, given["plot"])


def _jobs(files: Sequence[str], chosen: tuple[Settings, ...], given: dict[str, Any]) -> list[Job]:
    """One for each file, the largest first, so that none is left over at the end."""
    named, found = gathered(files)
    for file in named:
        if not Path(file).exists():
            raise InputError(f"{file}: there is no such file", hint="check the path")
    jobs = [Job(file, given["form"], chosen, given["beside"], file not in named) for file in (*named, *found)]
    return sorted(jobs, key=lambda job: -Path(job.file).stat().st_size)


def work(job: Job) -> Done:
    """All policies on one file."""
    try:
        made = [one for transcript in read_all(job.file, job.form) for one in _each(transcript, job)]
    except FoldlineError as error:
        if job.lenient:
            return Done(job.file, skipped=str(error))
        raise
    return Done(job.file, tuple(one for one in made if one.requests))


def _each(transcript: Transcript, job: Job) -> Iterator[Replay]:
    sizes = Sizes(job.chosen[0].model(transcript.model))
    for one in job.chosen:
        yield replay_one(transcript, one.policy, name=one.name, sizes=sizes, beside=job.beside)


def _run(jobs: list[Job], given: dict[str, Any]) -> Iterator[Done]:
    with progress(len(jobs), "sessions") as tick:
        for done in spread(work, jobs, given["executor"], given["jobs"] or cores()) if jobs else ():
            yield done
            tick()


def summary(results: Iterable[Done], chosen: Sequence[Settings], *, seconds: float) -> dict[str, Any]:
    """Everything `replay` says, as data."""
    results = list(results)
    names = [one.name for one in chosen]
    sessions = [{"file": done.file, **asdict(one)} for done in results for one in done.replays]
    return {
        "files": len(results),
        "skipped": [{"file": done.file, "why": done.skipped} for done in results if done.skipped],
        "policies": [_total(name, [row for row in sessions if row["policy"] == name]) for name in dict.fromkeys(names)],
        "sessions": sessions,
        "seconds": round(seconds, 2),
    }


def _total(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    sums = ("requests", "refused", "over", "folds", "folded", "sent", "everything", "read", "facts", "kept")
    priced = [row for row in rows if row["cost"] is not None]
    return {
        "policy": name,
        "sessions": len(rows),
        **{key: sum(row[key] for row in rows) for key in sums},
        "largest": max((row["largest"] for row in rows), default=0),
        "unpriced": len(rows) - len(priced),
        "cost": sum(row["cost"] for row in priced),
        "cost_everything": sum(row["cost_everything"] for row in priced),
    }


def _print(report: dict[str, Any], plot: str | None) -> None:
    out = console()
    totals = report["policies"]
    first = totals[0]
    made = table("policy", "folds", "refused", "over", "sent", "", "cost", "", "cached", "facts")
    made.add_row(
        *(EVERYTHING, "", "", "", human(first["everything"], False), "100%"),
        *(f"${first['cost_everything']:,.2f}", "100%", "", "100%"),
    )
    for row in totals:
        made.add_row(
            *(safe(row["policy"]), f"{row['folds']:,}", f"{row['refused']:,}", f"{row['over']:,}"),
            *(human(row["sent"], False), _share(row["sent"], row["everything"])),
            *(f"${row['cost']:,.2f}", _share(row["cost"], row["cost_everything"])),
            *(_share(row["read"], row["sent"]), _share(row["kept"], row["facts"]) if row["facts"] else "-"),
        )
    out.print(f"{counted(first['sessions'], 'session')}, {counted(first['requests'], 'request')}", soft_wrap=True)
    out.print("")
    out.print(made)
    out.print("")
    for line in _remarks(report, plot):
        out.print(line, soft_wrap=True)


def _remarks(report: dict[str, Any], plot: str | None) -> Iterator[str]:
    first = report["policies"][0]
    over = sum(row["whole"] > row["usable"] for row in report["sessions"] if row["policy"] == first["policy"])
    if over:
        yield f"everything would not have fitted in {counted(over, 'session')}: its cost is there for comparison"
    if not any(row["folds"] or row["refused"] for row in report["policies"]):
        window = max(row["window"] for row in report["sessions"])
        yield f"nothing had to be folded in a window of {window:,}: --window TOKENS asks about a smaller one"
    if any(row["over"] for row in report["policies"]):
        yield "over: requests that exceed the window by the model's own counter, though not by the policy's"
    if first["unpriced"]:
        yield f"{counted(first['unpriced'], 'session')} of models without a known price: not in the cost"
    if report["skipped"]:
        yield f"{counted(len(report['skipped']), 'file')} skipped:"
        for row in report["skipped"][:SKIPPED]:
            yield f"  {safe(row['why'])}"
    if plot:
        yield f"drawn in {plot}"
    yield f"in {report['seconds']:.1f} s"


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.0%}" if whole else "-"
