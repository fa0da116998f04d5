"""A sliding window: a fixed budget for history from the start, and whole turns that leave it at its old end.

Nothing is stored here but the messages, all of them, and a boundary: what stands before it is no longer sent. The
budget is checked after each completed turn; the newest turn always stays, a budget of 0 means off, and the boundary
never moves back, so that the line drawn in a chat only moves down.

    window = SlidingWindow(history_tokens=50_000)
    window.add({"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello!"})
    send(window.request())
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from foldline.compat.caller_messages import CallerMessages, render_list, wire_format_of
from foldline.compat.text_caps import fit_text
from foldline.digest.extract.facts import Facts, extract_facts
from foldline.digest.local import local_digest
from foldline.errors import ConfigError
from foldline.fold import Digest
from foldline.measure.estimator import CHARS_4, Count, Counter, human
from foldline.measure.message_size import TEXT_ONLY, message_tokens
from foldline.measure.tokenizers import counter_for
from foldline.message import Message, Text, ToolCall, ToolResult, user
from foldline.plan.gate import Load
from foldline.plan.plan import plan
from foldline.plan.timeline import Timeline
from foldline.policy import Policy
from foldline.view.compose import messages_of
from foldline.wire.detect import PLAIN
from foldline.wire.formats import FORMATS

_PRESET = Policy.preset("ikigai")
DEFAULT_HISTORY_TOKEN_LIMIT: int = _PRESET.rules[0].limit or 0
"""Half of a usual window: with system prompt and summary a request stays well under what the model can take."""
DIVIDER = "─" * 40
_NO_TOTAL = 10**15
"""The sum of system prompt, history and summary is the user's affair."""

_TELLING = tuple(name for name in FORMATS if name != PLAIN)
"""Formats that one message shows and the next, a mere role with a text, may not."""

Summarize = Callable[[Sequence[Any], str], str]
"""The clipped messages since the last time, and the summary so far, to the new summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A prompt with everything up to the next one; `print(turn.size)` is `~77k`."""

    first: int
    last: int
    size: Count
    live: bool
    """Whether it is still sent."""
    complete: bool
    """Whether its reply is there."""


class SlidingWindow:
    """One agent's messages, and the boundary behind which they are sent."""

    def __init__(
        self,
        history_tokens: int = DEFAULT_HISTORY_TOKEN_LIMIT,
        *,
        summary_tokens: int = 0,
        counter: Counter | None = None,
        model: str = "",
        summarize: Summarize | None = None,
    ) -> None:
        self.messages: list[Any] = []
        """Everything that was ever added, as it was given."""
        self.summary = ""
        """What stands for the clipped turns, when it has a budget."""
        self._summarize = summarize
        self._facts: Facts | None = None
        """What the clipped turns hold, so that none is read twice; it follows from them."""
        self._format = PLAIN
        self._timeline = Timeline()
        self._unsure = [0]
        self._complete = 0
        self._originals: dict[int, Any] = {}
        self._history_tokens, self._summary_tokens = _cap(history_tokens, "history"), _cap(summary_tokens, "summary")
        self._policy = _policy(self._history_tokens)
        self.use_model(model, counter)

    def add(self, *messages: Any) -> None:
        """Store messages at the end. A turn is completed by a reply that calls nothing, or by the next prompt."""
        for item in messages:
            caller = CallerMessages(
                [item], self._format if isinstance(item, Mapping) and self._format in _TELLING else None
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
        """The newest turn is complete and stored: clip the oldest ones while history is over its budget."""
        self._complete = len(self.messages)
        self._clip()

    def request(self) -> list[Any]:
        """The messages to send: the summary if there is one, and everything from the boundary on, as it was given."""
        return render_list(messages_of(self._timeline, wire_format_of(self._format, ())), self._format, self._originals)

    @property
    def boundary(self) -> int:
        """Where live context begins: the index of the first message that is sent (system messages apart)."""
        return self._timeline.cut

    @property
    def divider(self) -> int | None:
        """The message above which a chat draws the line; None while the model sees everything."""
        return self.boundary if self.boundary > self._timeline.lead else None

    def scrollback(self, line: str = DIVIDER) -> list[Any]:
        """All messages of the chat with the line drawn: above it is what the model no longer sees."""
        talk = self.messages[self._timeline.lead :]
        if self.divider is None:
            return talk
        place = self.divider - self._timeline.lead
        return [*talk[:place], line, *talk[place:]]

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
        """The size of the live history."""
        return self._count(self.boundary, len(self.messages))

    def budgets(self, system: str = "") -> dict[str, Count]:
        """What the three budgets hold: system prompt, history, summary. Only the last two are capped."""
        before = self._count(0, self._timeline.lead)
        return {
            "system": self._counter.count(system) + before if system else before,
            "history": self.history,
            "summary": self._counter.count(self.summary),
        }

    @property
    def history_tokens(self) -> int:
        """The budget of the history; 0 is off."""
        return self._history_tokens

    @history_tokens.setter
    def history_tokens(self, tokens: int) -> None:
        self._history_tokens = _cap(tokens, "history")
        self._policy = _policy(self._history_tokens)
        self._clip()

    @property
    def summary_tokens(self) -> int:
        """The budget of the summary; 0 is off: clipped turns then leave without replacement."""
        return self._summary_tokens

    @summary_tokens.setter
    def summary_tokens(self, tokens: int) -> None:
        self._summary_tokens = _cap(tokens, "summary")
        self._set_summary(self.summary)

    def use_model(self, model: str, counter: Counter | None = None) -> None:
        """Count as this model does from now on: its own tokenizer where one is installed, else characters by four."""
        found = counter or counter_for(model)
        self._counter = _Doubt(found if counter or found.exact else CHARS_4)
        old, self._timeline, self._unsure = self._timeline, Timeline(), [0]
        for message in old.messages:
            self._append(message)
        if old.fold is not None:
            self._timeline.apply(old.fold)
            self._set_summary(self.summary)
        self._clip()

    def __str__(self) -> str:
        cap = human(self.history_tokens, exact=True) if self.history_tokens else "no limit"
        live = sum(turn.live for turn in self.turns)
        return f"{self.history} of {cap}, {live} turns live, {len(self.turns) - live} above the line"

    def _append(self, message: Message) -> None:
        self._counter.sure = True
        self._timeline.append(message, self._size(message))
        self._unsure.append(self._unsure[-1] + (not self._counter.sure or not _is_text(message)))

    def _size(self, message: Message) -> int:
        return message_tokens(message, self._counter, TEXT_ONLY)

    def _count(self, first: int, after: int) -> Count:
        sure = self._counter.exact and self._unsure[after] == self._unsure[first]
        return Count(self._timeline.prefix[after] - self._timeline.prefix[first], sure, self._counter.name)

    def _clip(self) -> None:
        """Advance the boundary past the oldest turns until the rest is within its budget."""
        timeline, before = self._timeline, self._timeline.cut
        load = Load(
            request=timeline.prefix[timeline.lead] + timeline.history,
            history=timeline.history,
            count=len(timeline) - timeline.cut,
            usable=_NO_TOTAL,
        )
        made = plan(timeline, load, self._policy, self._size)
        if made.fold is not None:
            timeline.apply(made.fold)
            self._set_summary(self._summary_of(before))

    def _summary_of(self, before: int) -> str:
        """The summary after the turns from `before` to the boundary were clipped."""
        timeline = self._timeline
        if not self._summary_tokens:
            return ""
        if self._summarize is not None:
            return self._summarize(self.messages[before : timeline.cut], self.summary)
        start = self._facts.end if self._facts is not None else timeline.lead
        self._facts = extract_facts(timeline.messages[start : timeline.cut], start, self._facts)
        made = local_digest(
            self._facts,
            max_tokens=self._summary_tokens,
            count_tokens=lambda text: self._counter.count(text).tokens,
            header=_PRESET.digest_header,
        )
        return made.message.text

    def _set_summary(self, text: str) -> None:
        """Put a summary in force, under its cap; the newest end stays."""
        self.summary = fit_text(text, self._summary_tokens, "tail", self._counter)
        if self._timeline.fold is not None:
            digest = Digest(message=user(self.summary, kind="digest")) if self.summary else None
            size = self._size(digest.message) if digest else 0
            self._timeline.fold = replace(self._timeline.fold, digest=digest, digest_tokens=size)


class _Doubt:
    """A counter that remembers whether it was ever unsure since `sure` was set."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self.name, self.exact, self.sure = counter.name, counter.exact, True

    def count(self, text: str) -> Count:
        """What the counter says."""
        found = self._counter.count(text)
        self.sure = self.sure and found.exact
        return found


def _is_text(message: Message) -> bool:
    """Whether a tokenizer can count all of it."""
    inner = (part for result in message.results for part in result.parts)
    return all(isinstance(part, Text | ToolCall | ToolResult) for part in (*message.parts, *inner))


def _policy(cap: int) -> Policy:
    """The budget in the engine's words."""
    return _PRESET.but(rules=(f"clip when history > {cap}",) if cap else ())


def _cap(tokens: Any, name: str) -> int:
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
        raise ConfigError(
            f"the budget of the {name} must be a number of tokens, not {tokens!r}", hint="0 switches it off"
        )
    return tokens
