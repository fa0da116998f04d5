"""Writes one digest of some messages: with a model if there is one, otherwise locally. `summarize` never raises.

The local digest is also used if the model raises, times out, returns nothing, is cut off or calls a tool.
`Summary.cause` says why the digest was written locally.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from inspect import isawaitable
from typing import Any, NamedTuple

from foldline.digest.digester import Digester, DigesterCall, DigesterReply, DigestRequest, FoldRefused
from foldline.digest.driver import RetryLimits, write_model_digest_async
from foldline.digest.local import write_local_digest
from foldline.digest.prompt import sections_prompt
from foldline.digesters import reply_of
from foldline.message import Message, user
from foldline.redact.redact import redact
from foldline.window_budget.budget.estimate import window_of
from foldline.window_budget.contract import CompleteFn, SummarizeDeps, Summary
from foldline.window_budget.host_messages import (
    PRESET,
    REQUEST,
    DigestInput,
    HostMessages,
    tokens,
    without_header,
)
from foldline.window_budget.messages import Context, SimpleStreamOptions, UserMessage
from foldline.window_budget.summarize.prompt import scope_of
from foldline.wire.field_access import pick, text_of

__all__ = ["SummarizeDeps", "condense_scope", "summarize"]

_HOST = "indusagi.ai"
"""Name of the Python module of the program that this API was published for.

If this module is installed, its function `complete_simple` is the default completer.
"""
_LEAST_WINDOW = 16_000
"""The smallest window that is assumed for a digest model.

If the model object has a smaller figure, it is taken as a budget of the host, not as the model's window.
"""
_LEAST_CAP = 60
"""The smallest size limit of a digest, in tokens: room for the header and one line."""
_SECTIONS_CAP = 240
"""Number of tokens that a digest with all sections needs.

A digest that is smaller than the messages it replaces may always be this large.
"""
_QUOTED_CHARS = (1_000, 500, 250, 120, 60, 30)
"""Maximum lengths of each quoted message in `quoted_digest_text`, in characters.

The lengths are tried in this order until the digest fits.
"""
_RETRIES = RetryLimits(seconds=600.0, attempts=1)
"""Limits for one digest. Only one call is made, because a completer makes its own retries and the host sets a deadline.
"""


class DigestText(NamedTuple):
    """A digest as text. `cause` says why the digest was written locally; "" if a model wrote it."""

    text: str
    cause: str = ""


async def summarize(messages: Sequence[Any], deps: SummarizeDeps | None = None) -> Summary:
    """One digest of these messages, as a user message. The first line of the digest is the header of the scope."""
    deps = deps or SummarizeDeps()
    host = HostMessages(messages)
    made = await model_digest_text(DigestInput.of(host.messages), deps)
    return Summary(message=host.digest(made.text, deps.scope), covered_count=len(messages), cause=made.cause)


async def condense_scope(messages: Sequence[Any], deps: SummarizeDeps | None = None) -> Summary:
    """Call `summarize` with the scope "branch", for an abandoned branch."""
    return await summarize(messages, replace(deps or SummarizeDeps(), scope="branch"))


async def model_digest_text(source: DigestInput, deps: SummarizeDeps) -> DigestText:
    """The digest with its header, written by the model if there is one."""
    complete = deps.complete or _host_completer()
    if deps.model is None or complete is None:
        cause = "no model was given" if deps.model is None else "no completer was given"
        return local_digest_text(source, deps, cause)
    window = max(_LEAST_WINDOW, window_of(deps.model))
    digester = Digester(complete=_Host(complete, deps), model=_name(deps.model), window=window, reply=window)
    return _digest_text(await write_model_digest_async(_digest_request(source, deps), digester, _RETRIES))


def local_digest_text(source: DigestInput, deps: SummarizeDeps, cause: str = "") -> DigestText:
    """The digest with its header, written without a model."""
    return _digest_text(write_local_digest(_digest_request(source, deps), cause=cause))


def quoted_digest_text(source: DigestInput, local: DigestText, max_tokens: int) -> DigestText:
    """A digest that quotes every message, for a list so small that its local digest has only one line below the header.

    The quotations are as long as `max_tokens` allows. If even the shortest quotations do not fit, they are still used.
    If the local digest has two or more lines below its header, or if a message has no text, the local digest is
    returned.
    """
    header, _, body = local.text.partition("\n")
    found = local
    if "\n" in body or not all(message.text for message in source.messages):
        return local
    for chars in _QUOTED_CHARS:
        quoted = "\n".join(f"{each.role}: {_shortened(redact(each.text), chars)}" for each in source.messages)
        found = _escaped(f"{header}\n{quoted}", local.cause)
        if _size(found.text) <= max_tokens:
            break
    return found


def _shortened(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - 1] + "…"


def _digest_text(made: Any) -> DigestText:
    if isinstance(made, FoldRefused):  # not reached: the request asks for a local digest on failure
        return DigestText("", made.cause)
    return _escaped(made.message.text, made.cause)


def _escaped(text: str, cause: str) -> DigestText:
    """The digest with a backslash before each `REQUEST` in its text. `REQUEST` is the line above a quoted user request,
    so without the backslash, the text could look like such a quotation.
    """
    first, _, body = text.partition("\n")
    return DigestText(f"{first}\n{body.replace(REQUEST, chr(92) + REQUEST)}", cause)


def _digest_request(source: DigestInput, deps: SummarizeDeps) -> DigestRequest:
    request: tuple[Message, ...] = (user(source.request),) if source.request else ()
    from_deps = without_header(deps.prior_digest or "").replace(REQUEST, f"\\{REQUEST}")
    prior = "\n\n".join(filter(None, (from_deps, source.prior)))
    covered = sum(map(tokens, source.messages)) + _size(prior)
    cap = max(_LEAST_CAP, min(PRESET.digest_tokens, covered // 2), min(_SECTIONS_CAP, covered - 1))
    return DigestRequest(
        messages=request + source.messages,
        count_tokens=_size,
        max_tokens=max(cap, deps.max_tokens or 0),
        scope=scope_of(deps.scope),
        prompt=sections_prompt(scope_of(deps.scope)),
        prior_digest=prior,
        with_thinking=True,
        min_tokens=0,
        stop_signal=deps.signal,
        plain_list=True,
    )


def _size(text: str) -> int:
    return tokens(user(text))


class _Host:
    """Calls a host's completer with the documented arguments."""

    def __init__(self, complete: CompleteFn, deps: SummarizeDeps) -> None:
        self.complete, self.deps = complete, deps

    async def __call__(self, call: DigesterCall) -> DigesterReply:
        prompt = UserMessage(content=call.text, timestamp=round(time.time() * 1000))
        context = Context(systemPrompt=call.system, messages=[prompt], tools=None)
        options = SimpleStreamOptions(reasoning="high", signal=self.deps.signal, maxTokens=self.deps.max_tokens)
        reply: Any = self.complete(self.deps.model, context, options)
        reply = await reply if isawaitable(reply) else reply
        message = HostMessages([reply]).messages[0]
        if message.role != "assistant":
            raise TypeError(f"the completer returned {type(reply).__name__}, not an assistant message")
        return replace(reply_of(message), error=text_of(pick(reply, "errorMessage")) or "")


def _name(model: Any) -> str:
    return text_of(model) or text_of(pick(model, "id")) or text_of(pick(model, "name"))


def _host_completer() -> CompleteFn | None:
    try:
        found: CompleteFn | None = getattr(import_module(_HOST), "complete_simple", None)
    except ImportError:
        return None
    return found
