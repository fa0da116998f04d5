"""Computes what policies would have done with a transcript or with a session of the page. Stores nothing."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from foldline.cli.shared.output import without_secrets
from foldline.cli.shared.settings import load_settings
from foldline.errors import InputError
from foldline.message import NOTE
from foldline.page.request_rows import RequestWindow
from foldline.page.session_reader import SessionReader
from foldline.plan.gate import HIDDEN
from foldline.policy import Policy, presets
from foldline.replay import CachedCounter, replay
from foldline.wire import Transcript, read_all

DEFAULT_POLICIES = ("balanced", "thrifty", "verbatim")
_POINTS = 600
"""Maximum number of request sizes in the answer. If there are more, only every second, third, … size is returned."""


def replay_report(  # noqa: PLR0913  # all are keyword-only
    *, name: str, text: str, policies: str, window: int, model: str, format: str
) -> dict[str, Any]:
    """Replay the first conversation of a transcript under several policies.

    `policies` are names separated by commas.
    """
    transcript = _read(name, text, format)
    rows = _rows(transcript, policies, window, model or load_settings().model(transcript.model), None)
    answer: dict[str, Any] = without_secrets(
        {"name": name, "format": transcript.format, "messages": len(transcript.messages), "policies": rows}
    )
    return answer


def replay_of_session(reader: SessionReader, *, policies: str, window: int) -> dict[str, Any]:
    """Replay a session under several policies, by default in the session's own window.

    `recorded` has the figures of the requests that were really sent; None if no reply has usage.
    """
    used, load = reader.setup(), reader.state().load()
    messages = [one for one in reader.messages(0, reader.log().head.length) if one.kind != NOTE]
    transcript = Transcript(format=used.format, messages=tuple(messages), tools=used.definitions or ())
    beside = load.blocks.get(HIDDEN, 0) + (0 if used.definitions else used.tools)
    answer: dict[str, Any] = without_secrets(
        {
            "name": reader.branch.session,
            "format": used.format,
            "messages": len(messages),
            "policies": _rows(transcript, policies, window or used.window, used.model.name, beside),
            "recorded": _recorded(reader),
        }
    )
    return answer


def _recorded(reader: SessionReader) -> dict[str, Any] | None:
    """What was really sent, as the provider reported it. Like in a replay, the cost does not include replies."""
    window, log = RequestWindow(reader), reader.log()
    usages = [point.usage for point in window.points if point.usage]
    if not usages:
        return None
    costs = [window.costs.cost(reader.setup().model.name, one._replace(output=0)) for one in usages]
    loss = log.fold.digest.loss if log.fold and log.fold.digest else None
    return {
        "requests": len(usages),
        "unreported": len(window.points) - len(usages),
        "folds": len(log.folds),
        "sent": sum(one.prompt for one in usages),
        "read": sum(one.cache_read for one in usages),
        "cost": None if None in costs else sum(one or 0.0 for one in costs),
        "facts": loss.facts if loss else 0,
        "kept": loss.kept if loss else 0,
    }


def _rows(
    transcript: Transcript, policies: str, window: int, model: str, system_tokens: int | None
) -> list[dict[str, Any]]:
    """The result of each policy. `policies` are names separated by commas."""
    chosen = [one.strip() for one in policies.split(",") if one.strip()] or list(DEFAULT_POLICIES)
    unknown = [one for one in chosen if one not in presets()]
    if unknown:
        raise InputError(f"unknown policy {unknown[0]!r}", hint=f"use {', '.join(presets())}")
    counter = CachedCounter(model)
    rows = []
    for one in chosen:
        policy = Policy.preset(one).but(window_tokens=window) if window else Policy.preset(one)
        found = replay(transcript, policy, name=one, counter=counter, system_tokens=system_tokens)
        step = max(1, -(-len(found.sizes) // _POINTS))
        rows.append({**asdict(found), "sizes": list(found.sizes[::step]), "step": step})
    return rows


def _read(name: str, text: str, format: str) -> Transcript:
    ending = ".jsonl" if Path(name).suffix == ".jsonl" else ".json"
    with tempfile.NamedTemporaryFile("w", suffix=ending, encoding="utf-8", errors="surrogatepass") as copy:
        copy.write(text)
        copy.flush()
        try:
            found = read_all(copy.name, format or None)
        except InputError as error:
            hint = error.hint if format else "choose its format"
            raise InputError(error.message.replace(copy.name, name), hint=hint) from None
    if not found:
        hint = "drag the session file of an agent, or a JSON file with a list of messages, onto the page"
        raise InputError(f"{name} contains no conversation", hint=hint)
    return max(found, key=lambda one: len(one.messages))
