"""A browser, and a page that is served on loopback, for tests of what a user sees."""

from __future__ import annotations

import gzip
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from foldline.session import Ledger

AXE = Path(__file__).parent.parent / "page" / "axe-core" / "axe.min.js.gz"
CHROMIUM = os.environ.get("FOLDLINE_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or ""


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve an application for the length of a block; the address ends in a slash."""
    import uvicorn

    from foldline.proxy.service import listen

    bound = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(20)
        bound.close()


@contextmanager
def served_ledger(ledger: Ledger, **given: Any) -> Iterator[str]:
    """Serve the page over a ledger for the length of a block."""
    from foldline.page.app import page_app

    with served(page_app(ledger.store, label="agent.db", **given)) as address:
        yield address


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A running Chromium; the test is skipped where there is none.

    It ends with its module, because Playwright's event loop would forbid `asyncio.run` in the tests of other modules.
    """
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")
    if not CHROMIUM:
        pytest.skip("Chromium is not installed: apt install chromium, or set FOLDLINE_CHROMIUM to its path")
    sync_api.expect.set_options(timeout=20_000)  # a busy machine is slow; a test that passes does not wait
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclass
class Visit:
    """A tab of the browser, with everything that went wrong in it."""

    page: Page
    address: str
    errors: list[str] = field(default_factory=list)
    """Messages of the console and errors of scripts."""
    foreign: list[str] = field(default_factory=list)
    """Requests to another address than the page's own."""

    def open(self, place: str = "#/") -> Page:
        """Open a view by its address below the page."""
        self.page.goto("about:blank")
        self.page.goto(self.address + place)
        return self.page

    def session(self, name: str = "fix-the-parser", **more: Any) -> Page:
        """Open a tab of a session."""
        return self.open("#/session?" + urlencode({"owner": "", "session": name, "branch": "main", **more}))

    def findings(self) -> list[str]:
        """What axe finds serious or critical in the view."""
        self.page.evaluate(gzip.decompress(AXE.read_bytes()).decode())
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{one['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]


@contextmanager
def visit(browser: Browser, address: str, **given: Any) -> Iterator[Visit]:
    """A new tab with empty storage. At the end, nothing may have gone wrong in it."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **given})
    page = context.new_page()
    page.set_default_timeout(20_000)
    made = Visit(page, address)
    page.on(
        "console", lambda message: made.errors.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: made.errors.append(str(error)))
    page.on(
        "request",
        lambda one: None if one.url.startswith((address, "about:", "data:")) else made.foreign.append(one.url),
    )
    try:
        yield made
        assert made.errors == []
        assert made.foreign == []
    finally:
        context.close()


@pytest.fixture(scope="session")
def example_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with a recorded session that was folded several times."""
    from scripts.page_example import example_ledger

    path = tmp_path_factory.mktemp("example") / "agent.db"
    example_ledger(path).close()
    return path


@pytest.fixture
def example(example_file: Path, tmp_path: Path) -> Iterator[Ledger]:
    """A copy of that ledger, which a test may change."""
    import foldline

    copy = tmp_path / "agent.db"
    shutil.copy(example_file, copy)
    with foldline.open(copy) as ledger:
        yield ledger


@pytest.fixture
def visitor(chromium: Browser, example: Ledger) -> Iterator[Visit]:
    """A tab on the page over the copied ledger."""
    with served_ledger(example) as address, visit(chromium, address) as made:
        yield made
