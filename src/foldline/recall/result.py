"""What recall returns: passages of a conversation, for the model as text and for programs as values.

found = session.recall("which port does the worker use?")
print(found)                    # the text for the model
for passage in found:           # the best first
    print(passage.handle, [message.text for message in passage.messages])
json.dumps(found.to_dict())
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from foldline.placeholders import OMISSION
from foldline.plan.timeline import handle

NOTHING_FOUND = "Nothing was said about that."
NOT_INDEXED = "Nothing was found, but the newest messages could not be searched now: ask again."
_FIRST_LINE = re.compile(
    r"(?:\[session [^\n]{0,500}\]\n)?[0-9]{0,16}#[1-9][0-9]{0,11} (?:user|assistant|tool|system): "
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledMessage:
    """One message of a passage, or an excerpt of it."""

    position: int
    """Index of the message in its session, counted from 0. In handles, messages are counted from 1."""
    role: str
    text: str
    is_whole: bool
    """Whether `text` is the whole text of the message."""
    is_match: bool = True
    """Whether the message itself matches the query. Other messages are shown because they are close to a match."""

    def to_dict(self) -> dict[str, Any]:
        """The message as JSON values. `message` is the number of the message, counted as in a handle."""
        number = self.position + 1
        return {
            "message": number,
            "role": self.role,
            "text": self.text,
            "whole": self.is_whole,
            "match": self.is_match,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledPassage:
    """Messages of one part of a conversation, in order. Messages between them may be left out."""

    handle: str
    """The handle of all messages of the passage, such as `#120-131`."""
    messages: tuple[RecalledMessage, ...]
    session: str = ""
    """Name of the session if all sessions were searched; else ""."""
    owner: str = ""
    """The owner of the session; "" for the default owner, or if only one session was searched."""

    def __str__(self) -> str:
        mark = self.handle.partition("#")[0]
        head = f"[session {self.session}]\n" if self.session else ""
        return head + "\n".join(f"{mark}{handle(each.position)} {each.role}: {each.text}" for each in self.messages)

    def to_dict(self) -> dict[str, Any]:
        """The passage as JSON values."""
        lines = [message.to_dict() for message in self.messages]
        return {"handle": self.handle, "session": self.session, "lines": lines}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallResult:
    """The passages that a search found, the best first, or the messages that a handle names.

    `str()` returns the text for the model. A result with no passages is false.
    """

    results: tuple[RecalledPassage, ...]
    tokens: int = 0
    """Size of the text for the model."""
    is_complete: bool = True
    """Whether all messages were searched. False if the newest messages could not be indexed."""
    rest: str = ""
    """The handle of the messages that did not fit; "" if there are none. Only for a recall by handle."""

    def __iter__(self) -> Iterator[RecalledPassage]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, at: int) -> RecalledPassage:
        return self.results[at]

    def __str__(self) -> str:
        if self.rest:
            return "\n\n".join([*map(str, self.results), f"[goes on: recall {self.rest}]"])
        return text_of_passages(self.results) if self.results or self.is_complete else NOT_INDEXED

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values: `json.dumps(found.to_dict())`."""
        return {
            "results": [passage.to_dict() for passage in self.results],
            "tokens": self.tokens,
            "complete": self.is_complete,
            "rest": self.rest or None,
        }


def text_of_passages(passages: Sequence[RecalledPassage]) -> str:
    """The text for the model. If a message was shortened, a note says so."""
    if not passages:
        return NOTHING_FOUND
    cut = any(OMISSION in each.text and not each.is_whole for passage in passages for each in passage.messages)
    note = [f"{OMISSION} marks omitted text: recall by handle returns the whole text"] if cut else []
    return "\n\n".join([*map(str, passages), *note])


def is_recall_text(text: str) -> bool:
    """Whether a text was returned by recall. Such a text is not searched, because it repeats what other messages say.

    >>> is_recall_text("#12 user: the port is 8081"), is_recall_text("#12 is the port")
    (True, False)
    """
    return _FIRST_LINE.match(text) is not None or text in (NOTHING_FOUND, NOT_INDEXED)
