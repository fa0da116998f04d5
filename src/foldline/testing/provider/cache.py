"""Simulates the providers' prompt caches: what a request reads from the cache, and what it writes.

Anthropic writes entries only at breakpoints, and looks for entries in at most 20 blocks before each breakpoint. OpenAI
and Gemini need no breakpoints: they find the longest known prefix. The clock is an argument, so that a test can let
time pass.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from foldline.testing.provider.anthropic_blocks import blocks_of, nested_blocks
from foldline.testing.provider.prompt_layout import PromptPiece, content_digest

LOOKBACK = 20
SECONDS = {"5m": 300, "1h": 3_600}
STEP = 128
"""The length of a cached prefix at OpenAI is a multiple of this many tokens."""
OPENAI_MINIMUM = 1_024
MAX_ENTRIES = 500_000
"""If the cache has more entries than this, expired entries are removed."""
_MINIMUM = {
    "claude-opus-5": 512,
    "claude-fable-5": 512,
    "claude-mythos-5": 512,
    "claude-opus-4-7": 2_048,
    "claude-mythos-preview": 2_048,
    "claude-3-5-haiku": 2_048,
    "claude-haiku-3-5": 2_048,
    "claude-opus-4-6": 4_096,
    "claude-opus-4-5": 4_096,
    "claude-haiku-4-5": 4_096,
    "gemini-2.5": 2_048,
    "gemini": 4_096,
}
"""The smallest number of tokens that a model's cache stores.

The key is the beginning of the model's name. For other models, the number is 1,024.
"""


def minimum_tokens(model: str) -> int:
    """The smallest prefix that a model's cache stores, in tokens."""
    found = [name for name in _MINIMUM if model.rpartition("/")[2].startswith(name)]
    return _MINIMUM[max(found, key=len)] if found else OPENAI_MINIMUM


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedPrompt:
    """The prompt tokens of a request by price: uncached, read from the cache, written for five minutes or an hour."""

    plain: int
    read: int = 0
    write_5m: int = 0
    write_1h: int = 0

    @property
    def total(self) -> int:
        """All tokens of the prompt."""
        return self.plain + self.read + self.write_5m + self.write_1h


class PromptCache:
    """The cache of one account: the hashes of prefixes, each with the time at which it expires."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._entries: dict[bytes, tuple[float, int]] = {}

    def anthropic(self, model: str, body: Mapping[str, Any], pieces: list[PromptPiece]) -> CachedPrompt:
        """Read and write the cache at the breakpoints of a request to Anthropic."""
        prefixes, sums = _prefixes(model, pieces, _message_settings(body)), _sums(pieces)
        marks = {at: piece.mark for at, piece in enumerate(pieces) if piece.mark}
        if body.get("cache_control") and pieces:
            marks.setdefault(len(pieces) - 1, body["cache_control"].get("ttl", "5m"))
        read_to = self._longest_hit(prefixes, marks)
        now, minimum = self._clock(), minimum_tokens(model)
        written = {"5m": 0, "1h": 0}
        done = sums[read_to] if read_to >= 0 else 0
        for at in sorted(marks):
            if at <= read_to or sums[at] < minimum:
                continue
            seconds = SECONDS[marks[at]]
            self._entries[prefixes[at]] = (now + seconds, seconds)
            written[marks[at]] += sums[at] - done
            done = sums[at]
        self._forget_expired()
        total = sums[-1] if sums else 0
        read = sums[read_to] if read_to >= 0 else 0
        return CachedPrompt(plain=total - done, read=read, write_5m=written["5m"], write_1h=written["1h"])

    def _forget_expired(self) -> None:
        """Remove expired entries if there are many, to limit the memory of a long simulation."""
        if len(self._entries) > MAX_ENTRIES:
            now = self._clock()
            self._entries = {key: entry for key, entry in self._entries.items() if entry[0] > now}

    def _longest_hit(self, prefixes: list[bytes], marks: Mapping[int, str]) -> int:
        """The index of the last piece that is read from the cache; -1 if nothing is read from the cache.

        A hit renews the time to live of the found entry and of the entries for all shorter prefixes. This agrees
        with recorded sessions: hours after the system prompt was written to the cache, the first request after a
        compaction still read the system prompt from the cache.
        """
        now, longest = self._clock(), -1
        for mark in marks:
            for at in range(mark, max(mark - LOOKBACK, -1), -1):
                if self._entries.get(prefixes[at], (0.0, 0))[0] > now:
                    longest = max(longest, at)
                    break
        for prefix in prefixes[: longest + 1]:
            expires, seconds = self._entries.get(prefix, (0.0, 0))
            if expires > now:
                self._entries[prefix] = (now + seconds, seconds)
        return longest

    def automatic(
        self, model: str, pieces: list[PromptPiece], *, minimum: int, seconds: int, step: int = 1
    ) -> CachedPrompt:
        """Read the longest cached prefix and store the prompt. OpenAI and Gemini do this for every request."""
        prefixes, sums = _prefixes(model, pieces, b""), _sums(pieces)
        now, read = self._clock(), 0
        for at in range(len(prefixes) - 1, -1, -1):
            if self._entries.get(prefixes[at], (0.0, 0))[0] > now:
                read = sums[at] // step * step
                break
        total = sums[-1] if sums else 0
        if total >= minimum:
            for prefix in prefixes:
                self._entries[prefix] = (now + seconds, seconds)
        self._forget_expired()
        read = read if read >= minimum else 0
        write = total - read if total >= minimum else 0
        return CachedPrompt(plain=total - read - write, read=read, write_5m=write)


def _message_settings(body: Mapping[str, Any]) -> bytes:
    """A hash of the request settings. If this hash changes, the cached messages are no longer valid.

    The hash covers tool choice, thinking, effort, and whether there are images.
    """
    effort = (body.get("output_config") or {}).get("effort")
    thinking = {key: value for key, value in (body.get("thinking") or {}).items() if key != "block_binding"}
    has_images = any(
        part.get("type") == "image"
        for message in body["messages"]
        for block in blocks_of(message.get("content"))
        for part in (block, *(inner for _place, inner in nested_blocks(block)))
    )
    return content_digest([body.get("tool_choice"), thinking, effort, has_images])


def _prefixes(root: str, pieces: list[PromptPiece], settings: bytes) -> list[bytes]:
    running = hashlib.blake2b(root.encode(), digest_size=16)
    found, in_messages = [], False
    for piece in pieces:
        if piece.level == "messages" and not in_messages:
            in_messages = True
            running.update(settings)
        running.update(piece.digest)
        found.append(running.copy().digest())
    return found


def _sums(pieces: list[PromptPiece]) -> list[int]:
    total, found = 0, []
    for piece in pieces:
        total += piece.tokens
        found.append(total)
    return found
