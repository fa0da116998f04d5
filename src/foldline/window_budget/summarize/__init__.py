"""The documented summarizer: writes one digest of some messages, with or without a model."""

from __future__ import annotations

from foldline.window_budget.contract import AgentMessage, CompleteFn, CondenseScope, SummarizeDeps, Summary
from foldline.window_budget.messages import Model
from foldline.window_budget.summarize.condense import condense_scope, summarize
from foldline.window_budget.summarize.prompt import CONDENSER_BRIEF, build_summary_prompt, flatten_transcript

__all__ = [
    "CONDENSER_BRIEF",
    "AgentMessage",
    "CompleteFn",
    "CondenseScope",
    "Model",
    "SummarizeDeps",
    "Summary",
    "build_summary_prompt",
    "condense_scope",
    "flatten_transcript",
    "summarize",
]
