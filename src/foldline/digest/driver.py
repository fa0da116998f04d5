"""Who waits: the two drivers of a flow, with one deadline, a sign to stop, and patience for what may go away by itself.

`supervised` decides (it is a generator too, and asks for a clock only); `drive` and `adrive` do nothing but call, wait
and hand back. A digester that is a plain function runs in a thread of its own, so that one which hangs is left behind
and nobody waits for it, not even the interpreter at its end.
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

from foldline.digest.digester import CompleteFunction, Digester, DigesterCall, DigesterReply
from foldline.digest.model_digest import DigestFlow, DigestRequest, FoldRefused, model_digest_flow, write_local_digest
from foldline.fold import Digest

_POLL = 0.05
"""How often a sign to stop is looked at while a reply is awaited, in seconds."""
_RETRY_STATUS = (408, 409, 425, 429)


class DigestTimeout(TimeoutError):
    """The deadline passed."""


class DigestCancelled(Exception):
    """The caller gave the sign to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryLimits:
    """How long and how often to try."""

    seconds: float = 120.0
    """For the whole digest, all its requests and pauses together."""
    attempts: int = 3
    """For each request, where the failure may go away by itself."""
    pause: float = 0.5
    """Before the second attempt; each further one is twice as long."""
    longest: float = 8.0


class _CallStep(NamedTuple):
    """Ask the digester; nobody waits longer than `ask.seconds`."""

    ask: DigesterCall


class _PauseStep(NamedTuple):
    """Wait so long."""

    seconds: float


_Steps = Generator[_CallStep | _PauseStep, DigesterReply | None, Digest | FoldRefused]


def _with_retries(flow: DigestFlow, patience: RetryLimits, clock: Callable[[], float] = time.monotonic) -> _Steps:
    """The steps of a flow in time: calls that end by the deadline, and pauses between attempts."""
    end = clock() + patience.seconds
    try:
        ask = next(flow)
        while True:
            answer: DigesterReply | None = None
            error: Exception | None = None
            for attempt in range(max(1, patience.attempts)):
                left = end - clock()
                if left <= 0:
                    error = DigestTimeout(f"no digest within {patience.seconds:g} seconds")
                    break
                try:
                    answer = yield _CallStep(replace(ask, seconds=left))
                    error = None if answer is not None else TypeError("the digester gave nothing")
                except Exception as raised:  # noqa: BLE001 (it is the flow's to judge)
                    error = raised
                if error is None or not _passing(error) or attempt + 1 >= patience.attempts:
                    break
                wait = max(min(patience.longest, patience.pause * 2**attempt), _asked_to_wait(error))
                if clock() + wait >= end:
                    break
                yield _PauseStep(wait)
            if error is not None and clock() >= end and not isinstance(error, DigestTimeout | DigestCancelled):
                error = DigestTimeout(f"no digest within {patience.seconds:g} seconds")
            ask = flow.throw(error) if error is not None else flow.send(answer or DigesterReply())
    except StopIteration as done:
        result: Digest | FoldRefused = done.value
        return result


def _passing(error: Exception) -> bool:
    """Whether a failure may go away by itself."""
    if isinstance(error, DigestTimeout | DigestCancelled):
        return False
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return status in _RETRY_STATUS or status >= 500
    return bool(getattr(error, "retryable", False)) or isinstance(error, ConnectionError | TimeoutError)


def _asked_to_wait(error: Exception) -> float:
    """How long the provider asks to wait, in seconds."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    try:
        return max(0.0, float(headers.get("retry-after", 0))) if headers is not None else 0.0
    except (TypeError, ValueError, AttributeError):
        return 0.0


class _FlowResult(NamedTuple):
    """What a flow came to."""

    result: Digest | FoldRefused


def _next(steps: _Steps, outcome: DigesterReply | Exception | None) -> _CallStep | _PauseStep | _FlowResult:
    """The next step after what came of the last one."""
    try:
        return steps.throw(outcome) if isinstance(outcome, Exception) else steps.send(outcome)
    except StopIteration as done:
        return _FlowResult(done.value)


def write_model_digest(
    job: DigestRequest,
    digester: Digester | None = None,
    patience: RetryLimits | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Digest | FoldRefused:
    """The digest of a job: by the digester where there is one, else locally. It never raises for a digester's sake."""
    if digester is None:
        return write_local_digest(job)
    steps = _with_retries(model_digest_flow(job, digester), patience or RetryLimits(), clock)
    outcome: DigesterReply | Exception | None = None
    while not isinstance(step := _next(steps, outcome), _FlowResult):
        try:
            if isinstance(step, _PauseStep):
                sleep(step.seconds)
                outcome = None
            else:
                outcome = _waited(digester.complete, step.ask)
        except Exception as error:  # noqa: BLE001 (the flow's to judge)
            outcome = error
    return step.result


async def write_model_digest_async(
    job: DigestRequest,
    digester: Digester | None = None,
    patience: RetryLimits | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Digest | FoldRefused:
    """`write` for callers that must not block."""
    if digester is None:
        return write_local_digest(job)
    steps = _with_retries(model_digest_flow(job, digester), patience or RetryLimits(), clock)
    outcome: DigesterReply | Exception | None = None
    while not isinstance(step := _next(steps, outcome), _FlowResult):
        try:
            if isinstance(step, _PauseStep):
                await sleep(step.seconds)
                outcome = None
            else:
                outcome = await _awaited(digester.complete, step.ask)
        except Exception as error:  # noqa: BLE001 (the flow's to judge)
            outcome = error
    return step.result


def _waited(complete: CompleteFunction, ask: DigesterCall) -> DigesterReply:
    """The reply, from a thread that is left behind when it takes too long."""
    if _is_set(ask.signal):
        raise DigestCancelled("stopped by the caller")

    def work() -> DigesterReply:
        reply = complete(ask)
        return asyncio.run(_whole(reply)) if inspect.isawaitable(reply) else reply

    future = _begun(work)
    end = time.monotonic() + (ask.seconds or threading.TIMEOUT_MAX)
    while not future.done():
        if _is_set(ask.signal):
            raise DigestCancelled("stopped by the caller")
        if time.monotonic() >= end:
            raise DigestTimeout("the digester took too long")
        _soon(future)
    return _reply(future)


def _soon(future: Future[DigesterReply]) -> None:
    """Wait until a reply is there, or a moment."""
    try:
        future.exception(timeout=_POLL)
    except (TimeoutError, CancelledError):
        return


def _reply(future: Future[DigesterReply]) -> DigesterReply:
    try:
        return future.result()
    except CancelledError:
        raise DigestCancelled("the digester was cancelled") from None


async def _awaited(complete: CompleteFunction, ask: DigesterCall) -> DigesterReply:
    """The reply. The caller's own cancellation goes through; the digester's does not reach the caller."""
    if _is_set(ask.signal):
        raise DigestCancelled("stopped by the caller")
    end = time.monotonic() + (ask.seconds or threading.TIMEOUT_MAX)
    reply: Any = complete(ask) if _is_async(complete) else asyncio.wrap_future(_begun(lambda: complete(ask)))
    while inspect.isawaitable(reply):  # twice where a plain function gave a coroutine
        reply = await _until(reply, ask, end)
    return reply  # type: ignore[no-any-return]  # what a digester gives is judged by the flow


async def _until(reply: Awaitable[Any], ask: DigesterCall, end: float) -> Any:
    """Wait for a reply, a sign to stop, or the deadline."""
    task = asyncio.ensure_future(_whole(reply))
    try:
        while not task.done():
            left = end - time.monotonic()
            if left <= 0:
                raise DigestTimeout("the digester took too long")
            await asyncio.wait({task}, timeout=min(left, _POLL) if ask.signal is not None else left)
            if not task.done() and _is_set(ask.signal):
                raise DigestCancelled("stopped by the caller")
        if task.cancelled():
            raise DigestCancelled("the digester was cancelled")
        return task.result()
    finally:
        task.cancel()


async def _whole(reply: Any) -> DigesterReply:
    return await reply  # type: ignore[no-any-return]  # judged by the flow


def _is_async(complete: CompleteFunction) -> bool:
    return inspect.iscoroutinefunction(complete) or inspect.iscoroutinefunction(type(complete).__call__)


def _is_set(signal: Any) -> bool:
    """Whether a sign to stop was given: an event that is set, a token that is cancelled or aborted."""
    for name in ("is_set", "is_cancelled", "cancelled", "aborted"):
        found = getattr(signal, name, None)
        if found is not None:
            try:
                return bool(found() if callable(found) else found)
            except Exception:  # noqa: BLE001 (somebody else's object)
                return False
    return False


def _begun(work: Callable[[], DigesterReply | Awaitable[DigesterReply]]) -> Future[Any]:
    """Work in a daemon thread: neither a caller nor the interpreter's end waits for one that hangs."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 (handed to whoever waits)
            future.set_exception(error if isinstance(error, Exception) else RuntimeError(type(error).__name__))

    threading.Thread(target=run, name="foldline-digest", daemon=True).start()
    return future
