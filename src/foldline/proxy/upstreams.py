"""The configured providers, and the address to which a request is passed on.

The address depends on the configuration and on the path of the request. Requests are sent only to configured hosts: no
header and no field of a request can name another host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from yarl import URL

from foldline.errors import ConfigError
from foldline.proxy.api_calls import VENDORS
from foldline.proxy.forwarded_headers import RawHeaders

NAMES = tuple(dict.fromkeys(VENDORS.values()))
_UNSAFE = re.compile(rb"[\x00-\x20\x7f\\#]|(?:^|/)(?:\.|%2e){1,2}(?=/|;|\Z)", re.IGNORECASE)
"""Matches a path that a server may resolve to another path, such as one with `..`."""
_SIGNS = {b"anthropic-version": "anthropic", b"x-goog-api-key": "gemini"}
"""Headers by which the vendor is recognised if the path does not determine it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstreams:
    """The base addresses of the providers: one for all requests, or one for each vendor."""

    shared: URL | None = None
    by_vendor: Mapping[str, URL] = field(default_factory=dict)

    @classmethod
    def parse(cls, values: Iterable[str]) -> Upstreams:
        """Read values such as `https://api.anthropic.com` or `openai=http://127.0.0.1:8000/v1`.

        >>> Upstreams.parse(["openai=http://127.0.0.1:8000"]).by_vendor["openai"].port
        8000
        """
        shared, by_vendor = None, {}
        for value in values:
            name, equals, address = value.partition("=")
            if equals and name.strip().isalpha():
                if name not in NAMES:
                    raise ConfigError(f"unknown vendor {name!r} in --upstream", hint=f"use one of {', '.join(NAMES)}")
                by_vendor[name] = _address(address)
            elif shared is not None:
                raise ConfigError("two upstreams without a vendor", hint="write anthropic=URL and openai=URL")
            else:
                shared = _address(value)
        if shared is None and not by_vendor:
            raise ConfigError("no upstream is set", hint="name one: --upstream https://api.anthropic.com")
        return cls(shared=shared, by_vendor=by_vendor)

    def choose(self, vendor: str | None, headers: RawHeaders) -> URL | None:
        """The base address for a vendor. If `vendor` is None, the headers determine the vendor."""
        if vendor is None:
            vendor = next((_SIGNS[name] for name, _ in headers if name in _SIGNS), "openai")
            if vendor not in self.by_vendor and len(self.by_vendor) == 1:
                vendor = next(iter(self.by_vendor))
        return self.by_vendor.get(vendor, self.shared)


def _address(text: str) -> URL:
    try:
        url = URL(text.strip())
        usable = url.scheme in ("http", "https") and bool(url.host) and not (url.query_string or url.fragment)
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(
            f"{text!r:.80} is not an address of a provider", hint="write https://HOST or http://HOST:PORT"
        )
    if url.user or url.password:
        raise ConfigError("an upstream may not contain a user or a password", hint="clients send their own credentials")
    return url


def target(base: URL, path: bytes, query: bytes) -> URL | None:
    """The address of a request at a provider; None if the path is unsafe.

    The path of the base comes before the path of the request. If the base ends with a part such as `/v1`, and the path
    of the request begins with the same part, the part is not repeated.

    >>> str(target(URL("http://h/v1"), b"/v1/models", b"limit=5"))
    'http://h/v1/models?limit=5'
    """
    if not query:  # a query may hold a credential, which must not be remembered
        return _path_target(base, path)
    if _UNSAFE.search(query):
        return None
    url = _path_target(base, path)
    return url and URL(f"{url}?{query.decode('latin-1')}", encoded=True)


@lru_cache(maxsize=256)
def _path_target(base: URL, path: bytes) -> URL | None:
    """The address of a request without a query; None if the path is unsafe."""
    if not path.startswith(b"/") or path.startswith(b"//") or _UNSAFE.search(path):
        return None
    front = base.raw_path.rstrip("/")
    text = path.decode("latin-1")
    last = front.rpartition("/")[2]
    if last and text.startswith(f"/{last}/"):
        front = front[: -len(last) - 1]
    return URL(f"{base.origin()}{front}{text}", encoded=True)
