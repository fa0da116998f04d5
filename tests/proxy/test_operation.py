"""Running the proxy as a service: logs and telemetry without content, TLS, a graceful stop, units, a container."""

from __future__ import annotations

import json
import plistlib
import re
import shlex
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any, cast

import pytest

from foldline.cli.serve import serve
from foldline.proxy.telemetry import open_telemetry
from foldline.testing.provider import SimulatedProvider, fail
from support.command import ROOT, clean, foldline
from support.proxies import chunked, proxy, raw_upstream
from support.proxy_agents import POLICY, Agent

pytest.importorskip("aiohttp")
KEY = "sk-ant-a-key-that-nobody-may-store"
WORDS = "an unusual sentence about heliotropes"
COMMAND = [sys.executable, "-m", "foldline.cli", "serve", "--json", "--port", "0"]


def started(command: list[str]) -> tuple[subprocess.Popen[str], str]:
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean(), text=True)
    assert running.stdout is not None
    return running, json.loads(running.stdout.readline())["address"]


def stopped(running: subprocess.Popen[str]) -> str:
    """Stop a proxy; what it wrote to standard error."""
    running.send_signal(signal.SIGTERM)
    _, errors = running.communicate(timeout=40)
    assert "Traceback" not in errors
    return errors


def test_json_logs_have_a_line_per_request_without_content_or_key(tmp_path: Path) -> None:
    with SimulatedProvider() as provider:
        ledger = str(tmp_path / "ledger.db")
        running, url = started([*COMMAND, "-u", provider.url, "--ledger", ledger, "--log-format", "json"])
        agent = Agent(url, key=KEY, headers={"x-foldline-session": "work"}, streams=False)
        agent.say(WORDS)
        provider.script(fail(529))
        agent.say("more")
        errors = stopped(running)
    lines = [json.loads(line) for line in errors.splitlines() if line.startswith("{")]
    first, second = [line for line in lines if line["logger"] == "foldline.exchanges"]
    assert (first["session"], first["status"], first["format"], first["is_complete"]) == (
        "work",
        200,
        "anthropic",
        True,
    )
    assert first["input_tokens"] > 0
    assert first["seconds"] > 0
    assert second["status"] == 529
    assert WORDS not in errors
    assert KEY not in errors


def test_spans_and_metrics_follow_the_conventions_without_content(tmp_path: Path) -> None:
    trace = pytest.importorskip("opentelemetry.sdk.trace")
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracer = trace.TracerProvider()
    tracer.add_span_processor(SimpleSpanProcessor(spans))
    reporter = open_telemetry(tracer, MeterProvider(metric_readers=[reader]))
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    with SimulatedProvider() as provider:
        options: dict[str, Any] = {"mode": "fold", "policy": POLICY, "ledger": str(tmp_path / "ledger.db")}
        with proxy(provider.url, reporters=[reporter], **options) as running:
            agent = Agent(running.url, key=KEY, headers={"x-foldline-session": "work", "traceparent": parent})
            agent.say(WORDS)
            provider.script(fail(500))
            agent.say("more")
    first, second = cast("Any", spans.get_finished_spans())
    assert first.name == f"chat {agent.model}"
    assert first.attributes["gen_ai.provider.name"] == "anthropic"
    assert first.attributes["gen_ai.usage.input_tokens"] > 0
    assert first.attributes["gen_ai.conversation.id"] == "work"
    assert f"{first.context.trace_id:032x}" == parent.split("-")[1]
    assert second.attributes["error.type"] == "500"
    found = json.loads(cast("Any", reader.get_metrics_data()).to_json())
    names = {one["name"] for one in found["resource_metrics"][0]["scope_metrics"][0]["metrics"]}
    assert names == {"gen_ai.client.token.usage", "gen_ai.client.operation.duration"}
    shown = json.dumps(found) + first.to_json() + second.to_json()
    assert WORDS not in shown
    assert KEY not in shown


def test_telemetry_is_not_imported_unless_it_is_asked_for() -> None:
    code = "import sys, foldline.proxy.service; print([name for name in sys.modules if 'opentelemetry' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=clean(), check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    files = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    )
    subprocess.run([*command.split(), "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    return files


def test_tls_by_file_and_its_check(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    pem, key = map(str, certificate)
    with SimulatedProvider() as provider:
        options = ["-u", provider.url, "--ledger", str(tmp_path / "ledger.db"), "--tls-certificate", pem]
        running, url = started([*COMMAND, *options, "--tls-key", key])
        assert url.startswith("https://127.0.0.1:")
        trusted = ssl.create_default_context(cafile=pem)
        with urllib.request.urlopen(f"{url}/foldline/ready", context=trusted, timeout=10) as answer:
            assert json.load(answer) == {"status": "ok"}
        stopped(running)
        good = foldline("serve", "--check", "--port", "0", *options, "--tls-key", key)
        assert (good.returncode, "ok    TLS" in good.stdout) == (0, True)
        wrong = foldline("serve", "--check", "--port", "0", *options, "--tls-key", pem)
        assert (wrong.returncode, "fault TLS: the certificate or its key cannot be used" in wrong.stdout) == (1, True)
        half = foldline("serve", "--check", "--port", "0", *options)
        assert "fault TLS: set both --tls-certificate and --tls-key" in half.stdout


def test_a_running_response_is_finished_before_the_proxy_stops(tmp_path: Path) -> None:
    pieces = chunked(*(f"event: ping\ndata: {number}\n\n".encode() for number in range(20)))
    with raw_upstream(*pieces) as upstream:
        upstream.pause_s = 0.05
        running, url = started([*COMMAND, "-u", upstream.url, "--ledger", str(tmp_path / "ledger.db")])
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
        request = urllib.request.Request(f"{url}/v1/messages", body, {"x-api-key": "k"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            begun = answer.read(10)
            running.send_signal(signal.SIGTERM)
            received = begun + answer.read()
        assert received.endswith(b"data: 19\n\n")
        running.wait(30)
        running.communicate()


def test_metrics_are_in_the_text_format_of_prometheus(tmp_path: Path) -> None:
    with SimulatedProvider() as provider:
        options: dict[str, Any] = {"mode": "fold", "policy": POLICY, "ledger": str(tmp_path / "ledger.db")}
        with proxy(provider.url, **options) as running:
            Agent(running.url, key=KEY, headers={"x-foldline-session": WORDS}).say(WORDS)
            read = urllib.request.urlopen(f"{running.url}/foldline/metrics", timeout=10).read
            text = read().decode()
    line = re.compile(r'# TYPE \w+ (counter|gauge)|\w+(\{\w+="\w+"(,\w+="\w+")*\})? -?\d+(\.\d+)?([eE][+-]?\d+)?')
    assert all(line.fullmatch(one) for one in text.splitlines()), text
    assert "foldline_proxy_requests_total 1" in text
    assert KEY not in text
    assert WORDS not in text


def commands() -> list[list[str]]:
    """The commands in the files of deploy/."""
    unit = (ROOT / "deploy" / "foldline.service").read_text()
    found = [shlex.split(line.partition("=")[2]) for line in unit.splitlines() if line.startswith("ExecStart")]
    plist = plistlib.loads((ROOT / "deploy" / "dev.foldline.serve.plist").read_bytes())
    container = (ROOT / "deploy" / "Containerfile").read_text()
    entry = json.loads(re.findall(r"^ENTRYPOINT (.*)$", container, re.MULTILINE)[0])
    return [*found, plist["ProgramArguments"], [*entry, "-u", "https://api.anthropic.com"]]


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_the_commands_of_units_and_container_have_valid_options(command: list[str]) -> None:
    assert command[0].endswith("/foldline")
    assert command[1] == "serve"
    assert serve.make_context("serve", command[2:]).params["upstream"] == ("https://api.anthropic.com",)


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    text = (ROOT / "deploy" / "foldline.service").read_text().replace("%h/.local/bin/foldline", sys.executable)
    (tmp_path / "foldline.service").write_text(text)
    command = ["systemd-analyze", "verify", "--user", str(tmp_path / "foldline.service")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"HOME": str(tmp_path)})
    assert "foldline.service" not in done.stderr, done.stderr


def test_a_stop_waits_for_exchanges_to_be_recorded(tmp_path: Path) -> None:
    with SimulatedProvider() as provider:
        ledger = str(tmp_path / "ledger.db")
        running, url = started([*COMMAND, "-u", provider.url, "--ledger", ledger])
        agents = [Agent(url, headers={"x-foldline-session": f"s{n}"}) for n in range(8)]
        threads = [threading.Thread(target=agent.say, args=("hello " * 2_000,)) for agent in agents]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stopped(running)
    import foldline as package
    from foldline import ledger as ledgers

    store = ledgers.open(ledger)
    found = []
    for owner in ledgers.owners(store):
        with package.open(ledger, owner=owner) as opened:
            found += [info.messages for info in opened.sessions() if info.messages]
    store.close()
    assert found == [3] * 8
