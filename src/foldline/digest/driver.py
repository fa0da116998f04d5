"""Runs a model digest, sync or async: calls the digester, waits and retries, all within one deadline.

A function that is not async runs in a daemon thread. If the function hangs, the caller does not wait for it, and the
interpreter can still exit.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from foldline.digest.digester import CompleteFunction, Digester, DigesterCall, DigesterReply, DigestRequest, FoldRefused
from foldline.digest.model_digest import model_digest_flow
from foldline.fold import Digest

_POLL_SECONDS = 0.05
"""Seconds between two checks of the cancellation signal during a call."""
_RETRY_STATUS = (408, 409, 425, 429)


class DigestTimeout(TimeoutError):
    """The deadline for the digest has passed."""


class DigestCancelled(Exception):
    """The caller's signal was set, or the digester was cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryLimits:
    """Limits for the time of a digest, and for the attempts of each call."""

    seconds: float = 120.0
    """Time limit in seconds for the whole digest, with all its calls and pauses."""
    attempts: int = 3
    """Maximum number of attempts for each call; only temporary failures are retried."""
    first_pause: float = 0.5
    """Seconds to wait before the second attempt; doubled for each further attempt."""
    longest_pause: float = 8.0


def write_model_digest(
    request: DigestRequest,
    digester: Digester,
    limits: RetryLimits | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Digest | FoldRefused:
    """The digest that the digester writes.

    If the digester fails, no error is raised: the result is the local digest, or a refusal of the fold.
    """

    def complete(call: DigesterCall) -> Any:
        reply: Any = digester.complete(call)
        return asyncio.run(_await_until(reply, call, _deadline(call))) if inspect.isawaitable(reply) else reply

    async def pause(seconds: float) -> None:
        sleep(seconds)

    # in a thread, an async function that blocks cannot delay the deadline
    in_thread = replace(digester, complete=complete)
    written: Future[Digest | FoldRefused] = _start_thread(
        lambda: asyncio.run(write_model_digest_async(request, in_thread, limits, clock=clock, sleep=pause))
    )
    return written.result()


async def write_model_digest_async(
    request: DigestRequest,
    digester: Digester,
    limits: RetryLimits | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Digest | FoldRefused:
    """Like `write_model_digest`, for callers that must not block."""
    flow, limits = model_digest_flow(request, digester), limits or RetryLimits()
    end, timeout = clock() + limits.seconds, DigestTimeout(f"no digest within {limits.seconds:g} seconds")

    async def reply_to(call: DigesterCall) -> DigesterReply | Exception:
        """The reply to a call. If all attempts fail, the error of the last attempt is returned."""
        attempt = 0
        while (left := end - clock()) > 0:
            try:
                return await _call(digester.complete, replace(call, seconds=left))
            except Exception as error:  # noqa: BLE001 (`model_digest_flow` handles it)
                pause = max(min(limits.longest_pause, limits.first_pause * 2**attempt), _retry_after(error))
                attempt += 1
                if isinstance(error, DigestTimeout | DigestCancelled):
                    return error
                if attempt >= limits.attempts or not _is_temporary(error) or clock() + pause >= end:
                    return timeout if clock() >= end else error
            await sleep(pause)
        return timeout

    try:
        call = next(flow)
        while True:
            outcome = await reply_to(call)
            call = flow.throw(outcome) if isinstance(outcome, Exception) else flow.send(outcome)
    except StopIteration as finished:
        result: Digest | FoldRefused = finished.value
        return result


def _is_temporary(error: Exception) -> bool:
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return status in _RETRY_STATUS or status >= 500
    return bool(getattr(error, "retryable", False)) or isinstance(error, ConnectionError | TimeoutError)


def _retry_after(error: Exception) -> float:
    """The provider's Retry-After in seconds; 0 if there is none."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    try:
        return max(0.0, float(headers.get("retry-after", 0)))  # type: ignore[union-attr]
    except (TypeError, ValueError, AttributeError):
        return 0.0


async def _call(complete: CompleteFunction, call: DigesterCall) -> DigesterReply:
    """Make a call, and return the reply. If the call takes too long or is cancelled, it is abandoned."""
    _raise_if_cancelled(call)
    is_async = inspect.iscoroutinefunction(complete) or inspect.iscoroutinefunction(type(complete).__call__)
    reply: Any = complete(call) if is_async else asyncio.wrap_future(_start_thread(lambda: complete(call)))
    end = _deadline(call)
    while inspect.isawaitable(reply):  # repeated if a plain function returned a coroutine
        reply = await _await_until(reply, call, end)
    if reply is None:
        raise TypeError("the digester gave nothing")
    return reply  # type: ignore[no-any-return]  # `model_digest_flow` checks the type


def _deadline(call: DigesterCall) -> float:
    return time.monotonic() + (call.seconds or threading.TIMEOUT_MAX)


async def _await_until(reply: Awaitable[Any], call: DigesterCall, end: float) -> Any:
    """Wait for the reply, and return it. Raises if the caller's signal is set, or if the deadline `end` passes."""
    task = asyncio.ensure_future(reply)
    try:
        while not task.done():
            left = end - time.monotonic()
            if left <= 0:
                raise DigestTimeout("the digester took too long")
            await asyncio.wait({task}, timeout=min(left, _POLL_SECONDS) if call.signal is not None else left)
            if not task.done():
                _raise_if_cancelled(call)
        if task.cancelled():
            raise DigestCancelled("the digester was cancelled")
        return task.result()
    finally:
        task.cancel()


def _raise_if_cancelled(call: DigesterCall) -> None:
    """Raise `DigestCancelled` if the caller's signal is set."""
    names = ("is_set", "is_cancelled", "cancelled", "aborted")
    found = next((getattr(call.signal, name) for name in names if getattr(call.signal, name, None) is not None), False)
    is_set = False
    with suppress(Exception):  # a foreign object may raise anything
        is_set = bool(found() if callable(found) else found)
    if is_set:
        raise DigestCancelled("stopped by the caller")


def _start_thread(work: Callable[[], Any]) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 (it is raised again by `future.result()`)
            future.set_exception(error if isinstance(error, Exception) else RuntimeError(type(error).__name__))

    threading.Thread(target=run, name="foldline-digest", daemon=True).start()
    return future
