"""Checks the address of a ledger, and shows it without its password.

If a mistyped connection string were used as a file name, its password would appear on the disk and in error messages.
"""

from __future__ import annotations

import re

from foldline.errors import ConfigError

SERVER_SCHEMES = ("postgresql://", "postgres://")
_HINT = 'use a path, or "postgresql://user:password@host:port/database" with %-codes for special characters'
_CREDENTIALS = re.compile(r"^([a-z+]*:/{0,2}[^:/@]*|[^:/@\\\s]*):(?!//).*@", re.IGNORECASE | re.DOTALL)
_PASSWORD = re.compile(r"(?<![^\W_])(password\s*=\s*)(?:'[^']*'?|[^&\s']*)", re.IGNORECASE)
_SETTING = re.compile(r"(?:^|\s)(?:host|hostaddr|port|user|password|dbname)\s*=", re.IGNORECASE)
_NAME_AND_PASSWORD = re.compile(r"[^/\\:@\s]+:[^/\\@]*@")
_SCHEME_WITHOUT_SLASHES = re.compile(r"postgres(?:ql)?(?:\+\w+)?:(?!//)", re.IGNORECASE)


def check_address(url: str) -> None:
    """Raise `ConfigError` if an address looks like a connection string, but is not a valid PostgreSQL address."""
    if url.startswith(SERVER_SCHEMES):
        place, _, path = url.partition("://")[2].partition("?")[0].partition("/")
        is_wrong = any(char.isspace() for char in url) or place.count("@") > 1 or "@" in path
    elif "://" in url:
        raise ConfigError(f"unknown kind of ledger address: {hide_password(url)}", hint=_HINT)
    else:
        is_wrong = any(sign.match(url) for sign in (_NAME_AND_PASSWORD, _SCHEME_WITHOUT_SLASHES))
        is_wrong = is_wrong or _SETTING.search(url) is not None
    if is_wrong:
        raise ConfigError(f"neither a file nor an address of a ledger: {hide_password(url)}", hint=_HINT)


def hide_password(url: str) -> str:
    """The address with its password replaced by "…".

    >>> hide_password("postgresql://ann:secret@host/db"), hide_password("user=ann password=secret")
    ('postgresql://ann:…@host/db', 'user=ann password=…')
    """
    scheme = next((name for name in SERVER_SCHEMES if url.startswith(name)), "")
    if scheme and any(char.isspace() for char in url):
        return f"{scheme}…"
    return _PASSWORD.sub(r"\1…", _CREDENTIALS.sub(r"\1:…@", url))
