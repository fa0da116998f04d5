"""Window budget: measure a transcript, decide when and where to cut, replace the head by one digest message.

    condenser = create_condenser(CondenserDeps(complete=my_completer, model=my_model))
    messages = await condenser(messages)

The documented names, constants, headers and prompts, on foldline's engine. It deviates from the documentation where a
documented rule would break a session: a newest step larger than `keep_recent` does not stop folding, a failing
completer gives a local digest instead of an error, the previous digest is included in the next, and a call is never
separated from its result.
"""

from __future__ import annotations

from foldline.compat.window_budget.budget import (
    DEFAULT_POLICY,
    budget_limit,
    estimate_context,
    estimate_message_tokens,
    estimate_tokens,
    is_over_budget,
    plan_slice,
    prefix_tokens,
)
from foldline.compat.window_budget.condenser import condense_transcript, create_condenser
from foldline.compat.window_budget.contract import (
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
from foldline.compat.window_budget.host_messages import CHARS_PER_TOKEN, IMAGE_TOKENS
from foldline.compat.window_budget.messages import (
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
from foldline.compat.window_budget.summarize import (
    build_summary_prompt,
    condense,
    condense_scope,
    flatten_transcript,
    summarize,
)
from foldline.digest.prompt import CONDENSER_BRIEF

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
