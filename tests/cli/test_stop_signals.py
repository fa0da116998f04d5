"""Signals that stop a service, at moments that a running service seldom shows."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import os, signal
from foldline.cli.shared.stop_signals import exit_at_stop_signal
with exit_at_stop_signal():
    try:
        {signal}
    finally:
        raise RuntimeError("this event loop is already running.")
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_stop_signal_while_the_event_loop_starts_ends_the_command_without_a_traceback(name: str) -> None:
    program = PROGRAM.format(signal=f"os.kill(os.getpid(), signal.{name})")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_error_without_a_stop_signal_is_shown() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(signal="pass")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "this event loop is already running" in done.stderr


def test_a_second_ctrl_c_prints_no_traceback() -> None:
    program = (
        "import atexit, os, signal\n"
        "from foldline.cli import app\n"
        "interrupt = lambda **_: os.kill(os.getpid(), signal.SIGINT)\n"
        "app.cli.main = interrupt\n"
        "atexit.register(interrupt)\n"
        "app.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr == "stopped\n"
    assert done.returncode in (130, -signal.SIGINT)
