"""Sends requests to providers and reads their responses as they arrive."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from foldline.events import LOG

_AUTOMATIC = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that aiohttp adds by default. They are switched off, so that only the client's own headers are sent."""


class UpstreamFailed(Exception):
    """The provider sent no response. `status` is the HTTP status for the client."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamLimits:
    """Time limits for requests to a provider, in seconds."""

    connect_s: float = 20.0
    silence_s: float = 600.0
    """The longest pause before or within a response."""


class UpstreamClient:
    """The connections to all providers. Must be opened inside a running event loop."""

    def __init__(self, limits: UpstreamLimits) -> None:
        self._session = aiohttp.ClientSession(
            auto_decompress=False,
            trust_env=False,  # aiohttp would read ~/.netrc for each request, and send the credentials in it
            cookie_jar=aiohttp.DummyCookieJar(),
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=15.0, ssl=ssl.create_default_context()),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=limits.connect_s, sock_read=limits.silence_s),
            skip_auto_headers=_AUTOMATIC,
            max_line_size=64 * 1024,
            max_field_size=64 * 1024,
        )
        self._proxies: dict[URL, URL | None] = {}
        """The proxy for each provider, by the origin of the provider's address."""

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def send(
        self, method: str, url: URL, headers: list[tuple[str, str]], data: bytes | AsyncIterator[bytes] | None
    ) -> aiohttp.ClientResponse:
        """The response to a request, as soon as its headers have arrived.

        Raises `UpstreamFailed` if there is no response.
        """
        origin = url.origin()
        if origin not in self._proxies:
            self._proxies[origin] = environment_proxy(origin)
        options: dict[str, Any] = {"headers": headers, "data": data, "allow_redirects": False}
        options["proxy"] = self._proxies[origin]
        try:
            return await self._session.request(method, url, **options)
        except TimeoutError:
            raise UpstreamFailed(504, f"foldline: {url.host} did not answer in time") from None
        except aiohttp.ClientError as error:
            raise UpstreamFailed(502, f"foldline: {url.host} cannot be reached ({type(error).__name__})") from None
        except ValueError as error:
            raise UpstreamFailed(502, f"foldline: the answer of {url.host} cannot be read ({error})") from None


def environment_proxy(origin: URL) -> URL | None:
    """The HTTP proxy through which the provider at `origin` is reached; None if it is reached directly.

    The environment variables `HTTPS_PROXY` and `HTTP_PROXY` hold the addresses of HTTP proxies. `NO_PROXY` lists the
    hosts that are reached directly.
    """
    address = getproxies().get(origin.scheme)
    if not address or proxy_bypass(f"{origin.host}:{origin.port}"):
        return None
    try:
        proxy = URL(address if "://" in address else f"http://{address}")
    except ValueError:
        proxy = URL()
    if proxy.scheme == "http" and proxy.host:
        return proxy
    LOG.warning("the proxy for %s is ignored: only http://HOST:PORT is supported", origin)
    return None
