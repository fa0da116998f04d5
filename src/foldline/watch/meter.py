"""How full an agent's window is, by its own events: the figure of the last call, the model's window, two latched flags.

The provider's usage on an assistant event is what the window held at that call. A result event adds up all calls of its
turn (two calls of 150k are 300k there), so it counts only in a stream that has no assistant events. A sub-agent fills a
window of its own and counts for nothing here.

A flag says that a line was crossed and nobody has dealt with it. It never falls by itself: the caller clears it, or the
agent compacts, or the session is another one, and then there is nothing left to deal with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from foldline.errors import ConfigError
from foldline.message import Usage
from foldline.watch.agent_events import AgentEvent, RawEvent, dict_at, is_compaction, text_at
from foldline.wire.usage import anthropic_usage, codex_usage

WARN_RATIO, COMPACT_RATIO = 0.70, 0.78
DEFAULT_WINDOW = 200_000
"""Of last resort: where neither the caller, the stream nor the model table knows."""

_NOTHING = Usage()
_LARGEST = 2**53
_SESSIONS = 100
"""How many sessions are remembered: more than ever take turns in one stream."""


class AgentCompaction(NamedTuple):
    """One compaction as the agent reports it; a figure it does not give is None."""

    trigger: str
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSize:
    """How much fits, and who says so."""

    tokens: int
    source: str


_UNKNOWN = WindowSize(tokens=DEFAULT_WINDOW, source="default: the model is not known yet")


class _State(NamedTuple):
    """What is known of one session."""

    usage: Usage = _NOTHING
    used: int = 0
    by_reply: bool = False
    should_warn: bool = False
    should_compact: bool = False
    model: str = ""
    window: WindowSize | None = None
    """As the stream said it."""


class Meter:
    """One agent's occupancy, fed with its events one by one."""

    def __init__(
        self,
        *,
        window: int | None = None,
        warn_ratio: float = WARN_RATIO,
        compact_ratio: float = COMPACT_RATIO,
    ) -> None:
        if window is not None and (type(window) is not int or window <= 0):
            raise ConfigError(f"a window of {window!r} tokens holds nothing", hint="give a whole number above 0")
        if not 0 < warn_ratio <= compact_ratio:
            raise ConfigError(
                f"warning at {warn_ratio:.0%} and compaction at {compact_ratio:.0%} cannot be",
                hint="the warning comes first, and both are above 0",
            )
        self.warn_ratio, self.compact_ratio = warn_ratio, compact_ratio
        self.session = ""
        self.model = ""
        self.usage = _NOTHING
        """What the last call of the main agent reported; nothing before the first and right after a compaction."""
        self.used = 0
        """Tokens in the window at the last call; after a compaction what the agent says is left, until the next one."""
        self.window = WindowSize(tokens=window, source="as given") if window else _UNKNOWN
        """The window: as given, as the stream says, as the model table says, or the default."""
        self.compactions = 0
        self.last_compaction: AgentCompaction | None = None
        self.should_warn = False
        self.should_compact = False
        self._others: dict[str, _State] = {}
        """How things stood in the sessions before, for agents that take turns in one stream."""
        self._is_given, self._is_told = window is not None, False
        self._by_reply = False

    @property
    def share(self) -> float:
        """Occupancy as a share of the window; above 1.0 when the window is smaller than what was sent."""
        return self.used / self.window.tokens

    def figures(self) -> dict[str, Any]:
        """Tokens in the window, its size, and the share."""
        window = self.window.tokens
        return {"used": self.used, "window": window, "share": round(self.used / window, 4)}

    def give_window(self, tokens: int) -> None:
        """Take the caller's word for the window from now on."""
        self.window, self._is_given = WindowSize(tokens=tokens, source="as given"), True

    def feed(self, event: RawEvent) -> AgentCompaction | None:
        """Take one event; the compaction that it reports, if it does."""
        return self.see(AgentEvent(event))

    def see(self, seen: AgentEvent) -> AgentCompaction | None:
        """The same for an event that was read already."""
        kind = seen.kind
        if seen.session and seen.session != self.session:
            self._enter(seen.session)
        if kind == "assistant":
            usage = None if seen.aside else seen.usage
            if usage is not None and (used := usage.prompt):
                if seen.message.get("model") != self.model:
                    self._use_model(text_at(seen.message, "model"))
                self._by_reply = True
                self._measure(usage, used)
        elif kind == "result":
            self._result(seen.event)
        elif kind in ("system", "compacted"):
            return self._system(seen)
        elif kind in ("event_msg", "turn_context", "session_meta"):
            self._codex(kind, dict_at(seen.event, "payload"))
        return None

    def clear_warning(self) -> None:
        """The caller has dealt with the warning."""
        self.should_warn = False

    def clear_compact(self) -> None:
        """The caller has dealt with the compaction."""
        self.should_compact = False

    def _enter(self, session: str) -> None:
        """Another session: what was measured and flagged belongs to the one before, and is there when it comes back."""
        if self.session and session != self.session:
            told = self.window if self._is_told else None
            self._others[self.session] = _State(
                self.usage, self.used, self._by_reply, self.should_warn, self.should_compact, self.model, told
            )
            if len(self._others) > _SESSIONS:
                del self._others[next(iter(self._others))]
            state = self._others.pop(session, _State(model=self.model))
            self.usage, self.used, self._by_reply, self.should_warn, self.should_compact, self.model, told = state
            self._is_told = False
            self._look_up()
            if told is not None and not self._is_given:
                self.window, self._is_told = told, True
        self.session = session

    def _result(self, event: RawEvent) -> None:
        self._tell(_window_told(dict_at(event, "modelUsage"), self.model))
        if not self._by_reply:
            counts = {key: count for key, count in dict_at(event, "usage").items() if count is not None}
            usage = anthropic_usage({**event, **counts})
            if usage is not None and usage.prompt:
                self._measure(usage, usage.prompt)

    def _system(self, seen: AgentEvent) -> AgentCompaction | None:
        event = seen.event
        if event.get("subtype") == "init" and text_at(event, "model"):
            self.model = text_at(event, "model")
            self._look_up()
        if not is_compaction(seen):
            return None
        facts = next(
            (dict_at(event, key) for key in ("compact_metadata", "compactMetadata") if dict_at(event, key)), {}
        )
        after = _count(facts, "post_tokens", "postTokens")
        self.last_compaction = AgentCompaction(
            text_at(facts, "trigger") or "unknown", _count(facts, "pre_tokens", "preTokens"), after
        )
        self.compactions += 1
        self.usage, self.used = _NOTHING, after or 0
        self.should_warn = self.should_compact = False
        return self.last_compaction

    def _codex(self, kind: str, payload: dict[str, Any]) -> None:
        if kind == "session_meta" and text_at(payload, "id"):
            self._enter(text_at(payload, "id"))
        elif kind == "turn_context":
            self._use_model(text_at(payload, "model"))
        elif payload.get("type") == "token_count":
            window = _count(dict_at(payload, "info"), "model_context_window")
            self._tell(WindowSize(tokens=window, source="the session's model_context_window") if window else None)
            usage = codex_usage(payload)
            if usage is not None and usage.prompt:
                self._measure(usage, usage.prompt)

    def _use_model(self, name: str) -> None:
        """A reply names the model without the mark for a larger window that the session was started with."""
        if name and name != self.model and not (self.model.startswith(name) and self.model.endswith("]")):
            self.model = name
            self._look_up()

    def _look_up(self) -> None:
        """Ask the model table, where nobody else has said how large the window is."""
        if not self._is_given and not self._is_told:
            self.window = _of_table(self.model) if self.model else _UNKNOWN

    def _tell(self, window: WindowSize | None) -> None:
        """Take the stream's word for the window, unless the caller gave his; a flag that came of a guess may go."""
        if window is None or self._is_given:
            return
        guessed, self.window, self._is_told = self.window.tokens, window, True
        if window.tokens > guessed:
            self.should_warn = self.should_compact = False
        if window.tokens != guessed:
            self._judge()

    def _measure(self, usage: Usage, used: int) -> None:
        self.usage, self.used = usage, used
        self._judge()

    def _judge(self) -> None:
        share = self.used / self.window.tokens
        if share >= self.compact_ratio:
            self.should_warn = self.should_compact = True
        elif share >= self.warn_ratio:
            self.should_warn = True


def _window_told(models: dict[str, Any], model: str) -> WindowSize | None:
    """The window that a result event names for the model in use, or for the only one there is."""
    named = {name: window for name, facts in models.items() if (window := _count(facts, "contextWindow"))}
    mine = [name for name in named if name == model or (model and name.startswith(model))] or (
        list(named) if len(named) == 1 else []
    )
    return WindowSize(tokens=named[mine[0]], source=f"the stream says so of {mine[0]}") if mine else None


def _of_table(name: str) -> WindowSize:
    from foldline.models.table import model  # noqa: PLC0415  # the table takes longer to read than most commands run

    found = model(name)
    return WindowSize(tokens=found.window, source=found.source)


def _count(facts: Any, *keys: str) -> int | None:
    """A token count above 0 under one of these keys."""
    for key in keys if isinstance(facts, dict) else ():
        found = facts.get(key)
        if type(found) is int and 0 < found <= _LARGEST:
            return found
    return None
