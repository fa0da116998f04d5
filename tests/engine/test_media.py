"""Media by number and weight: a view that a provider would refuse for its pictures is never sent."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline.errors import ViewTooLarge
from foldline.message import Media, Message, Text, ToolCall, ToolResult, assistant, user
from foldline.plan.media_budget import media_in
from foldline.session import Session
from foldline.wire.formats import grammar_of
from foldline.wire.rendering import render
from foldline.wire.validate import check
from strategies import PNG
from support.paths import blocks, drive

LIMITS = grammar_of("anthropic").limits
MOST = LIMITS.media or 0
SMALL = Media(kind="image", mime="image/png", data=PNG)
HEAVY = Media(kind="image", mime="image/png", data="A" * ((LIMITS.media_bytes or 0) + 4))
LARGE = Media(kind="image", mime="image/png", data="A" * 4_000_000)


def prompt(number: int, *media: Media) -> Message:
    return Message(role="user", parts=(Text(text=f"look at {number}"), *media))


def shots(number: int, *media: Media) -> list[Message]:
    """A step whose result shows something."""
    result = ToolResult(call_id=f"c{number}", name="see", parts=(Text(text="seen"), *media))
    return [assistant("", ToolCall(id=f"c{number}", name="see")), Message(role="tool", parts=(result,))]


def shown(messages: tuple[Message, ...]) -> int:
    return sum(len(media_in(message)) for message in messages)


@pytest.mark.promise("I3", "I12", "I6")
def test_pr17_a_session_with_many_pictures_goes_on() -> None:
    """Far below the window: the oldest pictures leave in chunks, each under its handle, and no talk with them."""
    made = Session(model="claude-sonnet-5")
    record = [message for n in range(54) for message in (prompt(n, SMALL), *shots(n, SMALL), assistant("I see."))]
    before: list[str] = []
    for sent in drive(made, [*record, user("so?")]):
        assert sent.view is not None
        body = sent.view.render("anthropic").body
        assert not check("anthropic", body)
        assert sent.folds <= 1
        assert len(sent.view.messages) == sent.given
        now = blocks(body)
        if not sent.folds:
            assert now[: len(before)] == before
        before = now
    assert made.folds == 1
    messages = made.view().messages
    assert shown(messages) >= MOST // 2
    assert messages[0].text == "look at 0[image left out, too many for one request: it is in #1]"


@pytest.mark.promise("I3")
def test_ov29_a_session_with_heavy_pictures_goes_on() -> None:
    """Few tokens and a body of many megabytes."""
    made = Session(model="claude-sonnet-5")
    for n in range(20):
        made.add(prompt(n, LARGE))
        assert not check("anthropic", made.view().render("anthropic").body)
        made.add(assistant("I see."))
    assert len(made.view().messages) == 40
    assert 3 <= shown(made.view().messages) <= 8


@pytest.mark.promise("I3", "I6")
def test_pr18_a_picture_that_nobody_takes_does_not_block_the_session() -> None:
    """It is left out on arrival, wherever it stands; the words beside it stay."""
    made = Session(model="claude-sonnet-5")
    made.add(prompt(0, HEAVY, SMALL), *shots(1, HEAVY))
    view = made.view()
    assert not check("anthropic", view.render("anthropic").body)
    mark = "[image left out, over 5,242,880 bytes: it is in #{}]"
    assert view.messages[0].text == "look at 0" + mark.format(1)
    assert view.messages[2].results[0].text == "seen" + mark.format(3)
    assert shown(view.messages) == 1
    assert view.tokens < 10_000
    assert made.timeline.messages[0].parts[1] is HEAVY, "the record keeps it"


@pytest.mark.promise("I3")
@pytest.mark.parametrize(
    ("media", "says"),
    [((SMALL,) * (MOST + 1), "101 > 100 media"), ((LARGE,) * 10, "40,000,000 > .* bytes of media")],
)
def test_what_is_asked_now_with_too_many_is_refused(media: tuple[Media, ...], says: str) -> None:
    made = Session(model="claude-sonnet-5")
    made.add(prompt(0, *media))
    with pytest.raises(ViewTooLarge, match=says):
        made.view()
    made.add(assistant("Too many."), user("then go on without"))
    assert not check("anthropic", made.view().render("anthropic").body), "once it is answered, it can leave"


@pytest.mark.promise("I3", "I22")
def test_a_policy_that_never_folds_refuses() -> None:
    made = Session(model="claude-sonnet-5", policy="verbatim")
    made.add(*(message for n in range(MOST + 1) for message in (prompt(n, SMALL), assistant("I see."))), user("so?"))
    with pytest.raises(ViewTooLarge, match="101 > 100 media"):
        made.view()


@pytest.mark.promise("I8")
def test_pins_and_the_newest_results_keep_theirs() -> None:
    made = Session(model="claude-sonnet-5")
    made.timeline.pins.update({0: "#1", 2: "#3"})
    made.add(prompt(0, SMALL), *shots(0, SMALL), assistant("I see."))
    for n in range(1, MOST):
        made.add(prompt(n, SMALL), assistant("I see."))
    made.add(user("and?"), *shots(n, *(SMALL,) * 20))
    messages = made.view().messages
    assert (messages[0], messages[2]) == (made.timeline.messages[0], made.timeline.messages[2])
    assert messages[-1] is made.timeline.messages[-1]
    assert shown(messages) == MOST // 2


@settings(max_examples=max(40, settings().max_examples // 3))
@given(st.lists(st.integers(0, 60), min_size=1, max_size=12), st.booleans())
def test_any_number_of_pictures_fits_or_is_refused(numbers: list[int], steps: bool) -> None:
    made = Session(model="claude-sonnet-5")
    record: list[Message] = []
    for n, number in enumerate(numbers):
        media = (SMALL,) * number
        record += [user("go"), *shots(n, *media), assistant("ok")] if steps else [prompt(n, *media), assistant("ok")]
    for sent in drive(made, [*record, user("so?")]):
        assert sent.view is not None, "no single message has too many"
        assert not check("anthropic", sent.view.render("anthropic").body)
        assert made.state.media.totals.number == shown(sent.view.messages)


def test_other_providers_have_their_own_limits() -> None:
    made = Session(model="gpt-5")
    made.add(*(message for n in range(MOST + 1) for message in (prompt(n, SMALL), assistant("I see."))), user("so?"))
    view = made.view()
    assert shown(view.messages) == MOST + 1
    assert not check("openai", render(view.messages, "openai").body)
