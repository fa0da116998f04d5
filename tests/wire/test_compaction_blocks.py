"""Compaction blocks of a provider: first and unchanged towards their maker, readable text for anybody else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import foldline
from foldline import Session
from foldline.cli.app import cli
from foldline.message import Message, user
from foldline.testing import assert_sendable, violations
from foldline.testing.provider import judge
from foldline.wire.formats import REQUEST_FORMATS, format_of
from foldline.wire.rendering import render
from foldline.wire.repair import RepairedHistory, repair

BLOCK = {"type": "compaction", "content": "The port is 8417.", "signature": "c2lnbmVk", "tool_changes": []}


def native(**fields: Any) -> Message:
    return format_of("anthropic").parse({"role": "assistant", "content": [{**BLOCK, **fields}]}, None)


@pytest.mark.parametrize("role", ["assistant", "user"])
def test_a_signed_block_stands_first_and_unchanged(role: str) -> None:
    session = Session(model="claude-opus-5-5", format="anthropic")
    session.add({"role": role, "content": [BLOCK]}, {"role": "user", "content": "go on"})
    rendered = session.view().render()
    messages = rendered.body["messages"]
    assert messages[0]["content"] == [BLOCK]
    assert_sendable(rendered)
    body = {"model": "claude-opus-5-5", "max_tokens": 100, "messages": messages}
    assert judge("anthropic", body, betas=rendered.betas) is None


def test_a_request_with_a_compaction_block_has_the_header_that_allows_it() -> None:
    unsigned = {"type": "compaction", "content": "The port is 8417."}
    for block, beta in ((BLOCK, "compact-2026-09-04"), (unsigned, "compact-2026-01-12")):
        session = Session(model="claude-opus-5-5", format="anthropic")
        session.add({"role": "user", "content": [block, {"type": "text", "text": "go on"}]})
        rendered = session.view().render()
        assert rendered.betas == (beta,)
        body = {"model": "claude-opus-5-5", "max_tokens": 100, **rendered.body}
        assert judge("anthropic", body, betas=rendered.betas) is None
        request = session.view().request(extra_headers={"anthropic-beta": f"files-api-2025-04-14, {beta}"})
        assert request["extra_headers"] == {"anthropic-beta": f"files-api-2025-04-14,{beta}"}
        assert session.view().render("openai").betas == ()


def test_a_signed_block_that_is_not_first_is_sent_as_text() -> None:
    history = [user("go"), native(), user("go on")]
    rendered = render(repair(history).messages, "anthropic")
    assert violations(rendered) == ()
    assert "signature" not in str(rendered.body)
    assert "8417" in str(rendered.body)
    growing = RepairedHistory("anthropic")
    for count in range(1, len(history) + 1):
        assert growing.update(history[:count]) == repair(history[:count])


@pytest.mark.parametrize("format", [name for name in REQUEST_FORMATS if name != "anthropic"])
def test_another_provider_gets_the_text(format: str) -> None:
    rendered = render(repair([native(), user("go on")], format).messages, format)
    assert "8417" in str(rendered.body)
    assert "c2lnbmVk" not in str(rendered.body)
    assert violations(rendered) == ()


def test_nothing_is_put_before_a_block_of_the_earlier_beta() -> None:
    block = {"type": "compaction", "content": "The port is 8417."}
    session = Session(model="claude-opus-5-5", format="anthropic")
    session.add({"role": "user", "content": "one"}, {"role": "assistant", "content": [block]})
    session.add({"role": "user", "content": "two"})
    rendered = session.view().render()
    assert rendered.body["messages"][0] == {"role": "assistant", "content": [block]}
    assert_sendable(rendered)
    body = {"model": "claude-opus-5-5", "max_tokens": 100, **rendered.body}
    assert judge("anthropic", body, betas=rendered.betas) is None


def test_a_block_with_an_empty_summary_is_left_out() -> None:
    empty = {"type": "compaction", "content": ""}
    session = Session(model="claude-opus-5-5", format="anthropic")
    session.add({"role": "user", "content": "one"})
    session.add({"role": "assistant", "content": [empty, {"type": "text", "text": "two"}]})
    session.add({"role": "user", "content": "three"})
    rendered = session.view().render()
    body = {"model": "claude-opus-5-5", "max_tokens": 100, **rendered.body}
    assert judge("anthropic", body, betas=("compact-2026-01-12",)) is None
    assert "compaction" not in str(body)


@pytest.mark.parametrize("signed", [True, False])
def test_a_block_of_an_imported_file_replaces_everything_before_it(tmp_path: Path, signed: bool) -> None:
    block = BLOCK if signed else {"type": "compaction", "content": "The port is 8417."}
    talk: list[Any] = [{"role": "user", "content": "the task"}]
    talk += [{"role": "assistant", "content": "old"}, {"role": "user", "content": "old question"}]
    talk += [{"role": "assistant", "content": [block]}, {"role": "user", "content": "go on"}]
    path, ledger = tmp_path / "request.json", str(tmp_path / "agent.db")
    path.write_text(json.dumps({"model": "claude-opus-5-5", "max_tokens": 100, "messages": talk}))
    for _ in range(2):
        result = CliRunner().invoke(cli, ["import", str(path), "--ledger", ledger, "--session", "s"])
        assert result.exit_code == 0, result.output
        with foldline.open(ledger) as opened:
            session = opened.session("s")
            messages = session.view().render("anthropic").body["messages"]
            assert messages[0] == {"role": "assistant", "content": [block]}
            assert "old question" not in str(messages)
            assert session.folds == 1


def test_a_block_of_the_earlier_beta_stays_where_it_is() -> None:
    block = {"type": "compaction", "content": "The port is 8417."}
    message = format_of("anthropic").parse({"role": "assistant", "content": [block]}, None)
    assert repair([user("go"), message, user("go on")]).notes == ()
