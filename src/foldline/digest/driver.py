"""Runs a model digest, sync or async: calls the digester, waits and retries, all within one deadline.

`_with_retries` is a generator that yields the calls to make and the pauses to wait. `write_model_digest` and
`write_model_digest_async` make the calls and wait. A function that is not async runs in a daemon thread. If the
function hangs, neither the caller nor the interpreter's exit waits for it.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from foldline.digest.digest_request import DigestRequest, FoldRefused
from foldline.digest.digester import CompleteFunction, Digester, DigesterCall, DigesterReply
from foldline.digest.model_digest import DigestFlow, model_digest_flow
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


_Steps = Generator[DigesterCall | float, DigesterReply | None, Digest | FoldRefused]
"""A generator that yields either a call to make (which may take `call.seconds`) or a number of seconds to wait."""


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
    steps = _with_retries(model_digest_flow(request, digester), limits or RetryLimits(), clock)
    outcome: DigesterReply | Exception | None = None
    while isinstance(step := _next_step(steps, outcome), DigesterCall | float):
        try:
            if isinstance(step, float):
                sleep(step)
                outcome = None
            else:
                outcome = _call_in_thread(digester.complete, step)
        except Exception as error:  # noqa: BLE001 (the flow decides)
            outcome = error
    return step


async def write_model_digest_async(
    request: DigestRequest,
    digester: Digester,
    limits: RetryLimits | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Digest | FoldRefused:
    """Like `write_model_digest`, for callers that must not block."""
    steps = _with_retries(model_digest_flow(request, digester), limits or RetryLimits(), clock)
    outcome: DigesterReply | Exception | None = None
    while isinstance(step := _next_step(steps, outcome), DigesterCall | float):
        try:
            if isinstance(step, float):
                await sleep(step)
                outcome = None
            else:
                outcome = await _call_async(digester.complete, step)
        except Exception as error:  # noqa: BLE001 (the flow decides)
            outcome = error
    return step


def _next_step(steps: _Steps, outcome: DigesterReply | Exception | None) -> DigesterCall | float | Digest | FoldRefused:
    """The next call or pause, or the result if there is no further step."""
    try:
        return steps.throw(outcome) if isinstance(outcome, Exception) else steps.send(outcome)
    except StopIteration as end:
        result: Digest | FoldRefused = end.value
        return result


def _with_retries(flow: DigestFlow, limits: RetryLimits, clock: Callable[[], float]) -> _Steps:
    """Yields the calls of a digest, each limited to the time that is left, and the pauses between two attempts."""
    end = clock() + limits.seconds
    timeout = f"no digest within {limits.seconds:g} seconds"
    try:
        call = next(flow)
        while True:
            reply: DigesterReply | None = None
            error: Exception | None = None
            for attempt in range(max(1, limits.attempts)):
                left = end - clock()
                if left <= 0:
                    error = DigestTimeout(timeout)
                    break
                try:
                    reply = yield replace(call, seconds=left)
                    error = None if reply is not None else TypeError("the digester gave nothing")
                except Exception as raised:  # noqa: BLE001 (the flow decides)
                    error = raised
                if error is None or not _is_temporary(error) or attempt + 1 >= limits.attempts:
                    break
                pause = max(min(limits.longest_pause, limits.first_pause * 2**attempt), _retry_after(error))
                if clock() + pause >= end:
                    break
                yield float(pause)
            if error is not None and clock() >= end and not isinstance(error, DigestTimeout | DigestCancelled):
                error = DigestTimeout(timeout)
            call = flow.throw(error) if error is not None else flow.send(reply or DigesterReply())
    except StopIteration as finished:
        result: Digest | FoldRefused = finished.value
        return result


def _is_temporary(error: Exception) -> bool:
    if isinstance(error, DigestTimeout | DigestCancelled):
        return False
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return status in _RETRY_STATUS or status >= 500
    return bool(getattr(error, "retryable", False)) or isinstance(error, ConnectionError | TimeoutError)


def _retry_after(error: Exception) -> float:
    """The provider's Retry-After in seconds; 0 if there is none."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    try:
        return max(0.0, float(headers.get("retry-after", 0))) if headers is not None else 0.0
    except (TypeError, ValueError, AttributeError):
        return 0.0


def _call_in_thread(complete: CompleteFunction, call: DigesterCall) -> DigesterReply:
    """Make a call in a thread, and return the reply.

    If the call takes too long or is cancelled, the thread is abandoned.
    """
    _raise_if_cancelled(call)
    end = time.monotonic() + (call.seconds or threading.TIMEOUT_MAX)

    def work() -> DigesterReply:
        reply = complete(call)
        return asyncio.run(_await_until(reply, call, end)) if inspect.isawaitable(reply) else reply

    future = _start_thread(work)
    while not future.done():
        _raise_if_cancelled(call)
        if time.monotonic() >= end:
            raise DigestTimeout("the digester took too long")
        try:
            future.exception(timeout=_POLL_SECONDS)
        except (TimeoutError, CancelledError):
            continue
    try:
        return future.result()  # type: ignore[no-any-return]  # checked by the flow
    except CancelledError:
        raise DigestCancelled("the digester was cancelled") from None


async def _call_async(complete: CompleteFunction, call: DigesterCall) -> DigesterReply:
    """Make a call, and return the reply.

    If the digester cancels itself, `DigestCancelled` is raised, not `CancelledError`.
    """
    _raise_if_cancelled(call)
    end = time.monotonic() + (call.seconds or threading.TIMEOUT_MAX)
    is_async = inspect.iscoroutinefunction(complete) or inspect.iscoroutinefunction(type(complete).__call__)
    reply: Any = complete(call) if is_async else asyncio.wrap_future(_start_thread(lambda: complete(call)))
    while inspect.isawaitable(reply):  # twice where a plain function returned a coroutine
        reply = await _await_until(reply, call, end)
    return reply  # type: ignore[no-any-return]  # checked by the flow


async def _await_until(reply: Awaitable[Any], call: DigesterCall, end: float) -> Any:
    """Wait for the reply, and return it. Raises if the caller's signal is set, or if the deadline `end` passes."""
    task = asyncio.ensure_future(_await(reply))
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


async def _await(reply: Any) -> DigesterReply:
    return await reply  # type: ignore[no-any-return]  # checked by the flow


def _raise_if_cancelled(call: DigesterCall) -> None:
    """Raise `DigestCancelled` if the caller's signal is set."""
    for name in ("is_set", "is_cancelled", "cancelled", "aborted"):
        found = getattr(call.signal, name, None)
        if found is not None:
            is_set = False
            with suppress(Exception):  # a foreign object may raise anything
                is_set = bool(found() if callable(found) else found)
            if is_set:
                raise DigestCancelled("stopped by the caller")
            return


def _start_thread(work: Callable[[], DigesterReply | Awaitable[DigesterReply]]) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 (raised where the future is read)
            future.set_exception(error if isinstance(error, Exception) else RuntimeError(type(error).__name__))

    threading.Thread(target=run, name="foldline-digest", daemon=True).start()
    return future
