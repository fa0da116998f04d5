"""Remembers the redacted form of texts that were redacted before.

During a fold, the same text is redacted for the facts, for the transcript that a digester gets, and for the digest. A
text may contain secrets, so only its hash is stored, together with the redacted text.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from threading import Lock

_HASH_BYTES = 16


class ResultMemory:
    """The results of a function from text to text, for the texts that were used last.

    The oldest results are forgotten if there are more than `max_entries`, or if the remembered results have more than
    `max_chars` characters. A result that equals its text counts as 0 characters. If the function is idempotent, each
    result is also remembered as its own result.
    """

    def __init__(self, *, max_entries: int, max_chars: int, is_idempotent: bool = False) -> None:
        self._max_entries, self._max_chars, self._chars = max_entries, max_chars, 0
        self._is_idempotent = is_idempotent
        self._results = dict[bytes, str | None]()
        """The result for the hash of a text; None if the function returned the text unchanged. The oldest is first."""
        self._lock = Lock()

    def result_of(self, function: Callable[[str], str], text: str) -> str:
        """The result of `function` for a text. All calls must pass the same function, which must be deterministic."""
        key = _hash(text)
        with self._lock:
            if key in self._results:
                result = self._results[key] = self._results.pop(key)
                return text if result is None else result
        result = function(text)
        with self._lock:
            self._store(key, None if result == text else result)
            if self._is_idempotent and result != text:
                self._store(_hash(result), None)
        return result

    def _store(self, key: bytes, result: str | None) -> None:
        self._chars += len(result or "") - len(self._results.pop(key, None) or "")
        self._results[key] = result
        while len(self._results) > self._max_entries or self._chars > self._max_chars:
            oldest = next(iter(self._results))
            self._chars -= len(self._results.pop(oldest) or "")


def _hash(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES).digest()
