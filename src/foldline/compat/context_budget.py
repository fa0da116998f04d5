"""Context budget for an agent that runs in another process: token tracking, compaction triggers, working memory.

The orchestrator passes every event of Claude Code's stream to these objects. At the end of each turn, it checks whether
a compaction is due:

    budget, scratch, writer = ContextBudget(), ScratchModel(job="fix the parser"), ScratchWriter(worktree)
    for event in stream:
        budget.update(event)
        scratch.extract(event)
    writer.write_scratch(scratch)
    if budget.should_compact:
        send(build_compact_prompt(task="fix the parser", cfa_state="WORK", scratch_path=".context/scratch.md"))
        budget.clear_compact()
"""

from __future__ import annotations

from typing import Any

from foldline.watch.agent_events import extract_text
from foldline.watch.interventions import build_compact_prompt
from foldline.watch.meter import COMPACT_RATIO, DEFAULT_WINDOW, WARN_RATIO, Meter
from foldline.watch.scratch import ScratchModel
from foldline.watch.scratch_files import ScratchWriter

__all__ = [
    "DEFAULT_COMPACT_THRESHOLD",
    "DEFAULT_CONTEXT_WINDOW",
    "DEFAULT_WARNING_THRESHOLD",
    "ContextBudget",
    "ScratchModel",
    "ScratchWriter",
    "build_compact_prompt",
    "extract_text",
]

DEFAULT_CONTEXT_WINDOW = DEFAULT_WINDOW
DEFAULT_WARNING_THRESHOLD = WARN_RATIO
DEFAULT_COMPACT_THRESHOLD = COMPACT_RATIO


class ContextBudget:
    """Tracks how full an agent's window is, and whether a warning or a compaction is due.

    The thresholds are shares of the window. The compaction threshold may be below the warning threshold. When the
    compaction threshold is reached, `should_warn` and `should_compact` both become true.
    """

    def __init__(
        self,
        context_window: int | None = None,
        warning_threshold: float = DEFAULT_WARNING_THRESHOLD,
        compact_threshold: float = DEFAULT_COMPACT_THRESHOLD,
    ) -> None:
        self.warning_threshold, self.compact_threshold = warning_threshold, compact_threshold
        self.meter = Meter(
            window=context_window,
            warn_ratio=min(warning_threshold, compact_threshold),
            compact_ratio=compact_threshold,
        )

    def update(self, event: Any) -> None:
        """Process one event of the stream. A value that is not a dict is ignored."""
        if isinstance(event, dict):
            self.meter.feed(event)

    @property
    def input_tokens(self) -> int:
        """Uncached input tokens of the last call."""
        return self.meter.usage.input

    @property
    def cache_creation_input_tokens(self) -> int:
        """Input tokens of the last call that were written to the cache."""
        return self.meter.usage.cache_write

    @property
    def cache_read_input_tokens(self) -> int:
        """Input tokens of the last call that were read from the cache."""
        return self.meter.usage.cache_read

    @property
    def used_tokens(self) -> int:
        """Tokens in the window: all input tokens of the last call, cached and uncached.

        Right after a compaction, this is the size that the agent reports for the compacted conversation.
        """
        return self.meter.used

    @property
    def context_window(self) -> int:
        """Window in tokens: the window that the caller set, else the window of the model, else 200,000."""
        return self.meter.window.tokens

    @context_window.setter
    def context_window(self, tokens: int) -> None:
        self.meter.set_window(tokens)

    @property
    def window_source(self) -> str:
        """Where the size of the window comes from."""
        return self.meter.window.source

    @property
    def utilization(self) -> float:
        """Used tokens as a share of the window; can be above 1.0."""
        return self.meter.share

    @property
    def should_warn(self) -> bool:
        """Whether the warning threshold was reached.

        The flag is reset by `clear_warning`, by a compaction and by a new session.
        """
        return self.meter.should_warn

    @property
    def should_compact(self) -> bool:
        """Whether the compaction threshold was reached.

        The flag is reset by `clear_compact`, by a compaction and by a new session.
        """
        return self.meter.should_compact

    def clear_warning(self) -> None:
        """Reset the warning flag."""
        self.meter.clear_warning()

    def clear_compact(self) -> None:
        """Reset the compaction flag and the warning flag."""
        self.meter.clear_compact()
        self.meter.clear_warning()

    def __str__(self) -> str:
        return f"{self.used_tokens:,} of {self.context_window:,} tokens ({self.utilization:.0%}; {self.window_source})"
