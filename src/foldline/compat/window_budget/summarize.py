"""How: one digest of some messages, by the model where there is one, else locally. It never fails.

Whatever goes wrong with a model (it raises, times out, says nothing, breaks off, calls a tool) must not cost the user
his session, so the local digest takes its place, and the cause is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from inspect import isawaitable
from typing import Any, NamedTuple

from foldline.compat.window_budget.budget import window_of
from foldline.compat.window_budget.contract import CompleteFn, CondenseScope, SummarizeDeps, Summary
from foldline.compat.window_budget.messages import Context, SimpleStreamOptions, UserMessage
from foldline.compat.window_budget.talk import PRESET, REQUEST, Carried, Talk, headless, tokens
from foldline.digest import prompt
from foldline.digest.digester import Digester, DigesterCall, DigesterReply
from foldline.digest.driver import RetryLimits, write_model_digest_async
from foldline.digest.endpoints import answer_of
from foldline.digest.model_digest import DigestRequest, FoldRefused, write_local_digest
from foldline.digest.prompt import sections
from foldline.digest.scope import scope_of
from foldline.message import Message, user
from foldline.wire.fields import pick, text_of

_HOST = "indusagi.ai"
"""The documented host: its completer is the default one wherever it is installed."""
_LEAST_WINDOW = 16_000
"""No model that is asked for digests reads less; a smaller figure is a host's budget and not the digester's window."""
_LEAST_CAP = 60
"""Room for the header and one line."""
_PATIENCE = RetryLimits(seconds=600.0, attempts=1)
"""A completer is asked once: it has its own retries, and whoever waits has his own deadline."""


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
    complete = deps.complete or _host_completer()
    if deps.model is None or complete is None:
        cause = "no model was given" if deps.model is None else "no completer was given"
        return write_locally(carried, deps, cause)
    window = max(_LEAST_WINDOW, window_of(deps.model))
    digester = Digester(complete=_Host(complete, deps), model=_name(deps.model), window=window, reply=window)
    return _written(await write_model_digest_async(_job(carried, deps), digester, _PATIENCE))


def write_locally(carried: Carried, deps: SummarizeDeps, cause: str = "") -> Written:
    """The digest that needs no model."""
    return _written(write_local_digest(_job(carried, deps), cause=cause))


def _written(made: Any) -> Written:
    if isinstance(made, FoldRefused):  # never here: a list is always folded when it comes to this
        return Written("", made.cause)
    text = made.message.text
    first, _, body = text.partition("\n")
    return Written(f"{first}\n{body.replace(REQUEST, chr(92) + REQUEST)}", made.cause)


def _job(carried: Carried, deps: SummarizeDeps) -> DigestRequest:
    said: tuple[Message, ...] = (user(carried.request),) if carried.request else ()
    prior = _prior(carried, deps)
    covered = sum(map(tokens, carried.said)) + _size(prior)
    return DigestRequest(
        messages=said + carried.said,
        size=_size,
        cap=max(_LEAST_CAP, min(PRESET.digest_tokens, covered // 2), deps.max_tokens or 0),
        scope=scope_of(deps.scope),
        form=sections(scope_of(deps.scope)),
        prior=prior,
        thinking=True,
        least=0,
        signal=deps.signal,
        bare=True,
    )


def _size(text: str) -> int:
    return tokens(user(text))


class _Host:
    """A host's completer, asked in the documented way."""

    def __init__(self, complete: CompleteFn, deps: SummarizeDeps) -> None:
        self.complete, self.deps = complete, deps

    async def __call__(self, ask: DigesterCall) -> DigesterReply:
        """One request."""
        context = Context(systemPrompt=ask.system, messages=[UserMessage(content=ask.text)])
        options = SimpleStreamOptions(reasoning="high", signal=self.deps.signal, maxTokens=self.deps.max_tokens)
        reply: Any = self.complete(self.deps.model, context, options)
        reply = await reply if isawaitable(reply) else reply
        message = Talk([reply]).messages[0]
        if message.role != "assistant":
            raise TypeError(f"the completer gave {type(reply).__name__} and not a reply")
        return replace(answer_of(message), error=text_of(pick(reply, "errorMessage")) or "")


def _name(model: Any) -> str:
    return text_of(model) or text_of(pick(model, "id")) or text_of(pick(model, "name"))


def _prior(carried: Carried, deps: SummarizeDeps) -> str:
    given = headless(deps.prior_digest or "").replace(REQUEST, f"\\{REQUEST}")
    return "\n\n".join(filter(None, (given, carried.prior)))


def _host_completer() -> CompleteFn | None:
    try:
        found: CompleteFn | None = getattr(import_module(_HOST), "complete_simple", None)
    except ImportError:
        return None
    return found
