"""Token counters of the compat APIs: a counter of foldline, or a plain function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast

from foldline.errors import ConfigError
from foldline.measure.estimator import Count, Counter

CountFunction: TypeAlias = Callable[[str], int | tuple[int, bool]]
"""Takes a text; returns its number of tokens (an estimate), or that number and whether it is exact."""


def counter_of(given: Counter | CountFunction) -> Counter:
    """A counter as the engine uses it."""
    if not hasattr(given, "count") and callable(given):
        return FunctionCounter(given)
    if hasattr(given, "count") and hasattr(given, "name"):
        return cast("Counter", given)
    raise ConfigError(
        f"cannot count tokens with {given!r}", hint="pass a function that takes a text and returns a number"
    )


class FunctionCounter:
    """A counter made from a function."""

    exact = True
    """Whether a count can be exact; each count says whether it is."""

    def __init__(self, function: CountFunction) -> None:
        self._function = function
        self.name: str = getattr(function, "__name__", type(function).__name__)

    def count(self, text: str) -> Count:
        """Count a text."""
        found = self._function(text)
        tokens, exact = found if isinstance(found, tuple) else (found, False)
        return Count(max(0, int(tokens)), bool(exact), self.name)


class ExactnessCounter:
    """A counter that records whether every count since `all_exact` was set to True was exact."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self.name, self.exact, self.all_exact = counter.name, counter.exact, True

    def count(self, text: str) -> Count:
        """Count a text."""
        found = self._counter.count(text)
        self.all_exact = self.all_exact and found.exact
        return found
