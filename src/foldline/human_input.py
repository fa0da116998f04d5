"""Finds what a person wrote: in a message with the user's role, and in the result of a call that a person refused or
answered.

Agent programs put text of their own into messages with the user's role: reminders, notices, the open file, their own
summary of the conversation. The digest and the watch leave these out in the same way.
"""

from __future__ import annotations

import re

CLIENT_DIGEST = "This session is being continued"
"""How an agent program's own digest of a compacted conversation begins."""
_NOT_HUMAN = (
    "<local-command-",
    "<bash-stdout>",
    "<bash-stderr>",
    "<task-notification>",
    "[Request interrupted by user",
    "Caveat: The messages",
    "Base directory for this skill:",
)
"""How texts begin that have the user's role but were not written by a person."""
_CLIENT_TAG = re.compile(
    r"<(system-reminder|local-command-[a-z]+|ide_[a-z_]+|environment_context|user_instructions|INSTRUCTIONS"
    r"|command-message)>"
)
"""Opening tags of text that agent programs add to the user's message."""
_TAGS_AROUND = re.compile(r"</?(?:command-(?:name|args)|user_query|task|bash-input)>")
"""Tags that agent programs put around the user's own words."""
_INSTRUCTION_FILE = re.compile(r"(?:^|\n)# (?:AGENTS|CLAUDE|GEMINI)\.md instructions for [^\n]*")
_CLIENT_COMMANDS = frozenset(
    {
        *("/clear", "/compact", "/config", "/context", "/cost", "/doctor", "/exit", "/help", "/hooks", "/ide"),
        *("/login", "/logout", "/mcp", "/memory", "/model", "/permissions", "/plugin", "/quit", "/resume"),
        *("/status", "/usage"),
    }
)
"""Commands that the user gives to the agent program, not to the model."""

PLAN_TOOL = "ExitPlanMode"
QUESTION_TOOLS = (PLAN_TOOL, "AskUserQuestion")
"""Tools by which the agent asks the user to approve or to choose."""
PLAN_HEADING = "## Approved Plan:"
"""When the user approves a plan, the result may repeat the plan under this heading."""
_REFUSED = "The user doesn't want to "
_COMMENT = "To tell you how to proceed, the user said:"
_COMMENT_CHARS = 10_000
_AFTER_COMMENT, _CLARIFICATION = "\n\nNote: The user's next message may", "The user wants to clarify these questions."
"""The start of a text that the agent program adds after the user's words, and of a text that it writes instead of
them.
"""


def human_words(text: str) -> str:
    """What a person wrote in a text with the user's role; "" if nothing.

    >>> human_words("<system-reminder>be brief</system-reminder>fix it")
    'fix it'
    >>> human_words("[Request interrupted by user]")
    ''
    """
    if text.lstrip().startswith((*_NOT_HUMAN, CLIENT_DIGEST)):
        return ""
    pieces, start, at = [], 0, 0
    unclosed = set[str]()
    while found := _CLIENT_TAG.search(text, at):
        close, at = f"</{found[1]}>", found.end()
        end = -1 if close in unclosed else text.find(close, at)
        if end < 0:
            unclosed.add(close)
        else:
            pieces.append(text[start : found.start()])
            start = at = end + len(close)
    words = " ".join([*pieces, text[start:]]) if pieces else text
    if "</" in words:
        words = _TAGS_AROUND.sub(" ", words)
    words = _INSTRUCTION_FILE.sub("", words).strip()
    return "" if words in _CLIENT_COMMANDS or words.startswith(_NOT_HUMAN) else words


def is_client_digest(text: str) -> bool:
    """Whether a text is an agent program's own digest of a conversation that it compacted."""
    return text.lstrip().startswith(CLIENT_DIGEST)


def is_refusal(result: str) -> bool:
    """Whether a result says that a person refused the call."""
    return result.startswith(_REFUSED)


def refusal_comment(result: str) -> str:
    r"""What a person said when refusing a call, from the call's result; "" if nothing.

    >>> refusal_comment("The user doesn't want to proceed. To tell you how to proceed, the user said:\nnot yet")
    'not yet'
    """
    comment = result[:_COMMENT_CHARS].partition(_COMMENT)[2].partition(_AFTER_COMMENT)[0].strip()
    return "" if comment.startswith(_CLARIFICATION) else comment


def is_command(text: str) -> bool:
    """Whether a text with the user's role is a command to the agent program, whose own text follows as a prompt."""
    return "<command-name>" in text


def user_answer(call: str, result: str) -> tuple[str, str] | None:
    """What a person answered to a question of the agent, and the plan that the person approved; None for other calls.

    `call` is the name of the tool, or a text that begins with it.
    """
    if not call.startswith(QUESTION_TOOLS):
        return None
    answer, _, plan = result.partition(PLAN_HEADING)
    return answer.strip(), plan.strip()
