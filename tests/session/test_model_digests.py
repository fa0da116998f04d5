"""Digests by a model, over several folds, against the simulated provider."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from foldline import Policy, Session, digesters
from foldline.digest.digester import Digester
from foldline.digesters import DigesterCall
from foldline.message import assistant, user
from foldline.testing import SimulatedProvider, proper

pytest.importorskip("openai")
pytest.importorskip("anthropic")

SMALL = Policy.preset("balanced").but(window_tokens=12_000, reply_tokens=500, background=False)


def folded(digester: Digester | Callable[[DigesterCall], str], turns: int = 60) -> list[str]:
    """Who wrote the digest of each fold of a session."""
    failures: list[str] = []
    writers: list[str] = []
    session = Session(
        model="gpt-5",
        policy=SMALL,
        digester=digester,
        listener=lambda event: failures.append(str(event)) if event.kind == "failed" else None,
    )
    for number in range(turns):
        session.add(user(f"Question {number} about part_{number}.py"), assistant(f"Answer {number}. " * 120))
        before = session.folds
        session.view()
        if session.folds > before:
            fold = session.timeline.fold
            assert fold is not None
            assert fold.digest is not None
            writers.append(fold.digest.by)
    assert not failures
    return writers


@pytest.mark.parametrize("model", ["gpt-5-mini", "o4-mini", "gpt-4.1-mini"])
def test_a_model_of_openai_writes_every_digest_behind_another_address(model: str) -> None:
    with SimulatedProvider() as provider:
        writers = folded(digesters.openai(model, base_url=provider.openai_url, api_key="x"))
        assert not provider.refused
    assert len(writers) > 2
    assert set(writers) == {model}


def test_a_model_of_anthropic_writes_every_digest() -> None:
    with SimulatedProvider() as provider:
        writers = folded(digesters.anthropic("claude-haiku-4-5", base_url=provider.url, api_key="x"))
    assert len(writers) > 2
    assert set(writers) == {"claude-haiku-4-5"}


def test_a_digest_that_keeps_the_earlier_one_and_adds_a_line_is_accepted() -> None:
    def keep(call: DigesterCall) -> str:
        _, has_digest, rest = call.text.partition("<carried-digest>\n")
        prior = rest.partition("\n</carried-digest>")[0]
        return f"{prior}\nThe agent answered one more question." if has_digest else proper(call)

    writers = folded(keep)
    assert len(writers) > 2
    assert set(writers) == {"model"}
