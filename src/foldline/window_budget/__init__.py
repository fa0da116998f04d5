"""Window budget: measures a transcript, decides when and where to cut, and replaces the oldest messages by one digest.

    condenser = create_condenser(CondenserDeps(complete=my_completer, model=my_model))
    messages = await condenser(messages)

This package implements a published design (docs/compat.md) with foldline's engine. "Documented" names, constants,
headers and prompts are those of the design. The package deviates from the design if a documented rule would break a
session. For example, it also folds if the newest step is larger than `keep_recent`. If a completer fails, the package
writes a local digest and raises no error. Each digest includes the previous digest. A call is never separated from its
result.
"""

from __future__ import annotations

from foldline.window_budget.budget import (
    budget_limit,
    estimate_message_tokens,
    estimate_tokens,
    is_over_budget,
    plan_slice,
    prefix_tokens,
)
from foldline.window_budget.budget.estimate import estimate_context
from foldline.window_budget.condenser import DEFAULT_POLICY, condense, condense_transcript, create_condenser
from foldline.window_budget.contract import (
    BudgetPolicy,
    CompleteFn,
    CondensePlan,
    Condenser,
    CondenserDeps,
    CondenseScope,
    SummarizeDeps,
    Summary,
    TokenEstimate,
)
from foldline.window_budget.host_messages import CHARS_PER_TOKEN, IMAGE_TOKENS
from foldline.window_budget.messages import (
    AgentMessage,
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    Context,
    CustomMessage,
    ImageBlock,
    Model,
    SimpleStreamOptions,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from foldline.window_budget.summarize import (
    CONDENSER_BRIEF,
    build_summary_prompt,
    condense_scope,
    flatten_transcript,
    summarize,
)

__all__ = [
    "CHARS_PER_TOKEN",
    "CONDENSER_BRIEF",
    "DEFAULT_POLICY",
    "IMAGE_TOKENS",
    "AgentMessage",
    "AssistantMessage",
    "BashExecutionMessage",
    "BranchSummaryMessage",
    "BudgetPolicy",
    "CompactionSummaryMessage",
    "CompleteFn",
    "CondensePlan",
    "CondenseScope",
    "Condenser",
    "CondenserDeps",
    "Context",
    "CustomMessage",
    "ImageBlock",
    "Model",
    "SimpleStreamOptions",
    "SummarizeDeps",
    "Summary",
    "TextBlock",
    "ThinkingBlock",
    "TokenEstimate",
    "ToolCallBlock",
    "ToolResultMessage",
    "Usage",
    "UserMessage",
    "budget_limit",
    "build_summary_prompt",
    "condense",
    "condense_scope",
    "condense_transcript",
    "create_condenser",
    "estimate_context",
    "estimate_message_tokens",
    "estimate_tokens",
    "flatten_transcript",
    "is_over_budget",
    "plan_slice",
    "prefix_tokens",
    "summarize",
]
