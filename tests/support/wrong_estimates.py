"""A session whose estimates are wrong by a factor, and a provider that reports usage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from foldline import Policy, Session
from foldline.events import Event
from foldline.measure.estimator import Count
from foldline.measure.tokenizers import exact_counter
from support.counting import words

POLICY = Policy.preset("balanced").but(window_tokens=60_000, reply_tokens=1_000)
EXACT = exact_counter("o200k_base", "o200k_base")


class LowCounter:
    """An estimate that is too low (or too high) by a factor."""

    exact = False

    def __init__(self, factor: float) -> None:
        self.factor, self.name = factor, f"a count divided by {factor}"

    def count(self, text: str) -> Count:
        return Count(max(round(tokens(text) / self.factor), 1) if text else 0, False, self.name)


def tokens(text: str) -> int:
    assert EXACT is not None
    return EXACT.count(text).tokens


class Chat:
    """A session with estimates that are wrong by a factor, and a provider that reports what `figure` returns."""

    def __init__(self, factor: float, hidden: int = 0, policy: Policy = POLICY) -> None:
        self.events: list[Event] = []
        self.counter = LowCounter(factor)
        self.session = Session(
            model="gpt-5", format="openai", policy=policy, counter=self.counter, listener=self.events.append
        )
        self.hidden, self.turns, self.before = hidden, 0, 0

    def turn(self, size: int, figure: Callable[[int, int], int] = lambda real, _before: real) -> tuple[int, int]:
        """One turn. Returns the size that the session shows for the request, and its real size."""
        self.turns += 1
        self.session.add({"role": "user", "content": words(size, self.turns)})
        view = self.session.view()
        real = self.hidden + sum(tokens(message.text) + 4 for message in view.messages)
        prompt, self.before = figure(real, self.before), real
        usage = {"prompt_tokens": prompt, "completion_tokens": 30, "total_tokens": prompt + 30}
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": words(30)}}
        head = {"id": f"c{self.turns}", "object": "chat.completion", "created": 1, "model": "gpt-5"}
        self.session.add({**head, "choices": [choice], "usage": usage})
        return view.tokens, real

    @property
    def corrections(self) -> list[Any]:
        return [event.facts for event in self.events if event.kind == "corrected"]
