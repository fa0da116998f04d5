"""`foldline worker`: makes the folds that sessions elsewhere do not wait for."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import click

from foldline.cli.shared.ledger_choice import Place, at_ledger, opened
from foldline.cli.shared.options import output
from foldline.cli.shared.output import console, print_json, safe
from foldline.session.worker import LEASE_S
from foldline.session.worker_process import POLL_S, Done, Station

EXITS = {
    0: "nothing is left to do (--once), or it was told to end (SIGTERM)",
    1: "a fold could not be made (--once)",
    4: "the ledger cannot be reached",
    130: "stopped by Ctrl-C; what was under way is left to others",
}
"""How the command ends."""


@click.command(epilog="Exit codes: " + "; ".join(f"{code} {why}" for code, why in EXITS.items()) + ".")
@click.option("--once", is_flag=True, help="Do what there is to do, and end.")
@click.option("--all-owners", is_flag=True, help="For everybody who shares the ledger.")
@click.option(
    "--digest-model", metavar="NAME", default="", help="Who writes digests where a session's policy is silent."
)
@click.option("--base-url", metavar="URL", help="Where that model is, if not at its provider's.")
@click.option("--lease", type=click.FloatRange(min=1), default=LEASE_S, show_default=True, metavar="SECONDS",
              help="After so long without a sign of life another worker takes over.")  # fmt: skip
@click.option("--poll", type=click.FloatRange(min=0.05), default=POLL_S, show_default=True, metavar="SECONDS",
              help="How often to look for work.")  # fmt: skip
@output("One JSON object for each fold.")
@at_ledger
def worker(place: Place, once: bool, all_owners: bool, as_json: bool, **given: Any) -> None:
    r"""Make the folds that sessions opened with worker="process" leave to others.

    Any number of workers may run, on any host; each fold is made once. On PostgreSQL they hear of work at once when
    PgQueuer is installed (pip install 'foldline[worker]'). A worker that is killed is followed by another after its
    lease. Keys are taken from the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY); without a model, digests are local.

    \b
    Example:  foldline worker --ledger postgresql://db/agents --digest-model gpt-5-mini
              foldline worker --ledger agent.db --once
    """
    failed: list[Done] = []

    def show(done: Done) -> None:
        failed.extend([done] if done.came == "failed" else [])
        if as_json:
            print_json({**done.wanted._asdict(), "came": done.came, "seconds": round(done.seconds, 3)})
        else:
            who = f"{done.wanted.owner}: " if done.wanted.owner else ""
            line = f"{who}{done.wanted.session} ({done.wanted.branch}): {done.came} {done.cause}"
            console().print(safe(f"{line.rstrip()}, {done.seconds:.1f} s"))

    with opened(place) as found:
        station = Station(
            found.store,
            digester=_digester(given["digest_model"], given["base_url"]),
            everybody=all_owners,
            done=show,
            lease_s=given["lease"],
            poll_s=given["poll"],
        )
        asyncio.run(_run(station, place.url, once=once))
    if once and failed:
        raise click.exceptions.Exit(1)


async def _run(station: Station, url: str, *, once: bool) -> None:
    """Work until SIGTERM, or Ctrl-C, which ends it with an error as everywhere."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await station.run(url, stop, once=once)


def _digester(model: str, base_url: str | None) -> Any:
    """Who is asked by default; nobody where no model is named."""
    if not model:
        return None
    from foldline.digest import endpoints as models  # noqa: PLC0415  # only where a model is asked
    from foldline.models.table import model as model_of  # noqa: PLC0415

    make = models.anthropic if model_of(model).format == "anthropic" else models.openai
    return make(model, base_url=base_url)
