"""`foldline serve`: runs the proxy."""

from __future__ import annotations

import os
from typing import Any

import click

from foldline.cli.shared.ledger_choice import LedgerLocation, ledger_location, make_default_folder
from foldline.cli.shared.options import WholeNumber, output_options, raw_policy_options
from foldline.cli.shared.output import print_json
from foldline.cli.shared.settings import Settings, load_settings
from foldline.cli.shared.stop_signals import exit_at_stop_signal
from foldline.errors import ConfigError, FoldlineError, extra_hint

DEFAULT_PORT = 8460
TOKEN_VARIABLE = "FOLDLINE_TOKEN"  # noqa: S105 (the name of a variable)
EXITS = {
    0: "stopped by SIGTERM or Ctrl-C after the running responses ended, or --check found no fault",
    1: "--check found a fault",
    2: "the configuration cannot work",
    4: "the ledger cannot be opened",
}


@click.command(epilog="Exit codes: " + "; ".join(f"{code} {why}" for code, why in EXITS.items()) + ".")
@click.option("--upstream", "-u", multiple=True, metavar="[VENDOR=]URL",
              help="Pass requests on to this address. Write openai=URL for one vendor. Repeatable.")  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Listen on this address.")
@click.option(
    "--port", type=WholeNumber(0, 65535), default=DEFAULT_PORT, show_default=True, help="Listen on this port."
)
@click.option("--mode", type=click.Choice(["fold", "observe", "off"]), default="fold", show_default=True,
              help="fold: record and fold. observe: record only. off: pass everything on.")  # fmt: skip
@click.option("--ledger", metavar="FILE|URL", help="Record in the ledger at this path or postgresql:// address.")
@click.option("--token", metavar="TOKEN", help=f"Demand this token for /foldline/api (better: set {TOKEN_VARIABLE}).")
@click.option("--single-user", is_flag=True, help="Treat all credentials as those of one person.")
@click.option("--holdout", type=click.FloatRange(0, 1), default=0.0, metavar="SHARE",
              help="Never fold this share of the new sessions, so that the saving can be measured.")  # fmt: skip
@click.option("--answer-compaction", is_flag=True,
              help="Answer the compaction requests of Claude Code and Codex from the ledger, at no cost.")  # fmt: skip
@click.option("--recall", is_flag=True,
              help="Offer models a tool that reads folded messages back, and answer its calls.")  # fmt: skip
@click.option("--refuse-partial", is_flag=True,
              help="Refuse requests that hold only the new messages, so that clients send all messages.")  # fmt: skip
@click.option(
    "--max-bytes", type=WholeNumber(min=1), metavar="BYTES", help="Refuse bodies larger than this. [default: 64 MiB]"
)
@click.option("--silence", type=click.FloatRange(min=1), metavar="SECONDS",
              help="Give up if the provider sends nothing for this many seconds. [default: 600]")  # fmt: skip
@click.option("--workers", type=WholeNumber(1, 64), default=1, show_default=True, metavar="N",
              help="Serve with this many processes. A process that dies is replaced.")  # fmt: skip
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True,
              help="json: one line per request on standard error, without content. text: warnings only.")  # fmt: skip
@click.option("--otel", is_flag=True, help="Send spans and metrics to OpenTelemetry, as the OTEL_ variables say.")
@click.option("--tls-certificate", metavar="FILE", help="Serve HTTPS with this certificate.")
@click.option("--tls-key", metavar="FILE", help="The key of the certificate.")
@click.option("--descriptor", type=WholeNumber(min=0), hidden=True)
@click.option("--check", is_flag=True, help="Check the configuration, say what is wrong with it, and end.")
@output_options("Print one JSON object with the address, or with the results of --check.")
@raw_policy_options
def serve(check: bool, as_json: bool, **given: Any) -> None:
    r"""Run a proxy between agents and their provider. The proxy keeps long conversations inside the window.

    Set the base URL of a client to the address of the proxy; nothing else changes. Requests pass byte for byte until a
    conversation has to be folded. If foldline itself has a fault, the client's own request is passed on.

    \b
    Example:  foldline serve --upstream https://api.anthropic.com
              ANTHROPIC_BASE_URL=http://127.0.0.1:8460 claude
              foldline serve -u anthropic=https://api.anthropic.com -u openai=https://api.openai.com
    """
    need_packages()
    from foldline.proxy.configuration import DEFAULT_PRESET  # noqa: PLC0415  # heavy imports

    settings = load_settings(
        policy=given["policy"],
        model=given["model"],
        window=given["window"],
        ledger=given["ledger"],
        preset=DEFAULT_PRESET,
    )
    location = ledger_location(settings)
    if check:
        _check(settings, location, as_json=as_json, **given)
        return
    from foldline.proxy import service  # noqa: PLC0415  # heavy imports
    from foldline.proxy.exchange_reports import set_up_logs  # noqa: PLC0415

    set_up_logs(as_json=given["log_format"] == "json")
    if given["mode"] != "off":
        make_default_folder(location)
    tls = service.TlsFiles(certificate=given["tls_certificate"] or "", key=given["tls_key"] or "")
    mode = given["mode"]

    def show(address: str) -> None:
        if given["descriptor"] is not None:
            return
        if as_json:
            print_json({"address": address, "mode": mode, "ledger": str(location)})
        else:
            policy, recorded = settings.name if mode == "fold" else "none", location if mode != "off" else "none"
            click.echo(f"foldline serves {address} (mode {mode}, policy {policy}, ledger {recorded})", err=True)

    with exit_at_stop_signal():
        service.serve(
            proxy_settings(settings, location, **given),
            tls=tls,
            started=show,
            descriptor=given["descriptor"],
            telemetry=given["otel"],
            workers=_worker_count(given["workers"], is_supervised=given["descriptor"] is not None),
        )


def _worker_count(workers: int, *, is_supervised: bool) -> int:
    """The number of worker processes; 0 if the command serves in its own process."""
    if not hasattr(os, "fork"):
        if workers > 1:
            raise ConfigError("this system cannot fork worker processes", hint="leave out --workers")
        return 0
    return workers if workers > 1 or is_supervised else 0


def proxy_settings(settings: Settings, location: LedgerLocation, **given: Any) -> Any:
    """The settings of the proxy for the options of the command."""
    from foldline.proxy.configuration import MAX_BYTES, ProxySettings  # noqa: PLC0415  # heavy imports
    from foldline.proxy.upstream_client import UpstreamLimits  # noqa: PLC0415
    from foldline.proxy.upstreams import Upstreams  # noqa: PLC0415

    return ProxySettings(
        upstreams=Upstreams.parse(given["upstream"]),
        mode=given["mode"],
        ledger="" if given["mode"] == "off" else location.url,
        host=given["host"],
        port=given["port"],
        token=given["token"] or os.environ.get(TOKEN_VARIABLE, ""),
        policy=settings.policy,
        model=settings.values["model"],
        max_bytes=given["max_bytes"] or MAX_BYTES,
        limits=UpstreamLimits(silence_s=given["silence"]) if given["silence"] else UpstreamLimits(),
        is_shared=given["workers"] > 1 or location.remote,
        single_user=given["single_user"],
        holdout_ratio=given["holdout"],
        answers_compaction=given["answer_compaction"],
        offers_recall=given["recall"],
        refuses_partial=given["refuse_partial"],
    )


def need_packages() -> None:
    """Raise `ConfigError` if the packages of the extra `proxy` are missing."""
    from importlib.util import find_spec  # noqa: PLC0415

    missing = [name for name in ("uvicorn", "aiohttp") if find_spec(name) is None]
    if missing:
        raise ConfigError(f"the proxy needs {' and '.join(missing)}", hint=extra_hint("proxy"))


def _check(settings: Settings, location: LedgerLocation, *, as_json: bool, **given: Any) -> None:
    """Check the configuration step by step, print the results, and exit with 1 if there is a fault."""
    from foldline.proxy.check import check_configuration  # noqa: PLC0415  # heavy imports
    from foldline.proxy.service import TlsFiles  # noqa: PLC0415

    tls = TlsFiles(certificate=given["tls_certificate"] or "", key=given["tls_key"] or "")
    try:
        found = check_configuration(proxy_settings(settings, location, **given), tls, telemetry=given["otel"])
    except FoldlineError as error:
        found = [("configuration", str(error))]
    if as_json:
        print_json({"faults": {what: fault for what, fault in found if fault}, "checked": [what for what, _ in found]})
    else:
        for what, fault in found:
            click.echo(f"{'fault' if fault else 'ok   '} {what}{': ' + fault if fault else ''}")
    if any(fault for _, fault in found):
        raise click.exceptions.Exit(1)
