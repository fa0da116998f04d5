"""`foldline promises`: which tests prove which promise of docs/promises.md.

A promise without a test is a wish, so whether one is built is read from the tests' source and written down nowhere. The
source is parsed and not run: the answer takes no fixtures, no optional packages and less than a second.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from foldline.errors import InputError

LIST = Path("docs", "promises.md")
_ROW = re.compile(r"\|\s*([SFI]\d+(?:\.\d+)?)\s*\|(?:.*\|)?\s*(.+?)\s*\|\s*")
_NAMED = re.compile(r"_(S\d+_\d+|[FI]\d+|[A-Za-z]{2}\d\d)(?=_|$)")
_CASE = re.compile(r"[A-Z]{2}\d\d")
_NO_PROOF = {"skip", "xfail"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A row of the list."""

    number: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """A number on a test; `marked` when it stands in a mark and not in the test's name."""

    number: str
    test: str
    marked: bool


@click.command()
@click.option("--section", "-s", "sections", multiple=True, help="Only this section: S0 to S4, F or I; repeatable.")
@click.option("--missing", is_flag=True, help="Only promises without a test; exit code 1 when there are any.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each promise, one a line.")
def promises(sections: tuple[str, ...], missing: bool, as_json: bool) -> None:
    r"""Show which tests prove which promise; works in a checkout of foldline.

    \b
    Example:  foldline promises --section S2
              foldline promises --missing
    """
    root = checkout(Path.cwd())
    tests = proofs(root)
    listed = [*read_list(root), *_cases(tests)]
    known = list(dict.fromkeys(section(promise.number) for promise in listed))
    if unknown := [name for name in sections if name not in known]:
        raise click.UsageError(f"no section {', '.join(unknown)}: there are {', '.join(known)}")
    asked = [promise for promise in listed if not sections or section(promise.number) in sections]
    shown = [promise for promise in asked if not (missing and promise.number in tests)]
    for promise in shown:
        _print(promise, tests.get(promise.number, []), as_json)
    if not as_json:
        click.echo(_summary(asked, tests))
    if missing and shown:
        raise click.exceptions.Exit(1)


def checkout(start: Path) -> Path:
    """The checkout of foldline that a folder lies in."""
    for folder in (start, *start.parents):
        if (folder / LIST).is_file() and (folder / "tests").is_dir() and (folder / "src" / "foldline").is_dir():
            return folder
    hint = "run it where foldline's source was cloned to"
    raise InputError(f"no checkout of foldline here ({LIST.as_posix()} and tests)", hint=hint)


def section(number: str) -> str:
    """The part of the list a number belongs to: `S2` of `S2.7`, `F` of `F3`."""
    return number.partition(".")[0] if "." in number else number.rstrip("0123456789")


def read_list(root: Path) -> list[Promise]:
    """The promises in the order of the page."""
    rows = map(_ROW.fullmatch, (root / LIST).read_text(encoding="utf-8").splitlines())
    return [Promise(number=row[1], text=row[2]) for row in rows if row]


def proofs(root: Path) -> dict[str, list[str]]:
    """For each number, the tests that carry it."""
    found: dict[str, list[str]] = {}
    for carried in collect(root):
        tests = found.setdefault(carried.number, [])
        if carried.test not in tests:
            tests.append(carried.test)
    return found


def collect(root: Path) -> Iterator[Carried]:
    """Every number that a test under `tests` carries; a test that is skipped or expected to fail carries none."""
    for path in sorted((root / "tests").rglob("test_*.py")):
        name = path.relative_to(root).as_posix()
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError) as error:
            raise InputError(f"{name}: not Python that can be parsed ({error})") from error
        yield from _carried(tree.body, name, _own_marks(tree.body))


def _carried(body: list[ast.stmt], place: str, above: list[ast.expr]) -> Iterator[Carried]:
    """The numbers of the tests in a module or class, those of its surroundings included."""
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            marks = [*above, *node.decorator_list, *_own_marks(node.body)]
            yield from _carried(node.body, f"{place}::{node.name}", marks)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            marks, test = [*above, *node.decorator_list], f"{place}::{node.name}"
            if any(_name(mark) in _NO_PROOF for mark in marks):
                continue
            for number in (number for mark in marks for number in _numbers(mark, place)):
                yield Carried(number=number, test=test, marked=True)
            for number in _in_name(node.name):
                yield Carried(number=number, test=test, marked=False)


def _own_marks(body: list[ast.stmt]) -> list[ast.expr]:
    """What a module or class gives all its tests by `pytestmark = ...`."""
    given: list[ast.expr] = []
    for node in body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["pytestmark"]:
            given += node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value]
    return given


def _name(mark: ast.expr) -> str:
    """`skip` of `pytest.mark.skip` and of `pytest.mark.skip(...)`."""
    called = mark.func if isinstance(mark, ast.Call) else mark
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def _numbers(mark: ast.expr, place: str) -> Iterator[str]:
    """The numbers of each `promise(...)` in a mark, the ones of single parameters included."""
    for node in ast.walk(mark):
        if isinstance(node, ast.Call) and _name(node) == "promise":
            for argument in node.args:
                if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                    where = f"{place.partition('::')[0]}:{argument.lineno}"
                    raise InputError(f"{where}: a promise is marked by a number in quotes, found without running tests")
                yield argument.value


def _in_name(name: str) -> Iterator[str]:
    """The numbers a test's name begins with: S0.27 of `test_S0_27_...`, CO17 of `test_co17_...`."""
    found = _NAMED.match(name, len("test"))
    while found:
        yield found[1].replace("_", ".").upper()
        found = _NAMED.match(name, found.end())


def _cases(tests: dict[str, list[str]]) -> list[Promise]:
    """Tests named after a bug report (`test_PA23_...`): no promise of their own, but worth finding by name."""
    return [
        Promise(number=number, text="a known bug, as a test") for number in sorted(tests) if _CASE.fullmatch(number)
    ]


def _print(promise: Promise, tests: list[str], as_json: bool) -> None:
    state = "built" if tests else "planned"
    if as_json:
        row = {"number": promise.number, "promise": promise.text, "state": state, "tests": tests}
        click.echo(json.dumps(row, ensure_ascii=True))
        return
    click.echo(f"{promise.number:<6} {state:<8} {promise.text}")
    for test in tests:
        click.echo(f"{'':15} {test}")


def _summary(asked: list[Promise], tests: dict[str, list[str]]) -> str:
    """How many are built, by section; of known bugs only how many, as they have no list to be complete against."""
    total = Counter(section(promise.number) for promise in asked if not _CASE.fullmatch(promise.number))
    built = Counter(section(promise.number) for promise in asked if promise.number in tests)
    parts = [f"{name} {built[name]} of {count}" for name, count in total.items()]
    if cases := len(asked) - total.total():
        parts.append(f"known bugs {cases}")
    return "with a test: " + ", ".join(parts)
