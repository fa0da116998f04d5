"""Computes what policies would have done with a transcript whose file was dragged onto the page. Stores nothing."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from foldline.cli.shared.output import without_secrets
from foldline.cli.shared.settings import load_settings
from foldline.errors import InputError
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
    chosen = [one.strip() for one in policies.split(",") if one.strip()] or list(DEFAULT_POLICIES)
    unknown = [one for one in chosen if one not in presets()]
    if unknown:
        raise InputError(f"unknown policy {unknown[0]!r}", hint=f"use {', '.join(presets())}")
    counter = CachedCounter(model or load_settings().model(transcript.model))
    rows = []
    for one in chosen:
        policy = Policy.preset(one)
        found = replay(transcript, policy.but(window_tokens=window) if window else policy, name=one, counter=counter)
        step = max(1, -(-len(found.sizes) // _POINTS))
        rows.append({**asdict(found), "sizes": list(found.sizes[::step]), "step": step})
    answer: dict[str, Any] = without_secrets(
        {"name": name, "format": transcript.format, "messages": len(transcript.messages), "policies": rows}
    )
    return answer


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
