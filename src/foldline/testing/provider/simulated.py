"""The class that a test uses: a server on loopback with scripted answers, received requests and a bill."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from foldline.models.table import Prices
from foldline.testing.provider.account import Account
from foldline.testing.provider.account_reply import AccountReply
from foldline.testing.provider.billing import Bill
from foldline.testing.provider.error_reply import ErrorReply
from foldline.testing.provider.routes import Route
from foldline.testing.provider.script import Script, ScriptedFailure, ScriptedReply, ScriptEntry
from foldline.testing.provider.seal import Seal
from foldline.testing.provider.server import ProviderServer
from foldline.testing.provider.token_rules import TextCounter
from foldline.testing.provider.window_rules import SimulatedModel, check_models


@dataclass(frozen=True, kw_only=True, slots=True)
class ReceivedRequest:
    """A request that the provider received, and how it was answered.

    `betas` holds the values of the header `anthropic-beta`. No other header is kept.
    """

    format: str
    endpoint: str
    model: str
    body: Any
    betas: tuple[str, ...] = ()
    reply: AccountReply
    failure: ScriptedFailure | None = None

    @property
    def error(self) -> ErrorReply | None:
        """Why the request was refused; None if it was accepted."""
        return self.reply.error


class SimulatedProvider:
    """A provider on loopback that refuses the same requests as Anthropic, OpenAI and Gemini.

        with SimulatedProvider(models={"claude-opus-5": 200_000}) as provider:
            client = Anthropic(base_url=provider.url, api_key="x")
            ...
            assert not provider.refused

    OpenAI's clients use `provider.openai_url`. The arguments are those of an `Account`. Each credential has its own
    account: accounts do not share the prompt cache, and cannot read each other's compactions.
    """

    def __init__(  # noqa: PLR0913
        self,
        *,
        models: Mapping[str, int | SimulatedModel] | None = None,
        clock: Callable[[], float] = time.time,
        counter: TextCounter | None = None,
        prices: Mapping[str, Prices] | None = None,
        takes_foreign: bool = False,
        enforces_binding: bool = True,
        needs_tools: bool = True,
        event_pause_s: float = 0.0,
    ) -> None:
        check_models(models)
        self.models = models
        self.event_pause_s = event_pause_s
        """Seconds between two events of a stream."""
        self.requests: list[ReceivedRequest] = []
        self._script = Script()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._salt = secrets.token_bytes(16)
        self._accounts: dict[bytes, Account] = {}
        seal = Seal()

        def open_account(name: str) -> Account:
            return Account(
                name=name,
                models=models,
                clock=clock,
                counter=counter,
                prices=prices,
                seal=seal,
                takes_foreign=takes_foreign,
                enforces_binding=enforces_binding,
                needs_tools=needs_tools,
            )

        self._open_account = open_account
        self._server = ProviderServer(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the server."""
        self._closed.set()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """The base address for Anthropic's and Gemini's clients."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def openai_url(self) -> str:
        """The base address for OpenAI's clients."""
        return f"{self.url}/v1"

    def script(self, *entries: ScriptEntry, model: str = "") -> None:
        """Add answers for the next requests: texts, `ScriptedReply`, `call(…)`, `fail(…)`.

        With `model`, the answers are used only for requests to this model. When no answer is left, the provider echoes
        the last text of the request. If foldline asks for a digest, the provider writes one, unless an answer is
        scripted for the requested model.
        """
        self._script.extend(entries, model)

    @property
    def refused(self) -> list[ReceivedRequest]:
        """The requests that broke a rule."""
        return [request for request in self.requests if request.error is not None and request.failure is None]

    @property
    def bill(self) -> Bill:
        """The bill of all accounts."""
        with self._lock:
            return Bill([request for account in self._accounts.values() for request in account.bill.requests])

    def receive(
        self, route: Route, body: Any, *, betas: tuple[str, ...] = (), credential: str = ""
    ) -> tuple[ScriptedReply | ScriptedFailure | None, AccountReply]:
        """Judge and answer a request. Returns the scripted entry (None if the script was empty) and the reply."""
        entry = None if route.endpoint == "count" else self._script.next_entry(_model_of(route, body), body)
        scripted = entry if isinstance(entry, ScriptedReply) else None
        if scripted is not None and scripted.seconds:
            self._closed.wait(scripted.seconds)
        key = hashlib.blake2b(self._salt + credential.encode(), digest_size=16).digest()
        with self._lock:
            if key not in self._accounts:
                self._accounts[key] = self._open_account(f"account {len(self._accounts) + 1}")
            account = self._accounts[key]
            if isinstance(entry, ScriptedFailure) and not entry.needs_reply:
                error = entry.reply(route.format)
                reply = AccountReply(body=error.body(), error=error)
            else:
                reply = account.answer(
                    route.format, body, betas=betas, model=route.model, endpoint=route.endpoint, reply=scripted
                )
            failure = entry if isinstance(entry, ScriptedFailure) else None
            self._note(route, body, betas, reply, failure)
        return entry, reply

    def note_refusal(self, route: Route, error: ErrorReply) -> None:
        """Record a request that was refused before its body was read."""
        with self._lock:
            self._note(route, None, (), AccountReply(body=error.body(), error=error), None)

    def _note(
        self, route: Route, body: Any, betas: tuple[str, ...], reply: AccountReply, failure: ScriptedFailure | None
    ) -> None:
        model = route.model or (str(body.get("model", "")) if isinstance(body, dict) else "")
        self.requests.append(
            ReceivedRequest(
                format=route.format,
                endpoint=route.endpoint,
                model=model,
                body=body,
                betas=betas,
                reply=reply,
                failure=failure,
            )
        )

    def wait_until_closed(self, seconds: float = 600.0) -> None:
        """Wait until the provider is closed. The server calls this method for a request that is never answered."""
        self._closed.wait(seconds)


def _model_of(route: Route, body: Any) -> str:
    """The model that a request names, in its address or in its body; "" if it names none."""
    model = route.model or (body.get("model") if isinstance(body, dict) else "")
    return model if isinstance(model, str) else ""
