"""Sliding window: a fixed token budget for history. When the budget is exceeded, the oldest turns are no longer sent.

The sliding window keeps all messages and a boundary. Messages before the boundary are not sent. The budget is checked
after each completed turn. The newest turn is always sent. A budget of 0 means no limit. Only `rewind` and `clear` move
the boundary back.

    window = SlidingWindow(history_tokens=50_000)
    window.add({"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello!"})
    send(window.request())
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from foldline.compat.caller_messages import CallerMessages, render_list, wire_format_of
from foldline.compat.counters import CountFunction, ExactnessCounter, counter_of
from foldline.compat.text_caps import fit_text
from foldline.digest.checks import reject_summary
from foldline.digest.extract.extraction import extract_facts
from foldline.digest.extract.facts import Facts
from foldline.digest.local import local_digest_text
from foldline.errors import ConfigError
from foldline.fold import Digest, Fold
from foldline.measure.estimator import CHARS_4, Count, Counter, format_tokens
from foldline.measure.message_size import TEXT_ONLY, message_tokens
from foldline.measure.tokenizers import counter_for
from foldline.message import Message, Text, ToolCall, ToolResult, user
from foldline.placeholders import without_handles
from foldline.plan.gate import Load
from foldline.plan.plan import plan
from foldline.plan.timeline import Timeline
from foldline.policy import Policy
from foldline.view.compose import messages_of
from foldline.wire.detect import PLAIN
from foldline.wire.formats import FORMATS

_PRESET = Policy.preset("ikigai")
DEFAULT_HISTORY_TOKEN_LIMIT: int = _PRESET.rules[0].limit or 0
"""The default budget: half of a common window, so that there is room for the system prompt and the summary."""
DIVIDER = "─" * 40
_NO_TOTAL = 10**15
"""The limit of the whole request.

The limit is so large that it never applies, because this design limits only history and summary.
"""

_DETECTABLE = tuple(name for name in FORMATS if name != PLAIN)
"""All formats except `PLAIN`, which is assumed for a message with only a role and a text.

Once one of these formats is detected, all later dicts are read in the detected format.
"""

Summarize = Callable[[Sequence[Any], str], str]
"""A function that returns the new summary.

The function gets two arguments: the messages that are neither sent nor in the summary yet, and the previous summary.
"""

_LOG = logging.getLogger("foldline.sliding_window")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A prompt and all messages up to the next prompt. `print(turn.size)` prints, for example, `~77k`."""

    first: int
    last: int
    size: Count
    live: bool
    """Whether the turn is sent."""
    complete: bool
    """Whether the turn has its final reply."""


class SlidingWindow:
    """One agent's messages, and the boundary: messages before the boundary are not sent."""

    def __init__(
        self,
        history_tokens: int = DEFAULT_HISTORY_TOKEN_LIMIT,
        *,
        summary_tokens: int = 0,
        counter: Counter | CountFunction | None = None,
        model: str = "",
        summarize: Summarize | None = None,
    ) -> None:
        self.messages: list[Any] = []
        """All added messages, unchanged."""
        self.summary = ""
        """The summary of the turns that are no longer sent; "" if the summary has no budget."""
        self._summarize = summarize
        self._summarized: int | None = None
        """Index of the first message that is not in the summary; None before the first summary."""
        self._facts: Facts | None = None
        """The facts of the turns that are no longer sent. The facts are cached, so that no message is read twice."""
        self._format = PLAIN
        self._timeline = Timeline()
        self._estimated = [0]
        self._complete = 0
        self._originals: dict[int, Any] = {}
        self._history_tokens, self._summary_tokens = _cap(history_tokens, "history"), _cap(summary_tokens, "summary")
        self._policy = _policy(self._history_tokens)
        self.use_model(model, counter)

    def add(self, *messages: Any) -> None:
        """Append messages. A reply without calls, or the next prompt, completes a turn."""
        for item in messages:
            caller = CallerMessages(
                [item], self._format if isinstance(item, Mapping) and self._format in _DETECTABLE else None
            )
            message, self._format = caller.messages[0], caller.format
            if message.is_prompt and len(self._timeline) and not self._timeline.messages[-1].is_prompt:
                self.complete_turn()
            self._originals[id(message)] = item
            self.messages.append(item)
            self._append(message)
            if message.role == "assistant" and message.text and not message.calls:
                self.complete_turn()

    def complete_turn(self) -> None:
        """Mark the newest turn as complete. If the history then exceeds its budget, the oldest turns are no longer
        sent.
        """
        self._complete = len(self.messages)
        self._clip()

    def rewind(self, index: int) -> None:
        """Remove the message at an index and all later messages, as if they had not been added.

        If messages before the boundary are removed, the boundary is computed again and the summary is written again.
        """
        if not 0 <= index <= len(self.messages):
            raise ConfigError(f"cannot rewind to message {index}", hint=f"give an index from 0 to {len(self.messages)}")
        kept, fold = self._timeline.messages[:index], self._timeline.fold
        del self.messages[index:]
        self._originals = {id(message): item for message, item in zip(kept, self.messages, strict=True)}
        self._complete = min(self._complete, index)
        if fold is not None and index <= fold.cut:
            fold = None
            self.summary, self._summarized, self._facts = "", None, None
        self._rebuild(kept, fold)
        self._clip()

    def clear(self) -> None:
        """Remove the summary and all messages except the leading system messages."""
        self.rewind(self._timeline.lead)

    def request(self) -> list[Any]:
        """The messages to send: leading system messages, the summary (if any), and the messages after the boundary."""
        return render_list(messages_of(self._timeline, wire_format_of(self._format, ())), self._format, self._originals)

    @property
    def boundary(self) -> int:
        """Index of the first message after the boundary.

        Leading system messages are before the boundary, but they are always sent.
        """
        return self._timeline.cut

    @property
    def divider(self) -> int | None:
        """Index of the message above which a chat can show a dividing line; None if all messages are sent.

        The dividing line separates the messages that are sent from earlier messages.
        """
        return self.boundary if self.boundary > self._timeline.lead else None

    def scrollback(self, line: str = DIVIDER) -> list[Any]:
        """All messages of the chat.

        If some messages are not sent, `line` is inserted after them.
        """
        messages = self.messages[self._timeline.lead :]
        if self.divider is None:
            return messages
        index = self.divider - self._timeline.lead
        return [*messages[:index], line, *messages[index:]]

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Every turn with its size."""
        timeline = self._timeline
        starts = sorted({timeline.lead, *timeline.cuts["turn"]}) if len(timeline) > timeline.lead else []
        return tuple(
            Turn(
                first=first,
                last=after - 1,
                size=self._count(first, after),
                live=first >= timeline.cut,
                complete=after <= self._complete,
            )
            for first, after in pairwise((*starts, len(timeline)))
        )

    @property
    def history(self) -> Count:
        """The size of the history that is sent."""
        return self._count(self.boundary, len(self.messages))

    def budgets(self, system: str = "") -> dict[str, Count]:
        """The sizes of system prompt, history and summary. Only history and summary have a budget."""
        before = self._count(0, self._timeline.lead)
        return {
            "system": self._counter.count(system) + before if system else before,
            "history": self.history,
            "summary": self._counter.count(self.summary),
        }

    @property
    def history_tokens(self) -> int:
        """The budget of the history in tokens; 0 means no limit."""
        return self._history_tokens

    @history_tokens.setter
    def history_tokens(self, tokens: int) -> None:
        self._history_tokens = _cap(tokens, "history")
        self._policy = _policy(self._history_tokens)
        self._clip()

    @property
    def summary_tokens(self) -> int:
        """The budget of the summary in tokens; 0 means no summary."""
        return self._summary_tokens

    @summary_tokens.setter
    def summary_tokens(self, tokens: int) -> None:
        self._summary_tokens = _cap(tokens, "summary")
        self._set_summary(self.summary)

    def use_model(self, model: str, counter: Counter | CountFunction | None = None) -> None:
        """Count all messages again, with `counter` if it is given.

        If `counter` is not given, the tokenizer of the model counts. If the tokenizer is not installed, tokens are
        counted as characters / 4.
        """
        found = counter_of(counter) if counter else counter_for(model)
        self._counter = ExactnessCounter(found if counter or found.exact else CHARS_4)
        self._rebuild(self._timeline.messages, self._timeline.fold)
        self._clip()

    def __str__(self) -> str:
        cap = format_tokens(self.history_tokens, exact=True) if self.history_tokens else "no limit"
        live = sum(turn.live for turn in self.turns)
        return f"{self.history} of {cap}, {live} turns live, {len(self.turns) - live} above the line"

    def _append(self, message: Message) -> None:
        self._counter.all_exact = True
        self._timeline.append(message, self._size(message))
        self._estimated.append(self._estimated[-1] + (not self._counter.all_exact or not _is_text(message)))

    def _size(self, message: Message) -> int:
        return message_tokens(message, self._counter, TEXT_ONLY)

    def _count(self, first: int, after: int) -> Count:
        exact = self._counter.exact and self._estimated[after] == self._estimated[first]
        return Count(self._timeline.prefix[after] - self._timeline.prefix[first], exact, self._counter.name)

    def _clip(self) -> None:
        """Move the boundary past the oldest turns until the remaining turns fit the budget."""
        timeline = self._timeline
        timeline.unanswered.clear()  # a turn is removed as a whole, even if one of its calls has no result
        load = Load(
            request=timeline.prefix[timeline.lead] + timeline.history,
            history=timeline.history,
            count=len(timeline) - timeline.cut,
            usable=_NO_TOTAL,
        )
        made = plan(timeline, load, self._policy, self._size)
        if made.fold is not None:
            timeline.apply(made.fold)
            self._set_summary(self._updated_summary())

    def _updated_summary(self) -> str:
        """The summary of all messages before the boundary."""
        timeline = self._timeline
        if not self._summary_tokens:
            return ""
        if self._summarize is not None:
            return self._callers_summary(self._summarize)
        start = self._facts.end if self._facts is not None else timeline.lead
        self._facts = extract_facts(timeline.messages[start : timeline.cut], start, self._facts)
        text = local_digest_text(
            self._facts,
            max_tokens=self._summary_tokens,
            count_tokens=lambda text: self._counter.count(text).tokens,
            header=_PRESET.digest_header,
        )
        return without_handles(text)

    def _callers_summary(self, summarize: Summarize) -> str:
        """The summary that the caller's function returns.

        If the function fails or returns a text that is no summary, the previous summary stays. After such a failure,
        the next call of the function gets the same messages again.
        """
        timeline = self._timeline
        start = timeline.lead if self._summarized is None else self._summarized
        try:
            text: Any = summarize(self.messages[start : timeline.cut], self.summary)
        except Exception as error:  # noqa: BLE001 (the caller's function may raise anything)
            _LOG.warning("the summary stays as it was: the summarizer raised %s", type(error).__name__)
            return self.summary
        if cause := reject_summary(text):
            _LOG.warning("the summary stays as it was: %s", cause)
            return self.summary
        self._summarized = timeline.cut
        return str(text)

    def _rebuild(self, messages: Iterable[Message], fold: Fold | None) -> None:
        """Build the timeline again, count all messages, and apply the fold."""
        self._timeline, self._estimated = Timeline(), [0]
        for message in messages:
            self._append(message)
        if fold is not None:
            self._timeline.apply(fold)
            self._set_summary(self.summary)

    def _set_summary(self, text: str) -> None:
        """Set the summary, shortened to its budget. The end of the text is kept."""
        self.summary = fit_text(text, self._summary_tokens, "tail", self._counter)
        if self._timeline.fold is not None:
            digest = Digest(message=user(self.summary, kind="digest")) if self.summary else None
            size = self._size(digest.message) if digest else 0
            self._timeline.fold = replace(self._timeline.fold, digest=digest, digest_tokens=size)


def _is_text(message: Message) -> bool:
    """Whether a tokenizer can count every part of the message."""
    inner = (part for result in message.results for part in result.parts)
    return all(isinstance(part, Text | ToolCall | ToolResult) for part in (*message.parts, *inner))


def _policy(cap: int) -> Policy:
    return _PRESET.but(rules=(f"clip when history > {cap}",) if cap else ())


def _cap(tokens: Any, name: str) -> int:
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
        zero = "no limit" if name == "history" else "no summary"
        raise ConfigError(
            f"{name}_tokens must be a whole number of at least 0, not {tokens!r}", hint=f"use 0 for {zero}"
        )
    return tokens
