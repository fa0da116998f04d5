"""The commands `pin` and `unfold`."""

from __future__ import annotations

import re

from support.command import foldline, one_sentence
from support.shapes import report


def test_pins_are_added_and_removed(place: str) -> None:
    there = ("--ledger", place, "-s", "3f0c")
    made = report("pin", "never", "push", "to", "main", "--name", "rule", *there)
    assert made["changed"] == ["rule"]
    assert made["pins"][0]["message"] == report("show", *there)["messages"]
    assert report("pin", "--handle", "#2-3", *there)["changed"] == ["#2", "#3"]
    printed = foldline("show", *there).stdout
    assert "3 pins" in printed
    assert "rule  never push to main" in printed
    assert re.search(r"pin never push to main", printed)
    assert [row["name"] for row in report("pin", "--remove", "rule", *there)["pins"]] == ["#2", "#3"]
    assert "#2, #3" in one_sentence(foldline("pin", "--remove", "rule", *there))
    assert "#99" in one_sentence(foldline("pin", "--handle", "#99", *there))
    listed = foldline("pin", *there).stdout
    assert re.search(r"2 pins\n  #2 +\S.*\n  #3", listed)
    assert report("pin", *there)["changed"] == []
    assert foldline("show", "--handle", "2", *there).stdout == foldline("show", "--handle", "#2", *there).stdout
    for wrong_use in (["x", "--handle", "#1"], ["--handle", "#1", "--remove", "#2"]):
        assert foldline("pin", *wrong_use, *there).returncode == 2


def test_a_name_for_several_messages_is_refused_and_nothing_is_pinned(place: str) -> None:
    there = ("--ledger", place, "-s", "3f0c")
    said = one_sentence(foldline("pin", "--handle", "#1-3", "--name", "begin", *there))
    assert "the name 'begin' can be given to only one message, but #1-3 names several" in said
    assert "leave out the name" in said
    assert report("pin", *there)["pins"] == []


def test_unfold_undoes_the_newest_fold(place: str) -> None:
    there = ("--ledger", place, "-s", "3f0c")
    before = report("show", *there)
    made = report("unfold", *there)
    assert made["folds"] == 1
    assert made["tokens"] > before["tokens"]
    assert report("show", *there)["folded"] == before["folds"][0]["folded"]
    assert "nothing is folded now" in foldline("unfold", *there).stdout
    assert "has no fold to undo" in one_sentence(foldline("unfold", *there))
