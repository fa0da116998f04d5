"""Measures whether `Session.recall(question)` finds the messages that answer a question. The data sets name these
messages.

The messages of a conversation are added to a session, and every question about it is asked once. A result is a passage
of messages that are close to each other. These figures are printed for the first 5 and the first 10 results, within
2,000 tokens by the session's counter:

- **any**: at least one evidence message is shown. Other projects publish this figure, but count whole sessions. -
**share**: the share of the evidence messages that are shown. - **all**: every evidence message is shown. - **all or in
view**: every evidence message is shown or among the newest messages that fit the view (characters / 4). - **quoted**:
for BFCL, the quoted sentence itself is in what was returned.

Questions with several evidence messages are also printed separately, because recall must find all parts of the answer.
Settings were chosen on one half of the questions (`chosen on`); only the other half (`reported`) counts. Plain BM25 (k1
1.2, b 0.75) returns the k best messages, without a token limit. With the extra `recall`, word vectors are used;
`--without-vectors` leaves them out. `--scale 100000` measures the time and memory of a query instead.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import random
import re
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import foldline
from foldline import Policy
from foldline.message import Message, assistant, user
from foldline.recall import candidates
from foldline.recall.result import RecallResult
from foldline.recall.search import TOKENS
from foldline.recall.word_vectors import installed_vectors
from foldline.session import Session

KS = (5, 10)
SESSIONS = 33
SCALE_QUESTIONS, SCALE_BATCH = 100, 1_000
MESSAGE_TOKENS = 4
SEED = "recall"


class Case(NamedTuple):
    """A question about a conversation."""

    id: str
    question: str
    talk: str
    messages: tuple[Message, ...]
    evidence: tuple[int, ...]
    quotes: tuple[str, ...] = ()

    @property
    def chosen_on(self) -> bool:
        """Whether the settings were chosen on this question."""
        return sha256(self.id.encode()).digest()[-1] % 2 == 0


class Source(NamedTuple):
    """Questions of one kind, and the budget of the view when they are asked."""

    name: str
    budget: int
    cases: list[Case]
    goals: tuple[float, float]
    """Goals for `any` in the first 5 and in the first 10 results, in per cent of the reported questions."""
    line: str = "{role}: {text}"
    """The form of a message when its size is counted."""


# The sources ---------------------------------------------------------------------------------------------------------


def longmemeval(data: Path, count: int) -> Source:
    """Conversations of 33 sessions: the sessions of the question, and others drawn from all sessions."""
    items = json.loads(gzip.decompress((data / "longmemeval" / "longmemeval_oracle.json.gz").read_bytes()))
    pool: dict[str, Any] = {}
    for item in items:
        for name, session in zip(item["haystack_session_ids"], item["haystack_sessions"], strict=True):
            pool.setdefault(name, session)
    answered = [item for item in items if not item["question_id"].endswith("_abs")]
    chosen = random.Random(SEED).sample(answered, min(count, len(answered))) if count else answered
    return Source("LongMemEval", 16_000, [_haystack(item, pool) for item in chosen], (90.0, 95.0))


def _haystack(item: Any, pool: dict[str, Any]) -> Case:
    rng = random.Random(item["question_id"])
    own = dict(zip(item["haystack_session_ids"], item["haystack_sessions"], strict=True))
    others = iter(rng.sample(sorted(name for name in pool if name not in own), SESSIONS - len(own)))
    places = set(rng.sample(range(SESSIONS), len(own)))
    mine = iter(own.items())
    messages: list[Message] = []
    evidence: list[int] = []
    for place in range(SESSIONS):
        name, session = next(mine) if place in places else (next(others), None)
        for turn in session if session is not None else pool[name]:
            if session is not None and turn.get("has_answer"):
                evidence.append(len(messages))
            messages.append((user if turn["role"] == "user" else assistant)(turn["content"]))
    return Case(item["question_id"], item["question"], item["question_id"], tuple(messages), tuple(evidence))


def bfcl(data: Path) -> Source:
    """Long lists of a user's messages. The evidence is the message that contains the quoted source."""
    folder = data / "bfcl-memory"
    answers = {item["id"]: item for item in _lines((folder / "answers.json").read_text())}
    talks: dict[str, tuple[Message, ...]] = {}
    cases = []
    for item in _lines((folder / "questions.json").read_text()):
        talk = item["scenario"]
        if talk not in talks:
            entries = _lines((folder / f"memory_{talk}.json").read_text())
            said = [turn for entry in entries for turns in entry["question"] for turn in turns]
            talks[talk] = tuple(user(turn["content"]) for turn in said)
        source = answers[item["id"]]["source"]
        evidence, quotes = _quoted(source if isinstance(source, list) else [source], talks[talk])
        question = item["question"][0][0]["content"]
        cases.append(Case(item["id"], question, talk, talks[talk], tuple(evidence), tuple(quotes)))
    return Source("BFCL memory", 2_000, cases, (90.0, 95.0))


def _quoted(sources: list[str], messages: Sequence[Message]) -> tuple[list[int], list[str]]:
    """The messages that contain the pieces of a quote. For a piece that is not verbatim, the message with most of its
    words.
    """
    texts = [_plain(message.text) for message in messages]
    evidence, quotes = set[int](), []
    for source in sources:
        for piece in filter(None, map(_plain, re.split(r"\.\.\.|…", source))):
            exact = [at for at, text in enumerate(texts) if piece in text]
            words = set(piece.split())
            evidence.add(
                exact[0] if exact else max(range(len(texts)), key=lambda at: len(words & set(texts[at].split())))
            )
            quotes += [piece] if exact else []
    return sorted(evidence), quotes


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def qmsum(data: Path) -> Source:
    """Meetings. The evidence is every turn of the spans that the data set names."""
    cases = []
    for part in ("test", "val"):
        lines = _lines(gzip.decompress((data / "qmsum" / f"{part}.jsonl.gz").read_bytes()).decode())
        for number, meeting in enumerate(lines):
            turns = tuple(user(f"{turn['speaker']}: {turn['content']}") for turn in meeting["meeting_transcripts"])
            for place, query in enumerate(meeting["specific_query_list"]):
                spans = [range(int(first), int(last) + 1) for first, last in query["relevant_text_span"]]
                evidence = sorted({at for span in spans for at in span})
                talk = f"{part}-{number}"
                cases.append(Case(f"{talk}-{place}", query["query"], talk, turns, tuple(evidence)))
    return Source("QMSum", 4_000, cases, (0.0, 0.0), "{text}")


def _lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines() if line.strip()]


# Plain BM25 ----------------------------------------------------------------------------------------------------------

_STOP = (
    "a an the and or but if of to in on at by for with from as is are was were be been being do does did have has had "
    "i you he she it we they me my your his her its our their this that these those what which who whom when where why "
    "how not no so than then there here can could should would will shall may might must about into over after before "
    "out up down off again all any some such only own same too very just"
)
STOP = frozenset(_STOP.split())


def plain_words(text: str) -> list[str]:
    """The lower-cased words and numbers of a text, without stop words and common endings."""
    found = []
    for word in re.findall(r"[a-z0-9]+", text.lower()):
        if word not in STOP:
            ending = next(
                (end for end in ("ing", "ed", "es", "s") if word.endswith(end) and len(word) > len(end) + 2), ""
            )
            found.append(word.removesuffix(ending))
    return found


class Plain:
    """BM25 over the messages of one conversation."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.counts = [Counter(plain_words(text)) for text in texts]
        self.lengths = [count.total() for count in self.counts]
        self.mean = sum(self.lengths) / max(1, len(texts))
        self.having = Counter(word for count in self.counts for word in count)

    def best(self, query: str) -> list[int]:
        """All messages that share a word with the question, best first."""
        total, scores = len(self.counts), dict[int, float]()
        for word in set(plain_words(query)) & set(self.having):
            weight = math.log(1 + (total - self.having[word] + 0.5) / (self.having[word] + 0.5))
            for at, count in enumerate(self.counts):
                if word in count:
                    low = 1.2 * (1 - 0.75 + 0.75 * self.lengths[at] / self.mean)
                    scores[at] = scores.get(at, 0.0) + weight * count[word] * 2.2 / (count[word] + low)
        return sorted(scores, key=lambda at: (-scores[at], at))


# The run -------------------------------------------------------------------------------------------------------------


def main(argv: Sequence[str]) -> int:
    """Run the bench and print its figures. The exit code is 1 if a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench recall", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with longmemeval, bfcl-memory and qmsum")
    parser.add_argument("--questions", type=int, default=0, help="number of LongMemEval questions to sample; 0: all")
    parser.add_argument("--only", default="", help="only the source whose name begins with this text")
    parser.add_argument("--half", choices=("both", "chosen on", "reported"), default="both")
    parser.add_argument("--without-vectors", action="store_true", help="leave the word vectors out")
    parser.add_argument("--scale", type=int, default=0, help="measure queries in a session with this many messages")
    options = parser.parse_args(argv)
    if options.without_vectors:
        vars(candidates)["installed_vectors"] = lambda: None
    vectors = "without" if options.without_vectors or installed_vectors() is None else "with"
    print(f"recall {vectors} word vectors, at most {TOKENS:,} tokens, in % of the questions")
    if options.scale:
        return scale(longmemeval(options.data, 0), options.scale)
    low = False
    for source in (longmemeval(options.data, options.questions), bfcl(options.data), qmsum(options.data)):
        if source.name.lower().startswith(options.only.lower()):
            low |= report(source, options.half)
    return int(low)


class Outcome(NamedTuple):
    """What the first 5 and the first 10 results of one question show."""

    any: tuple[bool, ...]
    share: tuple[float, ...]
    all: tuple[bool, ...]
    all_or_in_view: tuple[bool, ...]
    quoted: tuple[bool, ...]
    bm25: tuple[bool, ...]
    tokens: int
    seconds: float
    has_several: bool
    """Whether the question has several evidence messages."""


def report(source: Source, half: str) -> bool:
    """Print the figures of a source for each half. Returns True if a goal is missed."""
    is_low = False
    for name, is_chosen_on in (("chosen on", True), ("reported", False)):
        if half not in ("both", name):
            continue
        some = list(run(source, [case for case in source.cases if case.chosen_on == is_chosen_on]))
        print(f"\n{source.name}, {name}: {len(some)} questions", flush=True)
        for label in ("any", "share", "all", "all_or_in_view", "quoted", "bm25"):
            row = _figures(label, some)
            if label == "any" and name == "reported":
                is_low = any(value < goal for value, goal in zip(row, source.goals, strict=True))
        several = [one for one in some if one.has_several]
        print(f"  of them with several evidence messages: {len(several)} questions")
        for label in ("any", "share", "all", "bm25") if several else ():
            _figures(label, several)
        tokens, times = sorted(one.tokens for one in some), sorted(one.seconds for one in some)
        print(f"    tokens: mean {sum(tokens) / len(tokens):,.0f}, most {tokens[-1]:,}", end="; ")
        print(f"a query: p50 {1000 * times[len(times) // 2]:.1f} ms, p95 {1000 * times[int(len(times) * 0.95)]:.1f} ms")
    return is_low


def _figures(label: str, some: Sequence[Outcome]) -> list[float]:
    """Print one figure for each k, in % of the questions, and return the figures."""
    row = [100 * sum(getattr(one, label)[at] for one in some) / max(1, len(some)) for at in range(len(KS))]
    note = "plain BM25, all" if label == "bm25" else label.replace("_", " ")
    print(f"    {note:<16}" + "".join(f"  top {k:<2} {value:5.1f}" for k, value in zip(KS, row, strict=True)))
    return row


def run(source: Source, cases: Sequence[Case]) -> Iterator[Outcome]:
    """Ask all questions of a source, one conversation after the other."""
    talk, session, plain = "", Session(), Plain([])
    for case in cases:
        texts = [source.line.format(role=message.role, text=message.text) for message in case.messages]
        if case.talk != talk:
            talk, session, plain = case.talk, session_of(case.messages), Plain(texts)
        yield outcome(case, session, plain.best(case.question), view_start(texts, source.budget))


def session_of(messages: Sequence[Message]) -> Session:
    """A session with these messages. All of them are indexed."""
    session = Session()
    session.add(*messages)
    session.recall("index")
    return session


def view_start(texts: Sequence[str], budget: float) -> int:
    """The index of the first message of the view: the newest messages that fit the budget (characters / 4)."""
    start = len(texts)
    while start and (budget := budget - len(texts[start - 1]) / 4 - MESSAGE_TOKENS) >= 0:
        start -= 1
    return start


def outcome(case: Case, session: Session, best: Sequence[int], start: int) -> Outcome:
    """Ask one question."""
    began = time.perf_counter()
    found = session.recall(case.question)
    seconds = time.perf_counter() - began
    evidence, folded = set(case.evidence), {at for at in case.evidence if at < start}
    shown = [{message.position for passage in found.results[:k] for message in passage.messages} for k in KS]
    return Outcome(
        tuple([bool(evidence & some) for some in shown]),
        tuple([len(evidence & some) / max(1, len(evidence)) for some in shown]),
        tuple([evidence <= some for some in shown]),
        tuple([folded <= some for some in shown]),
        tuple([_quotes(found, k, case.quotes) for k in KS]),
        tuple([evidence <= set(best[:k]) for k in KS]),
        found.tokens,
        seconds,
        len(evidence) > 1,
    )


def _quotes(found: RecallResult, k: int, quotes: Sequence[str]) -> bool:
    text = _plain("\n".join(map(str, found.results[:k])))
    return bool(quotes) and all(quote in text for quote in quotes)


def scale(source: Source, count: int) -> int:
    """Print the time and the memory of queries in a session with `size` messages, in a SQLite file."""
    pool = list({(message.role, message.text): message for case in source.cases for message in case.messages}.values())
    copies = (message for number in range(count // len(pool) + 1) for message in _numbered(pool, number))
    with tempfile.TemporaryDirectory() as folder, foldline.open(Path(folder, "scale.db")) as house:
        session = house.session("scale", policy=Policy(window_tokens=1_000_000_000))
        for _ in range(0, count, SCALE_BATCH):
            session.add(*islice(copies, min(SCALE_BATCH, count - len(session))))
        session.recall("index")
        return _scale_times(source, session)


def _scale_times(source: Source, session: Session) -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = []
    for case in source.cases[:SCALE_QUESTIONS]:
        began = time.process_time()
        session.recall(case.question)
        times.append(time.process_time() - began)
    first, times = times[0], sorted(times[1:])
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{len(session):,} messages, {len(times)} queries, processor time: first {1000 * first:.1f} ms, ", end="")
    print(f"p50 {1000 * times[len(times) // 2]:.1f} ms, p95 {1000 * times[int(len(times) * 0.95)]:.1f} ms; ", end="")
    print(f"memory that the queries added: {more:.0f} MB")
    return 0


def _numbered(pool: Sequence[Message], number: int) -> Iterator[Message]:
    for at, message in enumerate(pool):
        yield (user if message.role == "user" else assistant)(f"{message.text} copy{number} {at}")
