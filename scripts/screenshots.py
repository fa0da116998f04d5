"""Take pictures of every view of the page, light and dark, at the width of a desktop and of a phone.

    python scripts/screenshots.py FOLDER [--ledger FILE]    # default: a ledger made by page_example.py
    python scripts/screenshots.py FOLDER --docs             # also renew the pictures in docs/images

Needs Chromium and Playwright; `--docs` needs Pillow.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
CHROMIUM = "/usr/bin/chromium"
PICTURES = {
    "page-window": "window-desktop-light",
    "page-transcript": "transcript-desktop-dark",
    "page-fold": "folds-desktop-light",
}
"""The pictures in docs/images, and the views that they are cut from."""
SIZES = {"desktop": (1280, 860), "phone": (390, 844)}


@contextmanager
def served(ledger: str) -> Iterator[str]:
    """Serve the page for a ledger while a `with` block runs. Yields the address of the page."""
    import uvicorn

    import foldline
    from foldline.page.app import page_app
    from foldline.proxy.service import listen

    with foldline.open(ledger) as opened:
        bound = listen("127.0.0.1", 0)
        app = page_app(opened.store, label=Path(ledger).name, logs=())
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join(10)


def views(session: str) -> dict[str, str]:
    """The address of each view."""

    def tab(name: str, **more: Any) -> str:
        return "#/session?" + urlencode({"owner": "", "session": session, "branch": "main", "tab": name, **more})

    return {
        "sessions": "#/",
        "window": tab("window"),
        "transcript": tab("transcript"),
        "message": tab("transcript", message=96),
        "compare": tab("window", request=29, against=20),
        "found": tab("transcript", message=20, find="prune_arrival_ratio"),
        "folds": tab("folds", fold=4),
        "recall": tab("recall", q="prune_arrival_ratio"),
        "money": "#/money",
        "replay": "#/replay",
    }


def take(address: str, folder: Path, session: str, only: str = "") -> None:
    """Write the pictures."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for theme in ("light", "dark"):
            for size, (width, height) in SIZES.items():
                context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
                page = context.new_page()
                page.on("console", lambda message: print(message.type, message.text))
                page.on("pageerror", lambda error: print("error", error))
                for name, place in views(session).items():
                    if only and only not in f"{name}-{size}-{theme}":
                        continue
                    page.goto("about:blank")
                    page.goto(address + place)
                    if name == "replay":
                        page.locator("#window").select_option("32000")
                        page.locator("#file").set_input_files(ROOT / "src" / "foldline" / "cli" / "demo.json.gz")
                    page.wait_for_timeout(5_000 if name == "replay" else 2_500)
                    is_long = name not in ("transcript", "message", "found")
                    page.screenshot(path=folder / f"{name}-{size}-{theme}.png", full_page=is_long)
                context.close()
        browser.close()


def renew_pictures(folder: Path) -> None:
    """Write the pictures of the docs from screenshots."""
    from PIL import Image

    for name, view in PICTURES.items():
        with Image.open(folder / f"{view}.png") as found:
            shown = found.convert("RGB").crop((0, 0, found.width, min(found.height, 1_130)))
            shown.save(ROOT / "docs" / "images" / f"{name}.webp", quality=82, method=6)


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ledger", default="")
    parser.add_argument("--session", default="fix-the-parser")
    parser.add_argument("--only", default="", help="take only the pictures whose name contains this")
    parser.add_argument("--docs", action="store_true", help="renew the pictures in docs/images")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        ledger = given.ledger
        if not ledger:
            from scripts.page_example import example_ledger

            ledger = str(Path(scratch) / "agent.db")
            example_ledger(ledger).close()
        with served(ledger) as address:
            take(address, given.folder, given.session, given.only)
    if given.docs:
        renew_pictures(given.folder)


if __name__ == "__main__":
    main()
