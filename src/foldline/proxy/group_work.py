"""Runs the work on conversations in threads. All work on one `ConversationGroup` is done in the order of its
arrival.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from foldline.proxy.conversations import ConversationGroup

T = TypeVar("T")
THREADS = 32
"""Maximum number of threads. Most of them wait for a commit."""


class GroupWork:
    """Runs work in threads. All work on one group is done in the order of its arrival. Must be used in one
    event loop.
    """

    def __init__(self) -> None:
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="foldline-proxy")
        self._stuck: set[ConversationGroup] = set()

    async def run(self, group: ConversationGroup, work: Callable[[], T]) -> T:
        """Run `work` in a thread, after all earlier work on the group.

        The next work on the group begins when the thread has ended.
        """
        if group in self._stuck:
            raise TimeoutError("earlier work on this session takes too long")
        group.pending += 1
        try:
            await group.order.acquire()
        except BaseException:
            group.pending -= 1
            raise
        future = asyncio.get_running_loop().run_in_executor(self.threads, work)
        future.add_done_callback(lambda _: self._release(group))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if not future.done():
                self._stuck.add(group)
                future.add_done_callback(_ignore)
            raise

    def _release(self, group: ConversationGroup) -> None:
        """Let the next work on a group begin."""
        self._stuck.discard(group)
        group.pending -= 1
        group.order.release()

    def close(self) -> None:
        """Wait until all threads have ended."""
        self.threads.shutdown(wait=True)


def _ignore(future: asyncio.Future[Any]) -> None:
    """Read the exception of abandoned work, so that asyncio does not report the exception."""
    if not future.cancelled():
        future.exception()
