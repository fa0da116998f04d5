"""A strict provider that shares no code with foldline's formats takes every request of random agents."""

from __future__ import annotations

import random

import pytest

from bench.valid import Agent, Tally
from foldline.wire.formats import REQUEST_FORMATS


@pytest.mark.promise("I1", "I2", "I12")
@pytest.mark.parametrize("format", REQUEST_FORMATS)
def test_no_request_is_refused_and_no_prefix_changes_between_folds(format: str) -> None:
    tally = Tally()
    for number in range(8):
        Agent(format, random.Random(f"suite {format} {number}"), tally).run(30)
    assert (dict(tally.refused), tally.changed) == ({}, 0), tally.examples
    assert tally.folds > 8
