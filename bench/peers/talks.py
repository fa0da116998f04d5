"""Generates random conversations from a seed. All peers get the same conversations.

The conversations are as irregular as real ones. They have parallel calls with results in any order, replies and prompts
in two messages, images, and results of one line up to many pages. The last message is always from the user or a tool,
so that a request would follow.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

from bench.peers.talk import Call, Said, Talk, size

SHORTEST, LONGEST = 25, 432
"""Minimum and maximum number of messages of a random conversation."""
REQUESTS, SESSIONS = 3_895, 20
"""Number of requests in all sessions of `cells.drive`, and number of these sessions."""
_WORDS = (
    "the build fails in module parser because value none was not expected return self error line test import path "
    "function result config user request token window budget message data file read write open close list dict for "
    "while if else class def assert raise except try with async await yield lambda true false null 0 1 42 127 200 404"
)
_TOOLS = ("read_file", "run", "search", "edit_file", "list_files")


class _Voice:
    """Generates texts of a given length: pieces of one long random text, because that is fast."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.text = " ".join(rng.choices(_WORDS.split(), k=40_000))
        self.calls = 0

    def say(self, chars: int) -> str:
        start = int(self.rng.random() * (len(self.text) - chars))
        return f"#{self.rng.getrandbits(32):08x} " + self.text[start : start + max(1, chars - 10)].strip()

    def about(self, middle: int, spread: float, most: int) -> str:
        return self.say(min(most, max(12, int(self.rng.lognormvariate(0, spread) * middle))))

    def call(self, chars: int = 120) -> Call:
        self.calls += 1
        arguments = json.dumps({"path": f"src/{self.rng.getrandbits(24):x}.py", "what": self.say(chars - 60)})
        return Call(f"call_{self.calls}", self.rng.choice(_TOOLS), arguments)


def plain_turn(voice: _Voice) -> Talk:
    """The messages of one turn for `cells.turn_cost`: a call of 120 characters, its result, a reply and the next
    prompt.
    """
    call = voice.call()
    return [
        Said("assistant", "", (call,)),
        Said("tool", voice.say(2_000), answers=call.id),
        Said("assistant", voice.say(300)),
        Said("user", voice.say(300)),
    ]


def plain(length: int, seed: int = 0) -> tuple[Talk, Iterator[Talk]]:
    """A history of about `length` messages made of plain turns, and an endless iterator of further turns."""
    voice = _Voice(Random(seed))
    talk = [Said("system", voice.say(400)), Said("user", voice.say(300))]
    while len(talk) < length:
        talk += plain_turn(voice)
    return talk, (plain_turn(voice) for _ in iter(int, 1))


def _step(voice: _Voice, *, results: int, spread: float = 0.65) -> Talk:
    """An assistant message with its calls, and all their results."""
    rng = voice.rng
    calls = tuple(voice.call() for _ in range(1 if rng.random() < 0.6 else rng.randint(2, 4)))
    before = [Said("assistant", voice.about(150, 0.5, 2_000))] if rng.random() < 0.1 else []
    answers = [Said("tool", voice.about(results, spread, 24_000), answers=call.id) for call in calls]
    rng.shuffle(answers)
    return [*before, Said("assistant", voice.about(120, 0.5, 2_000) if rng.random() < 0.5 else "", calls), *answers]


def _prompt(voice: _Voice) -> Talk:
    rng = voice.rng
    asked = [Said("user", voice.about(300, 0.7, 4_000), images=int(rng.random() < 0.08))]
    return [*asked, *([Said("user", voice.about(100, 0.5, 1_000))] if rng.random() < 0.1 else [])]


def _pieces(voice: _Voice) -> Iterator[Talk]:
    """An endless conversation, in pieces. A request is sent after each piece."""
    yield [Said("system", voice.about(800, 0.5, 4_000)), *_prompt(voice)]
    while True:
        for _ in range(voice.rng.randint(0, 5)):
            yield _step(voice, results=2_000)
        yield [Said("assistant", voice.about(300, 0.6, 4_000)), *_prompt(voice)]


def random_talk(seed: int) -> tuple[Talk, int]:
    """A conversation of 25 to 432 messages, and a budget. The conversation exceeds the budget, but a valid view
    fits.
    """
    voice = _Voice(Random(seed))
    wanted, talk = voice.rng.randint(SHORTEST, LONGEST - 12), Talk()
    for piece in _pieces(voice):
        talk += piece
        if len(talk) >= wanted:
            break
    least, whole = size([*_systems(talk), *talk[_turn(talk) :]]), size(talk)
    return talk, int(least * 1.05) + 300 + int(voice.rng.uniform(0.0, 0.6) * max(0, whole - least))


def _systems(talk: Talk) -> Talk:
    return [said for said in talk if said.role == "system"]


def _turn(talk: Talk) -> int:
    """The index at which the newest turn begins: the first of the consecutive user messages of its prompt."""
    at = max(index for index, said in enumerate(talk) if said.role == "user")
    while talk[at - 1].role == "user":
        at -= 1
    return at


def sessions() -> Iterator[list[Talk]]:
    """The sessions for `cells.drive`. Each is a list of the messages that are added before each request."""
    for number in range(SESSIONS):
        requests = REQUESTS // SESSIONS + (number < REQUESTS % SESSIONS)
        pieces = _pieces(_Voice(Random(10_000 + number)))
        yield [next(pieces) for _ in range(requests)]


def overlong(seed: int) -> tuple[Talk, int]:
    """A conversation whose last turn alone exceeds the budget. The budget is the system prompt and 60 % of that turn.

    The messages that must stay always fit: the newest prompt, and the newest step with its results as short stubs.
    """
    voice = _Voice(Random(20_000 + seed))
    rng, talk = voice.rng, Talk()
    wanted = rng.randint(10, 60)
    for piece in _pieces(voice):
        talk += piece
        if len(talk) >= wanted and talk[-1].role == "user":
            break
    start, steps = _turn(talk), rng.randint(4, 24)
    results = rng.choice((600, 1_500, 6_000))
    while True:
        step = _step(voice, results=results)
        talk += step
        steps -= 1
        room = int(0.6 * size(talk[start:]))
        least = size(talk[start : start + 2]) + sum(size([said]) if said.role != "tool" else 60 for said in step)
        if steps <= 0 and least + 100 < room:
            return talk, size(_systems(talk)) + room
