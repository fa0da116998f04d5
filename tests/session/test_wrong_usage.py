"""Usage figures that are wrong in every reply: the view still fits, and no fold is made in vain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from foldline import Policy, Session, ViewTooLarge
from foldline.testing.provider import Account, ScriptedReply

Figure = Callable[[int, int], int]
POLICY = Policy.preset("balanced").but(window_tokens=16_000, reply_tokens=1_000)


class RunningTotal:
    """Figures of a client that adds up all requests of a session."""

    def __init__(self) -> None:
        self.total = 0

    def __call__(self, _number: int, real: int) -> int:
        self.total += real
        return self.total


FIGURES: dict[str, Callable[[], Figure]] = {
    "only tokens that were not cached, from the fourth reply on": lambda: (
        lambda number, real: real if number < 3 else 340
    ),
    "only new tokens": lambda: lambda number, _real: 392 if number else 290,
    "only new tokens, late": lambda: lambda number, real: real if number < 10 else 392,
    "next to nothing": lambda: lambda _number, _real: 5,
    "running totals": RunningTotal,
}


@pytest.mark.promise("I3", "I10")
@pytest.mark.parametrize("kind", FIGURES)
def test_wrong_figures_in_every_reply_neither_overfill_nor_end_a_session(kind: str) -> None:
    figure, session = FIGURES[kind](), Session(model="gpt-4o", policy=POLICY)
    for number in range(60):
        session.add({"role": "user", "content": f"question {number}: " + "why does the build fail here? " * 40})
        view = session.view()
        real = sum(map(session.size, view.messages))
        assert real <= view.usable
        assert 0.5 * real - 1_000 <= view.tokens <= 1.3 * real + 1_000
        prompt = figure(number, real)
        message = {"role": "assistant", "content": "because the worker drops jobs " * 20}
        usage = {"prompt_tokens": prompt, "completion_tokens": 100, "total_tokens": prompt + 100}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        reply = {"id": f"c{number}", "object": "chat.completion", "created": 1, "model": "gpt-4o"}
        session.add({**reply, "usage": usage, "choices": [choice]})
    assert 1 <= session.folds <= 3


# Single figures

SMALL = Policy.preset("balanced").but(window_tokens=12_000, reply_tokens=1_000)


def reply(usage: dict[str, Any], text: str = "ok") -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-5"}
    return {**head, "choices": [choice], "usage": usage}


def figures(prompt: int, output: int = 1, **details: int) -> dict[str, Any]:
    known = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
    return {**known, "prompt_tokens_details": details} if details else known


def conversation(turns: int, **settings: Any) -> Session:
    session = Session(model="gpt-5", format="openai", policy=SMALL, **settings)
    session.add({"role": "user", "content": "The queue keeps its order. " * 20})
    for _ in range(turns):
        session.add({"role": "assistant", "content": "Yes, it does so. " * 20})
        session.add({"role": "user", "content": "And then what happens? " * 20})
    return session


IMPLAUSIBLE: dict[str, Callable[[int], dict[str, Any]]] = {
    "100 times": lambda size: figures(100 * size),
    "20 times": lambda size: figures(max(20 * size, 12_000)),
    "an output of a billion": lambda size: figures(size, 10**9),
    "an output of 9,000": lambda size: figures(size, 9_000),
    "an output of 500": lambda size: figures(size, 500),
    "more cached than sent": lambda size: figures(size, cached_tokens=2 * size),
    "nothing but cached tokens": lambda size: figures(0, cached_tokens=size // 2),
    "less than nothing": lambda size: figures(-5, cached_tokens=size // 2),
    "half": lambda size: figures(size // 2),
    "a quarter": lambda size: figures(size // 4),
}


@pytest.mark.promise("I3", "I10")
@pytest.mark.parametrize("turns", [0, 3, 15, 20])
@pytest.mark.parametrize("kind", IMPLAUSIBLE)
def test_an_implausible_figure_changes_nothing_if_the_view_was_counted(kind: str, turns: int) -> None:
    session = conversation(turns)
    before = session.view()
    assert before.exact
    session.add(reply(IMPLAUSIBLE[kind](before.tokens)), {"role": "user", "content": "go on"})
    view = session.view()
    assert session.folds == 0
    assert before.tokens - 100 <= view.tokens <= before.tokens + 100
    assert "hidden" not in view.blocks


@pytest.mark.promise("I3", "I10")
@pytest.mark.parametrize("factor", [2, 5, 10, 30, 100])
def test_figures_that_are_a_multiple_of_the_size_never_fold_or_end_a_session(factor: int) -> None:
    session = Session(model="gpt-5", format="openai", policy=SMALL)
    for number in range(12):
        session.add({"role": "user", "content": f"question {number}: " + "why does the build fail here? " * 40})
        size = sum(map(session.size, session.view().messages))
        session.add(reply(figures(factor * size), "because the worker drops jobs " * 20))
    assert size < 6_000
    assert session.folds == 0


@pytest.mark.promise("I10")
def test_a_single_figure_with_many_hidden_tokens_makes_no_fold_and_a_second_one_does() -> None:
    session = conversation(4)
    size = session.view().tokens
    session.add(reply(figures(size + 6_000)), {"role": "user", "content": "go on"})
    assert session.view().tokens == pytest.approx(size + 6_000, abs=100)
    session.add({"role": "user", "content": "The queue keeps its order. " * 600})
    view = session.view()
    assert session.folds == 0
    assert view.tokens < 0.9 * view.usable
    real = sum(map(session.size, view.messages)) + 6_000
    session.add(reply(figures(real)), {"role": "user", "content": "go on"})
    assert session.view().tokens < real
    assert session.folds == 1


@pytest.mark.promise("I10")
def test_hidden_tokens_that_fill_the_window_are_believed_when_a_second_figure_shows_them() -> None:
    session = conversation(0)
    hidden = 20_000
    session.add(reply(figures(session.view().tokens + hidden)))
    session.add({"role": "user", "content": "And then what happens? " * 40})
    view = session.view()
    assert view.tokens < 1_000, "one figure may be wrong"
    session.add(reply(figures(view.tokens + hidden)), {"role": "user", "content": "go on"})
    with pytest.raises(ViewTooLarge, match="hidden"):
        session.view()


@pytest.mark.promise("I10")
def test_the_output_of_a_reply_may_contain_reasoning_that_is_sent_again() -> None:
    session, account = Session(model="gpt-5", format="openai-responses", policy=SMALL), Account()
    session.add({"role": "user", "content": "Why does the build fail? " * 20})
    size = session.view().tokens
    thought = ScriptedReply(text="ok", thinking="let me see " * 900, calls=(("bash", {"command": "ls"}),))
    session.add(account.answer("openai-responses", session.view().request(), reply=thought).body)
    view = session.view()
    assert "of output" in view.source
    assert view.tokens == pytest.approx(size + 2_700, rel=0.05)


def test_a_figure_below_the_size_of_images_is_believed() -> None:
    """The size of an image is an estimate, also if the model's tokenizer counts the texts."""
    session = Session(model="gpt-5", format="openai", policy=SMALL)
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    session.add({"role": "user", "content": [{"type": "text", "text": "Look. " * 100}, image, image, image]})
    size = session.view().tokens
    assert size > 1_500
    session.add(reply(figures(size // 2 + 50)), {"role": "user", "content": "go on"})
    assert "usage of reply" in session.view().source


# Thinking that the provider does not send again

GEMINI = Policy.preset("balanced").but(window_tokens=20_000, reply_tokens=1_000)


@pytest.mark.promise("I10")
@pytest.mark.parametrize("window", [15_000, 20_000, 22_000, 40_000])
def test_hidden_tokens_count_in_every_window_if_the_provider_drops_thinking(window: int) -> None:
    """The figures grow more slowly than the messages, because only the messages contain the thinking."""
    session = Session(model="gemini-2.5-flash", format="gemini", policy=GEMINI.but(window_tokens=window))
    session.add({"role": "user", "parts": [{"text": "Choose a colour."}]})
    prompt = 12_207
    for number in range(8):
        thought = {"text": f"step {number}: " + "I should look at the files once more. " * 14, "thought": True}
        usage = {"promptTokenCount": prompt, "candidatesTokenCount": 30, "thoughtsTokenCount": 120}
        content = {"role": "model", "parts": [thought, {"text": "The next file is done. " * 4}]}
        candidate = {"content": content, "finishReason": "STOP", "index": 0}
        session.add({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash"})
        session.add({"role": "user", "parts": [{"text": "And now the next file, please. " * 8}]})
        prompt += 90
    hidden = session.load().blocks["hidden"]
    assert 11_000 < hidden < 12_500
