"""Measures how full an agent's window is, from the agent's own events. The meter sets a warning flag and a compaction
flag.

The provider's usage in an assistant event is the number of tokens that were in the window at that call. The usage in a
result event is the sum of all calls of the turn (300k for two calls of 150k). So the usage in a result event is used
only if the stream has no assistant events. Sub-agents have windows of their own and are ignored.

A flag is set when a threshold is reached. The flag stays set until the caller clears it or the agent compacts. The flag
is also reset if a new session starts, or if the stream reports a larger window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from foldline.errors import ConfigError
from foldline.message import Usage
from foldline.watch.agent_events import AgentEvent, RawEvent, dict_at, is_compaction, text_at
from foldline.wire.anthropic.usage import anthropic_usage
from foldline.wire.session_logs.usage import codex_usage

WARN_RATIO, COMPACT_RATIO = 0.70, 0.78
DEFAULT_WINDOW = 200_000
"""Window in tokens if neither the caller, the stream nor the model table gives one."""

_NO_USAGE = Usage()
_MAX_TOKENS = 2**53
_MAX_SESSIONS = 100
"""Maximum number of sessions that are remembered. One stream has far fewer sessions."""


class AgentCompaction(NamedTuple):
    """A compaction, with the figures that the agent reports. A figure that is not reported is None."""

    trigger: str
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSize:
    """Size of a window, and where the figure comes from."""

    tokens: int
    source: str


_UNKNOWN = WindowSize(tokens=DEFAULT_WINDOW, source="default: the model is not known yet")


class _SessionSnapshot(NamedTuple):
    """Measurements of one session."""

    usage: Usage = _NO_USAGE
    used: int = 0
    has_replies: bool = False
    should_warn: bool = False
    should_compact: bool = False
    model: str = ""
    window: WindowSize | None = None
    """The window that the stream named; None if it did not name a window."""


class Meter:
    """Measures one agent's window. The meter is fed with the agent's events one by one."""

    def __init__(
        self,
        *,
        window: int | None = None,
        warn_ratio: float = WARN_RATIO,
        compact_ratio: float = COMPACT_RATIO,
    ) -> None:
        if not 0 < warn_ratio <= compact_ratio:
            raise ConfigError(
                f"impossible thresholds: warning at {warn_ratio:.0%}, compaction at {compact_ratio:.0%}",
                hint="give thresholds above 0; the warning threshold must not be above the compaction threshold",
            )
        self.warn_ratio, self.compact_ratio = warn_ratio, compact_ratio
        self.session = ""
        self.model = ""
        self.usage = _NO_USAGE
        """Usage of the main agent's last call. All figures are 0 before the first call and right after a compaction."""
        self.used = 0
        """Tokens in the window at the last call. Right after a compaction, this is the number of tokens that the agent
        reports; 0 if the agent reports no number.
        """
        self.window = _UNKNOWN
        """The window in tokens: the caller's if given, else the stream's, else the model table's, else the default."""
        self.compactions = 0
        self.last_compaction: AgentCompaction | None = None
        self.should_warn = False
        self.should_compact = False
        self._other_sessions: dict[str, _SessionSnapshot] = {}
        """The measurements of other sessions. Several sessions may alternate in one stream."""
        self._is_window_given = self._is_window_streamed = self._has_replies = False
        if window is not None:
            self.set_window(window)

    @property
    def share(self) -> float:
        """The used share of the window. The share is above 1.0 if a call was larger than the assumed window."""
        return self.used / self.window.tokens

    def figures(self) -> dict[str, Any]:
        """The tokens in the window, the size of the window, and the used share."""
        window = self.window.tokens
        return {"used": self.used, "window": window, "share": round(self.used / window, 4)}

    def set_window(self, tokens: int) -> None:
        """Use the caller's window from now on."""
        if type(tokens) is not int or tokens <= 0:
            raise ConfigError(f"a window of {tokens!r} tokens is impossible", hint="give a whole number above 0")
        self.window, self._is_window_given = WindowSize(tokens=tokens, source="as given"), True

    def feed(self, raw: RawEvent) -> AgentCompaction | None:
        """Take one event. Returns the compaction that the event reports; None if the event reports no compaction."""
        return self.observe(AgentEvent(raw))

    def observe(self, event: AgentEvent) -> AgentCompaction | None:
        """Take one parsed event.

        Returns the compaction that the event reports; None if the event reports no compaction.
        """
        kind = event.kind
        if event.session and event.session != self.session:
            self._switch_session(event.session)
        if kind == "assistant":
            usage = None if event.is_subagent else event.usage
            if usage is not None and (used := usage.prompt):
                if event.message.get("model") != self.model:
                    self._set_model(text_at(event.message, "model"))
                self._has_replies = True
                self._measure(usage, used)
        elif kind == "result":
            self._read_result(event.raw)
        elif kind in ("system", "compacted"):
            return self._read_system(event)
        elif kind in ("event_msg", "turn_context", "session_meta"):
            self._read_codex(kind, dict_at(event.raw, "payload"))
        return None

    def clear_warning(self) -> None:
        """Reset the warning flag."""
        self.should_warn = False

    def clear_compact(self) -> None:
        """Reset the compaction flag."""
        self.should_compact = False

    def _switch_session(self, session: str) -> None:
        """Store the measurements of the current session, and restore the measurements of another session."""
        if self.session and session != self.session:
            window = self.window if self._is_window_streamed else None
            self._other_sessions[self.session] = _SessionSnapshot(
                self.usage, self.used, self._has_replies, self.should_warn, self.should_compact, self.model, window
            )
            if len(self._other_sessions) > _MAX_SESSIONS:
                del self._other_sessions[next(iter(self._other_sessions))]
            snapshot = self._other_sessions.pop(session, _SessionSnapshot(model=self.model))
            self.usage, self.used, self._has_replies, self.should_warn, self.should_compact, self.model, window = (
                snapshot
            )
            self._is_window_streamed = False
            self._look_up_window()
            if window is not None and not self._is_window_given:
                self.window, self._is_window_streamed = window, True
        self.session = session

    def _read_result(self, raw: RawEvent) -> None:
        self._set_streamed_window(_window_of_result(dict_at(raw, "modelUsage"), self.model))
        if not self._has_replies:
            counts = {key: count for key, count in dict_at(raw, "usage").items() if count is not None}
            usage = anthropic_usage({**raw, **counts})
            if usage is not None and usage.prompt:
                self._measure(usage, usage.prompt)

    def _read_system(self, event: AgentEvent) -> AgentCompaction | None:
        raw = event.raw
        if raw.get("subtype") == "init" and text_at(raw, "model"):
            self.model = text_at(raw, "model")
            self._look_up_window()
        if not is_compaction(event):
            return None
        metadata = dict_at(raw, "compact_metadata") or dict_at(raw, "compactMetadata")
        after = _token_count(metadata, "post_tokens", "postTokens")
        self.last_compaction = AgentCompaction(
            text_at(metadata, "trigger") or "unknown", _token_count(metadata, "pre_tokens", "preTokens"), after
        )
        self.compactions += 1
        self.usage, self.used = _NO_USAGE, after or 0
        self.should_warn = self.should_compact = False
        return self.last_compaction

    def _read_codex(self, kind: str, payload: dict[str, Any]) -> None:
        if kind == "session_meta" and text_at(payload, "id"):
            self._switch_session(text_at(payload, "id"))
        elif kind == "turn_context":
            self._set_model(text_at(payload, "model"))
        elif payload.get("type") == "token_count":
            window = _token_count(dict_at(payload, "info"), "model_context_window")
            self._set_streamed_window(
                WindowSize(tokens=window, source="the session's model_context_window") if window else None
            )
            usage = codex_usage(payload)
            if usage is not None and usage.prompt:
                self._measure(usage, usage.prompt)

    def _set_model(self, name: str) -> None:
        """Use the model name of a reply.

        If the known name is the reply's name with the suffix "[1m]", the known name is kept.
        """
        if name and name != self.model and not (self.model.startswith(name) and self.model.endswith("]")):
            self.model = name
            self._look_up_window()

    def _look_up_window(self) -> None:
        """Take the window from the model table, unless the caller or the stream named a window."""
        if not self._is_window_given and not self._is_window_streamed:
            # importing the model table takes longer than most commands
            from foldline.models.table import model  # noqa: PLC0415

            entry = model(self.model) if self.model else None
            self.window = WindowSize(tokens=entry.window, source=entry.source) if entry is not None else _UNKNOWN

    def _set_streamed_window(self, window: WindowSize | None) -> None:
        """Use the window that the stream names, unless the caller gave a window.

        If the window is larger than before, the warning flag and the compaction flag are reset. If its size has
        changed, the thresholds are checked again.
        """
        if window is None or self._is_window_given:
            return
        previous, self.window, self._is_window_streamed = self.window.tokens, window, True
        if window.tokens > previous:
            self.should_warn = self.should_compact = False
        if window.tokens != previous:
            self._update_flags()

    def _measure(self, usage: Usage, used: int) -> None:
        self.usage, self.used = usage, used
        self._update_flags()

    def _update_flags(self) -> None:
        share = self.used / self.window.tokens
        if share >= self.compact_ratio:
            self.should_warn = self.should_compact = True
        elif share >= self.warn_ratio:
            self.should_warn = True


def _window_of_result(models: dict[str, Any], model: str) -> WindowSize | None:
    """The window that a result event names for the current model; None if the event names no window.

    If the event names only one model, the window of this model is used.
    """
    windows = {name: window for name, facts in models.items() if (window := _token_count(facts, "contextWindow"))}
    names = [name for name in windows if name == model or (model and name.startswith(model))]
    if not names and len(windows) == 1:
        names = list(windows)
    return WindowSize(tokens=windows[names[0]], source=f"named by the stream for {names[0]}") if names else None


def _token_count(facts: Any, *keys: str) -> int | None:
    """The first token count above 0 under one of these keys; None if there is none."""
    for key in keys if isinstance(facts, dict) else ():
        count = facts.get(key)
        if type(count) is int and 0 < count <= _MAX_TOKENS:
            return count
    return None
