"""Whatever happens in a session, a request is measured as the provider counts it."""

from __future__ import annotations

import json
import re
from functools import partial
from itertools import count
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import foldline
from bench.usage import MODELS, STEPS, RandomSession, StrictProvider, Tally
from foldline.digest.digester import Digester
from foldline.testing import Scripted, proper
from foldline.testing.provider import ScriptedReply
from support.counting import RATES, texts_of, words

OWNERS = count()
"""Every example is an owner of its own."""
DIGESTER = Digester(complete=Scripted(proper), model="simulated", window=200_000)


QUICK: Any = {
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    "phases": [Phase.explicit, Phase.generate],
}


class WordProvider:
    """A provider that counts words and signs, wherever they are in the request."""

    def __init__(self) -> None:
        self.replies = count()

    def tokens(self, model: str, body: dict[str, Any]) -> int:
        """The number of words and signs in the texts of the request."""
        rest = {name: value for name, value in body.items() if name != "tools"}
        found = sum(len(re.findall(r"\w+|[^\w\s]", text)) for text in (*texts_of(rest), json.dumps(body["tools"])))
        return round(RATES.get(model, 1.0) * found) + (346 if MODELS[model] == "anthropic" else 0)

    def answer(self, model: str, body: dict[str, Any], reply: ScriptedReply) -> dict[str, Any] | str:
        """The reply with its exact figures."""
        prompt, output, name = self.tokens(model, body), len(reply.text.split()), f"r{next(self.replies)}"
        if MODELS[model] == "anthropic":
            facts = {"type": "message", "id": name, "role": "assistant", "model": model, "stop_reason": "end_turn"}
            usage = {"input_tokens": prompt, "output_tokens": output}
            return {**facts, "content": [{"type": "text", "text": reply.text}], "usage": usage}
        said = {"role": "assistant", "content": reply.text}
        used = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
        return {"id": name, "object": "chat.completion", "model": model, "choices": [{"message": said}], "usage": used}


class WordSession(RandomSession):
    """A random session of words that every vocabulary has as one token."""

    def text(self, most: int = 6_000) -> str:
        """Some words."""
        return words(self.chance.randint(5, most // 3), self.chance.randrange(1_000))


def check(ground: str, steps: list[str], seed: int, provider: Any, kind: type[RandomSession]) -> None:
    opens = partial(foldline.open, ground, owner=f"o{next(OWNERS)}", digester=DIGESTER)
    tally = Tally()
    session = kind(opens, seed, tally, provider)
    for what in ("turn", "turn", *steps, "turn"):
        session.step(what)
    assert session.opens_again().state.view().tokens == session.session.state.view().tokens
    session.ledger.wait(60)
    session.ledger.close()
    assert not tally.outside
    assert not tally.stale
    assert not tally.refused


@settings(max_examples=12, **QUICK)
@given(st.lists(st.sampled_from([*STEPS, "turn", "late"]), min_size=5, max_size=25), st.integers(0, 10**6))
def test_every_request_is_measured_as_the_provider_counts_it(ground: str, steps: list[str], seed: int) -> None:
    check(ground, steps, seed, WordProvider(), WordSession)


@settings(max_examples=4, **QUICK)
@given(st.lists(st.sampled_from([*STEPS, "turn", "late"]), min_size=10, max_size=25), st.integers(0, 10**6))
def test_the_strict_provider_counts_what_the_session_measures(ground: str, steps: list[str], seed: int) -> None:
    check(ground, steps, seed, StrictProvider(), RandomSession)
