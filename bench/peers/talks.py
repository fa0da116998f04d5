"""Invented talks, each from its seed: the same ones for everybody, as wild as real ones are.

Parallel calls whose results come back in any order, a reply in two messages, a user who speaks twice, images, results
from a line to many pages. A talk always stops where a request would be made: the user or a tool spoke last.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

from bench.peers.talk import Call, Said, Talk, size

SHORTEST, LONGEST = 25, 432
"""Messages of a random talk."""
REQUESTS, SESSIONS = 3_895, 20
"""Request points of the drive, and the sessions they are spread over."""
_WORDS = (
    "the build fails in module parser because value none was not expected return self error line test import path "
    "function result config user request token window budget message data file read write open close list dict for "
    "while if else class def assert raise except try with async await yield lambda true false null 0 1 42 127 200 404"
)
_TOOLS = ("read_file", "run", "search", "edit_file", "list_files")


class _Voice:
    """Says things of a wanted length, quickly: pieces of one long random text."""

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
    """The turn that turn cost is measured with: a call of 120 characters, its result, a reply, the next prompt."""
    call = voice.call()
    return [
        Said("assistant", "", (call,)),
        Said("tool", voice.say(2_000), answers=call.id),
        Said("assistant", voice.say(300)),
        Said("user", voice.say(300)),
    ]


def plain(length: int, seed: int = 0) -> tuple[Talk, Iterator[Talk]]:
    """A history of `length` messages made of plain turns, and any number of turns to go on with."""
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
    """A talk without end, in the pieces between which nothing is asked of the model or all is answered."""
    yield [Said("system", voice.about(800, 0.5, 4_000)), *_prompt(voice)]
    while True:
        for _ in range(voice.rng.randint(0, 5)):
            yield _step(voice, results=2_000)
        yield [Said("assistant", voice.about(300, 0.6, 4_000)), *_prompt(voice)]


def random_talk(seed: int) -> tuple[Talk, int]:
    """A talk of 25 to 432 messages, and a budget below its size that a legal view fits into."""
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
    """Where the newest turn begins: the first of the prompts that nothing but each other and the steps follow."""
    at = max(index for index, said in enumerate(talk) if said.role == "user")
    while talk[at - 1].role == "user":
        at -= 1
    return at


def sessions() -> Iterator[list[Talk]]:
    """The sessions of the drive, each as what is added before each request."""
    for number in range(SESSIONS):
        requests = REQUESTS // SESSIONS + (number < REQUESTS % SESSIONS)
        pieces = _pieces(_Voice(Random(10_000 + number)))
        yield [next(pieces) for _ in range(requests)]


def overlong(seed: int) -> tuple[Talk, int]:
    """A talk whose turn in flight alone is over the budget: the system prompt and 60 % of that turn.

    What must stay (the newest prompt, and the newest step with its results as short stubs) is always well below it.
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
