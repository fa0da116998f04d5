"""`foldline doctor`: what is installed, what is in force, what cannot work, and how to mend it."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from foldline import __version__
from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import Place, opened, place_of
from foldline.cli.shared.output import console, counted, print_json
from foldline.cli.shared.settings import KEYS, Settings, settings
from foldline.errors import FoldlineError
from foldline.measure.tokenizers import counter_for
from foldline.models.table import ENVIRONMENT as MODELS_FILE
from foldline.models.table import Model, model
from foldline.policy import ENVIRONMENT, Policy, nearest
from foldline.session import Session

OK, NOTE, PROBLEM = "ok", "note", "problem"
MARKS = {OK: ("✓", "green"), NOTE: ("·", "yellow"), PROBLEM: ("✗", "red")}
LEDGER_WAIT_SECONDS = 3.0
DEFAULT_MODEL = "claude-sonnet-4-5"
"""What is looked at where no model is configured."""
_EXTRA = re.compile(r"""extra == ['"]([\w-]+)['"]""")
_NAME = re.compile(r"[\w.-]+")
_OTHER_VARIABLES = ("MODELS", "DATA", "PRESET")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    about: str
    state: str
    says: str
    fix: str = ""


@click.command()
@options.policy_flags
@options.output("One JSON object with every finding.")
def doctor(policy: str | None, model: str | None, window: int | None, as_json: bool) -> None:
    r"""Look at the installation and the configuration, and say what to mend.

    \b
    Example:  foldline doctor
              foldline doctor --model gpt-5 --json
    """
    found = list(examine(policy=policy, model=model, window=window))
    problems = sum(finding.state == PROBLEM for finding in found)
    if as_json:
        print_json({"problems": problems, "findings": [asdict(finding) for finding in found]})
    else:
        _print(found, problems)
    if problems:
        raise click.exceptions.Exit(1)


def examine(**flags: Any) -> Iterator[Finding]:
    """Every finding, in the order in which one would look."""
    yield Finding("foldline", OK, f"{__version__} on Python {platform.python_version()}")
    yield from _extras()
    yield from _variables(os.environ)
    try:
        chosen = settings(**flags)
    except FoldlineError as error:
        yield Finding("configuration", PROBLEM, error.message, error.hint or "mend the setting")
        return
    files = ", ".join(map(str, chosen.files)) or "no file, all defaults"
    yield Finding("configuration", OK, files)
    yield from _guarded("model", lambda: _model(chosen))
    yield from _guarded("policy", lambda: _policy(chosen))
    yield from _guarded("ledger", lambda: _ledger(place_of(chosen)))


def _guarded(about: str, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """What a look finds; what it cannot look at is a finding too."""
    try:
        yield from look()
    except FoldlineError as error:
        yield Finding(about, PROBLEM, error.message, error.hint)


def extras() -> dict[str, list[str]]:
    """The packages that each extra brings, as foldline's own metadata says."""
    found: dict[str, list[str]] = {}
    for line in metadata.requires("foldline") or ():
        extra, name = _EXTRA.search(line), _NAME.match(line)
        if extra and name and name[0] != "foldline" and extra[1] not in ("test", "bench", "all"):
            found.setdefault(extra[1], []).append(name[0])
    return found


def _extras() -> Iterator[Finding]:
    for extra, names in extras().items():
        missing = [name for name in names if _version(name) is None]
        if missing:
            fix = f"pip install 'foldline[{extra}]' if you want it"
            yield Finding(f"extra {extra}", NOTE, f"not installed ({', '.join(missing)})", fix)
        else:
            yield Finding(f"extra {extra}", OK, ", ".join(f"{name} {_version(name)}" for name in names))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _variables(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Variables that look like settings and are none."""
    known = [*(name.upper() for name in (*Policy.__slots__, *KEYS)), *_OTHER_VARIABLES]
    for name in sorted(environment):
        short = name.removeprefix(ENVIRONMENT)
        if name.startswith(ENVIRONMENT) and short not in known:
            yield Finding("environment", NOTE, f"{name} sets nothing", nearest(short, known))
    table = environment.get(MODELS_FILE)
    if table and not Path(table).is_file():
        yield Finding("environment", PROBLEM, f"{MODELS_FILE} names {table}, which is no file", f"unset {MODELS_FILE}")


def _model(chosen: Settings) -> Iterator[Finding]:
    name = chosen.model() or DEFAULT_MODEL
    found = model(name)
    yield Finding("model", NOTE if "default: unknown" in found.source else OK, f"{name}: {found.source}", _told(found))
    counter = counter_for(name, kind=chosen.policy.counter)
    if counter.exact:
        yield Finding("counter", OK, f"{counter.name}, exact")
    elif found.vocabulary and chosen.policy.counter == "model":
        yield Finding(
            "counter",
            NOTE,
            f"{counter.name}: an estimate, though this model could be counted exactly",
            "pip install 'foldline[exact]'",
        )
    else:
        why = "its vocabulary is not public" if chosen.policy.counter == "model" else f"by policy {chosen.name}"
        yield Finding("counter", OK, f"{counter.name}, an estimate ({why}); usage of replies corrects it")
    if found.prices is None:
        fix = f"give them in a table of your own ({MODELS_FILE}), or replays show no cost"
        yield Finding("prices", NOTE, f"not known for {name}", fix)
    else:
        prices = found.prices
        yield Finding(
            "prices", OK, f"${prices.input:g} in, ${prices.read:g} from cache, ${prices.output:g} out a million"
        )


def _told(found: Model) -> str:
    unknown = "default: unknown" in found.source
    return f"check the spelling, or describe it in a table of your own ({MODELS_FILE})" if unknown else ""


def _policy(chosen: Settings) -> Iterator[Finding]:
    policy, name = chosen.policy, chosen.model() or DEFAULT_MODEL
    known, session = model(name), Session(model=name, policy=policy)
    source = chosen.sources.get("window_tokens", "the model table")
    yield Finding("window", OK, f"{session.window:,} from {source}, {session.usable:,} usable")
    if session.usable <= 0:
        yield Finding("policy", PROBLEM, "nothing of the window is usable", "lower reply_tokens or reserve_tokens")
    elif policy.window_tokens and policy.window_tokens > known.window and "default: unknown" not in known.source:
        says = f"window_tokens {policy.window_tokens:,} is more than the {known.window:,} of {name}"
        yield Finding("policy", PROBLEM, says, "lower window_tokens, or name the model you mean")
    else:
        rules = "; ".join(map(str, policy.rules)) or "no rules: it never folds"
        yield Finding("policy", OK, f"{chosen.name}: {rules}")


def _ledger(place: Place) -> Iterator[Finding]:
    """Whether the ledger can be reached, and which tables it has; none is made or changed by asking."""
    from foldline import ledger  # noqa: PLC0415  # only here
    from foldline.ledger.schema import MIGRATIONS  # noqa: PLC0415

    where = str(place) if place.source != "default" else f"{place} (your own)"
    if place.missing:
        folder = next(one for one in Path(place.url).absolute().parents if one.exists())
        near = place.source == "default" or folder == Path(place.url).absolute().parent
        if near and folder.is_dir() and os.access(folder, os.W_OK):
            yield Finding("ledger", OK, f"{where} is not there yet: foldline import makes it")
        else:
            yield Finding("ledger", PROBLEM, f"{where} cannot be made", "make its folder, or name another place")
        return
    found = ledger.schema_version(place.url, wait_s=LEDGER_WAIT_SECONDS)
    known = len(MIGRATIONS)
    if not found:
        yield Finding("ledger", OK, f"{where} can be reached and has no ledger yet: foldline import makes it")
    elif found > known:
        yield Finding("ledger", PROBLEM, f"{where} has schema {found}, this foldline knows {known}", "update foldline")
    elif found < known:
        says = f"{where} has schema {found}, this foldline makes it {known} when it is next used"
        yield Finding("ledger", NOTE, says, "keep a copy if an older foldline uses it too")
    else:
        with opened(place, wait_s=LEDGER_WAIT_SECONDS) as house:
            count = counted(len(house.sessions()), "session")
        yield Finding("ledger", OK, f"{where}: schema {found}, {count}")


def _print(found: list[Finding], problems: int) -> None:
    out = console()
    width = max(len(finding.about) for finding in found)
    for finding in found:
        mark, colour = MARKS[finding.state]
        out.print(
            f"{mark} {finding.about:<{width}}  {finding.says}",
            style=colour if finding.state != OK else None,
            soft_wrap=True,
        )
        if finding.fix:
            out.print(f"  {'':<{width}}  → {finding.fix}", soft_wrap=True)
    out.print(f"\n{counted(problems, 'problem')}" if problems else "\nno problems", style="bold")
