"""Computes how many tokens of a request were paid again, although the provider's prompt cache had held them."""

from __future__ import annotations

from foldline.message import Usage

MIN_MISS = 1_024
"""A miss of fewer tokens is not counted: providers round the length of a cached prefix down, and cache no shorter one.
"""


def paid_again(held: int, usage: Usage, *, left: int = 0, new: int = 0) -> int:
    """The number of tokens that the cache held, that a request repeats, and that were not read from the cache.

    `held` is the number of tokens that the cache held after the previous request. `left` of these tokens are no longer
    in the request, for example because a fold removed them. `new` is the number of tokens that are in this request but
    not in the previous one. If the request is at least as large as `held`, `new` is ignored: the request is then taken
    to repeat all `held` tokens except `left`.

    >>> paid_again(20_000, Usage(cache_read=4_000, cache_write=6_000), left=11_000)
    5000
    """
    most = usage.prompt if usage.prompt >= held else usage.prompt - new
    missed = min(held - left, most) - usage.cache_read
    return missed if missed >= MIN_MISS else 0


class RequestChain:
    """The requests of one conversation, in their order."""

    def __init__(self) -> None:
        self.previous: Usage | None = None
        self._smallest = 0

    def paid_again(self, usage: Usage, *, left: int | None = 0, new: int = 0) -> int:
        """The tokens that the next request of the conversation pays again (see the function `paid_again`).

        If `left` is None, a summary replaced the history. The request then repeats only what the client sends beside
        its messages, for example tools. The record does not show the size of this part. The smallest earlier request is
        used as an upper limit.
        """
        held = self._held(usage)
        if left is None:
            left = max(0, held - self._smallest)
        self._smallest = usage.prompt if self.previous is None else min(self._smallest, usage.prompt)
        self.previous = usage
        return paid_again(held, usage, left=left, new=new)

    def _held(self, usage: Usage) -> int:
        """The number of tokens that the cache held before a request with this usage.

        If the provider reports cache reads but no cache writes, the cache is taken to hold the whole previous request.
        """
        before = self.previous or Usage()
        if before.cache_write:
            return before.cache_read + before.cache_write
        return before.prompt if before.cache_read or usage.cache_read else 0
