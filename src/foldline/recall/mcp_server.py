"""An MCP server over standard input and output that offers the tools of `tools.py`.

The server offers one session of one owner. The session is set at the start; a client cannot select another session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from foldline.errors import ConfigError, extra_hint
from foldline.recall.tools import TOOLS, Tools, ToolSession

if TYPE_CHECKING:
    from mcp.server import Server

INSTRUCTIONS = (
    "Older parts of this conversation may have been replaced by a digest. Everything that was said is kept: use recall "
    "with a question, or with a handle such as #120-131 that a digest or a stub names."
)

NOTED = "Noted: it is done at the end of this turn."
"""The answer to a call of a tool in `observed_tools` (see `server`)."""


def server(session: ToolSession, observed_tools: Sequence[Mapping[str, Any]] = ()) -> Server[Any]:
    """An MCP server with the tools of one session and with `observed_tools`.

    A tool of `observed_tools` is offered, but not run: the server only confirms each call. `foldline watch` sees the
    call and acts on it. Calls of the session's own tools run one after the other, because a session is one
    conversation.
    """
    try:
        import mcp_types as types  # noqa: PLC0415  # an extra
        from mcp.server import Server  # noqa: PLC0415  # an extra
    except ImportError:
        raise ConfigError("mcp is not installed", hint=extra_hint("mcp")) from None
    tools, lock = Tools(session), asyncio.Lock()
    offered = [types.Tool(name=tool.name, description=tool.description, input_schema=tool.schema) for tool in TOOLS]
    observed = [types.Tool.model_validate(dict(tool)) for tool in observed_tools]
    observed_names = {tool.name for tool in observed}

    async def list_tools(_: Any, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=offered + observed)

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name in observed_names:
            return types.CallToolResult(content=[types.TextContent(type="text", text=NOTED)])
        async with lock:
            answer = await asyncio.to_thread(tools.run, params.name, params.arguments or {}, list(observed_names))
        text = types.TextContent(type="text", text=answer.text)
        return types.CallToolResult(content=[text], is_error=answer.is_error)

    return Server(
        "foldline",
        version=version("foldline"),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def serve(session: ToolSession, observed_tools: Sequence[Mapping[str, Any]] = ()) -> None:
    """Serve on standard input and output until the client disconnects."""
    mcp = server(session, observed_tools)

    async def run() -> None:
        from mcp.server.stdio import stdio_server  # noqa: PLC0415  # an extra

        async with stdio_server() as (read, write):
            await mcp.run(read, write, mcp.create_initialization_options())

    try:
        asyncio.run(run())
    except* (BrokenPipeError, ConnectionResetError):
        pass  # the client has disconnected
