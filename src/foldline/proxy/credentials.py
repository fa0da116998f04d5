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

_NAMES = frozenset((b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key"))
"""Headers that hold a credential."""
_OWNER = "foldline-proxy"
_SESSION, _KIND = "settings", "credential-key"
NO_CREDENTIAL = "key-none"
"""The tenant of requests without a credential."""
MAX_TENANTS = 1_024
"""Maximum number of tenants that are remembered."""


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


class CredentialHash:
    """Computes the tenant of each request: the keyed hash of its credentials.

    Computing this hash takes longer than all other work on the headers. So computed tenants are cached in memory. The
    cache finds a tenant by a second, faster hash of the credentials, whose key is never stored.
    """

    def __init__(self, key: bytes) -> None:
        self._key, self._quick_key = key, secrets.token_bytes(32)
        self._tenants: dict[bytes, str] = {}

    def tenant(self, headers: RawHeaders, query: bytes = b"") -> str:
        """The tenant of a request with these headers and this query."""
        held = sorted([(name.lower(), value) for name, value in headers if name.lower() in _NAMES])
        found = [b"%s\0%d\0%s" % (name, len(value), value) for name, value in held]
        if b"key=" in query:
            found += [b"key\0" + value.encode() for value in parse_qs(query.decode("latin-1")).get("key", ())]
        if not found:
            return NO_CREDENTIAL
        text = b"\0".join(found)
        place = hashlib.blake2b(text, key=self._quick_key, digest_size=32).digest()
        tenant = self._tenants.get(place)
        if tenant is None:
            tenant = "key-" + hmac.digest(self._key, text, "sha256").hex()[:32]
            if len(self._tenants) >= MAX_TENANTS:
                self._tenants.clear()
            self._tenants[place] = tenant
        return tenant
