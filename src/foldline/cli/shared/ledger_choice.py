"""Which ledger and which session a command means, said the same way everywhere and opened without surprises.

A command that only reads never makes a ledger, and whatever was not said but chosen (the newest session of several) is
told on standard error, so that a pipe gets nothing but what was asked for.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from foldline import ledger
from foldline.cli.shared.output import safe
from foldline.cli.shared.settings import Settings, settings
from foldline.errors import ConfigError, FoldlineError, InputError
from foldline.ledger import MAIN, Branch, Store
from foldline.ledger.records import SessionInfo
from foldline.recall.text_index import TextIndex
from foldline.session import Ledger

DEFAULT_FILE = Path("foldline", "ledger.db")
"""Below `$XDG_DATA_HOME`, by default `~/.local/share`."""
WAIT_SECONDS = 10.0
"""How long another writer is waited for."""
TAB_SECONDS = 1.0
"""The same for whoever has pressed the tabulator."""
CANDIDATES = 5
"""How many sessions are named where a name fits several."""
_PASSWORD = re.compile(r"(://[^:/@]*):[^@]*@|(?<=[?&]password=)[^&]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a ledger is, and whose part of it is meant."""

    url: str
    owner: str = ""
    source: str = "default"
    """Who said so: a flag, the environment, a file; or nobody."""

    @property
    def remote(self) -> bool:
        """Whether it is on a server."""
        return "://" in self.url

    @property
    def missing(self) -> bool:
        """Whether it is a file that is not there."""
        return not self.remote and not Path(self.url).exists()

    def __str__(self) -> str:
        return _PASSWORD.sub(lambda found: f"{found[1]}:…@" if found[1] else "…", self.url)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The session that a command is about, and one of its branches."""

    info: SessionInfo
    branch: Branch
    others: int = 0
    """How many sessions there are besides, where nobody said which."""

    def __str__(self) -> str:
        return self.info.name if self.branch.name == MAIN else f"{self.info.name} (branch {self.branch.name})"


def place_of(chosen: Settings, environment: Mapping[str, str] | None = None) -> Place:
    """The ledger that the settings name, or else the user's own."""
    env = os.environ if environment is None else environment
    url = chosen.values["ledger"] or str(_default(env))
    if "://" in url and not url.startswith(("postgresql://", "postgres://")):
        raise ConfigError(f"no ledger can be at {Place(url=url)}", hint="name a file or a postgresql:// address")
    if url == ":memory:":
        raise ConfigError("a ledger in memory ends with the command", hint="name a file with --ledger")
    if "://" not in url:
        url = str(Path(url).expanduser())
    return Place(url=url, owner=chosen.values["owner"], source=chosen.sources.get("ledger", "default"))


def _default(environment: Mapping[str, str]) -> Path:
    base = environment.get("XDG_DATA_HOME") or ""
    if not Path(base).is_absolute():
        home = environment.get("HOME") or os.path.expanduser("~")
        if not Path(home).is_absolute():
            raise ConfigError("there is no home to keep a ledger in", hint="name one with --ledger")
        base = str(Path(home, ".local", "share"))
    return Path(base) / DEFAULT_FILE


@contextmanager
def opened(place: Place, *, make: bool = False, wait_s: float | None = None) -> Iterator[Ledger]:
    """The ledger, for as long as the block; made where it is missing only if that is the command's purpose."""
    wait = WAIT_SECONDS if wait_s is None else wait_s
    if make:
        if place.source == "default":
            Path(place.url).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    elif place.missing or not ledger.schema_version(place.url, wait_s=wait):
        raise InputError(
            f"there is no ledger at {place}", hint="foldline import FILE makes one, --ledger names another"
        )
    with Ledger(ledger.open(place.url, owner=place.owner, index=TextIndex(), wait_s=wait)) as found:
        yield found


def pick(found: Ledger, session: str | None, branch: str = MAIN) -> Chosen:
    """The session of a name or of its beginning; without one, the session that was used last."""
    infos = found.sessions()
    if not infos:
        raise InputError("the ledger has no sessions", hint="foldline import FILE adds one")
    info = infos[0] if session is None else _named(infos, session)
    branches = found.store.branches(info.name)
    tip = next((one for one in branches if one.name == branch), None)
    if tip is None:
        names = ", ".join(safe(one.name) for one in branches)
        raise InputError(f"session {info.name} has no branch {branch!r}", hint=f"it has {names}")
    return Chosen(info=info, branch=tip, others=len(infos) - 1 if session is None else 0)


def _named(infos: tuple[SessionInfo, ...], name: str) -> SessionInfo:
    for info in infos:
        if info.name == name:
            return info
    near = [info for info in infos if info.name.startswith(name)]
    if len(near) == 1:
        return near[0]
    if near:
        some = ", ".join(info.name for info in near[:CANDIDATES])
        raise InputError(f"{len(near)} sessions begin with {name!r}", hint=f"say more of the name: {some}")
    raise InputError(f"there is no session {name!r}", hint="foldline sessions lists them")


def told(chosen: Chosen) -> Chosen:
    """The same; where it was one of several, it is said which."""
    if chosen.others:
        click.echo(f"session {chosen}, the one used last of {chosen.others + 1}; --session names another", err=True)
    return chosen


@contextmanager
def unbroken() -> Iterator[None]:
    """What is done in here is done whole: Ctrl-C waits until its end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: asked.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        raise KeyboardInterrupt


class SessionName(click.ParamType[str]):
    """The name of a session, completed from the ledger that the command line names so far."""

    name = "session"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002  # click's signature
        """The sessions whose names begin so; none where the ledger cannot be asked."""
        given = {name: ctx.params.get(name) for name in ("ledger", "owner")}
        try:
            with opened(place_of(settings(**given)), wait_s=TAB_SECONDS) as found:
                return [CompletionItem(info.name) for info in found.sessions() if info.name.startswith(incomplete)]
        except FoldlineError:
            return []


_ledger = click.option(
    "--ledger", metavar="FILE|URL", help="A file, or a postgresql:// address; else the configured one, or your own."
)
_owner = click.option("--owner", metavar="NAME", help="Whose sessions, in a ledger that several share.")
_session = click.option(
    "--session", "-s", type=SessionName(), metavar="NAME", help="A session, or how its name begins; else the last used."
)
_branch = click.option("--branch", default=MAIN, show_default=True, metavar="NAME", help="One of its branches.")


all_owners_option = click.option("--all-owners", is_flag=True, help="Of everybody who shares the ledger.")


def stores_of(found: Ledger, *, all_owners: bool) -> list[Store]:
    """The stores that a command covers: one for each owner, or the one that was opened."""
    return [ledger.for_owner(found.store, name) for name in ledger.owners(found.store)] if all_owners else [found.store]


def owner_prefix(owner: str) -> str:
    """What stands in front of a session's name where sessions of several owners are listed."""
    return f"{safe(owner)}: " if owner else ""


def at_ledger(command: Callable[..., None]) -> Callable[..., None]:
    """`--ledger`, `--owner`: the command gets the `Place` they lead to."""

    @wraps(command)
    def run(*args: Any, ledger: str | None, owner: str | None, **rest: Any) -> None:
        command(*args, place=place_of(settings(ledger=ledger, owner=owner)), **rest)

    return _ledger(_owner(run))


def at_session(command: Callable[..., None]) -> Callable[..., None]:
    """The same with `--session` and `--branch`, as they were given."""
    return at_ledger(_session(_branch(command)))
