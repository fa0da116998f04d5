"""Finds what a person wrote: in a message with the user's role, and in the result of a call that a person refused or
answered.

Agent programs put text of their own into messages with the user's role: reminders, notices, the open file, their own
summary of the conversation. The plan, the digest and the watch use the same functions to leave such text out.
"""

from __future__ import annotations

import re

from foldline.message import Message, Text, ToolResult

CLIENT_DIGEST = "This session is being continued"
"""The beginnings of the digests that agent programs write when they compact a conversation."""
_NOT_HUMAN = (
    "<local-command-",
    "<bash-stdout>",
    "<bash-stderr>",
    "<task-notification>",
    "[Request interrupted by user",
    "Caveat: The messages",
    "Base directory for this skill:",
    "<skill>\n<name>",
    "<subagent_notification>",
    "<turn_aborted>",
    "<user_shell_command>",
)
"""The beginnings of texts that have the user's role but were not written by a person."""
_CLIENT_TAG = re.compile(
    r"<(system-reminder|local-command-[a-z]+|ide_[a-z_]+|environment_context|user_instructions|INSTRUCTIONS"
    r"|command-message)>"
)
"""Opening tags of text that agent programs add to the user's message."""
_TAGS_AROUND = re.compile(r"</?(?:command-(?:name|args)|user_query|task|bash-input)>")
"""Tags that agent programs put around the user's own words."""
_INSTRUCTION_FILE = re.compile(r"(?:^|\n)# (?:AGENTS|CLAUDE|GEMINI)\.md instructions(?: for [^\n]*)?(?=\n|$)")
_CLIENT_COMMANDS = frozenset(
    {
        *("/clear", "/compact", "/config", "/context", "/cost", "/doctor", "/exit", "/help", "/hooks", "/ide"),
        *("/login", "/logout", "/mcp", "/memory", "/model", "/permissions", "/plugin", "/quit", "/resume"),
        *("/status", "/usage"),
    }
)
"""Commands that the user gives to the agent program, not to the model."""

_MACHINE_STARTS = (*_NOT_HUMAN, CLIENT_DIGEST, "# AGENTS.md", "# CLAUDE.md", "# GEMINI.md", "/")
"""The beginnings of prompts that may contain only text of the agent program. Every other prompt without tags was
written by a person.
"""

PLAN_TOOL = "ExitPlanMode"
QUESTION_TOOLS = (PLAN_TOOL, "AskUserQuestion")
"""Tools by which the agent asks the user to approve or to choose."""
PLAN_HEADING = "## Approved Plan:"
"""When the user approves a plan, the result may repeat the plan under this heading."""
_REFUSED = "The user doesn't want to "
_COMMENT = "To tell you how to proceed, the user said:"
_COMMENT_CHARS = 10_000
_CORRECTION_CHARS = 300
_CORRECTION = re.compile(
    r"\W{0,4}(?:no|nope|stop|wait|don'?t|do not|never|not|instead|wrong|actually|undo|revert|nein|不)\b", re.IGNORECASE
)
"""Matches the beginning of a prompt that corrects the agent."""
_CORRECTING_WORDS = re.compile(
    r"\b(?:i (?:said|told you|asked)|not what i|that'?s (?:wrong|not)|instead of|must (?:not|never)|correction"
    r"|never|always|we decided|from now on|remember (?:that|to)|(?:do not|don'?t) ever|without asking)\b",
    re.IGNORECASE,
)
_IN_CORRECTING_WORDS = (
    *("i said", "i told", "i asked", "what i", "s wrong", "s not", "instead", "must n", "correction", "ever", "always"),
    *("decided", "from now on", "remember", "without asking"),
)
"""Every match of `_CORRECTING_WORDS` contains one of these words. A search for these words is made first, because it is
faster.
"""
_AFTER_COMMENT, _CLARIFICATION = "\n\nNote: The user's next message may", "The user wants to clarify these questions."
"""The beginnings of two texts. The agent program adds the first text after the user's words, and writes the second text
in place of the user's words.
"""


def human_words(text: str) -> str:
    """What a person wrote in a text with the user's role; "" if the person wrote nothing.

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


def is_human_prompt(message: Message) -> bool:
    """Whether a message is a prompt, and not only text that the agent program added.

    The result is True for a prompt with media. It is also True for a digest that the agent program wrote, because this
    digest replaces earlier prompts.
    """
    if not message.is_prompt:
        return False
    parts = message.parts
    text = parts[0].text if len(parts) == 1 and isinstance(parts[0], Text) else message.text
    if "<" not in text and not text.lstrip().startswith(_MACHINE_STARTS):
        return True  # true for most prompts, so the slower search is skipped
    if any(not isinstance(part, Text | ToolResult) for part in parts):
        return True
    return not text.strip() or is_client_digest(text) or bool(human_words(text))


def is_correction(text: str) -> bool:
    """Whether a prompt corrects the agent, or states a rule for the rest of the work.

    Such a prompt is short. It begins like a correction, or contains words that are typical of a correction or a rule.

    >>> is_correction("No, keep the old names."), is_correction("Please never push."), is_correction("Now test it.")
    (True, True, False)
    """
    if len(text) > _CORRECTION_CHARS:
        return False
    lower = text.lower()
    may_have = any(words in lower for words in _IN_CORRECTING_WORDS)
    return _CORRECTION.match(text) is not None or (may_have and _CORRECTING_WORDS.search(text) is not None)


def is_client_digest(text: str) -> bool:
    """Whether a text is an agent program's own digest of a conversation that it compacted."""
    return text.lstrip().startswith(CLIENT_DIGEST)


def is_refusal(result: str) -> bool:
    """Whether a result says that a person refused the call."""
    return result.startswith(_REFUSED)


def refusal_comment(result: str) -> str:
    r"""The comment of a person who refused a call, taken from the call's result; "" if there is no comment.

    >>> refusal_comment("The user doesn't want to proceed. To tell you how to proceed, the user said:\nnot yet")
    'not yet'
    """
    comment = result[:_COMMENT_CHARS].partition(_COMMENT)[2].partition(_AFTER_COMMENT)[0].strip()
    return "" if comment.startswith(_CLARIFICATION) else comment


def is_command(text: str) -> bool:
    """Whether a text with the user's role is a command to the agent program, such as `/init`.

    The program inserts a prompt of its own after a command.
    """
    return "<command-name>" in text


def user_answer(call: str, result: str) -> tuple[str, str] | None:
    """A person's answer to a question of the agent, and the plan that the person approved.

    Returns None if the tool is not in `QUESTION_TOOLS`. The plan is "" if there is none. `call` is the name of
    the tool, or a text that begins with this name.
    """
    if not call.startswith(QUESTION_TOOLS):
        return None
    answer, _, plan = result.partition(PLAN_HEADING)
    return answer.strip(), plan.strip()
