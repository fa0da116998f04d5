"""Reports of exchanges for logs and telemetry: figures and names, never the text of a message or a credential."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from foldline.events import LOG
from foldline.ledger.receipts import Receipt
from foldline.message import Usage
from foldline.proxy.forwarded_headers import header
from foldline.proxy.interception import ClientRequest, OutgoingRequest, ReceivedResponse
from foldline.proxy.planned_request import Ticket
from foldline.redact.redact import redact_error

EXCHANGES = logging.getLogger("foldline.exchanges")
"""The logger that gets a record for each exchange."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeReport:
    """One exchange, as logs and telemetry describe it."""

    format: str
    model: str
    session: str = ""
    status: int = 0
    """The provider's status; 0 if the provider did not answer."""
    started_at: float = 0.0
    """Seconds since 1970."""
    seconds: float = 0.0
    """The time from the request to the end of the response, in seconds."""
    is_complete: bool = False
    """Whether the provider sent the complete response."""
    is_folded: bool = False
    is_retried: bool = False
    recall_calls: int = 0
    input_tokens: int = 0
    """Prompt tokens, including the tokens that were read from the cache or written to it."""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    miss: str = ""
    """The cause of a cache miss; "" if the cache was read."""
    answered: str = ""
    """What foldline answered itself, such as `compaction`; "" if the provider answered."""
    fault: str = ""
    """The class of the error inside foldline; "" if there was no error. After such an error, the client's own request
    is passed on.
    """
    traceparent: str = ""
    """The client's trace context."""


def exchange_report(  # noqa: PLR0913, PLR0917  # an exchange consists of these parts
    request: ClientRequest,
    sent: OutgoingRequest,
    response: ReceivedResponse,
    receipt: Receipt | None,
    ended_at: float,
    started_at: float | None = None,
) -> ExchangeReport:
    """The report of an exchange. `receipt` is None if the provider reported no usage."""
    ticket = sent.ticket if isinstance(sent.ticket, Ticket) else None
    conversation = ticket.conversation if ticket is not None else None
    usage = receipt.usage if receipt is not None else Usage()
    if started_at is None:
        started_at = ticket.sent_at if ticket is not None else ended_at
    return ExchangeReport(
        format=request.call.format,
        model=ticket.model if ticket is not None else request.call.model,
        session=conversation.session.name if conversation is not None else dict(sent.notes).get("session", ""),
        status=response.status,
        started_at=started_at,
        seconds=max(0.0, ended_at - started_at),
        is_complete=response.is_complete,
        is_folded=ticket is not None and ticket.is_folded,
        is_retried=ticket is not None and ticket.is_retried,
        recall_calls=receipt.recall_calls if receipt is not None else 0,
        input_tokens=usage.prompt,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
        output_tokens=usage.output,
        usd=receipt.usd if receipt is not None else None,
        miss=receipt.miss.cause if receipt is not None and receipt.miss is not None else "",
        answered=dict(sent.notes).get("answered", ""),
        fault=dict(sent.notes).get("fault", ""),
        traceparent=header(request.headers, b"traceparent"),
    )


Reporter = Callable[[ExchangeReport], None]


def report_to(reporters: Iterable[Reporter], report: ExchangeReport) -> None:
    """Give a report to all reporters. An exception of a reporter is logged."""
    for reporter in reporters:
        try:
            reporter(report)
        except Exception as error:  # noqa: BLE001 (a report must not disturb the exchange)
            LOG.warning("a report of an exchange was lost: %s: %s", type(error).__name__, redact_error(error))


def log_report(report: ExchangeReport) -> None:
    """Log a report. Its figures and names are in the attribute `facts` of the log record."""
    if not EXCHANGES.isEnabledFor(logging.INFO):
        return
    facts = {name: value for name, value in asdict(report).items() if value not in ("", None) and name != "traceparent"}
    facts["seconds"] = round(report.seconds, 4)
    EXCHANGES.info("%s %s %s", report.session or "-", report.status, report.model, extra={"facts": facts})


class JsonLines(logging.Formatter):
    """Formats each log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON: time, level, logger, message, and the facts of an exchange."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{record.msecs:03.0f}Z"
        line: dict[str, Any] = {"time": moment, "level": record.levelname.lower(), "logger": record.name}
        line["message"] = record.getMessage()
        line |= getattr(record, "facts", {})
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        return json.dumps(line)


def set_up_logs(*, as_json: bool) -> None:
    """Write logs to standard error.

    With `as_json`, each record is a line of JSON, and each exchange has a record. Without it, logs are text, and
    exchanges have no records.
    """
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s")
    handler.setFormatter(JsonLines() if as_json else text)
    logging.basicConfig(handlers=[handler], level=logging.INFO)
    LOG.setLevel(logging.WARNING)
    EXCHANGES.setLevel(logging.INFO if as_json else logging.WARNING)
