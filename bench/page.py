"""Measures the page with a long session in a real browser: the time until it can be used, and late frames.

    python -m bench page --messages 20000

Prints the seconds until the newest row can be clicked and until the meter is shown. Then it scrolls the transcript and
prints the share of frames that took longer than 1.5/60 s. Needs Chromium and Playwright.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import foldline
from foldline.message import Message, ToolCall, assistant, tool, user

_FRAMES = """async () => {
    const box = document.querySelector(".transcript");
    const times = [];
    let last = performance.now();
    for (let frame = 0; frame < 180; frame += 1) {
        box.scrollTop -= 400;
        await new Promise(requestAnimationFrame);
        const now = performance.now();
        times.push(now - last);
        last = now;
    }
    return times;
}"""


def conversation(messages: int) -> list[Message]:
    """Prompts, calls, results and replies."""
    made: list[Message] = []
    for turn in range(messages // 4):
        text = "\n".join(f"src/part_{turn}.py:{line}: worker.listen(port_{turn})" for line in range(12))
        call = ToolCall(id=f"call_{turn}", name="read_file", arguments=f'{{"path": "src/part_{turn}.py"}}')
        made += [user(f"Which port does worker {turn} use?"), assistant("I look.", call), tool(f"call_{turn}", text)]
        made.append(assistant(f"Worker {turn} listens on port {7000 + turn}."))
    return made


def main(argv: list[str]) -> int:
    """Run the measurement."""
    parser = argparse.ArgumentParser(prog="python -m bench page", description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args(argv)
    from playwright.sync_api import sync_playwright

    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from support.browsers import CHROMIUM, served_ledger

    with tempfile.TemporaryDirectory() as folder, foldline.open(Path(folder) / "agent.db") as ledger:
        session = ledger.session("long", model="claude-sonnet-5", policy="balanced")
        session.record.append(conversation(given.messages))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            ready, figures = [], []
            for _ in range(given.runs):
                with served_ledger(ledger) as address:
                    page = browser.new_page(viewport={"width": 1280, "height": 860})
                    began = time.perf_counter()
                    page.goto(f"{address}#/session?session=long&tab=transcript")
                    page.locator(".m-row:not(.skeleton)").last.wait_for()
                    ready.append(time.perf_counter() - began)
                    page.locator(".head-meter .meter").wait_for(timeout=120_000)
                    figures.append(time.perf_counter() - began)
                    frames = page.evaluate(_FRAMES)
                    rows = page.locator(".item").count()
                    page.close()
            browser.close()
    shown = f"rows after {min(ready):.2f} s, the meter after {min(figures):.2f} s (least of {given.runs})"
    print(f"{given.messages:,} messages: {shown}")
    late = sum(one > 1000 / 60 * 1.5 for one in frames) / len(frames)
    print(
        f"scrolling: median frame {statistics.median(frames):.1f} ms, {late:.0%} of the frames late; {rows} rows exist"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
