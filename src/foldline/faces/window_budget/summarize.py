"""How: one digest of some messages, by the model where there is one, else locally. It never fails.

Whatever goes wrong with a model (it raises, times out, says nothing, breaks off, calls a tool) must not cost the user
his session, so the local digest takes its place, and the cause is told.
"""

from __future__ import annotations

from asyncio import CancelledError, current_task
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from inspect import isawaitable
from typing import Any, NamedTuple

from foldline.digest import prompt
from foldline.digest.local import count_digest
from foldline.digest.prompt import CONDENSER_BRIEF
from foldline.faces.window_budget.contract import CompleteFn, CondenseScope, SummarizeDeps, Summary
from foldline.faces.window_budget.messages import Context, SimpleStreamOptions, UserMessage
from foldline.faces.window_budget.talk import HEADERS, REQUEST, Carried, Talk, headless
from foldline.message import Message, user
from foldline.wire.fields import pick, text_of

_HOST = "indusagi.ai"
"""The documented host: its completer is the default one wherever it is installed."""
_BROKEN_OFF = ("error", "aborted", "length", "max_tokens", "content_filter", "refusal")
_CAUSE_CHARS = 300


class Written(NamedTuple):
    """A digest as text, and why it is a local one if it is."""

    text: str
    cause: str = ""


async def summarize(messages: Sequence[Any], deps: SummarizeDeps | None = None) -> Summary:
    """One digest of these messages, as a user's message under the header of its scope."""
    deps = deps or SummarizeDeps()
    talk = Talk(messages)
    made = await write(Carried.of(talk.messages), deps)
    return Summary(message=talk.digest(made.text, deps.scope), covered_count=len(messages), cause=made.cause)


async def condense(messages: Sequence[Any], deps: SummarizeDeps | None = None) -> Summary:
    """`summarize` for the session that goes on."""
    return await summarize(messages, replace(deps or SummarizeDeps(), scope="session"))


async def condense_scope(messages: Sequence[Any], deps: SummarizeDeps | None = None) -> Summary:
    """`summarize` for a branch that was left."""
    return await summarize(messages, replace(deps or SummarizeDeps(), scope="branch"))


def flatten_transcript(messages: Sequence[Any]) -> str:
    """Everything that was said, each piece behind the mark of who said it."""
    return prompt.flatten_transcript(Talk(messages).messages)


def build_summary_prompt(
    messages: Sequence[Any], scope: CondenseScope = "session", prior_digest: str | None = None
) -> str:
    """What the model is asked."""
    return prompt.build_summary_prompt(Talk(messages).messages, scope, prior_digest)


async def write(carried: Carried, deps: SummarizeDeps) -> Written:
    """The digest with its header."""
    if deps.model is None:
        return write_locally(carried, deps, "no model was given")
    text, cause = await _ask(carried, deps)
    return Written(f"{HEADERS[deps.scope]}\n{text}") if text else write_locally(carried, deps, cause)


def write_locally(carried: Carried, deps: SummarizeDeps, cause: str = "") -> Written:
    """The digest that needs no model."""
    prior = _prior(carried, deps)
    return Written(count_digest(carried.said, first=None, header=HEADERS[deps.scope], prior=prior).text, cause)


def _prior(carried: Carried, deps: SummarizeDeps) -> str:
    given = headless(deps.prior_digest or "").replace(REQUEST, f"\\{REQUEST}")
    return "\n\n".join(filter(None, (given, carried.prior)))


async def _ask(carried: Carried, deps: SummarizeDeps) -> tuple[str, str]:
    """The model's digest, or "" and the reason why there is none."""
    complete = deps.complete or _host_completer()
    if complete is None:
        return "", "no completer was given"
    said: tuple[Message, ...] = (user(carried.request),) if carried.request else ()
    asked = prompt.build_summary_prompt(said + carried.said, deps.scope, _prior(carried, deps))
    context = Context(systemPrompt=CONDENSER_BRIEF, messages=[UserMessage(content=asked)])
    options = SimpleStreamOptions(reasoning="high", signal=deps.signal, maxTokens=deps.max_tokens)
    try:
        reply: Any = complete(deps.model, context, options)
        return _text(await reply if isawaitable(reply) else reply)
    except CancelledError:
        task = current_task()
        if task is not None and task.cancelling():
            raise  # the caller himself is being cancelled
        return "", "the completer was cancelled"
    except Exception as error:  # noqa: BLE001 (whatever a completer raises, the session must go on)
        return "", _told(error)


def _text(reply: Any) -> tuple[str, str]:
    """What a reply says, or "" and why it will not do."""
    message = Talk([reply]).messages[0]
    if message.role != "assistant":
        return "", f"the completer gave {type(reply).__name__} and not a reply"
    stop = message.meta.stop
    if stop in _BROKEN_OFF:
        return "", f"the reply ended with {stop}: {text_of(pick(reply, 'errorMessage'))}".removesuffix(": ")
    if message.calls:
        return "", "the reply calls a tool"
    text = message.text.strip()
    for mark in (*HEADERS.values(), REQUEST):
        text = text.removeprefix(mark).lstrip().replace(mark, f"\\{mark}")
    return text, "" if text else "the reply says nothing"


def _told(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:_CAUSE_CHARS]
    except Exception:  # noqa: BLE001 (its own words may fail too)
        return type(error).__name__


def _host_completer() -> CompleteFn | None:
    try:
        found: CompleteFn | None = getattr(import_module(_HOST), "complete_simple", None)
    except ImportError:
        return None
    return found
