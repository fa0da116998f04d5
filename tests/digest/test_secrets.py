"""No secret is in a digest, a loss report, a stored fact or a digester's prompt, wherever in a message it is.

The secrets are those of `tests/redact/secrets.jsonl`, one after another in one conversation. It is so long that its
oldest messages are only read in part.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foldline.digest.audit import audit
from foldline.digest.digester import DigestRequest
from foldline.digest.extract.extraction import NEWEST_READ, extract_facts
from foldline.digest.local import write_local_digest
from foldline.digest.prompt import flatten_transcript
from foldline.fold import Digest
from foldline.message import Message, ToolCall, assistant, tool, user
from foldline.redact.redact import redact

CORPUS = Path(__file__).parent.parent / "redact" / "secrets.jsonl"
ROWS = [(row["text"], row["secret"]) for row in map(json.loads, CORPUS.read_text("utf-8").splitlines())]
REST = "\n".join(redact(text) for text, _ in ROWS)
SECRETS = [secret for _, secret in ROWS if len(secret) > 5 and not secret.isalpha() and secret not in REST]
"""The secrets that can be looked for: those that are no word, and that are not harmless in another row."""
FILLER = "The parser reads one line after another and keeps what it needs for later. "
BORDERS = (240, 300, 4_000, 12_000)
"""Lengths at which a text is cut: a line, the words of a call, the agent's words, a prompt."""


def step(number: int, name: str, arguments: object, result: str) -> list[Message]:
    call = ToolCall(id=f"call_{number}", name=name, arguments=json.dumps(arguments, ensure_ascii=False))
    return [assistant("", call), tool(call.id, result)]


def across(text: str, secret: str, border: int) -> str:
    """The text behind so many other words that a border is in the middle of its secret."""
    before = border - text.index(secret) - len(secret) // 2
    return f"{(FILLER * (before // len(FILLER) + 1))[: max(0, before - 1)]}\n{text}"


def placed(number: int, text: str, secret: str) -> list[Message]:
    """Messages with the text of a secret in one place, another place for each number."""
    border = BORDERS[number // 9 % len(BORDERS)]
    places = (
        lambda: [user(text)],
        lambda: [assistant(text), user("Go on.")],
        lambda: step(number, "Bash", {"command": text, "description": text}, "done"),
        lambda: step(number, "Bash", {"command": "make check"}, f"{FILLER}\n{text}\nError: exit status 1"),
        lambda: step(number, "Read", {"file_path": "conf/app.yaml"}, text),
        lambda: step(number, "Edit", {"file_path": "app.py", "old_string": text, "new_string": f"{text}\n"}, "ok"),
        lambda: [user(across(text, secret, border)), assistant(across(text, secret, border))],
        lambda: step(number, "search", {"path": "src", "what": across(text, secret, border)}, "none"),
        lambda: step(number, "search", {"path": "src"}, across(text, secret, border)),
    )
    return places[number % len(places)]()


def conversation(turn: int) -> list[Message]:
    """Every secret of the corpus once, in the place that this turn gives it, and open calls at the end."""
    messages = [user("Look at the settings.")]
    for number, (text, secret) in enumerate(ROWS, start=turn):
        messages += placed(number, text, secret)
    waiting = [json.dumps({"command": text}) for text, _ in ROWS[turn::40]]
    calls = [ToolCall(id=f"open_{place}", name="Bash", arguments=text) for place, text in enumerate(waiting)]
    return [*messages, assistant("", *calls)]


def leaked(shown: str) -> list[str]:
    """The secrets that a text shows, as they are or with the escapes of a string."""
    return [secret for secret in SECRETS if secret in shown or repr(secret)[1:-1] in shown]


@pytest.mark.parametrize("turn", [0, 4, 8])
def test_no_secret_is_in_a_fact_a_digest_or_a_loss_report(turn: int) -> None:
    messages = conversation(turn)
    assert len(messages) > 2 * NEWEST_READ
    facts = extract_facts(messages[100:], 100, extract_facts(messages[:100], 0))
    assert not leaked(repr(facts))
    assert not leaked(repr(audit("", facts)))
    for size in (8_000, 60_000):
        digest = write_local_digest(DigestRequest(messages=[], facts=facts, max_tokens=size, count_tokens=len))
        assert isinstance(digest, Digest)
        assert not leaked(f"{digest.message.text}\n{digest.loss}")


def test_no_secret_is_in_the_transcript_for_a_digester() -> None:
    assert not leaked(flatten_transcript(conversation(2)))
