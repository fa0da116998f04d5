"""How a model's digest is made, written once and without any waiting: a generator that asks and is answered.

    flow = written(job, digester)
    ask = next(flow)              # an `Ask`; send its `Answer`, or throw what went wrong
    ask = flow.send(answer)       # the next one, until StopIteration brings the digest

What leaves the view is cut into pieces that fit the digester's own window, each piece becomes a digest, and digests are
merged by the same step until one is left; so the digester has seen all of it. Whatever fails, the local digest takes
its place with the cause in the record, or nothing is folded, as the policy says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from foldline.digest.audit import audit, top_up
from foldline.digest.chunks import chunked
from foldline.digest.digester import Digester, DigesterCall, DigesterReply
from foldline.digest.extract.facts import Facts, gather
from foldline.digest.local import local_digest
from foldline.digest.prompt import Form, lines_of, sections
from foldline.digest.scope import REFERENCE, SESSION, Scope
from foldline.digest.validate import clean, no_gain, refusal, too_large, too_small, unordered
from foldline.fold import Digest
from foldline.message import Message, Usage, user
from foldline.placeholders import without_handles
from foldline.redact.redact import redact

_CAUSE_CHARS = 300
_ABOVE = "(everything above this message)"
"""Stands for a transcript that the digester has in front of it already."""
_SHRINKS = 5
"""How often a request that the provider finds too long is cut smaller."""
_SHRINK = 0.6
_WORDS_PER_TOKEN = 0.6
"""English words in a token, rather too few: a model told so many stays below its cap."""
_MOST = 64
"""A reply of more characters than this for each token of its cap is not even read."""
_LEAST_SHARE, _LEAST_TOKENS = 0.01, 24
"""A digest of less than this share of what it stands for, or of so many tokens, says nothing; the smaller wins."""
_FRAMING, _LEAST_ROOM = 16, 64
"""What a provider adds around two messages, and less than which no transcript is worth asking about."""
_OVERFLOW = re.compile(
    r"context[_ ](?:length|window|size)|maximum context|too many tokens|(?:prompt|input) is too long|request too large|"
    r"exceeds? the available context|token limit",
    re.IGNORECASE,
)

DigestFlow: TypeAlias = Generator[DigesterCall, DigesterReply, "Digest | FoldRefused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestRequest:
    """What is to be digested, and what the digest must be."""

    messages: Sequence[Message]
    """What leaves the window now and no digest stands for yet."""
    size: Callable[[str], int]
    """How the session counts."""
    cap: int
    covered: int = 0
    """Tokens that leave the view: the digest must be smaller. 0 where that is not known."""
    first: int = 0
    """The number of the first message in the record."""
    facts: Facts | None = None
    """The facts of everything that is folded; by default gathered from the messages."""
    cut: int | None = None
    """The first message that is not folded, where the facts reach further."""
    kept: Collection[int] = ()
    """Messages that stay in the view word for word, before or behind the cut."""
    prior: str = ""
    """The digest of what was folded before."""
    scope: Scope = SESSION
    form: Form | None = None
    """How the digester is asked; by default with the documented sections."""
    header: str = ""
    """The digest's first line where it is not the scope's own."""
    role: str = "user"
    instructions: str = ""
    """What the user asks of this digest. It goes to the digester and never into the view."""
    floor: float = 0.0
    """The share of facts that a model's digest must show; missing ones are added below it."""
    on_failure: str = "local"
    """`local`: a digest that needs no model takes the place of one that failed; `keep`: nothing is folded."""
    thinking: bool = False
    """Whether the reasoning in the transcript is shown to the digester."""
    prefix: tuple[Message, ...] = ()
    """The session's own view, where asking behind it is cheaper."""
    least: int | None = None
    """The fewest tokens of a digest; by default a small share of what it stands for."""
    signal: object = None
    """The caller's sign to stop, handed to the digester and looked at while it is awaited."""
    bare: bool = False
    """For a host's own list, which has no record behind it: nothing is numbered, and the digest before stays in it."""


class FoldRefused(NamedTuple):
    """Nothing is folded, and why."""

    cause: str


class DigestRejected(Exception):
    """A reply, or its lack, that cannot become a digest."""


def model_digest_flow(job: DigestRequest, digester: Digester) -> DigestFlow:
    """The digest that a digester writes, or what stands in its place."""
    author = _ModelDigest(job, digester)
    try:
        return author.accepted((yield from author.body()))
    except DigestRejected as refused:
        cause = str(refused)
    except Exception as error:  # noqa: BLE001 (whatever a digester raises, the session must go on)
        cause = error_cause(error)
    made = write_local_digest(job, cause=cause, parts=author.parts)
    return made if isinstance(made, FoldRefused) else replace(made, usage=author.usage)


def write_local_digest(job: DigestRequest, *, cause: str = "", parts: Sequence[str] = ()) -> Digest | FoldRefused:
    """The digest that needs no model; nothing is folded where the policy prefers that, or where it would not gain.

    `parts` are what a digester had written before it failed.
    """
    if cause and job.on_failure == "keep":
        return FoldRefused(cause)
    facts = job.facts or gather(job.messages, job.first)
    if job.bare:
        return _barely(job, facts, cause)
    before = "\n".join(filter(None, (redact(job.prior) if job.facts is None else "", *parts)))
    header = f"{job.header or job.scope.header}\n{REFERENCE}"
    made = local_digest(facts, cap=job.cap, size=job.size, header=header, prior_text=before, kept=job.kept, cut=job.cut)
    text, _ = unordered(made.message.text.partition("\n")[2], users=_asked(facts))
    message = job.scope.message(text, header=job.header, role=job.role)
    lost = no_gain(job.size(message.text), job.covered) if job.covered else ""
    return (
        FoldRefused(lost)
        if lost
        else replace(made, message=message, cause=cause, loss=audit(text, facts, kept=job.kept))
    )


def _barely(job: DigestRequest, facts: Facts, cause: str) -> Digest:
    """The local digest for a list: the digest before it as it was, as far as half the cap reaches, and the new one."""
    header = job.header or job.scope.header
    lines: list[str] = []
    for line in redact(job.prior).split("\n"):
        if lines and job.size("\n".join([*lines, line])) > job.cap // 2:
            break
        lines.append(line)
    prior = "\n".join(lines).strip()
    made = local_digest(facts, cap=max(1, job.cap - job.size(prior)), size=job.size, header=header, kept=job.kept)
    text, _ = unordered(without_handles(made.message.text.removeprefix(header).strip()), users=_asked(facts))
    if not facts.facts and not facts.names:
        text = text.partition("\n")[0]
    return Digest(message=job.scope.message("\n".join(filter(None, (prior, text))), header=job.header), cause=cause)


def _asked(facts: Facts) -> str:
    """What the user said, as far as the facts have it: his own orders are no stranger's."""
    return "\n".join(fact.text for fact in facts.facts.values() if fact.kind in {"request", "constraint"})


class _TooLong(Exception):
    """A request that would not fit into the digester's window."""


class _ModelDigest:
    """A digest in the making: what was asked and paid so far."""

    def __init__(self, job: DigestRequest, digester: Digester) -> None:
        self.job, self.digester = job, digester
        self.form = job.form or sections(job.scope)
        self.reply = max(1, min(job.cap, digester.reply, digester.window // 4))
        """How long a reply may be: the cap, and never so long that two would not fit beside each other."""
        self.users = "\n".join(message.text for message in job.messages if message.is_prompt)
        self.share = 1.0
        """How much of the room is used: less after the provider found a request too long."""
        self.parts: list[str] = []
        self.usage: Usage | None = None
        self.orders = 0

    def body(self) -> Generator[DigesterCall, DigesterReply, str]:
        """The text of the digest; pieces get smaller when the provider finds them too long."""
        for _ in range(_SHRINKS):
            try:
                if self.job.prefix and self.share == 1.0:
                    return (yield from self._ask(_ABOVE, last=True))
                return (yield from self._rounds())
            except Exception as error:
                if not _is_overflow(error):
                    raise
                self.share *= _SHRINK
                self.parts.clear()
        raise DigestRejected("the digester finds every request too long")

    def _rounds(self) -> Generator[DigesterCall, DigesterReply, str]:
        """Asked for once where it all fits, else for each piece and then for all of them together."""
        size, room, prior = self.digester.size, self._room(), redact(self.job.prior)
        texts = ["\n".join(lines_of(message, thinking=self.job.thinking)) for message in self.job.messages]
        if size(prior) > room // 3:
            texts, prior = [*lines_of(user(prior, kind="digest")), *texts], ""
        room -= size(prior)
        chunks = chunked(filter(None, texts), room, size)
        while len(chunks) > 1:
            self.parts.clear()
            for chunk in chunks:
                self.parts.append((yield from self._ask(chunk)))
            merged = chunked((line for part in self.parts for line in lines_of(user(part, kind="digest"))), room, size)
            if len(merged) >= len(chunks):
                raise DigestRejected("the digester's window is too small to bring its digests together")
            chunks = merged
        return (yield from self._ask("".join(chunks), prior=prior, last=True))

    def _room(self) -> int:
        """What is left for the transcript in one request."""
        around = self.form.write("", prior="none", words=self.reply, wishes=self.job.instructions)
        room = self.digester.window - self.reply - self.digester.size(self.form.system + around) - _FRAMING
        if room < _LEAST_ROOM:
            raise DigestRejected(
                f"the digester's window of {self.digester.window:,} tokens has no room for a transcript"
            )
        return max(_LEAST_ROOM, int(room * self.share))

    def _ask(
        self, transcript: str, *, prior: str = "", last: bool = False
    ) -> Generator[DigesterCall, DigesterReply, str]:
        """One request and its reply, judged and cleaned."""
        job = self.job
        words = int(self.reply * _WORDS_PER_TOKEN) if job.form is None else 0
        ask = DigesterCall(
            system=self.form.system,
            text=self.form.write(transcript, prior=prior, words=words, wishes=job.instructions if last else ""),
            model=self.digester.model,
            max_tokens=self.reply,
            reasoning=self.digester.reasoning,
            signal=job.signal,
            prefix=job.prefix if self.share == 1.0 else (),
        )
        if not ask.prefix and self.digester.size(ask.system + ask.text) + self.reply > self.digester.window:
            raise _TooLong  # what is counted in pieces may be more as a whole
        answer = yield ask
        if not isinstance(answer, DigesterReply):
            raise DigestRejected(f"the digester gave {type(answer).__name__} and not an answer")
        self.usage = _sum(self.usage, answer.usage)
        much = _MOST * job.cap < len(answer.text) and too_large(job.size(answer.text), job.cap)
        cause = much or refusal(answer, asked=ask.text)
        if cause:
            raise DigestRejected(redact(cause)[:_CAUSE_CHARS])
        text, orders = clean(answer.text, users=self.users)
        self.orders += orders
        if not text:
            raise DigestRejected("the reply says nothing")
        return text

    def accepted(self, body: str) -> Digest:
        """The digest, if its size is right; facts it left out are added where there are too few."""
        job = self.job
        facts = job.facts or gather(job.messages, job.first)
        reference = "" if job.bare else f"{REFERENCE}\n"
        head = job.size(job.scope.message(reference, header=job.header).text)
        tokens = job.size(body)
        covered = job.covered or job.size("\n".join(piece for message in job.messages for piece in lines_of(message)))
        least = min(_LEAST_TOKENS, int(_LEAST_SHARE * covered)) if job.least is None else job.least
        cause = too_large(tokens + head, job.cap) or too_small(tokens, least)
        if cause:
            raise DigestRejected(cause)
        text, loss = top_up(body, facts, floor=job.floor, cap=job.cap - head, size=job.size, kept=job.kept)
        text, more = unordered(without_handles(text) if job.bare else text, users=f"{self.users}\n{_asked(facts)}")
        message = job.scope.message(f"{reference}{text}", header=job.header, role=job.role)
        cause = no_gain(job.size(message.text), job.covered) if job.covered else ""
        if cause:
            raise DigestRejected(cause)
        if self.orders + more:
            loss = replace(loss, unsourced=(*loss.unsourced, f"orders to the reader: {self.orders + more}"))
        return Digest(message=message, by=self.digester.name, loss=loss, usage=self.usage)


def _sum(one: Usage | None, two: Usage | None) -> Usage | None:
    if one is None or two is None:
        return one or two
    return Usage(*(left + right for left, right in zip(one, two, strict=True)))


def _is_overflow(error: Exception) -> bool:
    """Whether an error says that the request was too long for the model."""
    return isinstance(error, _TooLong) or (
        not isinstance(error, DigestRejected) and bool(_OVERFLOW.search(error_cause(error)))
    )


def error_cause(error: BaseException) -> str:
    """An error as a cause: its kind and its words, short and without secrets."""
    try:
        return redact(f"{type(error).__name__}: {error}".removesuffix(": "))[:_CAUSE_CHARS]
    except Exception:  # noqa: BLE001 (its own words may fail too)
        return type(error).__name__
