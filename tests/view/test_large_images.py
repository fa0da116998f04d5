"""Images with too many pixels are scaled down or elided before they are sent, judged by the simulated provider."""

from __future__ import annotations

import base64
import io
from typing import Any

import pytest

from foldline import Session
from foldline.errors import ViewTooLarge
from foldline.testing.provider import judge
from foldline.view.image_scaling import downscaled
from foldline.wire.anthropic.parse import parse
from support.provider_requests import png

MODEL = "claude-sonnet-5"


def image(width: int, height: int = 10) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png(width, height)}}


def turns(session: Session, *widths: int) -> None:
    """One turn with an image for each width."""
    for number, width in enumerate(widths):
        session.add({"role": "user", "content": [{"type": "text", "text": f"image {number}"}, image(width)]})
        session.add({"role": "assistant", "content": f"seen {number}"})


def sent(session: Session) -> str:
    """The request as text; fails if the provider would refuse it."""
    body = {"model": MODEL, "max_tokens": 100, **session.view().render("anthropic").body}
    assert judge("anthropic", body) is None
    return str(body)


def test_an_image_of_more_than_8000_pixels_is_never_sent() -> None:
    session = Session(model=MODEL)
    session.add({"role": "user", "content": [image(8_001), image(8_000)]})
    assert "over 8,000 pixels on a side: it is in #1" in sent(session)
    tall = Session(model=MODEL)
    tall.add({"role": "user", "content": [image(10, 9_000)]})
    sent(tall)


def test_twenty_large_images_are_sent_as_they_are() -> None:
    session = Session(model=MODEL)
    turns(session, *[3_000] * 20)
    session.add({"role": "user", "content": "and now?"})
    assert sent(session).count("'image'") == 20


def test_large_images_leave_when_there_are_more_than_twenty_images() -> None:
    session = Session(model=MODEL)
    turns(session, *[3_000, 100] * 10, 100)
    session.add({"role": "user", "content": "and now?"})
    text = sent(session)
    assert text.count("'image'") == 11
    assert text.count("image left out, too many for one request") == 10
    turns(session, 100, 2_500)
    session.add({"role": "user", "content": "and now?"})
    again = sent(session)
    assert again.count("'image'") == 13


def test_a_large_image_in_the_newest_prompt_stays_and_older_images_leave() -> None:
    session = Session(model=MODEL)
    turns(session, *[100] * 25)
    sent_before = session.folds
    session.add({"role": "user", "content": [{"type": "text", "text": "look"}, image(3_000)]})
    text = sent(session)
    assert png(3_000, 10) in text
    assert text.count("'image'") <= 20
    assert session.folds > sent_before


def test_too_many_images_at_once_with_a_large_one_are_an_error_that_says_so() -> None:
    session = Session(model=MODEL)
    session.add({"role": "user", "content": [image(3_000), *(image(100) for _ in range(20))]})
    with pytest.raises(ViewTooLarge, match="2,000 pixels"):
        session.view()


def test_without_pillow_nothing_is_scaled_and_with_it_the_image_fits() -> None:
    pillow = pytest.importorskip("PIL.Image")
    written = io.BytesIO()
    pillow.new("RGB", (3_000, 20)).save(written, format="PNG")
    block = image(1)
    block["source"]["data"] = base64.b64encode(written.getvalue()).decode()
    smaller = downscaled(parse({"role": "user", "content": [block]}).parts[0], 2_000)  # type: ignore[arg-type]
    assert smaller is not None
    assert pillow.open(io.BytesIO(base64.b64decode(smaller.data))).size[0] == 2_000
