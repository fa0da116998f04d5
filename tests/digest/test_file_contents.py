"""The files in work, line by line: what is kept of them, and which lines a digest shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.digest.extract.extraction import extract_facts
from foldline.digest.extract.facts import Facts
from foldline.digest.extract.file_contents import FileContents, record_read
from foldline.digest.local import local_digest_text
from support.work import Work

PATH = "/w/src/parser.rs"
HEADER = "[session digest — older turns condensed]"


def numbered(*lines: str) -> str:
    """A file as reading tools show it."""
    return "\n".join(f"{number:>6}→\t{line}" for number, line in enumerate(lines, start=1))


def rows(facts: Facts, path: str = PATH) -> dict[str, int]:
    """The lines known of a file, with their places."""
    return {line.text: line.number for line in facts.files[path].lines.values()}


def digest_of(work: Work, chars: int) -> str:
    """The local digest of all messages, in at most this number of characters."""
    return local_digest_text(extract_facts(work.messages, 0), max_tokens=chars, count_tokens=len, header=HEADER)


def test_a_line_is_kept_without_its_line_number() -> None:
    work = Work()
    work.call("Read", numbered("use std::io;", "    let trailer_size = raw.len_of(8);"), file_path=PATH)
    assert rows(extract_facts(work.messages, 0)) == {"let trailer_size = raw.len_of(8);": 2}


def test_a_later_read_or_edit_replaces_known_lines() -> None:
    work = Work()
    work.call("Read", numbered("let header_size = read_all(8);", "let trailer_size = raw.len_of(8);"), file_path=PATH)
    new = "let trailer_size = trailer_of(raw, 8);"
    work.call("Edit", "ok", file_path=PATH, old_string="let trailer_size = raw.len_of(8);", new_string=new)
    facts = extract_facts(work.messages, 0)
    assert rows(facts) == {"let header_size = read_all(8);": 1, new: 2}
    assert facts.files[PATH].edits == (2,)
    work.call("Read", numbered("let only_line = read_once(9);"), file_path=PATH)
    assert rows(extract_facts(work.messages[4:], 4, facts)) == {"let only_line = read_once(9);": 1}
    work.call("Read", numbered("let another_line = read_more(9);"), file_path=PATH, offset=40, limit=1)
    assert len(rows(extract_facts(work.messages, 0))) == 2, "a part that was read is added"


def test_a_failed_edit_changes_no_lines() -> None:
    work = Work()
    work.call("Read", numbered("let trailer_size = raw.len_of(8);"), file_path=PATH)
    before = rows(extract_facts(work.messages, 0))
    work.call(
        "Edit",
        "String to replace not found",
        failed=True,
        file_path=PATH,
        old_string="let trailer_size = raw.len_of(8);",
        new_string="let trailer_size = nothing_at_all();",
    )
    assert rows(extract_facts(work.messages, 0)) == before


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 900)), min_size=1, max_size=30))
def test_known_lines_are_bounded_and_include_the_last_touched_file(reads: list[tuple[int, int]]) -> None:
    files: dict[str, FileContents] = {}
    for index, (file, count) in enumerate(reads):
        found = [f"let value_{number} = of_file({file}, {number});" for number in range(count)]
        record_read(files, f"/w/{file}.rs", index, found)
        assert sum(len(known.lines) for known in files.values()) <= 6_000
        assert len(files[f"/w/{file}.rs"].lines) == count


@pytest.mark.parametrize("kept", [False, True])
def test_a_large_digest_shows_whole_lines_near_the_last_edit(kept: bool) -> None:
    work = Work()
    lines = [f"let part_{number} = compute_the_part(raw_input, {number}, trailing_options);" for number in range(300)]
    work.ask("Make it faster.")
    work.call("Read", numbered(*lines), file_path=PATH)
    work.call("Edit", "ok", file_path=PATH, old_string=lines[200], new_string="let part_200 = part_of(raw_input);")
    for _ in range(20):
        work.call("Bash", "ok", command="cargo test")
    stays = frozenset(range(5)) if kept else frozenset()
    facts = extract_facts(work.messages, 0)
    text = local_digest_text(facts, max_tokens=24_000, count_tokens=len, header=HEADER, kept_indexes=stays)
    assert (lines[199] in text and lines[201] in text) != kept, "what the view shows is not said again"
    assert len(text) <= 24_000
    small = digest_of(work, 3_000)
    assert sum(line in small for line in lines) <= 2, "names come first"


def test_a_large_digest_prefers_the_file_that_the_user_named() -> None:
    work = Work()
    named = [f"let named_{number} = compute_the_part(raw_input, {number}, trailing_options);" for number in range(150)]
    other = [f"let other_{number} = compute_the_part(raw_input, {number}, trailing_options);" for number in range(150)]
    work.ask("Make parser.rs faster.")
    work.call("Read", numbered(*named), file_path=PATH)
    work.call("Read", numbered(*other), file_path="/w/src/writer.rs")
    for _ in range(20):
        work.call("Bash", "ok", command="cargo test")
    text = digest_of(work, 12_000)
    assert sum(line in text for line in named) > 5 * sum(line in text for line in other)


def test_a_large_digest_shows_imports_last() -> None:
    work = Work()
    imports = [f"use crate::stage_{number}::{{compute_part, options}};" for number in range(20)]
    long = [
        f"let part_{number} = compute({', '.join(f'raw_input_{each}' for each in range(14))});" for number in range(20)
    ]
    short = [f"let part_{number} = compute_part(options);" for number in range(250)]
    assert all(160 < len(line) <= 240 for line in long)
    work.ask("Make it faster.")
    work.call("Read", numbered(*imports, *short, *long), file_path=PATH)
    for _ in range(20):
        work.call("Bash", "ok", command="cargo test")
    text = digest_of(work, 16_000)
    assert all(line in text for line in long)
    assert any(line in text for line in short)
    assert not any(line in text for line in imports)


@pytest.mark.parametrize("kept", [False, True])
def test_a_line_of_several_files_is_shown_once_or_not_at_all_if_the_view_has_it(kept: bool) -> None:
    work = Work()
    shared = "return Err(ParseFailure::of(raw_input, trailing_options, position));"
    work.ask("Make it faster.")
    for name in ("parser", "writer", "reader"):
        own = [f"let {name}_{number} = compute_the_part(raw_input, trailing_options);" for number in range(10)]
        work.call("Read", numbered(*own, shared), file_path=f"/w/src/{name}.rs")
    stays = frozenset({5, 6}) if kept else frozenset()
    facts = extract_facts(work.messages, 0)
    text = local_digest_text(facts, max_tokens=16_000, count_tokens=len, header=HEADER, kept_indexes=stays)
    assert "let parser_3 = compute_the_part(raw_input, trailing_options);" in text
    assert text.count(shared) == (0 if kept else 1)
