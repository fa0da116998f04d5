"""Random interrupts beside a second writer; `python -m bench interrupts` tries a thousand."""

from __future__ import annotations

import pytest

from bench.interrupts import run


@pytest.mark.promise("I7", "I11", "I23")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_no_interrupt_leaves_a_lock_or_loses_a_message(url: str) -> None:
    found, _, wrong = run(url, 24)
    assert wrong == []
    assert found["SIGINT"] + found["thread"] + found["task"] == 24
