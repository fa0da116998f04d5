"""Runs the real Claude Code against a local server. `foldline watch` reads its stream, and foldline's hooks are
installed.

There are three turns: a task with a shell call, a compaction, and another task. A server on 127.0.0.1 answers every
request with a canned reply, so nothing leaves the machine and nothing is paid. Afterwards, the benchmark checks what a
user would see: the meter, the warning, the report of the compaction, the scratch files, the instructions for the
summary, and the path of the notes in the next turn.

    npm install @anthropic-ai/claude-code && python -m bench agent --claude node_modules/.bin/claude
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FOLDLINE = [sys.executable, "-m", "foldline.cli"]
PROMPTS = ("say hello with the shell and never touch main.py", "/compact", "and say it again")
USED = 150_000
"""Number of tokens in the window that the server reports for every call."""
WINDOW = 190_000
SECONDS = 120


class Model(ThreadingHTTPServer):
    """A provider. Its reply to the first request of a turn is a shell call; all other replies are a sentence."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[dict[str, Any]] = []
        self.ids = iter(range(1, 10_000))

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        """The reply to a request."""
        users = [json.dumps(one) for one in body.get("messages", []) if one.get("role") == "user"]
        asked = users[-1] if users else ""
        block: dict[str, Any] = {"type": "text", "text": "Hello was said."}
        can_run = any(one.get("name") == "Bash" for one in body.get("tools", []))
        if can_run and "tool_result" not in asked and "summary" not in asked:
            given = {"command": "echo hello", "description": "Say hello"}
            block = {"type": "tool_use", "id": f"toolu_{next(self.ids)}", "name": "Bash", "input": given}
        return {
            "id": f"msg_{next(self.ids)}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model", "model"),
            "content": [block],
            "stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": USED,
                "cache_read_input_tokens": 0,
                "cache_creation_input_tokens": 0,
                "output_tokens": 9,
            },
        }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Model

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        self._send(b"", "text/plain")

    def do_GET(self) -> None:
        self._send(b'{"data": [], "has_more": false}', "application/json")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if self.path.split("?")[0].endswith("/count_tokens"):
            self._send(json.dumps({"input_tokens": USED}).encode(), "application/json")
            return
        self.server.bodies.append(body)
        reply = self.server.reply(body)
        if not body.get("stream"):
            self._send(json.dumps(reply).encode(), "application/json")
            return
        events = (f"event: {name}\ndata: {json.dumps({'type': name, **facts})}\n\n" for name, facts in _events(reply))
        self._send("".join(events).encode(), "text/event-stream")

    def _send(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _events(reply: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of a streamed reply."""
    block = reply["content"][0]
    yield "message_start", {"message": {**reply, "content": [], "stop_reason": None}}
    start: dict[str, Any]
    delta: dict[str, Any]
    if block["type"] == "text":
        start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        start = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield "content_block_start", {"index": 0, "content_block": start}
    yield "content_block_delta", {"index": 0, "delta": delta}
    yield "content_block_stop", {"index": 0}
    stop = {"stop_reason": reply["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"delta": stop, "usage": {"output_tokens": 9}}
    yield "message_stop", {}


def run(claude: str, place: Path) -> tuple[list[dict[str, Any]], Model, str]:
    """Run the three turns. Returns the events of `foldline watch`, the server with its requests, and the printed
    meter.
    """
    home, project = place / "home", place / "project"
    home.mkdir()
    project.mkdir()
    server = Model()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_port}",
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "NO_COLOR": "1",
    }
    install = [*FOLDLINE, "install", "claude-code", "--project", "--yes"]
    subprocess.run(install, cwd=project, env=env, check=True, capture_output=True)
    events: list[dict[str, Any]] = []
    stream = b""
    for number, prompt in enumerate(PROMPTS):
        options = ["--output-format", "stream-json", "--verbose", "--allowedTools", "Bash", *(["-c"] if number else [])]
        with subprocess.Popen([claude, "-p", prompt, *options], cwd=project, env=env, stdout=subprocess.PIPE) as agent:
            watch = [*FOLDLINE, "watch", "--json", "--pass-through", "--scratch", ".", "--window", str(WINDOW)]
            output = subprocess.run(
                watch, cwd=project, env=env, stdin=agent.stdout, capture_output=True, timeout=SECONDS, check=False
            )
        stream += output.stdout
        events += [json.loads(line) for line in output.stderr.decode().splitlines() if line.startswith("{")]
    meter = subprocess.run(
        [*FOLDLINE, "watch", "--window", str(WINDOW)],
        cwd=project,
        env=env,
        input=stream,
        capture_output=True,
        check=False,
    )
    server.shutdown()
    server.server_close()
    return events, server, meter.stderr.decode()


def findings(events: list[dict[str, Any]], server: Model, project: Path) -> dict[str, bool]:
    """What a user should see, and whether it was shown."""
    kinds = [event["event"] for event in events]
    page = project / ".context" / "scratch.md"
    text = page.read_text() if page.exists() else ""
    sent = [json.dumps(body) for body in server.bodies]
    meters = [event["used"] for event in events if event["event"] == "meter"]
    return {
        f"the meter shows {USED:,} tokens, as the provider reported": USED in meters,
        "the warning comes": "warning" in kinds,
        "the compaction command is queued": any("/compact" in one.get("text", "") for one in events),
        "the compaction is reported": "compacted" in kinds,
        "the hook recorded the prompt": "never touch main.py" in text,
        "the compaction is in the notes, once": text.count("→ compacted (") == 1,
        "the hook recorded its summary": "compacting → summarised" in text,
        "the request for the summary says what to keep": any("Working notes are kept" in body for body in sent),
        "the next turn names the notes": "read .context/scratch.md" in sent[-1],
    }


def main(argv: list[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m bench agent", description=__doc__)
    options.add_argument("--claude", default=os.environ.get("FOLDLINE_CLAUDE", "claude"), help="the agent's command")
    claude = shutil.which(options.parse_args(argv).claude)
    if claude is None:
        print("claude was not found: npm install @anthropic-ai/claude-code, then --claude node_modules/.bin/claude")
        return 2
    with tempfile.TemporaryDirectory() as place:
        events, server, meter = run(os.path.abspath(claude), Path(place))
        project = Path(place) / "project"
        found = findings(events, server, project)
        print(meter)
        page = project / ".context" / "scratch.md"
        print(page.read_text() if page.exists() else "no scratch file")
    for name, is_found in found.items():
        print(f"{'yes' if is_found else 'NO ':3} {name}")
    return 0 if all(found.values()) else 1
