"""The same tools for any client that speaks the Model Context Protocol, over standard input and output.

A server is bound to one session of one owner when it is started; nothing that a client sends can choose another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from foldline.errors import ConfigError
from foldline.recall.tools import TOOLS, Tools, ToolSession

if TYPE_CHECKING:
    from mcp.server import Server

INSTRUCTIONS = (
    "Older parts of this conversation may have been replaced by a digest. Everything that was said is kept: use recall "
    "with a question, or with a handle such as #120-131 that a digest or a stub names."
)

SEEN = "Noted: it is done at the end of this turn."
"""The answer to a call whose only purpose is to be seen."""


def server(session: ToolSession, beside: Sequence[Mapping[str, Any]] = ()) -> Server[Any]:
    """An MCP server that offers the tools of one session, and `beside` them tools that others act on who see the call.

    One call is carried out after the other: a session is one conversation.
    """
    try:
        import mcp_types as types  # noqa: PLC0415  # an extra
        from mcp.server import Server  # noqa: PLC0415  # an extra
    except ImportError:
        raise ConfigError("mcp is not installed", hint="pip install 'foldline[mcp]'") from None
    tools, turn = Tools(session), asyncio.Lock()
    offered = [types.Tool(name=tool.name, description=tool.description, input_schema=tool.schema) for tool in TOOLS]
    seen = [types.Tool.model_validate(dict(tool)) for tool in beside]
    only_seen = {tool.name for tool in seen}

    async def listed(_: Any, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=offered + seen)

    async def called(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name in only_seen:
            return types.CallToolResult(content=[types.TextContent(type="text", text=SEEN)])
        async with turn:
            answer = await asyncio.to_thread(tools.carry_out, params.name, params.arguments or {})
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answer.text)], is_error=answer.is_error
        )

    return Server("foldline", instructions=INSTRUCTIONS, on_list_tools=listed, on_call_tool=called)


def serve(session: ToolSession, beside: Sequence[Mapping[str, Any]] = ()) -> None:
    """Answer on standard input and output until the client hangs up."""
    made = server(session, beside)

    async def run() -> None:
        from mcp.server.stdio import stdio_server  # noqa: PLC0415  # an extra

        async with stdio_server() as (read, write):
            await made.run(read, write, made.create_initialization_options())

    try:
        asyncio.run(run())
    except* (BrokenPipeError, ConnectionResetError):
        pass  # the client has gone without a word
