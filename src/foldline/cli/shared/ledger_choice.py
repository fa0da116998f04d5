"""The options that choose a ledger and a session, and the functions that open the ledger and find the session.

A command that only reads never creates a ledger. If a command chooses the session itself (the session used last), it
prints the name of the session on standard error, so that standard output has only the result.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from foldline import ledger
from foldline.cli.shared.output import printable
from foldline.cli.shared.owner_names import (
    CANDIDATES,
    existing_owner,
    matching_names,
    owned_sessions,
    owner_label,
    owner_prefix,
)
from foldline.cli.shared.settings import Settings, load_settings
from foldline.errors import ConfigError, FoldlineError, InputError
from foldline.ledger import MAIN, Branch, Store
from foldline.ledger.address import check_address, hide_password
from foldline.ledger.records import SessionInfo
from foldline.recall.text_index import TextIndex
from foldline.session import Ledger

DEFAULT_FILE = Path("foldline", "ledger.db")
"""The path of the default ledger, relative to `$XDG_DATA_HOME` (`~/.local/share` if that is not set)."""
WAIT_SECONDS = 10.0
"""Seconds to wait for another writer's lock."""
COMPLETION_WAIT_SECONDS = 1.0
"""Seconds to wait for another writer's lock during shell completion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLocation:
    """The file or address of a ledger, and the owner whose sessions are used. `str()` hides the password."""

    url: str
    owner: str = ""
    source: str = "default"
    """Where the location was set: "flag", "environment", a file's path, or "default"."""

    @property
    def remote(self) -> bool:
        """Whether the ledger is on a server."""
        return "://" in self.url

    @property
    def missing(self) -> bool:
        """Whether the ledger is a file that does not exist."""
        return not self.remote and not Path(self.url).exists()

    def __str__(self) -> str:
        return hide_password(self.url)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionChoice:
    """The session and branch that a command works on."""

    info: SessionInfo
    branch: Branch

    def __str__(self) -> str:
        return self.info.name if self.branch.name == MAIN else f"{self.info.name} (branch {self.branch.name})"


def ledger_location(settings: Settings, environment: Mapping[str, str] | None = None) -> LedgerLocation:
    """The ledger that the settings name. If the settings name no ledger, the default file is used."""
    env = os.environ if environment is None else environment
    url = settings.values["ledger"] or str(_default_file(env))
    check_address(url)
    if url == ":memory:":
        raise ConfigError("a ledger in memory is lost when the command ends", hint="name a file with --ledger")
    if "://" not in url:
        url = str(Path(url).expanduser())
    return LedgerLocation(url=url, owner=settings.values["owner"], source=settings.sources.get("ledger", "default"))


def _default_file(environment: Mapping[str, str]) -> Path:
    base = environment.get("XDG_DATA_HOME") or ""
    if not Path(base).is_absolute():
        home = environment.get("HOME") or os.path.expanduser("~")
        if not Path(home).is_absolute():
            raise ConfigError("no home folder for the default ledger", hint="name a ledger with --ledger")
        base = str(Path(home, ".local", "share"))
    return Path(base) / DEFAULT_FILE


def make_default_folder(location: LedgerLocation) -> None:
    """Make the folder of the default ledger. Has no effect on a ledger that the user has named."""
    if location.source == "default":
        Path(location.url).parent.mkdir(mode=0o700, parents=True, exist_ok=True)


@contextmanager
def open_ledger(
    location: LedgerLocation,
    *,
    create: bool = False,
    wait_s: float | None = None,
    owner_of: Callable[[Store, str], str] = existing_owner,
) -> Iterator[Ledger]:
    """Open a ledger for a `with` block. A missing ledger is created only with `create`.

    `owner_of` finds the owner for the name in the location. The name may be a displayed name, or its beginning.
    """
    wait = WAIT_SECONDS if wait_s is None else wait_s
    if create:
        make_default_folder(location)
    elif location.missing or not ledger.schema_version(location.url, wait_s=wait):
        raise InputError(
            f"there is no ledger at {location}", hint="create one with foldline import FILE, or use --ledger"
        )
    with closing(ledger.open(location.url, index=TextIndex(), wait_s=wait)) as store:
        owner = owner_of(store, location.owner) if location.owner else ""
        with Ledger(ledger.for_owner(store, owner)) as opened:
            yield opened


def choose_session(opened: Ledger, *, session: str | None, branch: str, **_: Any) -> SessionChoice:
    """The session with this name, or the only session whose name begins with this text.

    Without a name, the session used last is chosen. If there are several sessions, this choice is printed on standard
    error.
    """
    infos = opened.sessions()
    if not infos:
        raise no_sessions(opened.store)
    info = infos[0] if session is None else session_by_name(opened.store, infos, session)
    branches = opened.store.branches(info.name)
    tip = next((one for one in branches if one.name == branch), None)
    if tip is None:
        names = ", ".join(printable(one.name) for one in branches)
        raise InputError(f"unknown branch {branch!r} in session {info.name}", hint=f"use one of {names}")
    choice = SessionChoice(info=info, branch=tip)
    if session is None and len(infos) > 1:
        click.echo(f"session {choice}, the last used of {len(infos)}; choose another with --session", err=True)
    return choice


def session_by_name(store: Store, infos: tuple[SessionInfo, ...], name: str) -> SessionInfo:
    """The session with this name, or the only session whose name begins with this text."""
    near = matching_names([info.name for info in infos], name)
    if len(near) == 1:
        return next(info for info in infos if info.name == near[0])
    if near:
        some = ", ".join(near[:CANDIDATES])
        raise InputError(f"{len(near)} sessions begin with {name!r}", hint=f"give more of the name: {some}")
    others = [owned.owner for owned in owned_sessions(store) if owned.info.name.startswith(name)]
    if others:
        owner = owner_label(others[0]) or "''"
        raise InputError(f"session {name!r} belongs to the owner {owner}", hint=f"use --owner {owner} or --all-owners")
    raise unknown_session(name)


def no_sessions(store: Store) -> InputError:
    """The error for an owner without sessions."""
    if others := len(owned_sessions(store)):
        what = f"the ledger has no sessions of the owner {owner_label(store.owner)!r}, but {others:,} of other owners"
        hint = "add --all-owners, or name an owner with --owner; foldline sessions --all-owners lists the owners"
        return InputError(what, hint=hint)
    return InputError("the ledger has no sessions", hint="add one with foldline import FILE")


def find_owner(location: LedgerLocation, session: str | None, *, all_owners: bool) -> LedgerLocation:
    """The location, with the owner whose session is used.

    With `all_owners`, the owner of the session with the name `session` is found. If `session` is None, the owner of the
    session used last is found. Without `all_owners`, the location is returned unchanged.
    """
    if not all_owners:
        return location
    with open_ledger(replace(location, owner="")) as opened:
        owned = owned_sessions(opened.store)
    wanted = matching_names([one.info.name for one in owned], session or "")
    near = [one for one in owned if session is None or one.info.name in wanted]
    found = [one.owner for one in near]
    if session is not None and len(found) > 1:
        if len(set(wanted)) > 1:
            some = ", ".join(f"{owner_prefix(one.owner)}{one.info.name}" for one in near[:CANDIDATES])
            raise InputError(f"{len(near)} sessions begin with {session!r}", hint=f"give more of the name: {some}")
        hint = f"name an owner with --owner: {', '.join(map(owner_label, found[:CANDIDATES]))}"
        raise InputError(f"{len(found)} owners have a session {wanted[0]!r}", hint=hint)
    if session is not None and not found:
        raise unknown_session(session)
    return replace(location, owner=found[0] if found else location.owner)


def unknown_session(name: str) -> InputError:
    """The error for a session name that the ledger does not have."""
    return InputError(f"unknown session {name!r}", hint="list the sessions with foldline sessions")


@contextmanager
def defer_interrupt() -> Iterator[None]:
    """Hold back Ctrl-C until the end of the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if received:
        raise KeyboardInterrupt


class SessionName(click.ParamType[str]):
    """The name of a session. Shell completion offers the sessions of the ledger that the earlier options name."""

    name = "session"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002  # click's signature
        """The sessions whose names begin with `incomplete`; none if the ledger cannot be opened."""
        ledger, owner = ctx.params.get("ledger"), ctx.params.get("owner")
        try:
            location = ledger_location(load_settings(ledger=ledger, owner=owner))
            with open_ledger(location, wait_s=COMPLETION_WAIT_SECONDS) as found:
                return [CompletionItem(info.name) for info in found.sessions() if info.name.startswith(incomplete)]
        except FoldlineError:
            return []


_ledger = click.option("--ledger", metavar="FILE|URL", help="Use the ledger at this path or postgresql:// address.")
_owner = click.option("--owner", metavar="NAME", help="Use the sessions of this owner of the ledger.")
_session = click.option(
    "--session",
    "-s",
    type=SessionName(),
    metavar="NAME",
    help="Use this session; the beginning of its name is enough. Default: the session used last.",
)
_branch = click.option("--branch", default=MAIN, show_default=True, metavar="NAME", help="Use this branch.")
any_owner_option = click.option(
    "--all-owners", is_flag=True, help="Also search other owners' sessions, such as those recorded by foldline serve."
)
all_owners_option = click.option("--all-owners", is_flag=True, help="Include every owner of a shared ledger.")


@contextmanager
def open_stores(location: LedgerLocation, *, all_owners: bool) -> Iterator[list[Store]]:
    """Open the stores of all owners if `all_owners` is True, else only the store of the location's owner."""
    with open_ledger(location) as opened:
        store = opened.store
        yield [ledger.for_owner(store, name) for name in ledger.owners(store)] if all_owners else [store]


def ledger_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--ledger` and `--owner`; the command receives a `LedgerLocation` as `location`."""

    @wraps(command)
    def run(*args: Any, ledger: str | None, owner: str | None, **rest: Any) -> None:
        command(*args, location=ledger_location(load_settings(ledger=ledger, owner=owner)), **rest)

    return raw_ledger_options(run)


def raw_ledger_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--ledger` and `--owner`. The command receives their values unchanged."""
    return _ledger(_owner(command))


def session_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--ledger`, `--owner`, `--all-owners`, `--session` and `--branch`.

    The command receives a `LedgerLocation` as `location`, and the values of `--session` and `--branch` unchanged.
    """

    @wraps(command)
    def run(*args: Any, location: LedgerLocation, session: str | None, all_owners: bool, **rest: Any) -> None:
        found = find_owner(location, session, all_owners=all_owners)
        command(*args, location=found, session=session, **rest)

    return owner_and_session_options(run)


def owner_and_session_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the same options as `session_options`; the command also receives the value of `--all-owners`."""
    return ledger_options(any_owner_option(_session(_branch(command))))
