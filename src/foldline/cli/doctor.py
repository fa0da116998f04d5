"""`foldline doctor`: check the installation and the configuration."""

from __future__ import annotations

import operator
import os
import platform
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from foldline import __version__
from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import LedgerLocation, ledger_location, open_ledger, raw_ledger_options
from foldline.cli.shared.output import console, line_printer, plural, print_json
from foldline.cli.shared.settings import KEYS, Settings, load_settings
from foldline.errors import FoldlineError, extra_hint
from foldline.measure.tokenizers import counter_for
from foldline.models.table import ENVIRONMENT as MODELS_FILE
from foldline.models.table import model
from foldline.policy import ENVIRONMENT, Policy, suggest_name
from foldline.session import Session

OK, NOTE, PROBLEM = "ok", "note", "problem"
MARKS = {OK: ("✓", None), NOTE: ("·", "yellow"), PROBLEM: ("✗", "red")}
LEDGER_WAIT_SECONDS = 3.0
DEFAULT_MODEL = "claude-sonnet-4-5"
"""The model that is checked when none is configured."""
LEAST_USABLE = 1_000
"""A usable window with fewer tokens is reported as a problem."""
_EXTRA_MARK = "extra "
"""Prefix of `Finding.about` in the findings about extras, such as `extra proxy`."""
_EXTRA = re.compile(r"""extra == ['"]([\w-]+)['"]""")
_NAME = re.compile(r"[\w.-]+")
_LIMIT = re.compile(r"(>=|<=|<|>)\s*(\d[\w.]*)")
_RELEASE = re.compile(r"[\d.]*")
_DIGITS = re.compile(r"\d+")
_COMPARE = {">=": operator.ge, "<=": operator.le, "<": operator.lt, ">": operator.gt}
_NO_LIMIT = 1 << 20
"""Line width for output that is not a terminal: so large that no line is wrapped."""
_OTHER_VARIABLES = ("MODELS", "DATA", "PRESET")


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    about: str
    state: str
    says: str
    fix: str = ""


@click.command()
@options.raw_policy_options
@raw_ledger_options
@options.output_options("Print one JSON object with every finding.")
def doctor(as_json: bool, **flags: Any) -> None:
    r"""Check the installation and the configuration, and say how to fix problems.

    \b
    Example:  foldline doctor
              foldline doctor --model gpt-5 --json
              foldline doctor --ledger agent.db
    """
    found = [*examine(**flags), *_extras()]
    problems = sum(finding.state == PROBLEM for finding in found)
    if as_json:
        print_json({"problems": problems, "findings": [asdict(finding) for finding in found]})
    else:
        _print(found, problems)
    if problems:
        raise click.exceptions.Exit(1)


def examine(**flags: Any) -> Iterator[Finding]:
    """The findings of all checks except the check of the extras."""
    yield Finding("foldline", OK, f"{__version__} on Python {platform.python_version()}")
    yield from _variables(os.environ)
    try:
        settings = load_settings(**flags)
    except FoldlineError as error:
        yield Finding("configuration", PROBLEM, error.message, error.hint or "correct the setting")
        return
    files = ", ".join(map(str, settings.files)) or "no configuration file, all defaults"
    yield Finding("configuration", OK, files)
    yield from _checked("model", lambda: _model(settings))
    yield from _checked("policy", lambda: _policy(settings))
    yield from _checked("ledger", lambda: _ledger(ledger_location(settings)))


def _checked(about: str, check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """The findings of a check. If the check raises a `FoldlineError`, the error is reported as a problem."""
    try:
        yield from check()
    except FoldlineError as error:
        yield Finding(about, PROBLEM, error.message, error.hint)


def extras() -> dict[str, dict[str, str]]:
    """The packages of each extra with their version ranges, from foldline's metadata."""
    found: dict[str, dict[str, str]] = {}
    for line in metadata.requires("foldline") or ():
        extra, name = _EXTRA.search(line), _NAME.match(line)
        if extra and name and name[0] != "foldline" and extra[1] not in ("test", "bench", "all"):
            found.setdefault(extra[1], {})[name[0]] = ",".join("".join(limit) for limit in limits_of(line))
    return found


def limits_of(requirement: str) -> list[tuple[str, str]]:
    """The limits in a requirement, each as operator and version.

    >>> limits_of("langchain<2,>=1.4; extra == 'langchain'")
    [('<', '2'), ('>=', '1.4')]
    """
    return _LIMIT.findall(requirement.partition(";")[0])


def is_supported(version: str, limits: str) -> bool:
    """Whether a version is within the limits.

    >>> is_supported("1.3.9", "<2,>=1.4"), is_supported("1.4.7", "<2,>=1.4")
    (False, True)
    """
    installed = _numbers(version)
    return all(_COMPARE[sign](installed, _numbers(limit)) for sign, limit in limits_of(limits))


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version, without zeros at its end and without a suffix such as `rc1`."""
    release = _RELEASE.match(version)
    numbers = [int(part) for part in _DIGITS.findall(release[0] if release else "")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def _extras() -> Iterator[Finding]:
    for extra, names in extras().items():
        missing = [name for name in names if _version(name) is None]
        wrong = [name for name in names if name not in missing and not is_supported(_version(name) or "", names[name])]
        if missing:
            yield Finding(f"{_EXTRA_MARK}{extra}", NOTE, f"not installed ({', '.join(missing)})", extra_hint(extra))
        elif wrong:
            says = ", ".join(f"{name} {_version(name)} is not supported, only {names[name]}" for name in wrong)
            yield Finding(f"{_EXTRA_MARK}{extra}", PROBLEM, says, extra_hint(extra))
        else:
            yield Finding(f"{_EXTRA_MARK}{extra}", OK, ", ".join(f"{name} {_version(name)}" for name in names))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _variables(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Problems with FOLDLINE_ environment variables."""
    known = [*(name.upper() for name in (*Policy.__slots__, *KEYS)), *_OTHER_VARIABLES]
    for name in sorted(environment):
        short = name.removeprefix(ENVIRONMENT)
        if name.startswith(ENVIRONMENT) and short not in known:
            yield Finding("environment", NOTE, f"{name} is not a setting", suggest_name(short, known))
    table = environment.get(MODELS_FILE)
    if table and not Path(table).is_file():
        says = f"{MODELS_FILE} names {table}, which does not exist"
        yield Finding("environment", PROBLEM, says, f"unset {MODELS_FILE}")


def _model(settings: Settings) -> Iterator[Finding]:
    name = settings.model() or DEFAULT_MODEL
    found = model(name)
    if not settings.model():
        says = f"not set; the next checks are for {name}: {found.source}"
        yield Finding("model", NOTE, says, "name your model with --model, or in foldline.toml")
    elif "default: unknown" in found.source:
        fix = f"check the spelling, or add it to a model table of your own ({MODELS_FILE})"
        yield Finding("model", NOTE, f"{name}: {found.source}", fix)
    else:
        yield Finding("model", OK, f"{name}: {found.source}")
    counter = counter_for(name, kind=settings.policy.counter)
    if counter.exact:
        yield Finding("counter", OK, f"{counter.name}, exact")
    elif found.vocabulary and settings.policy.counter == "model":
        says = f"{counter.name}: an estimate; this model can be counted exactly"
        yield Finding("counter", NOTE, says, extra_hint("exact"))
    else:
        why = "its vocabulary is not public" if found.vendor else "the model is unknown"
        why = why if settings.policy.counter == "model" else f"by policy {settings.name}"
        yield Finding("counter", OK, f"{counter.name} ({why}), corrected by reported usage")
    if found.prices is None:
        fix = f"add them in a model table of your own ({MODELS_FILE}); replays show no cost without them"
        yield Finding("prices", NOTE, f"unknown for {name}", fix)
    else:
        prices = found.prices
        says = f"${prices.input:g} in, ${prices.read:g} from cache, ${prices.output:g} out per million tokens"
        yield Finding("prices", OK, says)


def _policy(settings: Settings) -> Iterator[Finding]:
    policy, name = settings.policy, settings.model() or DEFAULT_MODEL
    known, session = model(name), Session(model=name, policy=policy)
    source = settings.sources.get("window_tokens", "the model table" if known.is_window_known else "")
    origin = f"from {source}" if source else "by default, because the model is unknown"
    fix = "" if source else "set the window with --window, or window_tokens in foldline.toml"
    says = f"{session.window:,} {origin}, {session.usable:,} usable"
    yield Finding("window", OK if source else NOTE, says, fix)
    if session.usable <= 0:
        yield Finding("policy", PROBLEM, "the usable window is empty", "lower reply_tokens or reserve_tokens")
    elif session.usable < LEAST_USABLE:
        says = f"{session.usable:,} usable tokens are too few for a system prompt, a digest and a message"
        yield Finding("policy", PROBLEM, says, f"raise the window: at least {LEAST_USABLE:,} tokens must be usable")
    elif policy.window_tokens and policy.window_tokens > known.window and "default: unknown" not in known.source:
        says = f"window_tokens is {policy.window_tokens:,}, but {name} has a window of {known.window:,}"
        yield Finding("policy", PROBLEM, says, "lower window_tokens, or choose another model")
    else:
        rules = "; ".join(map(str, policy.rules)) or "no rules, so it never folds"
        yield Finding("policy", OK, f"{settings.name}: {rules}")


def _ledger(location: LedgerLocation) -> Iterator[Finding]:
    """A finding that says whether the ledger can be opened, and names its schema version. Changes nothing."""
    from foldline import ledger  # noqa: PLC0415  # not needed by other checks
    from foldline.ledger.schema import MIGRATIONS  # noqa: PLC0415

    where = str(location) if location.source != "default" else f"{location} (default)"
    if location.missing:
        folder = next(one for one in Path(location.url).absolute().parents if one.exists())
        near = location.source == "default" or folder == Path(location.url).absolute().parent
        if near and folder.is_dir() and os.access(folder, os.W_OK):
            yield Finding("ledger", OK, f"{where} does not exist yet; foldline import creates it")
        else:
            yield Finding("ledger", PROBLEM, f"{where} cannot be created", "create its folder, or name another ledger")
        return
    found = ledger.schema_version(location.url, wait_s=LEDGER_WAIT_SECONDS)
    known = len(MIGRATIONS)
    if not found:
        yield Finding("ledger", OK, f"{where} has no ledger yet; foldline import creates it")
    elif found > known:
        says = f"{where} has schema {found}, newer than {known} of this foldline"
        yield Finding("ledger", PROBLEM, says, "update foldline")
    elif found < known:
        says = f"{where} has schema {found}, to be migrated to {known} at its next use"
        yield Finding("ledger", NOTE, says, "make a copy first if an older foldline uses it too")
    else:
        with open_ledger(location, wait_s=LEDGER_WAIT_SECONDS) as opened:
            count = plural(len(opened.sessions()), "session")
        yield Finding("ledger", OK, f"{where}: schema {found}, {count}")


def _print(found: list[Finding], problems: int) -> None:
    out = console()
    echo, rows = line_printer(out=out), _with_grouped_extras(found)
    width = max(len(finding.about) for finding in rows)
    columns = out.width if out.is_terminal else _NO_LIMIT
    for finding in rows:
        mark, colour = MARKS[finding.state]
        echo(_hanging(f"{mark} {finding.about:<{width}}  ", finding.says, columns), style=colour)
        if finding.fix:
            echo(_hanging(" " * (width + 4), f"→ {finding.fix}", columns))
    echo(f"\n{plural(problems, 'problem')}" if problems else "\nno problems", style="bold")


def _hanging(start: str, text: str, columns: int) -> str:
    """The text with `start` in front of its first line. All later lines are indented by the width of `start`."""
    return textwrap.fill(text, columns, initial_indent=start, subsequent_indent=" " * len(start))


def _with_grouped_extras(found: list[Finding]) -> list[Finding]:
    """The findings, with one line for all installed extras and one line for all missing extras.

    An extra with a problem keeps its own line.
    """
    extras = [finding for finding in found if finding.about.startswith(_EXTRA_MARK) and finding.state != PROBLEM]
    names = {
        state: ", ".join(one.about.removeprefix(_EXTRA_MARK) for one in extras if one.state == state)
        for state in (OK, NOTE)
    }
    grouped = [Finding("extras", OK, f"installed: {names[OK]}")] if names[OK] else []
    if names[NOTE]:
        grouped.append(Finding("extras", NOTE, f"not installed: {names[NOTE]}", extra_hint("NAME")))
    return [*(finding for finding in found if finding not in extras), *grouped]
