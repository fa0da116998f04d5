"""`foldline worker`: makes the background folds that sessions in other processes request."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import click

from foldline.cli.shared.ledger_choice import LedgerLocation, ledger_options, open_ledger
from foldline.cli.shared.options import output_options
from foldline.cli.shared.output import console, print_json, printable
from foldline.ledger.jobs import JobRequest
from foldline.session.lease import LEASE_S
from foldline.session.worker import JobOutcome
from foldline.session.worker_process import POLL_S, JobReport, WorkerProcess

EXITS = {
    0: "no job is left (--once), or the worker was stopped by SIGTERM",
    1: "a fold could not be made (--once)",
    4: "the ledger cannot be reached",
    130: "stopped by Ctrl-C; running jobs are left to other workers",
}


@click.command(epilog="Exit codes: " + "; ".join(f"{code} {why}" for code, why in EXITS.items()) + ".")
@click.option("--once", is_flag=True, help="Run the queued jobs, then end.")
@click.option("--all-owners", is_flag=True, help="Serve all owners of the ledger.")
@click.option(
    "--digest-model",
    metavar="NAME",
    default="",
    help="Write digests with this model if a session's policy names no model.",
)
@click.option("--base-url", metavar="URL", help="Call the digest model at this address, not at its vendor's address.")
@click.option("--lease", type=click.FloatRange(min=1), default=LEASE_S, show_default=True, metavar="SECONDS",
              help="Give a job to another worker after this time without a heartbeat.")  # fmt: skip
@click.option("--poll", type=click.FloatRange(min=0.05), default=POLL_S, show_default=True, metavar="SECONDS",
              help="Look for jobs at this interval (on PostgreSQL, only for jobs of killed workers).")  # fmt: skip
@output_options("Print one JSON object for each fold.")
@ledger_options
def worker(location: LedgerLocation, once: bool, all_owners: bool, as_json: bool, **given: Any) -> None:
    r"""Make the background folds of sessions that were opened with worker="process".

    Any number of workers may run; each fold is made once. On PostgreSQL, workers may run on any host, and need PgQueuer
    (pip install '.[worker]'). If a worker is killed, another one gets its job after the time of --lease. API
    keys are read from the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY). Without a model, foldline writes the digests
    itself.

    \b
    Example:  foldline worker --ledger postgresql://db/agents --digest-model gpt-5-mini
              foldline worker --ledger agent.db --once
    """
    outcomes: dict[JobRequest, JobOutcome] = {}

    def show(report: JobReport) -> None:
        request, outcome, seconds, cause = report
        outcomes[request] = outcome
        if as_json:
            print_json({**request._asdict(), "outcome": outcome, "seconds": round(seconds, 3)})
        else:
            tenant = f"{request.owner}: " if request.owner else ""
            line = f"{tenant}{request.session} ({request.branch}): {outcome} {cause}"
            console().print(printable(f"{line.rstrip()}, {seconds:.1f} s"))

    with open_ledger(location) as found:
        process = WorkerProcess(
            found.store,
            digester=_digester(given["digest_model"], given["base_url"]),
            all_owners=all_owners,
            on_report=show,
            lease_s=given["lease"],
            poll_s=given["poll"],
        )
        asyncio.run(_run(process, location.url, once=once))
    if once and JobOutcome.FAILED in outcomes.values():
        raise click.exceptions.Exit(1)


async def _run(process: WorkerProcess, url: str, *, once: bool) -> None:
    """Run jobs until SIGTERM, which ends the command normally, or Ctrl-C, which ends it with code 130."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await process.run(url, stop, once=once)


def _digester(model: str, base_url: str | None) -> Any:
    if not model:
        return None
    from foldline import digesters  # noqa: PLC0415  # only where a model is asked
    from foldline.models.table import model as model_of  # noqa: PLC0415

    make = digesters.anthropic if model_of(model).format == "anthropic" else digesters.openai
    return make(model, base_url=base_url)
