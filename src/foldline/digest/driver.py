"""Runs a model digest, sync or async: calls the digester, waits, retries, and keeps one deadline.

`_with_retries` decides (a generator that needs only a clock); the two `write_model_digest` functions call, wait and
hand back. A digester that is a plain function runs in a daemon thread, so that one which hangs is abandoned: neither
the caller nor the interpreter's exit waits for it.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from foldline.digest.digest_request import DigestRequest, FoldRefused
from foldline.digest.digester import CompleteFunction, Digester, DigesterCall, DigesterReply
from foldline.digest.model_digest import DigestFlow, model_digest_flow
from foldline.fold import Digest

_POLL_SECONDS = 0.05
"""How often the cancellation signal is checked during a call."""
_RETRY_STATUS = (408, 409, 425, 429)


class DigestTimeout(TimeoutError):
    """The deadline passed."""


class DigestCancelled(Exception):
    """The caller's signal was set, or the digester was cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryLimits:
    """How long and how often a digester is called."""

    seconds: float = 120.0
    """For the whole digest with all its calls and pauses."""
    attempts: int = 3
    """For each call, if the failure is temporary."""
    first_pause: float = 0.5
    """Seconds before the second attempt; doubled for each further one."""
    longest_pause: float = 8.0


class _CallStep(NamedTuple):
    """Call the digester, for at most `call.seconds`."""

    call: DigesterCall


class _PauseStep(NamedTuple):
    """Wait before the next attempt."""

    seconds: float


class _FlowResult(NamedTuple):
    """The flow has ended."""

    result: Digest | FoldRefused


_Steps = Generator[_CallStep | _PauseStep, DigesterReply | None, Digest | FoldRefused]


def write_model_digest(
    request: DigestRequest,
    digester: Digester,
    limits: RetryLimits | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Digest | FoldRefused:
    """The digest that the digester writes, or what replaces it. Errors of the digester are not raised."""
    steps = _with_retries(model_digest_flow(request, digester), limits or RetryLimits(), clock)
    outcome: DigesterReply | Exception | None = None
    while not isinstance(step := _next_step(steps, outcome), _FlowResult):
        try:
            if isinstance(step, _PauseStep):
                sleep(step.seconds)
                outcome = None
            else:
                outcome = _call_in_thread(digester.complete, step.call)
        except Exception as error:  # noqa: BLE001 (the flow decides)
            outcome = error
    return step.result


async def write_model_digest_async(
    request: DigestRequest,
    digester: Digester,
    limits: RetryLimits | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Digest | FoldRefused:
    """`write_model_digest` for callers that must not block."""
    steps = _with_retries(model_digest_flow(request, digester), limits or RetryLimits(), clock)
    outcome: DigesterReply | Exception | None = None
    while not isinstance(step := _next_step(steps, outcome), _FlowResult):
        try:
            if isinstance(step, _PauseStep):
                await sleep(step.seconds)
                outcome = None
            else:
                outcome = await _call_async(digester.complete, step.call)
        except Exception as error:  # noqa: BLE001 (the flow decides)
            outcome = error
    return step.result


def _next_step(steps: _Steps, outcome: DigesterReply | Exception | None) -> _CallStep | _PauseStep | _FlowResult:
    """The step after the outcome of the last one."""
    try:
        return steps.throw(outcome) if isinstance(outcome, Exception) else steps.send(outcome)
    except StopIteration as end:
        return _FlowResult(end.value)


def _with_retries(flow: DigestFlow, limits: RetryLimits, clock: Callable[[], float]) -> _Steps:
    """The steps of a flow: calls that end by the deadline, and pauses between attempts."""
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
                    reply = yield _CallStep(replace(call, seconds=left))
                    error = None if reply is not None else TypeError("the digester gave nothing")
                except Exception as raised:  # noqa: BLE001 (the flow decides)
                    error = raised
                if error is None or not _is_temporary(error) or attempt + 1 >= limits.attempts:
                    break
                pause = max(min(limits.longest_pause, limits.first_pause * 2**attempt), _retry_after(error))
                if clock() + pause >= end:
                    break
                yield _PauseStep(pause)
            if error is not None and clock() >= end and not isinstance(error, DigestTimeout | DigestCancelled):
                error = DigestTimeout(timeout)
            call = flow.throw(error) if error is not None else flow.send(reply or DigesterReply())
    except StopIteration as finished:
        result: Digest | FoldRefused = finished.value
        return result


def _is_temporary(error: Exception) -> bool:
    """Whether a retry may succeed."""
    if isinstance(error, DigestTimeout | DigestCancelled):
        return False
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return status in _RETRY_STATUS or status >= 500
    return bool(getattr(error, "retryable", False)) or isinstance(error, ConnectionError | TimeoutError)


def _retry_after(error: Exception) -> float:
    """The provider's Retry-After in seconds; 0 without one."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    try:
        return max(0.0, float(headers.get("retry-after", 0))) if headers is not None else 0.0
    except (TypeError, ValueError, AttributeError):
        return 0.0


def _call_in_thread(complete: CompleteFunction, call: DigesterCall) -> DigesterReply:
    """The reply, from a thread that is abandoned when it takes too long."""
    _raise_if_cancelled(call)

    def work() -> DigesterReply:
        reply = complete(call)
        return asyncio.run(_await(reply)) if inspect.isawaitable(reply) else reply

    future = _start_thread(work)
    end = time.monotonic() + (call.seconds or threading.TIMEOUT_MAX)
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
    """The reply. The caller's own cancellation is raised; the digester's does not reach the caller."""
    _raise_if_cancelled(call)
    end = time.monotonic() + (call.seconds or threading.TIMEOUT_MAX)
    reply: Any = complete(call) if _is_async(complete) else asyncio.wrap_future(_start_thread(lambda: complete(call)))
    while inspect.isawaitable(reply):  # twice where a plain function returned a coroutine
        reply = await _await_until(reply, call, end)
    return reply  # type: ignore[no-any-return]  # checked by the flow


async def _await_until(reply: Awaitable[Any], call: DigesterCall, end: float) -> Any:
    """The awaited reply, unless the signal is set or the deadline passes."""
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


def _is_async(complete: CompleteFunction) -> bool:
    return inspect.iscoroutinefunction(complete) or inspect.iscoroutinefunction(type(complete).__call__)


def _raise_if_cancelled(call: DigesterCall) -> None:
    """Raise if the caller's signal is set: an event, or a token that is cancelled or aborted."""
    for name in ("is_set", "is_cancelled", "cancelled", "aborted"):
        found = getattr(call.signal, name, None)
        if found is not None:
            try:
                is_set = bool(found() if callable(found) else found)
            except Exception:  # noqa: BLE001 (a foreign object)
                return
            if is_set:
                raise DigestCancelled("stopped by the caller")
            return


def _start_thread(work: Callable[[], DigesterReply | Awaitable[DigesterReply]]) -> Future[Any]:
    """The future of work in a daemon thread."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 (raised where the future is read)
            future.set_exception(error if isinstance(error, Exception) else RuntimeError(type(error).__name__))

    threading.Thread(target=run, name="foldline-digest", daemon=True).start()
    return future
