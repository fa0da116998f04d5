"""Distinguishes clients by their credentials. Only a keyed hash of a credential is stored.

The hash is the tenant id in the ledger, so a client can neither read nor change the sessions of another credential. The
key of the hash is random and stored in the ledger, so that all processes that use the same ledger get the same hashes.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from urllib.parse import parse_qs

from foldline import ledger
from foldline.ledger import Store
from foldline.proxy.forwarded_headers import RawHeaders

_NAMES = (b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key")
"""Headers that hold a credential."""
_OWNER = "foldline-proxy"
_SESSION, _KIND = "settings", "credential-key"
NO_CREDENTIAL = "key-none"
"""The tenant of requests without a credential."""


def hash_key(store: Store) -> bytes:
    """The key of the hash. It is stored in the ledger, and created when it is first needed."""
    own = ledger.for_owner(store, _OWNER)
    branch = own.session(_SESSION)
    for _ in range(2):
        for event in own.events(branch, limit=10):
            if event.kind == _KIND:
                return bytes.fromhex(event.body["key"])
        own.event(branch, _KIND, {"key": secrets.token_bytes(32).hex()})
    return bytes.fromhex(own.events(branch, limit=1)[0].body["key"])


def tenant_of(headers: RawHeaders, query: bytes, key: bytes) -> str:
    """The tenant of a request: the keyed hash of its credentials."""
    held = sorted((name.lower(), value) for name, value in headers if name.lower() in _NAMES)
    found = [b"%s\0%d\0%s" % (name, len(value), value) for name, value in held]
    if b"key=" in query:
        found += [b"key\0" + value.encode() for value in parse_qs(query.decode("latin-1")).get("key", ())]
    if not found:
        return NO_CREDENTIAL
    return "key-" + hmac.new(key, b"\0".join(found), hashlib.sha256).hexdigest()[:32]
