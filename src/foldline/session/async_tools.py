"""The tools with which a model manages its own context, for an `AsyncSession`.

tools = AsyncTools(session)
await session.add(await tools.answer(call))
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from foldline.errors import check_type
from foldline.message import Message
from foldline.recall.tools import ToolAnswer, Tools
from foldline.session.async_session import AsyncSession


class AsyncTools:
    """The tools of one session; every call runs in a thread."""

    definitions = staticmethod(Tools.definitions)

    def __init__(self, session: AsyncSession) -> None:
        check_type(session, AsyncSession, "session", hint="AsyncTools(AsyncSession(…)), or Tools(session)")
        self.session = session
        self._tools = Tools(session.session)

    async def run_call(self, call: Any) -> ToolAnswer:
        """Run a call, given as a `ToolCall`, a dict of a wire format, or an SDK object."""
        return await asyncio.to_thread(self._tools.run_call, call)

    async def run(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Run the tool with this name; the arguments are already parsed."""
        return await asyncio.to_thread(self._tools.run, name, arguments)

    async def answer(self, call: Any) -> Message:
        """The message that answers a call, to be added to the session."""
        return await asyncio.to_thread(self._tools.answer, call)
