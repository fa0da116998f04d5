"""List which tests prove which promise of docs/promises.md.

    python scripts/promises.py --section S2
    python scripts/promises.py --missing

A promise counts as proven if a test has its number. The source of the tests is parsed and not run, so the script needs
no fixtures and no optional packages.
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

ROOT = Path(__file__).resolve().parent.parent
LIST = Path("docs", "promises.md")
_ROW = re.compile(r"\|\s*([SFI]\d+(?:\.\d+)?)\s*\|(?:.*\|)?\s*(.+?)\s*\|\s*")
_NAMED = re.compile(r"_(S\d+_\d+|[FI]\d+|[A-Za-z]{2}\d\d)(?=_|$)")
_CASE = re.compile(r"[A-Z]{2}\d\d")
_NO_PROOF = {"skip", "xfail"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A row of docs/promises.md."""

    number: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A promise's number that a test has. `marked` is true if it is in a mark, and false if it is in the name."""

    number: str
    test: str
    marked: bool


@click.command()
@click.option("--section", "-s", "sections", multiple=True, help="Show only this section (S0 to S4, F, I). Repeatable.")
@click.option("--missing", is_flag=True, help="Show only promises without a test; exit code 1 when there are any.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each promise, one a line.")
@click.option("--root", type=click.Path(path_type=Path), default=ROOT, help="Read another checkout of foldline.")
def promises(sections: tuple[str, ...], missing: bool, as_json: bool, root: Path) -> None:
    """List which tests prove which promise."""
    tests = proofs(root)
    listed = [*read_list(root), *_cases(tests)]
    known = list(dict.fromkeys(section(promise.number) for promise in listed))
    if unknown := [name for name in sections if name not in known]:
        raise click.UsageError(f"unknown section {', '.join(unknown)}: use {', '.join(known)}")
    asked = [promise for promise in listed if not sections or section(promise.number) in sections]
    shown = [promise for promise in asked if not (missing and promise.number in tests)]
    for promise in shown:
        _print(promise, tests.get(promise.number, []), as_json)
    if not as_json:
        click.echo(_summary(asked, tests))
    if missing and shown:
        raise click.exceptions.Exit(1)


def section(number: str) -> str:
    """The section of the list that a number belongs to: `S2` for `S2.7`, `F` for `F3`."""
    return number.partition(".")[0] if "." in number else number.rstrip("0123456789")


def read_list(root: Path) -> list[Promise]:
    """The promises in the order of the page."""
    rows = map(_ROW.fullmatch, (root / LIST).read_text(encoding="utf-8").splitlines())
    return [Promise(number=row[1], text=row[2]) for row in rows if row]


def proofs(root: Path) -> dict[str, list[str]]:
    """For each number, the tests that have it."""
    found: dict[str, list[str]] = {}
    for proof in collect(root):
        tests = found.setdefault(proof.number, [])
        if proof.test not in tests:
            tests.append(proof.test)
    return found


def collect(root: Path) -> Iterator[Proof]:
    """Every number that a test under `tests` has. Tests that are skipped or expected to fail are left out."""
    for path in sorted((root / "tests").rglob("test_*.py")):
        name = path.relative_to(root).as_posix()
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError) as error:
            raise InputError(f"{name}: cannot be parsed as Python ({error})") from error
        yield from _proofs_in(tree.body, name, _own_marks(tree.body))


def _proofs_in(body: list[ast.stmt], place: str, above: list[ast.expr]) -> Iterator[Proof]:
    """The proofs in a module or class. `above` has the marks of everything that encloses it."""
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            marks = [*above, *node.decorator_list, *_own_marks(node.body)]
            yield from _proofs_in(node.body, f"{place}::{node.name}", marks)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            marks, test = [*above, *node.decorator_list], f"{place}::{node.name}"
            if any(_name(mark) in _NO_PROOF for mark in marks):
                continue
            for number in (number for mark in marks for number in _numbers(mark, place)):
                yield Proof(number=number, test=test, marked=True)
            for number in _in_name(node.name):
                yield Proof(number=number, test=test, marked=False)


def _own_marks(body: list[ast.stmt]) -> list[ast.expr]:
    """The marks that `pytestmark = ...` gives to all tests of a module or class."""
    given: list[ast.expr] = []
    for node in body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["pytestmark"]:
            given += node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value]
    return given


def _name(mark: ast.expr) -> str:
    """The name of a mark: `skip` for `pytest.mark.skip` and for `pytest.mark.skip(...)`."""
    called = mark.func if isinstance(mark, ast.Call) else mark
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def _numbers(mark: ast.expr, place: str) -> Iterator[str]:
    """The numbers of each `promise(...)` in a mark, also in the marks of single parameters."""
    for node in ast.walk(mark):
        if isinstance(node, ast.Call) and _name(node) == "promise":
            for argument in node.args:
                if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                    where = f"{place.partition('::')[0]}:{argument.lineno}"
                    raise InputError(
                        f"{where}: promise() takes its numbers as literal texts", hint='write promise("S2.7")'
                    )
                yield argument.value


def _in_name(name: str) -> Iterator[str]:
    """The numbers that a test's name begins with: S0.27 for `test_S0_27_...`, CO17 for `test_co17_...`."""
    found = _NAMED.match(name, len("test"))
    while found:
        yield found[1].replace("_", ".").upper()
        found = _NAMED.match(name, found.end())


def _cases(tests: dict[str, list[str]]) -> list[Promise]:
    """The bug reports that tests are named after (`test_PA23_...`). They are not in the list of promises."""
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
    """The number of promises with a test, by section, and the number of known bugs with a test."""
    total = Counter(section(promise.number) for promise in asked if not _CASE.fullmatch(promise.number))
    built = Counter(section(promise.number) for promise in asked if promise.number in tests)
    parts = [f"{name} {built[name]} of {count}" for name, count in total.items()]
    if cases := len(asked) - total.total():
        parts.append(f"known bugs {cases}")
    return "with a test: " + ", ".join(parts)


if __name__ == "__main__":
    promises()
