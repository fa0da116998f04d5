"""`foldline mcp`, called by the client of the protocol's SDK."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

import foldline as library
from foldline import Policy
from support.command import ENTRY, clean, foldline, one_sentence
from support.sessions import anthropic_messages

TOOLS = ["recall", "pin", "fold", "context_left"]


@pytest.fixture
def place(tmp_path: Path) -> str:
    url = str(tmp_path / "agent.db")
    with library.open(url) as ledger:
        ledger.session("other").add({"role": "user", "content": "The secret of the other session is 4711."})
        session = ledger.session("ticket-42", model="gpt-4o", policy=Policy.preset("balanced").but(window_tokens=8_000))
        session.add(*anthropic_messages(8), {"role": "user", "content": "Make it wait."})
    return url


def asked(
    place: str, calls: list[tuple[str, dict[str, Any]]], *options: str
) -> tuple[list[str], list[tuple[str, bool]]]:
    """The tools that are offered, and the answers to some calls, made at the same time."""
    words = [*ENTRY[1:], "mcp", "--ledger", place, "--session", "ticket-42", *options]
    program = StdioServerParameters(command=ENTRY[0], args=words, env=clean())
    answers: dict[int, tuple[str, bool]] = {}

    async def talk() -> list[str]:
        async with Client(program) as client:
            listed = await client.list_tools()

            async def call(number: int, name: str, arguments: dict[str, Any]) -> None:
                made = await client.call_tool(name, arguments)
                answers[number] = ("".join(getattr(part, "text", "") for part in made.content), bool(made.is_error))

            async with anyio.create_task_group() as group:
                for number, (name, arguments) in enumerate(calls):
                    group.start_soon(call, number, name, arguments)
            return [offered.name for offered in listed.tools]

    return anyio.run(talk), [answers[number] for number in range(len(calls))]


@pytest.mark.promise("S1.13")
def test_an_mcp_client_can_recall_pin_measure_and_compact(place: str) -> None:
    """The server answers a call of compact_context; the reader of the stream acts on it."""
    pins = [("pin", {"text": f"rule {number}"}) for number in range(4)]
    offered, answers = asked(
        place,
        [
            ("recall", {"query": "port"}),
            ("recall", {"handle": "#1"}),
            ("recall", {"query": "secret 4711"}),
            ("context_left", {}),
            ("compact_context", {"focus": "the port"}),
            ("recall", {"handle": "; DROP TABLE messages"}),
            ("pin", {"session": "other", "text": "x"}),
            *pins,
        ],
        "--compact",
    )
    assert offered == [*TOOLS, "compact_context"]
    assert "port" in answers[0][0]
    assert answers[1][0].startswith("#1 user")
    assert "4711" not in answers[2][0], "the session is chosen where the server starts"
    assert "tokens are used" in answers[3][0]
    assert answers[4][0] == "Noted: it is done at the end of this turn."
    assert [wrong for _, wrong in answers] == [False] * 5 + [True] * 2 + [False] * 4
    assert all(text.startswith("Pinned #") and "(" not in text for text, _ in answers[7:])
    with library.open(place) as ledger:
        session = ledger.session("ticket-42")
        kept = session.record.snapshot().pins
        texts = [message.text for message in session.record.read(0, len(session.timeline))]
    assert sorted(texts[at] for at in kept.values()) == [f"rule {number}" for number in range(4)], "none was lost"


def test_a_second_fold_over_mcp_changes_nothing(place: str) -> None:
    offered, answers = asked(place, [("fold", {}), ("fold", {}), ("compact_context", {"focus": "the port"})])
    assert offered == TOOLS
    made, nothing = sorted(text for text, wrong in answers if not wrong)
    assert "messages left the view" in made
    assert nothing.startswith("Nothing was folded")
    assert answers[2][1], "what is not offered is no tool"
    with library.open(place) as ledger:
        assert ledger.session("ticket-42").folds == 1


def test_a_fold_reports_the_size_that_is_measured_after_it_and_errors_name_every_tool(place: str) -> None:
    _, ((made, _),) = asked(place, [("fold", {})])
    _, ((left, _), (unknown, is_wrong), (noted, _)) = asked(
        place, [("context_left", {}), ("forget", {}), ("compact_context", {})], "--compact"
    )
    after = made.split("→ ~")[1].split(" ")[0]
    assert left.startswith(f"{after} of ")
    assert is_wrong
    assert "context_left, compact_context" in unknown
    assert noted.startswith("Noted")


def test_without_a_ledger_or_session_the_server_does_not_start(place: str, tmp_path: Path) -> None:
    assert "there is no ledger" in one_sentence(foldline("mcp", "--ledger", str(tmp_path / "none.db")))
    assert "foldline sessions" in one_sentence(foldline("mcp", "--ledger", place, "--session", "none"))


def test_without_a_session_the_server_starts_before_the_conversation_and_follows_it(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": ""}
    program = StdioServerParameters(command=ENTRY[0], args=[*ENTRY[1:], "mcp"], env=clean(**home))
    texts = []

    async def talk() -> None:
        async with Client(program) as client:
            for number in range(3):
                made = await client.call_tool("recall", {"query": "port"})
                texts.append("".join(getattr(part, "text", "") for part in made.content))
                with library.open(tmp_path / ".local" / "share" / "foldline" / "ledger.db") as ledger:
                    words = {"role": "user", "content": f"The port is {7090 + number}."}
                    ledger.session(f"session {number}").add(words, {"role": "user", "content": "Go on."})

    anyio.run(talk)
    assert "nothing is recorded yet" in texts[0]
    assert "7090" in texts[1]
    assert "7091" in texts[2]
    assert "7090" not in texts[2]
