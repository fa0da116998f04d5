"""Fixtures of the browser tests: a ledger with a recorded session that was folded several times."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

import foldline
from foldline.session import Ledger
from scripts.page_example import example_ledger
from support.browsers import Visit, chromium, served_ledger, visit

__all__ = ["chromium"]


@pytest.fixture(scope="session")
def example_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with recorded sessions."""
    path = tmp_path_factory.mktemp("example") / "agent.db"
    example_ledger(path).close()
    return path


@pytest.fixture
def example(example_file: Path, tmp_path: Path) -> Iterator[Ledger]:
    """A copy of that ledger, which a test may change."""
    copy = tmp_path / "agent.db"
    shutil.copy(example_file, copy)
    with foldline.open(copy) as ledger:
        yield ledger


@pytest.fixture
def visitor(chromium: Browser, example: Ledger) -> Iterator[Visit]:
    """A tab on the page over the copied ledger."""
    with served_ledger(example) as address, visit(chromium, address) as made:
        yield made
