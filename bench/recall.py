"""Is what was said still within reach? Questions with known evidence, asked when most of the talk has left the view.

The messages of a source go into a real ledger, one by one. The view at the end is the newest of them that fit the
budget (characters / 4 + 4 a message). For a question, the evidence is in reach when every message of it is in the view
or shown by recall:

- **shown**: a result is a run of messages that follow one another; each message is shown under its own handle, whole
  or the part of it that answers best. A question counts when every evidence message is in the view or shown so.
- **whole**: the same, and no evidence message was cut (for BFCL: the quoted sentence itself is in what was returned).

All that recall returns, handles and roles included, is counted: characters / 4, and never more than 2,000. Plain BM25
(k1 1.2, b 0.75) gives the k best messages whatever they cost; what it would cost to return them is printed beside it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from foldline import ledger
from foldline.ledger import Store
from foldline.measure.estimator import CharRatioCounter, Count
from foldline.message import Message, assistant, user
from foldline.recall.result import RecallResult
from foldline.recall.search import TOKENS, RecallQuery, search
from foldline.recall.text_index import TextIndex

KS = (1, 5, 10, 20)
SESSIONS = 33
QUESTIONS = 160
MESSAGE_TOKENS = 4
SEED = "recall"


class Case(NamedTuple):
    """A question about a talk."""

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
    """Questions of one kind, and the budget of the view they are asked at."""

    name: str
    budget: int
    cases: list[Case]
    goal: float
    line: str = "{role}: {text}"
    """How a message is written where its size counts."""


class Quarter:
    """Characters by four, as the protocol counts them."""

    name = "chars/4"
    exact = True

    def count(self, text: str) -> Count:
        """Rounded up."""
        return Count(CharRatioCounter("chars/4", 40).count(text).tokens, True, self.name)


# The sources ---------------------------------------------------------------------------------------------------------


def longmemeval(data: Path, count: int) -> Source:
    """Haystacks of 33 sessions: the question's own among others drawn from all."""
    items = json.loads(gzip.decompress((data / "longmemeval" / "longmemeval_oracle.json.gz").read_bytes()))
    pool: dict[str, Any] = {}
    for item in items:
        for name, session in zip(item["haystack_session_ids"], item["haystack_sessions"], strict=True):
            pool.setdefault(name, session)
    answered = [item for item in items if not item["question_id"].endswith("_abs")]
    chosen = random.Random(SEED).sample(answered, min(count, len(answered))) if count else answered
    return Source("LongMemEval", 16_000, [_haystack(item, pool) for item in chosen], 85.0)


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
    """Long streams of a user's messages; the evidence is the message that holds the quoted source."""
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
    return Source("BFCL memory", 2_000, cases, 98.0)


def _quoted(sources: list[str], messages: Sequence[Message]) -> tuple[list[int], list[str]]:
    """The messages that hold the pieces of a quote; for one that is not verbatim, that with most of its words."""
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
    """Meetings; the evidence is every turn of the gold spans."""
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
    return Source("QMSum", 4_000, cases, 35.0, "{text}")


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
    """Lower-cased words and figures without stop words and common endings."""
    found = []
    for word in re.findall(r"[a-z0-9]+", text.lower()):
        if word not in STOP:
            ending = next(
                (end for end in ("ing", "ed", "es", "s") if word.endswith(end) and len(word) > len(end) + 2), ""
            )
            found.append(word.removesuffix(ending))
    return found


class Plain:
    """BM25 over the messages of one talk."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.counts = [Counter(plain_words(text)) for text in texts]
        self.lengths = [count.total() for count in self.counts]
        self.mean = sum(self.lengths) / max(1, len(texts))
        self.having = Counter(word for count in self.counts for word in count)

    def best(self, query: str) -> list[int]:
        """All messages that share a word, best first."""
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
    """Run the bench and print its figures."""
    parser = argparse.ArgumentParser(prog="python -m bench recall", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with longmemeval, bfcl-memory and qmsum")
    parser.add_argument("--ledger", default=":memory:", help="where the ledger is made (a path or postgresql://…)")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="sampled from LongMemEval; 0 for all")
    parser.add_argument("--only", default="", help="one source by the first letters of its name")
    options = parser.parse_args(argv)
    print(f"in view or shown by the k best results of recall, in %; at most {TOKENS:,} tokens a query (characters / 4)")
    low = False
    for source in (longmemeval(options.data, options.questions), bfcl(options.data), qmsum(options.data)):
        if source.name.lower().startswith(options.only.lower()):
            low |= report(source, options.ledger) < source.goal
    return int(low)


class Outcome(NamedTuple):
    """One question: what of it was in reach."""

    chosen_on: bool
    in_view: bool
    shown: dict[int, bool]
    whole: dict[int, bool]
    plain: dict[int, bool]
    tokens: dict[int, int]
    plain_tokens: int
    seconds: float


def report(source: Source, url: str) -> float:
    """Print a source's figures; give the share that is shown by ten results."""
    outcomes = list(run(source, url))
    print(f"\n{source.name}: {len(outcomes)} questions, a view of {source.budget:,} tokens")
    shares = 0.0
    for name, some in (
        ("all", outcomes),
        ("chosen on", [outcome for outcome in outcomes if outcome.chosen_on]),
        ("held out", [outcome for outcome in outcomes if not outcome.chosen_on]),
    ):
        print(f"  {name} ({len(some)}): in view {share([one.in_view for one in some]):.1f}")
        for label in ("shown", "whole", "plain"):
            row = [share([getattr(one, label)[k] for one in some]) for k in KS]
            note = "plain BM25" if label == "plain" else label
            print(f"    {note:<11}" + "".join(f"  top {k:<2} {value:5.1f}" for k, value in zip(KS, row, strict=True)))
            if name == "all" and label == "shown":
                shares = row[KS.index(10)]
    searched = [one for one in outcomes if not one.in_view]
    for k in KS:
        tokens = sorted(one.tokens[k] for one in searched)
        print(f"  tokens at top {k}: mean {sum(tokens) / len(tokens):,.0f}, most {tokens[-1]:,}")
    plain = [one.plain_tokens for one in searched]
    print(f"  (plain BM25 would return {sum(plain) / len(plain):,.0f} on the mean at top 10, {max(plain):,} at most)")
    times = sorted(one.seconds for one in searched)
    print(f"  a search: p50 {times[len(times) // 2] * 1000:.1f} ms, p95 {times[int(len(times) * 0.95)] * 1000:.1f} ms")
    return shares


def share(found: Sequence[bool]) -> float:
    """In per cent."""
    return 100 * sum(found) / max(1, len(found))


def run(source: Source, url: str) -> Iterator[Outcome]:
    """Ask every question of a source."""
    store = ledger.open(url, owner=f"bench {source.name} {time.time_ns()}", index=TextIndex())
    plain: dict[str, Plain] = {}
    for case in source.cases:
        texts = [source.line.format(role=message.role, text=message.text) for message in case.messages]
        if case.talk not in plain:
            plain = {case.talk: Plain(texts)}
        if not store.head(store.session(case.talk)).length:
            store.append(store.session(case.talk), case.messages)
        yield outcome(case, store, plain[case.talk], texts, source.budget)
    store.close()


def outcome(case: Case, store: Store, plain: Plain, texts: Sequence[str], budget: float) -> Outcome:
    """Ask one question."""
    start = len(texts)
    while start and (budget := budget - len(texts[start - 1]) / 4 - MESSAGE_TOKENS) >= 0:
        start -= 1
    missing = [at for at in case.evidence if at < start]
    if not missing:
        yes = dict.fromkeys(KS, True)
        return Outcome(case.chosen_on, True, yes, yes, yes, dict.fromkeys(KS, 0), 0, 0.0)
    found: dict[int, RecallResult] = {}
    began = time.perf_counter()
    for k in KS:
        ask = RecallQuery(query=case.question, results=k, before=start)
        found[k] = search(store, store.session(case.talk), ask, Quarter())
    seconds = (time.perf_counter() - began) / len(KS)
    best = plain.best(case.question)
    return Outcome(
        case.chosen_on,
        False,
        {k: _shown(found[k], missing) for k in KS},
        {k: _whole(found[k], missing, case.quotes) for k in KS},
        {k: set(missing) <= set(best[:k]) for k in KS},
        {k: found[k].tokens for k in KS},
        round(sum(len(texts[at]) / 4 for at in best[:10])),
        seconds,
    )


def _shown(found: RecallResult, missing: Sequence[int]) -> bool:
    return set(missing) <= {line.position for result in found.results for line in result.messages}


def _whole(found: RecallResult, missing: Sequence[int], quotes: Sequence[str]) -> bool:
    if quotes:
        text = _plain(str(found))
        return _shown(found, missing) and all(quote in text for quote in quotes)
    return set(missing) <= {line.position for result in found.results for line in result.messages if line.is_whole}
