"""An agent of CrewAI whose task needs more than its window. It needs no key."""

import logging
import os
import warnings
from contextlib import redirect_stdout
from io import StringIO

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false"}
warnings.simplefilter("ignore")
logging.disable()

from crewai import LLM, Agent  # noqa: E402
from crewai.events import crewai_event_bus  # noqa: E402
from crewai.tools import tool  # noqa: E402

import foldline  # noqa: E402
from foldline.integrations.crewai import FoldlineInterceptor  # noqa: E402
from foldline.testing import SimulatedProvider  # noqa: E402
from foldline.testing.provider import call  # noqa: E402

MODEL, WINDOW, FILES = "gpt-5.6", 8_000, 20
POLICY = foldline.Policy.preset("balanced").but(window_tokens=WINDOW, reply_tokens=400)


@tool("read_file")
def read_file(path: str) -> str:
    """Read a file."""
    return f"{path}\n" + "a line of code\n" * 150


def work(session: foldline.Session | None = None) -> str:
    """Let an agent read all files in one task. Returns its answer, or at which file it failed."""
    interceptor = None if session is None else FoldlineInterceptor(session)
    with SimulatedProvider(models={MODEL: WINDOW}) as provider, redirect_stdout(StringIO()):  # CrewAI prints each step
        provider.script(*(call("read_file", path=f"src/part_{number}.py") for number in range(FILES)), "All is fine.")
        llm = LLM(model=f"openai/{MODEL}", base_url=provider.openai_url, api_key="x", interceptor=interceptor)
        fixed = {"role": "reader", "goal": "read", "backstory": "none", "respect_context_window": False}
        agent = Agent(llm=llm, tools=[read_file], **fixed)
        try:
            answer = agent.kickoff("Check all parts.").raw
        except (Exception, SystemExit):  # noqa: BLE001 (CrewAI ends the program if the window is full)
            answer = f"an error after {len(provider.requests) - 1} files."
        crewai_event_bus.flush()
        return f"{answer} {len(provider.refused)} requests refused"


with foldline.open(":memory:") as ledger:
    session = ledger.session("work", policy=POLICY)
    print(f"without foldline: {work()}")
    print(f"with foldline: {work(session)}, {session.folds} folds")
    print(f"messages in the ledger: {len(session)}")
