"""The page as a Starlette application: the API, the OpenAPI document and the static files.

    app = page_app(foldline.open("agent.db").store)
    uvicorn.run(app, port=8461)

All addresses in the static files are relative, so the application can be mounted below any path that ends in a slash.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from foldline.errors import Conflict, FoldlineError, InputError, LedgerError
from foldline.ledger import Store
from foldline.page.access import PageAccess
from foldline.page.actions import PageActions
from foldline.page.api import PageApi
from foldline.page.operation_table import operation_table
from foldline.page.operations import Operation, openapi_document, read_parameters
from foldline.page.sources import LiveSessions, PageSources
from foldline.redact.redact import redact

STATIC = Path(__file__).parent / "static"
MAX_BODY_BYTES = 64 * 1024 * 1024
"""Maximum size of the body of a call, in bytes. Only a transcript that is dropped on the page can have a large body."""


def page_app(  # noqa: PLR0913  # all but one are keyword-only
    ledger: Store,
    *,
    live: LiveSessions | None = None,
    token: str = "",
    all_owners: bool = False,
    logs: Sequence[str] = (),
    label: str = "",
    read_only: bool = False,
) -> Starlette:
    """The page for a ledger's store. The caller closes the store.

    `live` returns the sessions with a request that is being answered. With `all_owners`, the sessions of every owner
    are shown; without it, only those of the store's owner. `logs` are folders with session files of agents, which are
    shown read-only. `label` names the ledger. With a `token`, every call needs `Authorization: Bearer TOKEN`; without
    one, only requests from this machine are answered.
    """
    sources = PageSources(ledger, live=live, all_owners=all_owners, logs=logs, label=label, read_only=read_only)
    operations = operation_table(PageApi(sources), PageActions(sources))
    document = openapi_document(operations)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> Any:
        yield
        await run_in_threadpool(sources.close)

    async def openapi(_: Request) -> Response:
        return JSONResponse(document)

    routes = [
        *(Route(f"/api/{one.path}", _endpoint(one), methods=["POST" if one.changes else "GET"]) for one in operations),
        Route("/api/openapi.json", openapi),
        Route("/api/{path:path}", _unknown, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
        Mount("/", StaticFiles(directory=STATIC, html=True)),
    ]
    middleware = [Middleware(PageAccess, token=token), Middleware(GZipMiddleware, minimum_size=2_000, compresslevel=5)]
    return Starlette(routes=routes, middleware=middleware, lifespan=lifespan)


def _endpoint(operation: Operation) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        try:
            given = await _body(request) if operation.changes else dict(request.query_params)
            values = read_parameters(operation, given)
            value = await run_in_threadpool(operation.call, **values)
        except FoldlineError as error:
            return _refusal(error)
        return _json(request, value)

    return answer


def _json(request: Request, value: Any) -> Response:
    """The response with an answer. If the client already has this answer, the response has status 304 and no body."""
    version = value.get("version") if isinstance(value, dict) else None
    headers = {"cache-control": "no-store"}
    if version:
        headers["etag"] = f'"{version}"'
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
    return JSONResponse(value, headers=headers)


async def _body(request: Request) -> dict[str, Any]:
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            raise InputError(f"the body has more than {MAX_BODY_BYTES:,} bytes", hint="send a smaller body")
        chunks.append(chunk)
    try:
        value = json.loads(b"".join(chunks))
    except (ValueError, RecursionError):
        raise InputError("the body is not JSON", hint="send a JSON object") from None
    if not isinstance(value, dict):
        raise InputError("the body is not a JSON object", hint="send a JSON object")
    return value


def _refusal(error: FoldlineError) -> Response:
    status = 409 if isinstance(error, Conflict) else 503 if isinstance(error, LedgerError) else 400
    return JSONResponse({"error": redact(error.message), "hint": redact(error.hint or "")}, status_code=status)


async def _unknown(_: Request) -> Response:
    return JSONResponse({"error": "unknown path", "hint": "see api/openapi.json"}, status_code=404)
