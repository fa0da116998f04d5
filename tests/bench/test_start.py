"""`python -m bench start` measures every start and says whether the goals are met."""

from __future__ import annotations

import pytest

from bench.start import STARTS, main


def test_every_start_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--rounds", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("  ")[0].strip() for line in lines[: len(STARTS)]] == [*STARTS]
    assert lines[-1].endswith("missed" if status else "met")
