"""Keeps a proxy process running on one socket: if the process dies, another process takes over.

The supervisor holds the listening socket. So if a client connects while no process runs, the client is not refused, but
waits for the next process.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Sequence

RESTART_S = 0.05
"""Seconds to wait before a process that ended early is started again. The time doubles with each further early end."""
MAX_RESTART_S = 2.0
SETTLED_S = 5.0
"""A process that ends after fewer seconds than this has ended early."""
STOP_S = 15.0
"""Maximum number of seconds to wait until the process has stopped. After that, the process is killed."""


class Supervisor:
    """Runs one process on a socket until `stop` is called.

    `command` is a function that takes the file descriptor of the socket and returns the command to run.
    """

    def __init__(self, bound: socket.socket, command: Callable[[int], Sequence[str]]) -> None:
        self.bound, self._command = bound, command
        self.starts = 0
        self.process: subprocess.Popen[bytes] | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="foldline-supervisor", daemon=True)

    def start(self) -> None:
        """Start the process, and begin to watch it."""
        self.process = self._spawn()
        self._thread.start()

    def stop(self) -> None:
        """Let the process finish its running responses, stop it, and stop watching it."""
        self._stop.set()
        process = self.process
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._thread.join()

    def _spawn(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        number = self.bound.fileno()
        return subprocess.Popen(  # noqa: S603 (foldline's own command)
            self._command(number),
            pass_fds=[number],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in the terminal must stop the client, not the proxy
            env={**os.environ},
        )

    def _run(self) -> None:
        pause = RESTART_S
        while not self._stop.is_set():
            process = self.process
            if process is None:
                return
            try:
                process.wait(SETTLED_S)
            except subprocess.TimeoutExpired:
                pause = RESTART_S
                continue
            if self._stop.is_set() or self._stop.wait(pause if process.returncode != -signal.SIGKILL else 0):
                return
            pause = min(pause * 2, MAX_RESTART_S)
            self.process = self._spawn()
