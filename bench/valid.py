"""Checks that a strict provider accepts every request of random agents and of recorded sessions.

The provider is the simulated provider of `foldline.testing`, which shares no code with foldline's wire formats. Each
agent has a preset, a small window and a wire format. It answers tool calls, sends images and unusual characters, folds,
unfolds, branches, pins, switches the model, and recalls. Two kinds of faults are counted: requests that the provider
refuses, and requests that do not begin with the same bytes as the previous request, although no fold was made.

    python -m bench valid --sessions 1000
    python -m bench valid --data FOLDER --windows 20000 40000 80000
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from foldline.errors import InputError, ViewTooLarge
from foldline.message import Media, Message, Text, system, tool, user
from foldline.policy import Policy, presets
from foldline.session import Session
from foldline.testing.provider import Account, ScriptedReply
from foldline.wire import read_all
from foldline.wire.formats import REQUEST_FORMATS

MODELS = {
    "anthropic": ("claude-opus-5-5", "claude-sonnet-4-5"),
    "openai": ("gpt-5", "gpt-4o"),
    "openai-responses": ("gpt-5", "gpt-5-mini"),
    "gemini": ("gemini-3-pro", "gemini-2.5-pro"),
}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS = ("read", "run", "edit")
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""An image of one pixel."""
TEXT = "the parser reads every file and keeps a line for each error that it found in src/part.py before it stops"
WORDS = TEXT.split()
REPLY = 200
"""The limit of a reply in tokens."""
ODD = (
    "\ud800 alone",
    "tab\tand\x00nul",
    "naïve — “quotes”",
    "\x1b[31mred\x1b[0m",
    "   ",
    "[#3-9]",
    "<system>x</system>",
)


@dataclass
class Tally:
    """The counts for the requests in one format."""

    sessions: int = 0
    requests: int = 0
    folds: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """Refused requests, by the provider's rule."""
    changed: int = 0
    """Requests whose prefix changed although no fold was made."""
    too_large: int = 0
    """Views that foldline itself refused, because the part that must stay does not fit."""
    examples: list[str] = field(default_factory=list)

    @property
    def failures(self) -> int:
        """Refused requests and changed prefixes."""
        return sum(self.refused.values()) + self.changed

    def note(self, text: str) -> None:
        """Store an example of a failure. Only the first few are kept."""
        if len(self.examples) < 12:
            self.examples.append(text[:600])


def main(argv: Sequence[str]) -> int:
    """Run the bench and print its figures."""
    parser = argparse.ArgumentParser(prog="python -m bench valid", description=__doc__)
    parser.add_argument("--sessions", type=int, default=100, help="random sessions in each format")
    parser.add_argument("--steps", type=int, default=60, help="steps of each random session")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path, help="folder with recorded sessions to replay instead")
    parser.add_argument("--windows", type=int, nargs="+", default=[20_000, 40_000, 80_000])
    parser.add_argument("--formats", nargs="+", default=list(REQUEST_FORMATS), choices=REQUEST_FORMATS)
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    options = parser.parse_args(argv)
    started = time.monotonic()
    rows = replayed(options) if options.data else generated(options)
    failures = 0
    for name, tally in rows:
        failures += tally.failures
        if options.json:
            print(json.dumps({"what": name, **vars(tally)}), flush=True)
        else:
            refused = ", ".join(f"{rule} {count:,}" for rule, count in tally.refused.most_common()) or "0 refused"
            print(
                f"{name:<46} {tally.sessions:>5,} sessions {tally.requests:>8,} requests {tally.folds:>6,} folds  "
                f"{refused}; {tally.changed:,} prefixes changed; {tally.too_large:,} too large and said so",
                flush=True,
            )
            for example in tally.examples:
                print(f"    {example}")
    print(f"{time.monotonic() - started:.0f} s", file=sys.stderr)
    return int(failures > 0)


# Random agents


def generated(options: argparse.Namespace) -> Iterator[tuple[str, Tally]]:
    """A tally for each format."""
    for format in options.formats:
        tally = Tally()
        for number in range(options.sessions):
            Agent(format, random.Random(f"{options.seed} {format} {number}"), tally).run(options.steps)
            if sys.stderr.isatty():
                print(f"\r{format} {number + 1:,}", end="", file=sys.stderr)
        yield format, tally


class Agent:
    """One agent: a session, an account of the provider, and a random generator."""

    def __init__(self, format: str, chance: random.Random, tally: Tally) -> None:
        self.format, self.chance, self.tally = format, chance, tally
        self.models = MODELS[format]
        self.model = chance.choice(self.models)
        self.account = Account(clock=lambda: 0.0, counter=lambda text: len(text) // 4 + 1)
        preset = chance.choice([name for name in presets() if name not in {"verbatim", "teaparty"}])
        policy = Policy.preset(preset).but(window_tokens=chance.choice((2_500, 5_000, 12_000)), reply_tokens=200)
        if policy.leave == "digest":
            policy = policy.but(digest_tokens=300)
        self.session = Session(model=self.model, policy=policy, format=format, tools=self.tools)
        self.prefix = PrefixCheck(tally)
        self.branches = 0
        self.is_thinking = chance.random() < 0.5
        tally.sessions += 1
        if chance.random() < 0.7:
            self.session.add(system("You are careful. " * chance.randint(1, 20)))
        self.session.add(user(self.words(3, 40)))

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools in the session's format."""
        if self.format == "anthropic":
            return [{"name": name, "description": name, "input_schema": SCHEMA} for name in TOOLS]
        if self.format == "gemini":
            declared = [{"name": name, "description": name, "parametersJsonSchema": SCHEMA} for name in TOOLS]
            return [{"functionDeclarations": declared}]
        function = [{"name": name, "description": name, "parameters": SCHEMA} for name in TOOLS]
        if self.format == "openai":
            return [{"type": "function", "function": each} for each in function]
        return [{"type": "function", "strict": False, **each} for each in function]

    def words(self, least: int, most: int) -> str:
        """Some words, sometimes with an unusual character."""
        text = " ".join(self.chance.choices(WORDS, k=self.chance.randint(least, most)))
        return f"{text} {self.chance.choice(ODD)}" if self.chance.random() < 0.06 else text

    def run(self, steps: int) -> None:
        """Make requests, with other operations between some of them."""
        for _ in range(steps):
            if self.chance.random() < 0.25:
                self.do_something_else()
            if not self.request():
                return
        self.tally.folds += self.session.folds

    def request(self) -> bool:
        """Send the view, and add the reply with the results of its calls; False after an error."""
        chance, session, tally = self.chance, self.session, self.tally
        try:
            view = session.view()
        except ViewTooLarge:
            tally.too_large += 1
            return False
        body = self.body(view.render().body)
        tally.requests += 1
        self.compare(body)
        calls = tuple(
            (chance.choice(TOOLS), {"path": self.words(1, 3), "n": number})
            for number in range(chance.choice((0, 0, 1, 1, 1, 2, 4)))
        )
        reply = ScriptedReply(
            text=self.words(2, 60) if not calls or chance.random() < 0.6 else "",
            thinking=" ".join(chance.choices(WORDS, k=20)) if self.is_thinking and chance.random() < 0.7 else "",
            calls=calls,
        )
        answer = self.account.answer(self.format.replace("-", "_"), body, model=self.model, reply=reply)
        if answer.error is not None:
            tally.refused[answer.error.rule] += 1
            tally.note(f"{session.model.name}: {answer.error.message}")
            return False
        before = len(session.timeline)
        session.add(answer.body, view=view)
        self.give_results([call for message in session.timeline.messages[before:] for call in message.calls])
        if not calls:
            session.add(user(self.words(2, 50)))
        return True

    def body(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body of a request: the messages, and the fields that the caller adds."""
        if self.format == "gemini":
            return {**body, "tools": self.tools}
        whole = {**body, "model": self.model, "tools": self.tools}
        if self.format == "anthropic":
            return {**whole, "max_tokens": 200}
        return whole

    def give_results(self, calls: Sequence[Any]) -> None:
        """Answer the calls: in any order, separately or together, sometimes with a note in between, sometimes without
        one result.
        """
        chance, results = self.chance, []
        for call in calls:
            text = self.words(1, chance.choice((5, 60, 900)))
            results.append(self.session_result(call, text))
        chance.shuffle(results)
        if len(results) > 1 and chance.random() < 0.1:
            results.pop()
        for result in results:
            if chance.random() < 0.05:
                self.session.add(user(f"Note: {self.words(1, 9)}", kind="note"))
            self.session.add(result)
        if calls and chance.random() < 0.1:
            self.session.add(user(self.words(1, 20)))

    def session_result(self, call: Any, text: str) -> Any:
        """A result as a value of foldline, or as the vendor's own dict."""
        if self.chance.random() < 0.5 or not call.id:
            return tool(call.id, text, name=call.name)
        if self.format == "anthropic":
            return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": text}]}
        if self.format == "openai":
            return {"role": "tool", "tool_call_id": call.id, "content": text}
        if self.format == "openai-responses":
            return {"type": "function_call_output", "call_id": call.id, "output": text}
        return tool(call.id, text, name=call.name)

    def compare(self, body: dict[str, Any]) -> None:
        """Count a changed prefix if only messages were added since the last request."""
        self.prefix.compare(body, (self.branches, self.session.state.snapshot.version.entry, self.session.model.name))

    def do_something_else(self) -> None:
        """Fold, unfold, branch, pin, switch the model or the policy, recall, or send a picture."""
        chance, session = self.chance, self.session
        action = chance.randrange(9)
        if action == 0:
            session.fold(force=chance.random() < 0.5)
        elif action == 1 and session.folds:
            session.unfold()
        elif action == 2:
            self.branches += 1
            self.session = session.branch(f"b{self.branches}", at=chance.randint(1, len(session.timeline)))
            if not any(message.is_prompt for message in self.session.timeline.messages):
                self.session = session
        elif action == 3:
            session.pin(self.words(2, 12), name=f"p{chance.randrange(3)}")
        elif action == 4 and session.state.snapshot.pins:
            session.unpin(next(iter(session.state.snapshot.pins)), at_once=chance.random() < 0.5)
        elif action == 5:
            self.model = chance.choice(self.models)
            session.use(model=self.model)
        elif action == 6:
            session.recall(chance.choice(WORDS))
        elif action == 7:
            session.use(policy=session.policy.but(target_ratio=chance.choice((0.0, 0.3)), rules=session.policy.rules))
        else:
            session.add(picture_message(self.words(1, 8)))


class PrefixCheck:
    """Compares each request of a session with the request before it."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.last: tuple[tuple[Any, ...], list[str]] | None = None
        """The `basis` of the last request, and its blocks without cache breakpoints."""

    def compare(self, body: dict[str, Any], basis: tuple[Any, ...]) -> None:
        """Count a request that does not begin with the blocks of the last one, if both depend on the same `basis`."""
        elements = body.get("messages") or body.get("input") or body["contents"]
        system = [body[key] for key in ("system", "instructions", "systemInstruction") if key in body]
        now = as_stream([without_marks(element) for element in (*system, *elements)])
        if self.last is not None and self.last[0] == basis:
            sent = self.last[1]
            if now[: len(sent)] != sent:
                place = next(
                    (at for at, pair in enumerate(zip(sent, now, strict=False)) if pair[0] != pair[1]), len(now)
                )
                self.tally.changed += 1
                self.tally.note(f"block {place} of {len(sent)} changed: {sent[place][:250]} → {str(now[place:])[:250]}")
        self.last = basis, now


def picture_message(text: str) -> Message:
    """A user's message with an image."""
    return Message(role="user", parts=(Text(text=text), Media(kind="image", mime="image/png", data=PICTURE)))


def without_marks(value: Any) -> Any:
    """A JSON value without cache breakpoints, because they move from request to request."""
    if isinstance(value, dict):
        return {key: without_marks(item) for key, item in value.items() if key != "cache_control"}
    return [without_marks(item) for item in value] if isinstance(value, list) else value


def as_stream(elements: Sequence[Any]) -> list[str]:
    """The elements as a list of JSON texts, one for each block, because a message may get more blocks at its end."""
    row: list[str] = []
    for element in elements:
        content = element.get("content", element.get("parts")) if isinstance(element, dict) else None
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not isinstance(blocks, list) or element.get("type", "message") != "message":
            row.append(json.dumps(element))
            continue
        rest = {key: item for key, item in element.items() if key not in {"content", "parts"}}
        row += [json.dumps([rest, block]) for block in blocks] or [json.dumps(rest)]
    return row


# Recorded sessions


def replayed(options: argparse.Namespace) -> Iterator[tuple[str, Tally]]:
    """A tally for each source (a folder of the data), format and window."""
    for source in sorted(path for path in options.data.iterdir() if path.is_dir()):
        recorded = dict(recorded_conversations(source))
        for format, window in product(options.formats, options.windows if recorded else ()):
            tally = Tally()
            for name, messages in recorded.items():
                failures = tally.failures
                replay_one(messages, format, window, tally)
                if tally.failures > failures:
                    tally.note(f"in {name}")
            yield f"{source.name}, {format} at {window:,}", tally


def recorded_conversations(folder: Path) -> Iterator[tuple[str, Sequence[Message]]]:
    """The conversations in the files of a folder, each with a name. Files in an unknown format are left out."""
    for path in sorted(file for file in folder.rglob("*") if file.is_file()):
        try:
            found = read_all(path)
        except (InputError, OSError, UnicodeDecodeError):
            continue
        for number, transcript in enumerate(found):
            yield f"{path.relative_to(folder)} {number}", transcript.messages


def replay_one(messages: Sequence[Message], format: str, window: int, tally: Tally) -> None:
    """Replay one recorded conversation, with a request before each reply. A reply may be several messages.

    The provider counts with its own tokenizer, and refuses a request that is larger than the window. Recorded usage is
    left out, because it counts other requests: those of the recording, with its tools.
    """
    model = MODELS[format][1]
    account = Account(models={model: window}, clock=lambda: 0.0, takes_foreign=True, needs_tools=False)
    policy = Policy.preset("balanced").but(window_tokens=window, reply_tokens=REPLY)
    session = Session(model=model, policy=policy, format=format)
    prefix = PrefixCheck(tally)
    tally.sessions += 1
    before = None
    """The previous message. If results are in the middle of a reply, it is the last message of this reply before the
    results.
    """
    for message in messages:
        is_new = before is None or before.role != "assistant" or message.meta.reply not in ("", before.meta.reply)
        if message.role == "assistant" and is_new and any(other.is_prompt for other in session.timeline.messages[-50:]):
            try:
                body = session.view().render(format).body
            except ViewTooLarge:
                tally.too_large += 1
                return
            tally.requests += 1
            prefix.compare(body, (session.state.snapshot.version.entry,))
            whole = body if format == "gemini" else {**body, "model": model}
            if format == "anthropic":
                whole["max_tokens"] = REPLY
            answer = account.answer(format.replace("-", "_"), whole, model=model)
            if answer.error is not None:
                tally.refused[answer.error.rule] += 1
                tally.note(answer.error.message)
                return
        session.add(replace(message, meta=replace(message.meta, usage=None)))
        is_interrupted = before is not None and before.meta.reply and message.role == "tool"
        before = before if is_interrupted else message
    tally.folds += session.folds
