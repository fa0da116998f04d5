"""Wrong settings of the simulated provider are refused when they are made, not at the first request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from foldline import FoldlineError
from foldline.testing import SimulatedProvider
from foldline.testing.provider import Account, ScriptedReply, SimulatedModel, call, fail, judge
from foldline.testing.provider.script import Script

WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a list of models": (lambda: SimulatedProvider(models=["gpt-5"]), "models must be Mapping, not list"),  # type: ignore[arg-type]
    "a window": (lambda: Account(models={"gpt-5": "x"}), "window must be int, not str"),  # type: ignore[dict-item]
    "a negative window": (lambda: SimulatedModel(window=-1), "must not be negative"),
    "an overflow": (lambda: SimulatedModel(overflow="explode"), "unknown overflow 'explode'"),  # type: ignore[arg-type]
    "a status": (lambda: fail(99), "99 is not an error status"),
    "a failure": (lambda: fail("fire"), "unknown failure 'fire'"),  # type: ignore[arg-type]
    "an answer": (lambda: Script().extend([{"text": "Hi"}]), "a scripted answer must be str or"),  # type: ignore[list-item]
    "calls": (lambda: ScriptedReply(calls=[call("a", x=1), call("b", y=2)]), "a call must be a name and arguments"),  # type: ignore[arg-type]
    "one call": (lambda: ScriptedReply(calls=("bash", {"command": "ls"})), "a call must be a name and"),  # type: ignore[arg-type]
    "no calls": (lambda: ScriptedReply(calls=call("a")), "calls must be a tuple of calls"),  # type: ignore[arg-type]
    "a format": (lambda: judge("nope", {}), "unknown request format 'nope'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_setting_is_refused_in_words(name: str) -> None:
    make, words = WRONG[name]
    with pytest.raises(FoldlineError, match=words) as caught:
        make()
    assert caught.value.hint


def test_formats_have_the_names_that_they_have_elsewhere() -> None:
    assert judge("openai-responses", {"model": "gpt-5", "input": "Hello"}) is None
