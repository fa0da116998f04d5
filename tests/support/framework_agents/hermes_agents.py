"""An agent of Hermes, with foldline's context engine or without compression."""

from __future__ import annotations

import copy
import os
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import uuid4

HOME = Path(tempfile.mkdtemp(prefix="hermes-"))
os.environ |= {"HERMES_HOME": str(HOME), "HERMES_QUIET": "1"}
_CONFIG = "plugins: {{enabled: [foldline]}}\nmodel: {{context_length: {window}}}\ncontext: {{engine: {engine}}}\n"
_CONFIG += "compression: {{enabled: {enabled}}}\nagent: {{api_max_retries: 1}}\n"
SCALE = 16
_LOCK = Lock()
"""The configuration and the registered engine belong to the whole process."""
WINDOW = 64_000
"""The smallest window that Hermes accepts."""
(HOME / "config.yaml").write_text(_CONFIG.format(window=WINDOW, engine="foldline", enabled="true"))

from hermes_cli.plugins import _ensure_plugins_discovered  # noqa: E402 (Hermes reads the folder when it is imported)
from run_agent import AIAgent  # noqa: E402
from tools.registry import registry  # noqa: E402

from foldline.integrations.hermes import FoldlineEngine  # noqa: E402
from foldline.session.session import Session  # noqa: E402
from foldline.testing import SimulatedProvider  # noqa: E402
from support.framework_agents import GPT, SYSTEM, Pieces, read_file  # noqa: E402
from support.framework_agents.sdk_agents import FUNCTION  # noqa: E402


def _read_file(arguments: dict[str, Any], **_: Any) -> str:
    return read_file(arguments["path"]) * SCALE


registry.register("read_file", "contract", FUNCTION, _read_file, override=True)


class _OneSession:
    """A ledger with one session, whatever its name is."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def session(self, name: str) -> Session:
        return self._session


class HermesAgent:
    """An `AIAgent` whose caller keeps the messages."""

    records_late = True
    """Whether messages are recorded only by a compression and by `finish`."""
    scale = SCALE
    """How many times larger the window and the files are than those of the other agents."""

    def __init__(
        self, provider: SimulatedProvider, session: Session | None, mode: str, *, thinking: bool = False
    ) -> None:
        self.mode, self.messages, self.pieces = mode, [], Pieces()
        engine, enabled = ("compressor", "false") if session is None else ("foldline", "true")
        ledger: Any = None if session is None else _OneSession(session)
        with _LOCK, redirect_stdout(StringIO()):
            (HOME / "config.yaml").write_text(_CONFIG.format(window=WINDOW, engine=engine, enabled=enabled))
            _ensure_plugins_discovered()._context_engine = FoldlineEngine(ledger)
            self.agent: Any = AIAgent(
                base_url=provider.openai_url,
                api_key="x",
                provider="custom",
                api_mode="chat_completions",
                model=GPT,
                max_tokens=400 * SCALE,
                quiet_mode=True,
                enabled_toolsets=["contract"],
                ephemeral_system_prompt=SYSTEM,
                skip_context_files=True,
                skip_memory=True,
                session_id=uuid4().hex,
                stream_delta_callback=self.pieces_add if "stream" in mode else None,
            )

    messages: list[Any]

    def pieces_add(self, text: str | None) -> None:
        self.pieces.add(text)

    def ask(self, prompt: str) -> str:
        with redirect_stdout(StringIO()):
            found = self.agent.run_conversation(prompt, conversation_history=copy.deepcopy(self.messages))
        if found.get("failed") or found.get("error"):  # Hermes reports errors in its result
            raise RuntimeError(str(found.get("error") or found.get("final_response")))
        self.messages = found["messages"]
        return str(found["final_response"])

    def finish(self) -> None:
        """End the conversation, as the program of Hermes does at its exit. Only then are the last messages recorded."""
        self.agent.shutdown_memory_provider(self.messages)

    def adopt(self, other: Any) -> None:
        self.messages = other.messages

    def close(self) -> None:
        self.agent.close()
