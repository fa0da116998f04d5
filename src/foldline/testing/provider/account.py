"""An account at the simulated provider: everything that depends on earlier requests.

An account judges, counts and bills requests, keeps a prompt cache and stored responses, signs thinking and compaction
blocks, and writes replies. The HTTP server uses accounts; tests can also call an account directly.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from foldline.models.table import Prices
from foldline.testing.provider import anthropic_account, openai_account
from foldline.testing.provider.account_reply import AccountReply, PromptSize, echo
from foldline.testing.provider.billing import Bill, BilledRequest, price
from foldline.testing.provider.cache import OPENAI_MINIMUM, STEP, CachedPrompt, PromptCache, minimum_tokens
from foldline.testing.provider.error_reply import ErrorReply, RequestRefused, format_name
from foldline.testing.provider.gemini_replies import gemini_body, gemini_usage
from foldline.testing.provider.gemini_rules import check_gemini, signatures_of
from foldline.testing.provider.model_features import features_of
from foldline.testing.provider.prompt_layout import PromptPiece, PromptReader
from foldline.testing.provider.script import ScriptedReply
from foldline.testing.provider.seal import Seal
from foldline.testing.provider.token_rules import REPLY_TOKENS, TextCounter
from foldline.testing.provider.window_rules import (
    SimulatedModel,
    check_models,
    check_reply_limit,
    check_window,
    reply_limit,
)

ENDPOINTS = ("create", "count", "compact")
"""The endpoints: create a reply, count the tokens of a prompt, compact a conversation (OpenAI only)."""
AUTOMATIC_SECONDS = 300
OPENAI_SECONDS = 1_800
"""Seconds for which OpenAI keeps a prefix in its cache, since GPT-5.6."""


class Account:
    """One account at a provider.

    `seal` signs the content that the account sends, together with the account's name. Accounts at one provider have the
    same seal, but an account refuses content that was signed with another name. `models` maps each model name to a
    window or a `SimulatedModel`. If `models` is given, all other models are unknown. `counter` counts the tokens of a
    text. With `takes_foreign`, the account accepts signatures and encrypted reasoning that another provider wrote. Use
    `takes_foreign` for recorded histories. `enforces_binding=False` simulates an old account. An old account accepts
    signed thinking even if the messages before the thinking have changed.
    """

    def __init__(  # noqa: PLR0913
        self,
        *,
        name: str = "default",
        models: Mapping[str, int | SimulatedModel] | None = None,
        clock: Callable[[], float] = time.time,
        counter: TextCounter | None = None,
        prices: Mapping[str, Prices] | None = None,
        seal: Seal | None = None,
        takes_foreign: bool = False,
        enforces_binding: bool = True,
        needs_tools: bool = True,
    ) -> None:
        self.name = name
        check_models(models)
        self.models = models
        self.seal = seal or Seal()
        self.takes_foreign = takes_foreign
        self.enforces_binding = enforces_binding
        self.needs_tools = needs_tools
        self.bill = Bill()
        self.reader = PromptReader(counter)
        self.cache = PromptCache(clock)
        self.stored = openai_account.StoredResponses()
        self._prices = prices or {}
        self._replies = 0

    def answer(  # noqa: PLR0913
        self,
        format: str,
        body: Any,
        *,
        betas: Iterable[str] = (),
        model: str = "",
        endpoint: str = "create",
        reply: ScriptedReply | None = None,
    ) -> AccountReply:
        """Judge a request and answer it with `reply`. Without `reply`, the answer repeats the request's last text.

        `model` is needed only for Gemini, because a Gemini request names its model in the address and not in the body.
        """
        name = format_name(format)
        try:
            if name == "anthropic":
                return anthropic_account.answer(self, body, tuple(betas), endpoint, reply)
            if name == "gemini":
                return self._answer_gemini(body, model, endpoint, reply)
            return openai_account.answer(self, name, body, endpoint, reply)
        except RequestRefused as refused:
            return AccountReply(body=refused.reply.body(), error=refused.reply)

    def _answer_gemini(self, body: Any, model: str, endpoint: str, reply: ScriptedReply | None) -> AccountReply:
        check_gemini(body, model=model)
        if not self.takes_foreign and any(self.seal.read(text) is None for text in signatures_of(body)):
            text = "Corrupted thought signature."
            raise RequestRefused(ErrorReply(format="gemini", rule="signature_foreign", message=text))
        self.check_model("gemini", model)
        pieces = self.reader.pieces("gemini", body)
        if endpoint == "count":
            return AccountReply(body={"totalTokens": self.total(pieces)})
        size = self.measure("gemini", model, body, pieces)
        written = reply or ScriptedReply(text=echo(str(body["contents"][-1]["parts"][-1].get("text") or "")))
        thoughts = self.reader.count(written.thinking)
        output = thoughts + self.output_tokens(replace(written, thinking=""))
        signature = self.seal.sign({"thought": model, "account": self.name})
        usage = gemini_usage(size.tokens, output, thoughts)
        return self.charge(model, size.tokens, output, gemini_body(self.next_name(), model, written, signature, usage))

    def next_name(self) -> str:
        """A new name for the next reply. All ids in the reply contain this name."""
        self._replies += 1
        return f"sim{self._replies:06d}"

    def settings(self, model: str) -> SimulatedModel:
        """The settings of a model."""
        found = (self.models or {}).get(model, SimulatedModel())
        return SimulatedModel(window=found) if isinstance(found, int) else found

    def check_model(self, format: str, model: str) -> None:
        """Raise for a model that this account does not have."""
        if self.models is None or model in self.models:
            return
        if format == "anthropic":
            error = ErrorReply(
                format=format, rule="model", message=f"model: {model}", status=404, type="not_found_error"
            )
        elif format == "gemini":
            text = f"models/{model} is not found for API version v1beta, or is not supported for generateContent."
            error = ErrorReply(format=format, rule="model", message=text, status=404)
        else:
            text = f"The model `{model}` does not exist or you do not have access to it."
            error = ErrorReply(format=format, rule="model", message=text, status=404, code="model_not_found")
        raise RequestRefused(error)

    @staticmethod
    def total(pieces: list[PromptPiece]) -> int:
        """The tokens of a prompt."""
        return sum(piece.tokens for piece in pieces) + REPLY_TOKENS

    def measure(self, format: str, model: str, body: Mapping[str, Any], pieces: list[PromptPiece]) -> PromptSize:
        """Count the tokens of a prompt and look up the prompt in the cache.

        Raises `RequestRefused` if the prompt does not fit the window.
        """
        known, limit, total = self.settings(model), reply_limit(format, body), self.total(pieces)
        window = known.window_of(model)
        check_reply_limit(format, model, limit, known.max_output_of(model))
        if known.overflow == "refuse":
            check_window(format, model, total, limit, window)
        elif known.overflow == "truncate" and total > window:
            return PromptSize(tokens=CachedPrompt(plain=window // 2))
        cached = self._cached(format, model, body, pieces)
        tokens = replace(cached, plain=cached.plain + REPLY_TOKENS)
        return PromptSize(tokens=tokens, fills_window=total + limit > window)

    def _cached(self, format: str, model: str, body: Mapping[str, Any], pieces: list[PromptPiece]) -> CachedPrompt:
        if format == "anthropic":
            return self.cache.anthropic(model, body, pieces)
        if format == "gemini":
            minimum, seconds = minimum_tokens(model), AUTOMATIC_SECONDS
            return self.cache.automatic(model, pieces, minimum=minimum, seconds=seconds)
        seconds = OPENAI_SECONDS if features_of(model).paid_cache_writes else AUTOMATIC_SECONDS
        if body.get("prompt_cache_retention") == "24h":
            seconds = 86_400
        return self.cache.automatic(model, pieces, minimum=OPENAI_MINIMUM, seconds=seconds, step=STEP)

    def output_tokens(self, reply: ScriptedReply, ratio: float = 1.0) -> int:
        """The tokens of a reply: the tokens that the account's counter counts, multiplied by `ratio`."""
        texts = (reply.text, reply.thinking, *(f"{name} {arguments}" for name, arguments in reply.calls))
        return max(1, sum(self.reader.model_tokens(text, ratio) for text in texts) + 10 * len(reply.calls))

    def charge(self, model: str, tokens: CachedPrompt, output: int, body: dict[str, Any]) -> AccountReply:
        """Bill a reply and return it."""
        usd = price(model, tokens, output, self._prices)
        self.bill.requests.append(BilledRequest(model=model, prompt=tokens, output=output, usd=usd))
        return AccountReply(body=body, tokens=tokens, output=output, usd=usd)
