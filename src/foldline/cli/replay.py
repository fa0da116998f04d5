"""`foldline replay`: compute the tokens, costs, folds and lost facts of old sessions under several policies."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from foldline.cli.shared import options
from foldline.cli.shared.files import expand_paths, refuse_export, refuse_to_overwrite, warn_of_broken_lines
from foldline.cli.shared.output import line_printer, plural, print_json, printable, progress, table, with_option_names
from foldline.cli.shared.parallel import run_parallel, usable_cores
from foldline.cli.shared.settings import Settings
from foldline.errors import FoldlineError, InputError
from foldline.measure.estimator import format_tokens
from foldline.replay import CachedCounter, Replay
from foldline.replay import replay as replay_one
from foldline.text_lines import no_such_file
from foldline.wire import Transcript, read_all
from foldline.wire.formats import ReadNote

SKIPPED = 3
"""How many of the skipped files are listed."""
EVERYTHING = "everything"
"""The name of the row with the cost of sending all messages in every request, even if they do not fit."""


@dataclass(frozen=True, slots=True)
class ReplayJob:
    """One file to replay under all policies. Picklable, so that it can be sent to another process."""

    file: str
    format: str | None
    policies: tuple[Settings, ...]
    system_tokens: int | None
    lenient: bool
    """Whether to skip the file if it is not a transcript. True for a file that was found in a folder, False for a file
    that the user named.
    """


@dataclass(frozen=True, slots=True)
class ReplayedFile:
    """The replays of a file, one for each conversation and policy; or the reason why the file was skipped."""

    file: str
    replays: tuple[Replay, ...] = ()
    skipped: str = ""
    broken_lines: tuple[ReadNote, ...] = ()
    """The lines that were left out because they cannot be read."""


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE|FOLDER...")
@options.policies_options
@options.format_option
@options.system_tokens_option
@click.option(
    "--plot", type=click.Path(), metavar="FILE", help="Draw the result as .png or .svg (needs foldline[plot])."
)
@click.option("--force", is_flag=True, help="Replace an existing plot.")
@click.option(
    "--jobs",
    "-j",
    type=options.WholeNumber(min=1),
    default=None,
    help="Use this many processes; default: one per core.",
)
@click.option(
    "--executor", default="", metavar="dask://HOST", help="Use the workers of a Dask cluster (needs foldline[dask])."
)
@options.output_options("Print one JSON object: totals by policy, and every session.")
def replay(files: tuple[str, ...], policies: tuple[Settings, ...], as_json: bool, **flags: Any) -> None:
    r"""Replay old sessions request by request, and compare policies by tokens sent, cost, folds and lost facts.

    The cost is the price of all requests, with prompt caching. The price of replies is left out, because it is the same
    under every policy. System prompts and tools that are not in the files are not counted. If every policy refused
    every request, the exit code is 3.

    \b
    Example:  foldline replay session.jsonl --policy balanced --policy thrifty
              foldline replay ~/.claude/projects -p balanced -p thrifty --plot costs.svg
    """
    if flags["plot"]:
        from foldline.cli.shared.replay_plot import check  # noqa: PLC0415  # checked before the replay

        refuse_to_overwrite(flags["plot"], files, force=flags["force"])
        check(flags["plot"])
    began = time.monotonic()
    results = sorted(_run(_jobs(files, policies, flags), flags), key=lambda done: done.file)
    report = summary(results, policies, seconds=time.monotonic() - began)
    if not report["sessions"]:
        reason = f" ({results[0].skipped})" if results else ""
        raise InputError(
            f"no session with a request in {', '.join(files)}{reason}",
            hint="give a transcript or a folder with transcripts",
        )
    if flags["plot"]:
        from foldline.cli.shared.replay_plot import draw  # noqa: PLC0415  # slow to import

        draw(report, flags["plot"])
    if as_json:
        print_json(report)
    else:
        _print(report, flags["plot"])
    if all(row["refused"] == row["requests"] for row in report["policies"]):
        raise click.exceptions.Exit(3)


def _jobs(files: Sequence[str], policies: tuple[Settings, ...], flags: dict[str, Any]) -> list[ReplayJob]:
    """One job for each file. The largest file comes first, so that no long job starts late."""
    named, found = expand_paths(files)
    for file in named:
        if not Path(file).exists():
            raise no_such_file(file)
    jobs = [
        ReplayJob(file, flags["format"], policies, flags["system_tokens"], file not in named)
        for file in (*named, *found)
    ]
    return sorted(jobs, key=lambda job: -Path(job.file).stat().st_size)


def work(job: ReplayJob) -> ReplayedFile:
    """Replay one file under all policies."""
    try:
        refuse_export(job.file)
        transcripts = read_all(job.file, job.format)
        replays = [one for transcript in transcripts for one in _replays(transcript, job)]
    except FoldlineError as error:
        if job.lenient:
            return ReplayedFile(job.file, skipped=str(error))
        raise
    broken = tuple(note for transcript in transcripts for note in transcript.broken_lines)
    return ReplayedFile(job.file, tuple(one for one in replays if one.requests), broken_lines=broken)


def _replays(transcript: Transcript, job: ReplayJob) -> Iterator[Replay]:
    counter = CachedCounter(job.policies[0].model(transcript.model))
    for one in job.policies:
        yield replay_one(transcript, one.policy, name=one.name, counter=counter, system_tokens=job.system_tokens)


def _run(jobs: list[ReplayJob], flags: dict[str, Any]) -> Iterator[ReplayedFile]:
    with progress(len(jobs), "sessions") as tick:
        for done in run_parallel(work, jobs, flags["executor"], flags["jobs"] or usable_cores()) if jobs else ():
            warn_of_broken_lines(done.file, done.broken_lines)
            yield done
            tick()


def summary(results: Iterable[ReplayedFile], policies: Sequence[Settings], *, seconds: float) -> dict[str, Any]:
    """The results of all replays as JSON: each session, and the totals of each policy."""
    results = list(results)
    names = [one.name for one in policies]
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
    echo = line_printer()
    totals = report["policies"]
    first = totals[0]
    grid = table("policy", "folds", "refused", "over", "sent", "", "cost", "", "cached", "facts")
    grid.add_row(
        *(EVERYTHING, "", "", "", format_tokens(first["everything"], False), "100%"),
        *(*_money(first, first["cost_everything"]), "", "100%"),
    )
    for row in totals:
        grid.add_row(
            *(printable(row["policy"]), f"{row['folds']:,}", f"{row['refused']:,}", f"{row['over']:,}"),
            *(format_tokens(row["sent"], False), _share(row["sent"], row["everything"])),
            *(_money(row, row["cost"]) if not row["refused"] else ("-", "-")),
            *(_share(row["read"], row["sent"]), _share(row["kept"], row["facts"]) if row["facts"] else "-"),
        )
    echo(f"{plural(first['sessions'], 'session')}, {plural(first['requests'], 'request')}")
    echo("")
    echo(grid, soft_wrap=False)
    echo("")
    for line in _remarks(report, plot):
        echo(line)


def _remarks(report: dict[str, Any], plot: str | None) -> Iterator[str]:
    first = report["policies"][0]
    over = sum(row["whole"] > row["usable"] for row in report["sessions"] if row["policy"] == first["policy"])
    does_not_fit = f"; too large for the window in {plural(over, 'session')}" if over else ""
    yield f"everything: all messages in every request, without a fold{does_not_fit}; percentages are shares of this row"
    if not any(row["folds"] or row["refused"] for row in report["policies"]):
        window = max(row["window"] for row in report["sessions"])
        yield f"no fold was needed in a window of {window:,}; try a smaller one with --window TOKENS"
    for row in report["policies"]:
        if row["refused"]:
            refused, requests = f"{row['refused']:,}", plural(row["requests"], "request")
            reasons = [each["refusal"] for each in report["sessions"] if each["policy"] == row["policy"]]
            reasons = [with_option_names(printable(reason)) for reason in reasons if reason]
            which = "" if len(reasons) == 1 else " of the first such session"
            yield f"{printable(row['policy'])}: refused {refused} of {requests}, so its cost cannot be compared"
            yield f"  the largest refused request{which}: {reasons[0]}"
    if any(row["over"] for row in report["policies"]):
        yield "over: requests that fit the window according to the policy's counter, but not according to the model's"
    if first["unpriced"]:
        yield f"{plural(first['unpriced'], 'session')} without a known price, not in the cost"
    if report["skipped"]:
        yield f"{plural(len(report['skipped']), 'file')} skipped:"
        for row in report["skipped"][:SKIPPED]:
            yield f"  {with_option_names(printable(row['why']))}"
    if plot:
        yield f"wrote {plot}"
    yield f"in {report['seconds']:.1f} s"


def _money(row: dict[str, Any], cost: float) -> tuple[str, str]:
    """A cost and its share of the cost without folds. Both are dashes if no session has known prices."""
    if row["unpriced"] == row["sessions"]:
        return "-", "-"
    return f"${cost:,.2f}", _share(cost, row["cost_everything"])


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.0%}" if whole else "-"
