"""Signed opaque values (signatures, encrypted content), which a provider sends out and later recognises."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from typing import Any


class Seal:
    """Signs values with a key. Two seals with the same key recognise each other's values."""

    def __init__(self, key: str = "simulated provider") -> None:
        self._key = key.encode()

    def sign(self, value: dict[str, Any]) -> str:
        """A base64 text that holds the value and its signature."""
        data = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
        return base64.b64encode(self._mac(data) + data).decode()

    def read(self, text: str) -> dict[str, Any] | None:
        """The value in a text that was signed with this key; None for any other text.

        Both base64 alphabets are accepted.
        """
        try:
            raw = base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
        except (binascii.Error, ValueError):
            return None
        mac, data = raw[:16], raw[16:]
        if not hmac.compare_digest(mac, self._mac(data)):
            return None
        value: dict[str, Any] = json.loads(data.decode())
        return value

    def _mac(self, data: bytes) -> bytes:
        return hmac.new(self._key, data, hashlib.blake2b).digest()[:16]
