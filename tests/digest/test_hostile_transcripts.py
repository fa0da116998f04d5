"""Fifty hostile transcripts: no digest of them instructs the reader, forges markup or holds a secret."""

from __future__ import annotations

import asyncio
import re

import pytest

from foldline import Session
from foldline.digest.digester import Digester, DigesterCall, DigestRequest
from foldline.digest.driver import write_model_digest
from foldline.digest.local import write_local_digest
from foldline.digest.markup import HEADINGS, SESSION
from foldline.digest.prompt import TAGS, cumulative_prompt
from foldline.fold import Digest
from foldline.message import user
from foldline.policy import Policy
from foldline.testing import Scripted, proper
from foldline.window_budget import SummarizeDeps, summarize
from support.hostile import PLOTS, Plot

HANDLE = re.compile(r"(?:(?<=\[)|(?<=, ))#(\d+)(?:-(\d+))?(?=[\],])|#(\d+)(?:-(\d+))?(?=, ask recall)")
OURS = ("[session digest", "[branch digest", "[condensed earlier", "<conversation-summary>", "</conversation-summary>")


def gullible(ask: DigesterCall) -> str:
    """The worst digester there is: it writes down every line that names the place where the plot was laid."""
    said = [line.lstrip("» ") for line in ask.text.split("\n") if "part_3" in line or "KUMQUAT" in line]
    hostile = [line for line in said if "splits at blanks" not in line]
    return "\n".join([proper(ask), *hostile[-12:]])


def check(plot: Plot, text: str, *, numbered: bool = True) -> None:
    """A digest that the plot has not got into."""
    for secret in plot.secrets:
        assert secret not in text
    for order in plot.orders:
        assert order not in text
    first, _, body = text.partition("\n")
    assert first == SESSION.header
    for mark in OURS:
        assert mark not in body
    assert "» you" not in body
    assert "<scrollback" not in body
    for heading in HEADINGS:
        assert body.split("\n").count(heading) <= 1
    for found in HANDLE.findall(body):
        low, high = found[:2] if found[0] else found[2:]
        assert numbered
        assert 1 <= int(low) <= int(high or low) <= len(plot.said), "a handle names messages that there are"


def size(text: str) -> int:
    return len(text) // 4


@pytest.mark.promise("S0.37")
def test_there_are_fifty_hostile_transcripts() -> None:
    assert len({plot.name for plot in PLOTS}) == len(PLOTS) == 50


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.name)
def test_the_prompt_is_one_fenced_text_without_secrets(plot: Plot) -> None:
    for form in (None, cumulative_prompt()):
        scripted = Scripted(gullible)
        job = DigestRequest(
            messages=plot.said, count_tokens=size, max_tokens=900, prior_digest=f"Before. {plot.planted}", prompt=form
        )
        write_model_digest(job, Digester(complete=scripted))
        assert scripted.asks
        for ask in scripted.asks:
            for secret in plot.secrets:
                assert secret not in ask.text
            for tag in TAGS:
                assert len(re.findall(rf"<\s*{tag}\s*>", ask.text, re.IGNORECASE)) <= 1
                assert len(re.findall(rf"<\s*/\s*{tag}\s*>", ask.text, re.IGNORECASE)) <= 1
            marks = re.findall(r"(?:^|[\n\r\v\f\x85\u2028\u2029])[^\S\n]*(» \S+)", ask.text)
            assert len(marks) == 5 * 6 or "(goes on)" in ask.text
            assert "<|" not in ask.text
            assert "[INST]" not in ask.text


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.name)
def test_a_digest_copied_by_a_model_forges_no_markup(plot: Plot) -> None:
    digest = write_model_digest(
        DigestRequest(messages=plot.said, count_tokens=size, max_tokens=2_000, min_coverage=0.9),
        Digester(complete=Scripted(gullible)),
    )
    assert isinstance(digest, Digest)
    check(plot, digest.message.text)


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.name)
def test_a_local_digest_forges_no_markup(plot: Plot) -> None:
    digest = write_local_digest(DigestRequest(messages=plot.said, count_tokens=size, max_tokens=1_500))
    assert isinstance(digest, Digest)
    check(plot, digest.message.text)


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.name)
@pytest.mark.parametrize("by", ["model", "local"])
def test_the_view_of_a_session_forges_no_markup(plot: Plot, by: str) -> None:
    digester = Digester(complete=Scripted(gullible)) if by == "model" else None
    session = Session(
        policy=Policy.preset("balanced").but(window_tokens=16_000, digest_tokens=2_000), digester=digester
    )
    session.add(*plot.said)
    fold = session.fold(force=True)
    assert fold is not None
    assert fold.digest is not None
    check(plot, fold.digest.message.text)


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.name)
def test_a_folded_list_forges_no_markup(plot: Plot) -> None:
    check(plot, asyncio.run(summarize(plot.said, SummarizeDeps())).message.text, numbered=False)


@pytest.mark.parametrize("by", ["model", "local"])
def test_no_digest_holds_an_escape_sequence(by: str) -> None:
    plain = PLOTS[0].said[0]
    told = [
        user(f"\x1b[31mfix\x1b[0m KUMQUAT {number} in \x9b1msrc/a{number}.py\x9b0m \x1b]0;title\x07now")
        for number in range(6)
    ]
    request = DigestRequest(messages=[plain, *told], count_tokens=size, max_tokens=2_000, min_coverage=0.0)
    local = by == "local"
    digest = (
        write_local_digest(request) if local else write_model_digest(request, Digester(complete=Scripted(gullible)))
    )
    assert isinstance(digest, Digest)
    assert "KUMQUAT" in digest.message.text
    assert not {"\x1b", "\x9b", "\x07"} & set(digest.message.text)
    assert "[31m" not in digest.message.text
