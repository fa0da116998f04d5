"""Token counters of the compat APIs: a counter of foldline, or a plain function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast

from foldline.errors import ConfigError
from foldline.measure.estimator import Count, Counter

CountFunction: TypeAlias = Callable[[str], int | tuple[int, bool]]
"""A function that gets a text and returns its number of tokens.

The function may also return a tuple: the number of tokens, and whether it is exact. A number without this flag counts
as an estimate.
"""


def counter_of(given: Counter | CountFunction) -> Counter:
    """The given counter, or a `FunctionCounter` for a given function."""
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
    """True, because the counts may be exact. Each `Count` says whether it is exact."""

    def __init__(self, function: CountFunction) -> None:
        self._function = function
        self.name: str = getattr(function, "__name__", type(function).__name__)

    def count(self, text: str) -> Count:
        """Count a text."""
        found = self._function(text)
        tokens, exact = found if isinstance(found, tuple) else (found, False)
        return Count(max(0, int(tokens)), bool(exact), self.name)


class ExactnessCounter:
    """A counter that also records whether all counts were exact. Set `all_exact` to True to start again."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self.name, self.exact, self.all_exact = counter.name, counter.exact, True

    def count(self, text: str) -> Count:
        """Count a text."""
        found = self._counter.count(text)
        self.all_exact = self.all_exact and found.exact
        return found
