"""Sayings: the sentences in talk that bind what comes after: what is wanted, forbidden, decided, or still open.

Found by the words that people use for them in the common languages. A sentence is taken whole and word for word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_NOISE = re.compile(
    r"<(system-reminder|local-command-[a-z]+|ide_[a-z_]+|environment_context|user_instructions|INSTRUCTIONS)>.*?</\1>",
    re.DOTALL,
)
"""What hosts put into the user's message beside what the user said."""
_ECHO = re.compile(r"<command-message>.*?</command-message>", re.DOTALL)
"""The name of a command once more."""
_TAGS = re.compile(r"</?(?:command-(?:name|args)|user_query|task)>")
_TO_THE_HOST = frozenset(
    {
        *("/clear", "/compact", "/config", "/context", "/cost", "/doctor", "/exit", "/help", "/hooks", "/login"),
        *("/logout", "/mcp", "/memory", "/model", "/permissions", "/plugin", "/quit", "/resume", "/status", "/usage"),
    }
)
"""Commands that ask the host for something and not the model."""
_SENTENCE = re.compile(r"(?<=[.!?。！？;；])(?:\s+|(?<=[。！？；]))|\n+")
_CONSTRAINT = re.compile(
    r"\b(?:must|never|always|do not|don't|dont|only|without|avoid|ensure|make sure|should not|shouldn't|cannot|keep"
    r"|prefer|instead of|no longer|required|require|forbidden|at most|at least|exactly"
    r"|nicht|niemals|immer|muss|darf|jamais|toujours|doit|nunca|siempre|debe)\b"
    r"|不要|必须|禁止|务必|不能|必ず|しないで|いけません|반드시|하지 ?마",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\b(?:because|decided|decision|instead of|rather than|chose|root cause|the (?:issue|problem|bug|fix) (?:is|was)"
    r"|turns out|so that|therefore|which means|this means|trade-?off|i'll use|we'll use|let's use|weil|daher)\b"
    r"|因为|决定|所以",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:next|todo|remaining|still (?:need|has|have|to)|left to|follow-?up|not yet|pending|later)\b|\?\s*$"
    r"|下一步|还需要",
    re.IGNORECASE,
)
_LONGEST = 320
_SHORTEST = 12
_REASON = 5
"""Spaces in a sentence that is long enough to hold a reason."""
_BULLET = re.compile(r"^(?:[-*•+]|\d{1,2}[.)])\s+")


def request(text: str) -> str:
    """What the user said to the model, without what the host put around it."""
    said = _TAGS.sub(" ", _ECHO.sub(" ", _NOISE.sub(" ", text))).strip()
    return "" if said in _TO_THE_HOST else said


def constraints(said: str) -> Iterator[str]:
    """Sentences of a request that bind."""
    return _matching(said, _CONSTRAINT)


def decisions(text: str) -> Iterator[str]:
    """Sentences that give a decision or its reason; what only announces one does not."""
    return (said for said in _matching(text, _DECISION) if not said.endswith((":", "?")) and said.count(" ") >= _REASON)


def open_ends(text: str) -> Iterator[str]:
    """The last sentence that says what is to come, or asks."""
    found = list(_matching(text, _OPEN))
    return iter(found[-1:])


def _matching(text: str, pattern: re.Pattern[str]) -> Iterator[str]:
    if not pattern.search(text):
        return
    for sentence in _SENTENCE.split(text):
        said = _BULLET.sub("", sentence.strip()) if sentence else ""
        if _SHORTEST <= len(said) <= _LONGEST and pattern.search(said):
            yield said
