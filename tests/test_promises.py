"""The list of promises is complete, tests carry only its numbers, and scripts/promises.py lists them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from foldline.errors import InputError
from scripts.promises import collect, promises, proofs, read_list, section

ROOT = Path(__file__).resolve().parent.parent

SECTIONS = {"S0": 58, "S1": 35, "S2": 25, "S3": 43, "S4": 25, "F": 24, "I": 23}
"""How many promises each section has: a number is never taken back."""

OPEN = {
    "I": [18, 21],
}
"""Promises without a test; a change that adds the test removes the number here."""


def numbers(name: str, which: range | list[int]) -> list[str]:
    """`S2.1`, `S2.2` … of S2; `F1`, `F2` … of F."""
    return [f"{name}.{index}" if name[1:] else f"{name}{index}" for index in which]


class TestThisProject:
    def test_the_list_is_whole_and_in_order(self) -> None:
        listed = [promise.number for promise in read_list(ROOT)]
        assert listed == [number for name, count in SECTIONS.items() for number in numbers(name, range(1, count + 1))]

    def test_each_promise_is_one_sentence_of_its_own(self) -> None:
        texts = [promise.text for promise in read_list(ROOT)]
        assert len(set(texts)) == len(texts)
        for text in texts:
            assert re.fullmatch(r"[^|]{15,}\.`?", text), text
            assert not re.search(r"[a-z)]\. [A-Z]", text), text

    def test_tests_carry_only_numbers_of_the_list(self) -> None:
        listed = {promise.number for promise in read_list(ROOT)}
        carried = [found for found in collect(ROOT) if found.marked or section(found.number) in SECTIONS]
        assert carried
        assert [found for found in carried if found.number not in listed] == []

    def test_what_a_rule_is_about_exists(self) -> None:
        listed = {promise.number for promise in read_list(ROOT)}
        rows = [line.split("|") for line in (ROOT / "docs/promises.md").read_text().splitlines() if line[:3] == "| F"]
        about = {number.strip() for row in rows for number in row[2].split(",")}
        assert len(rows) == SECTIONS["F"]
        assert about <= listed

    def test_whatever_is_not_open_has_a_test(self) -> None:
        tests = proofs(ROOT)
        left = {number for name, which in OPEN.items() for number in numbers(name, which)}
        assert [each.number for each in read_list(ROOT) if each.number not in tests and each.number not in left] == []


LIST = """# Promises
| number | promise |
|---|---|
| S0.1 | First. |
| S0.2 | Second. |

| number | about | promise |
|---|---|---|
| F1 | S0.1, S0.2 | Instead. |
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for folder in ("docs", "tests/deep"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "docs/promises.md").write_text(LIST)
    return tmp_path


def write(checkout: Path, code: str, name: str = "tests/test_some.py") -> dict[str, list[str]]:
    (checkout / name).write_text(code)
    return proofs(checkout)


def run(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(promises, ["--root", str(root), *arguments])


MARK = "pytest.mark.promise"


class TestCollect:
    def test_marks_of_a_function(self, checkout: Path) -> None:
        found = write(checkout, f'@{MARK}("S0.1", "F1")\n@{MARK}("S0.2")\nasync def test_a(): ...\n')
        assert found == {number: ["tests/test_some.py::test_a"] for number in ("S0.1", "S0.2", "F1")}

    @pytest.mark.parametrize("mark", [f'{MARK}("S0.1")', f'[{MARK}("S0.1"), pytest.mark.slow]'])
    def test_marks_of_a_module(self, checkout: Path, mark: str) -> None:
        found = write(checkout, f"pytestmark = {mark}\ndef test_a(): ...\ndef helper(): ...\n", "tests/deep/test_b.py")
        assert found == {"S0.1": ["tests/deep/test_b.py::test_a"]}

    def test_marks_of_a_class(self, checkout: Path) -> None:
        code = f'@{MARK}("S0.1")\nclass TestIt:\n  pytestmark = {MARK}("S0.2")\n  def test_a(self): ...\n'
        assert write(checkout, code) == {number: ["tests/test_some.py::TestIt::test_a"] for number in ("S0.1", "S0.2")}

    def test_marks_of_one_parameter(self, checkout: Path) -> None:
        code = f'@pytest.mark.parametrize("x", [1, pytest.param(2, marks={MARK}("F1"))])\ndef test_a(x): ...\n'
        assert list(write(checkout, code)) == ["F1"]

    @given(
        st.lists(st.sampled_from(["S0.27", "S3.9", "F3", "I12", "PA23"]), min_size=1, unique=True),
        st.sampled_from(["", "_of_a_thing", "_UTF8_is_kept", "_s0_1"]),
    )
    def test_numbers_in_a_name(self, tmp_path_factory: pytest.TempPathFactory, given: list[str], rest: str) -> None:
        root = tmp_path_factory.mktemp("named")
        (root / "tests").mkdir()
        name = f"test_{'_'.join(number.replace('.', '_') for number in given)}{rest}"
        assert sorted(write(root, f"def {name}(): ...\n")) == sorted(given)

    def test_known_bugs_may_be_named_in_small_letters(self, checkout: Path) -> None:
        assert list(write(checkout, "def test_co01_LO15_and_utf8(): ...\n")) == ["CO01", "LO15"]

    @pytest.mark.parametrize("mark", ["skip", 'skip(reason="later")', "xfail(strict=True)"])
    def test_a_test_that_cannot_pass_proves_nothing(self, checkout: Path, mark: str) -> None:
        code = f'@pytest.mark.{mark}\n@{MARK}("S0.1")\ndef test_S0_2_a(): ...\n'
        assert write(checkout, code) == {}

    def test_a_number_that_only_running_would_tell_is_an_error(self, checkout: Path) -> None:
        with pytest.raises(InputError, match=r"tests/test_some\.py:1: .* literal texts"):
            write(checkout, f"@{MARK}(*NUMBERS)\ndef test_a(): ...\n")

    def test_a_file_that_is_not_python_is_named(self, checkout: Path) -> None:
        with pytest.raises(InputError, match=r"tests/test_some\.py: cannot be parsed"):
            write(checkout, "def test_(:\n")


class TestCommand:
    def test_prints_number_promise_and_tests(self, checkout: Path) -> None:
        write(checkout, f'@{MARK}("S0.1")\ndef test_a(): ...\n')
        done = run(checkout)
        assert done.exit_code == 0
        assert [line.split(maxsplit=2) for line in done.output.splitlines()] == [
            ["S0.1", "built", "First."],
            ["tests/test_some.py::test_a"],
            ["S0.2", "planned", "Second."],
            ["F1", "planned", "Instead."],
            ["with", "a", "test: S0 1 of 2, F 0 of 1"],
        ]

    def test_known_bugs_are_counted_apart(self, checkout: Path) -> None:
        write(checkout, f'@{MARK}("F1")\ndef test_PA23_a(): ...\n')
        assert run(checkout).output.endswith("with a test: S0 0 of 2, F 1 of 1, known bugs 1\n")

    def test_missing_ones_make_it_fail_in_the_asked_sections_only(self, checkout: Path) -> None:
        write(checkout, f'@{MARK}("S0.1", "S0.2")\ndef test_a(): ...\n')
        assert run(checkout, "--missing", "--section", "S0").exit_code == 0
        done = run(checkout, "--missing", "--section", "S0", "--section", "F")
        assert done.exit_code == 1
        assert done.output.splitlines()[0].split() == ["F1", "planned", "Instead."]

    def test_json_has_one_promise_a_line(self, checkout: Path) -> None:
        write(checkout, f'@{MARK}("F1")\ndef test_PA23_a(): ...\n')
        rows = {row["number"]: row for row in map(json.loads, run(checkout, "--json").output.splitlines())}
        tests = ["tests/test_some.py::test_PA23_a"]
        assert list(rows) == ["S0.1", "S0.2", "F1", "PA23"]
        assert rows["F1"] == {"number": "F1", "promise": "Instead.", "state": "built", "tests": tests}
        assert rows["S0.1"] == {"number": "S0.1", "promise": "First.", "state": "planned", "tests": []}
        assert rows["PA23"]["tests"] == tests

    def test_an_unknown_section_names_the_known_ones(self, checkout: Path) -> None:
        done = run(checkout, "--section", "S9")
        assert done.exit_code == 2
        assert "unknown section S9: use S0, F" in done.output

    def test_sections_are_read_from_numbers(self) -> None:
        assert [section(number) for number in ("S2.7", "F12", "I3", "PA23")] == ["S2", "F", "I", "PA"]
