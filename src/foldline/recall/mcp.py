"""The same tools for any client that speaks the Model Context Protocol, over standard input and output.

A server is bound to one session of one owner when it is started; nothing that a client sends can choose another.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from foldline.errors import ConfigError
from foldline.recall.tools import TOOLS, Sitting, Tools

if TYPE_CHECKING:
    from mcp.server import Server

INSTRUCTIONS = (
    "Older parts of this conversation may have been replaced by a digest. Everything that was said is kept: use recall "
    "with a question, or with a handle such as #120-131 that a digest or a stub names."
)


def server(session: Sitting) -> Server[Any]:
    """An MCP server that offers the tools of one session."""
    try:
        import mcp_types as types  # noqa: PLC0415  # an extra
        from mcp.server import Server  # noqa: PLC0415  # an extra
    except ImportError:
        raise ConfigError("mcp is not installed", hint="pip install 'foldline[mcp]'") from None
    tools = Tools(session)
    offered = [types.Tool(name=tool.name, description=tool.description, input_schema=tool.schema) for tool in TOOLS]

    async def listed(_: Any, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=offered)

    async def called(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        answer = await asyncio.to_thread(tools.carry_out, params.name, params.arguments or {})
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answer.text)], is_error=answer.is_error
        )

    return Server("foldline", instructions=INSTRUCTIONS, on_list_tools=listed, on_call_tool=called)


def serve(session: Sitting) -> None:
    """Answer on standard input and output until the client hangs up."""
    made = server(session)

    async def run() -> None:
        from mcp.server.stdio import stdio_server  # noqa: PLC0415  # an extra

        async with stdio_server() as (read, write):
            await made.run(read, write, made.create_initialization_options())

    asyncio.run(run())
