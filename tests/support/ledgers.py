"""Ledgers for tests: fixtures that run a test on both databases, and things to put into them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import foldline
from foldline import ledger
from foldline.fold import Digest, Fold, Loss
from foldline.ledger import Branch, Store
from foldline.message import Message, ToolCall, Usage, assistant, tool, user
from foldline.session import Ledger
from support import postgres

DATABASES = ("sqlite", "postgres")


@pytest.fixture(scope="session")
def admin() -> Iterator[str]:
    """A PostgreSQL server, started when the first test wants it."""
    with postgres.server() as address:
        yield address


@pytest.fixture(scope="session")
def shared_postgres(admin: str) -> Iterator[str]:
    """One database for tests that keep apart by owner."""
    with postgres.database(admin) as address:
        yield address


@pytest.fixture(scope="session")
def cleared_postgres(admin: str) -> Iterator[str]:
    """One database that every test leaves empty."""
    with postgres.database(admin) as address:
        yield address


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where an empty ledger can be made."""
    if request.param == "sqlite":
        yield str(tmp_path / "agent.db")
        return
    address: str = request.getfixturevalue("cleared_postgres")
    yield address
    postgres.clear(address)


@pytest.fixture
def opened(url: str) -> Iterator[Callable[..., Store]]:
    """Opens stores of the ledger at `url`, as many as a test wants, and closes them."""
    with ExitStack() as stack:

        def make(**options: object) -> Store:
            store = ledger.open(url, **options)  # type: ignore[arg-type]  # whatever the test gives
            stack.callback(store.close)
            return store

        yield make


Open = Callable[..., Ledger]


@pytest.fixture
def opens(url: str) -> Iterator[Open]:
    """Opens ledgers as their users do, at one place, and closes them."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(foldline.open(url, **options))


@pytest.fixture
def store(opened: Callable[..., Store]) -> Store:
    return opened()


@pytest.fixture(params=DATABASES)
def ground(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A ledger for property tests: every example is an owner of its own."""
    if request.param == "sqlite":
        return str(tmp_path_factory.mktemp("ledger") / "agent.db")
    address: str = request.getfixturevalue("shared_postgres")
    return address


def texts(store: Store, branch: Branch, start: int = 0) -> list[str]:
    return [stored.message.text for stored in store.read(branch, start=start)]


def turns(count: int, first: int = 0, chars: int = 300) -> list[Message]:
    """Whole turns with a call in each, like no others."""
    return [
        message
        for number in range(first, first + count)
        for message in (
            user(f"question {number} " + "w" * chars),
            assistant("", ToolCall(id=f"c{number}", name="run", arguments="{}")),
            tool(f"c{number}", f"result {number} " + "r" * chars),
            assistant(f"answer {number} " + "a" * chars),
        )
    ]


def turn(number: int) -> tuple[Message, Message]:
    """A short question and a long answer."""
    return user(f"question {number} " + "why " * 100), assistant(f"answer {number} " + "so " * 500)


def talk(*said: str) -> list[Message]:
    return [user(text) if place % 2 == 0 else assistant(text) for place, text in enumerate(said)]


FOLD = Fold(
    cut=2,
    digest=Digest(
        message=user("so far: a, b", kind="digest"),
        by="some-model",
        cause="",
        loss=Loss(facts=3, kept=2, carried=1, missing=("port 8080",), unsourced=("nobody said so",)),
        usage=Usage(input=7, output=3),
    ),
    digest_tokens=12,
    pinned=(0,),
    pinned_tokens=4,
    carried=(1,),
    stubs={3: (tool("c1", "[stub]"), 5)},
    reason="history > 80%",
    made_at=4,
    before=400,
    after=90,
)


def fill_ledger(store: Store) -> None:
    """Two sessions that share a beginning, with branches, folds, pins, jobs and events."""
    main = store.session("s")
    reply = assistant("b" * 2_000)
    store.append(main, [user("a"), reply, user("c"), assistant("d")])
    claim = store.jobs.claim(main, lease_s=60, deadline_s=600, holder="w")
    store.append_fold(main, FOLD, claim=claim)
    store.pin(main, "first", 0)
    store.unfold(main)
    store.append_fold(main, FOLD)
    side = store.fork(main, "side", at=3)
    store.append(side, talk("x", "y"))
    store.event(main, "warned", {"left": 7})
    other = store.session("t")
    store.append(other, [user("a"), reply, user("other")])
    store.append(other, [user("a"), reply], at=0)
    store.append(main, [user("e")])
    store.move(other, 1)
    store.append(other, [assistant("again")])
