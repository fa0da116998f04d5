"""The documented prompt for the digest model: the transcript as text, the system prompt and the user message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foldline.digest import prompt
from foldline.digest.prompt import CONDENSER_BRIEF
from foldline.window_budget.contract import CondenseScope
from foldline.window_budget.host_messages import HostMessages

__all__ = ["CONDENSER_BRIEF", "build_summary_prompt", "flatten_transcript"]


def flatten_transcript(messages: Sequence[Any]) -> str:
    """The messages as one text. Each message begins with a mark that shows its role."""
    return prompt.flatten_transcript(HostMessages(messages).messages)


def build_summary_prompt(
    messages: Sequence[Any], scope: CondenseScope = "session", prior_digest: str | None = None
) -> str:
    """The prompt for the digest model."""
    return prompt.build_summary_prompt(HostMessages(messages).messages, scope, prior_digest)
