"""The model features on which the rules for requests depend."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_CLAUDE = re.compile(r"claude-(?:(?P<line>[a-z]+)-)?(?P<major>\d)(?:[-.](?P<minor>\d)(?!\d))?(?:-(?P<late>[a-z]+))?")
_GPT = re.compile(r"gpt-(?P<major>\d+)(?:\.(?P<minor>\d+))?")
_GEMINI = re.compile(r"gemini-(?P<major>\d+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFeatures:
    """What a model accepts. The defaults are the strictest values, which are those of the newest models."""

    prefill: bool = False
    """Whether the conversation may end with an assistant message (Claude before 4.6)."""
    system_messages: bool = True
    """Whether `messages` may hold system messages (Claude since Opus 4.8, not Sonnet 5)."""
    bound_thinking: bool = False
    """Whether a thinking block is valid only if everything before it is unchanged (preserved thinking)."""
    manual_thinking: bool = False
    """Whether `thinking.type` may be `enabled` (Claude before 4.7)."""
    sampling: bool = False
    """Whether temperature, top_p and top_k may be set (Claude before 4.7)."""
    refuses_reply_over_window: bool = False
    """Whether a request is refused if its input plus `max_tokens` exceeds the window (Claude before 4.5)."""
    keeps_thinking: bool = True
    """Whether the thinking of earlier turns stays in the prompt (Opus since 4.5, Sonnet since 4.6, all since 5)."""
    reasoning: bool = False
    """Whether this is a reasoning model of OpenAI."""
    paid_cache_writes: bool = False
    """Whether OpenAI reports and bills cache writes (since GPT-5.6)."""
    thought_signatures: bool = True
    """Whether function calls need a thought signature (Gemini since 3)."""


@lru_cache(maxsize=1024)
def features_of(model: str) -> ModelFeatures:
    """The features of a model by its name, which may have a vendor prefix or a date.

    >>> features_of("claude-sonnet-4-5-20250929").prefill, features_of("claude-opus-5-5").bound_thinking
    (True, True)
    """
    name = model.lower()
    claude, gpt, gemini = _CLAUDE.search(name), _GPT.search(name), _GEMINI.search(name)
    if claude:
        line = claude["line"] or claude["late"] or ""
        version = (int(claude["major"]), int(claude["minor"] or 0))
        return ModelFeatures(
            prefill=version < (4, 6),
            system_messages=version >= (4, 8) and (line, version) != ("sonnet", (5, 0)),
            bound_thinking=version >= ((5, 1) if line in {"fable", "mythos"} else (5, 5)),
            manual_thinking=version < (4, 7),
            sampling=version < (4, 7),
            keeps_thinking=version >= {"opus": (4, 5), "sonnet": (4, 6)}.get(line, (5, 0)),
            refuses_reply_over_window=version < (4, 5),
        )
    if gpt:
        version = (int(gpt["major"]), int(gpt["minor"] or 0))
        return ModelFeatures(reasoning=version >= (5, 0) and "chat" not in name, paid_cache_writes=version >= (5, 6))
    if gemini:
        return ModelFeatures(thought_signatures=int(gemini["major"]) >= 3)
    return ModelFeatures(reasoning=bool(re.match(r"(?:.*/)?o\d", name)))
