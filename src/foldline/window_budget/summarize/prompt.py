"""The documented prompt for the digest model: the transcript as text, the system prompt and the user message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foldline.digest import prompt
from foldline.digest.markup import BRANCH, SESSION, DigestScope
from foldline.digest.prompt import CONDENSER_BRIEF, sections_prompt
from foldline.errors import ConfigError
from foldline.window_budget.contract import CondenseScope
from foldline.window_budget.host_messages import HostMessages

__all__ = ["CONDENSER_BRIEF", "build_summary_prompt", "flatten_transcript", "scope_of"]

_SCOPES = {scope.name: scope for scope in (SESSION, BRANCH)}


def scope_of(name: str) -> DigestScope:
    """The scope with this name, "session" or "branch"."""
    if name not in _SCOPES:
        raise ConfigError(f"unknown digest scope {name!r}", hint=f"use one of {', '.join(_SCOPES)}")
    return _SCOPES[name]


def flatten_transcript(messages: Sequence[Any]) -> str:
    """The messages as one text. Each message begins with a mark that shows its role."""
    return prompt.flatten_transcript(HostMessages(messages).messages)


def build_summary_prompt(
    messages: Sequence[Any], scope: CondenseScope = "session", prior_digest: str | None = None
) -> str:
    """The prompt for the digest model."""
    return sections_prompt(scope_of(scope)).write(flatten_transcript(messages), prior_digest=prior_digest or "")
