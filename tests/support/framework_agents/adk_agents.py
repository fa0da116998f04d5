"""An agent of Google ADK, with its real model class for Gemini."""

from __future__ import annotations

from typing import Any

from google import genai
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.google_llm import Gemini
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from foldline.integrations.google_adk import FoldlinePlugin
from foldline.session.session import Session
from foldline.testing import SimulatedProvider
from support.framework_agents import GEMINI, SYSTEM, Pieces, read_file, run


class AdkAgent:
    """An `LlmAgent` whose session service keeps the events."""

    def __init__(
        self, provider: SimulatedProvider, session: Session | None, mode: str, *, thinking: bool = False
    ) -> None:
        self.mode, self.pieces = mode, Pieces()
        self.client = genai.Client(api_key="x", http_options=types.HttpOptions(base_url=provider.url))
        model = _model_class(self.client)(model=GEMINI)
        fixed: Any = {"instruction": SYSTEM, "tools": [read_file], "before_model_callback": _without_empty_texts}
        self.agent = LlmAgent(name="reader", model=model, **fixed)
        self.plugins: Any = [] if session is None else [FoldlinePlugin(session)]
        self.service: Any = InMemorySessionService()
        run(self.service.create_session(app_name="app", user_id="user", session_id="work"))

    def ask(self, prompt: str) -> str:
        runner = Runner(
            app_name="app",
            agent=self.agent,
            session_service=self.service,
            plugins=self.plugins,
            auto_create_session=True,
        )
        streaming = StreamingMode.SSE if "stream" in self.mode else StreamingMode.NONE
        content = types.Content(role="user", parts=[types.Part(text=prompt)])
        options: Any = {"user_id": "user", "session_id": "work", "new_message": content}
        options["run_config"] = RunConfig(streaming_mode=streaming)
        events = run(self._collect(runner, options))
        final = [event for event in events if event.is_final_response() and not event.partial]
        return "".join(part.text or "" for part in final[-1].content.parts if not part.thought)

    async def _collect(self, runner: Runner, options: Any) -> list[Any]:
        events = []
        async for event in runner.run_async(**options):
            for part in ((event.content and event.content.parts) or ()) if event.partial else ():
                self.pieces.add("" if part.thought else part.text)
            events.append(event)
        return events

    def adopt(self, other: Any) -> None:
        self.service = other.service

    def close(self) -> None:
        run(self.client.aio.aclose())
        self.client.close()


def _model_class(client: genai.Client) -> type[Gemini]:
    """A model class with this client. Old versions of ADK cannot take the client as an argument."""

    class ClientGemini(Gemini):
        @property
        def api_client(self) -> genai.Client:
            return client

    return ClientGemini


def _without_empty_texts(callback_context: Any, llm_request: Any) -> None:
    """Remove the empty text that ends a stream. ADK sends it back, and the simulated provider refuses it."""
    for content in llm_request.contents:
        content.parts = [part for part in content.parts if part.text != ""]
