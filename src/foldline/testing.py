"""For the tests of those who build on foldline: is this request one that the provider will take?

A request that breaks a provider's grammar is answered with 400, and so is every later one, because the history is sent
again. These helpers hold a request, in whatever form a test has it, against the same rules that foldline holds its own
views against, and say in plain words what is wrong.

    from foldline.testing import assert_sendable

    def test_my_agent_sends_what_anthropic_takes():
        assert_sendable(my_agent.request_body(), "anthropic")
        assert_sendable([{"role": "user", "content": "hello"}], "openai")
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from foldline.errors import ConfigError
from foldline.message import Message
from foldline.wire.codec import PROVIDERS, Rendered, render
from foldline.wire.rules import Violation, check

__all__ = ["Violation", "assert_sendable", "violations"]


def violations(request: Any, provider: str = "") -> tuple[Violation, ...]:
    """Every rule a request breaks: a body, its list of messages, neutral `Message`s, or what `render` gave.

    >>> violations([{"role": "assistant", "content": "hi"}, {"role": "user", "content": "hello"}], "anthropic")[0].code
    'start'
    """
    if isinstance(request, Rendered):
        if provider not in ("", request.provider):
            raise ConfigError(f"rendered for {request.provider}, not for {provider}", hint="leave the provider out")
        return check(request.provider, request.body)
    if not provider:
        raise ConfigError("whose rules?", hint=f"name one of {', '.join(PROVIDERS)}")
    if isinstance(request, Mapping | str) or not isinstance(request, Iterable):
        return check(provider, request)
    elements = list(request)
    if elements and all(isinstance(element, Message) for element in elements):
        return check(provider, render(elements, provider).body)
    return check(provider, elements)


def assert_sendable(request: Any, provider: str = "") -> None:
    """Fail with every broken rule in plain words, and what the provider would answer.

    >>> assert_sendable([{"role": "user", "content": "hello"}], "anthropic")
    """
    __tracebackhide__ = True
    found = violations(request, provider)
    if found:
        name = provider or request.provider
        listed = "\n".join(f"  {violation}" for violation in found)
        raise AssertionError(f"{name} would refuse this request:\n{listed}")
