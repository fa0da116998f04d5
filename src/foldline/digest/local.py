"""Writes the local digest: a digest from facts, without a model. The local digest is deterministic and takes
milliseconds to write.

First all sections except the carryover get their shares of the budget. Then the carryover gets the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from foldline.digest.audit import audit
from foldline.digest.carryover import carryover_lines
from foldline.digest.checks import no_gain
from foldline.digest.digest_request import DigestRequest, FoldRefused
from foldline.digest.extract.extraction import extract_facts
from foldline.digest.extract.facts import Facts
from foldline.digest.markup import INDENT, REFERENCE, body_of, quote, remove_instructions
from foldline.digest.status import Status
from foldline.digest.turn_writer import TurnWriter
from foldline.digest.turns import without_code
from foldline.fold import Digest, Loss
from foldline.placeholders import condensed_messages, without_handles
from foldline.plan.timeline import handle
from foldline.redact.redact import clean_text, redact

_OPEN_WORK = "Open work"
USER_WORDS, _NAMES = "User's words", "Names"
"""Sections that are added to a model's digest: what the user said, and the carryover."""
ORDER: tuple[str, ...] = ("Earlier digest", "Turns", USER_WORDS, "Status", "Plan", "Files changed")
ORDER += ("Carryover", "Calls", _NAMES)
"""The sections of a local digest, in their order. If the text is too long, the last sections lose lines first."""
_CHRONOLOGICAL = ("Turns", USER_WORDS)
"""Sections whose entries are in the order of time. If the text is too long, they lose their oldest entries, but the
first entry is lost last. Other sections lose their last lines.
"""
SHARES = {
    "Earlier digest": (0.3, 0.3),
    "Status": (0.1, 0.1),
    _OPEN_WORK: (0.1, 0.3),
    "Plan": (0.06, 0.06),
    "Files changed": (0.06, 0.04),
    "Turns": (0.62, 0.05),
    "Calls": (0.55, 0.9),
}
"""The largest share of the budget that each section may take: in a large digest, and in a tiny digest.

A digest with at least `_LARGE_CHARS` characters is large. For smaller digests, the share is interpolated. Open work is
the first part of the section "Status". The shares of "Turns" and "Calls" are shares of the room that the sections
before them leave. The rest is for the carryover.
"""
_LARGE_CHARS, _MAX_CALLS_CHARS = 7_000, 2_000
_ADDED_SHARES = {"Status": 0.25, "Files changed": 0.25, USER_WORDS: 0.8}
"""The sections that are added to a model's digest, and the largest share of the free room that each may take.

`USER_WORDS` comes last, so its share is a share of the room that is free after the other two sections.
"""
ADDED_SECTIONS = re.compile(rf"^# (?:{'|'.join(_ADDED_SHARES)})$", re.MULTILINE)
"""The headings of the sections that are added to a model's digest."""
_MAX_TURNS_SHARE, _LEAST_TURNS_SHARE = 0.97, 0.5
"""If the first and the newest prompts are long, the section "Turns" of a large digest gets more than its share.

It gets the length of these prompts and of the newest replies, but at most the share `_MAX_TURNS_SHARE` of the free
room. In a small digest, it gets enough room for these prompts and replies in a short form, but at most the share
`_LEAST_TURNS_SHARE` of the free room.
"""
_MIN_EARLIER_SHARE, _PROMPTS_SHARE = 0.1, 0.8
"""Limits for an earlier digest, as shares of the room.

The earlier digest, the first prompt and the newest prompts together get at most `_PROMPTS_SHARE`. If these prompts are
long, the earlier digest is shortened, but not below `_MIN_EARLIER_SHARE`.
"""
_HEADING_CHARS, _MIN_CHARS, _LABEL_CHARS = 14, 60, 60
"""Numbers of characters.

They are the length of a heading, the least room for a carryover, and the maximum length of the file or command at the
start of a line.
"""
_MIN_TOKENS, _MAX_SHARE = 160, 0.75
"""If the budget has fewer tokens than `_MIN_TOKENS`, the digest has no sections.

A digest has at most the share `_MAX_SHARE` of the tokens that leave the view.
"""
_SAFE = 1.2
"""Safety factor for numbers of characters that are estimated from tokens.

Free room is divided by it, and a surplus is multiplied by it.
"""

CountTokens = Callable[[str], int]


def local_limit(max_tokens: int, covered_tokens: int) -> int:
    """Maximum size of a local digest in tokens: `max_tokens`, or less if few tokens leave the view.

    So even a fold of few messages makes the view smaller.
    """
    smaller = int(_MAX_SHARE * covered_tokens)
    return min(max_tokens, smaller) if smaller >= _MIN_TOKENS else max_tokens


def write_local_digest(
    request: DigestRequest, *, cause: str = "", partial_digests: Sequence[str] = ()
) -> Digest | FoldRefused:
    """The local digest for a request, or `FoldRefused` with the cause.

    `cause` says why no model wrote the digest. `partial_digests` are the digests that a model wrote before it failed.
    """
    if cause and request.on_failure == "keep":
        return FoldRefused(cause)
    facts = request.facts or extract_facts(request.messages, request.first_index)
    if request.plain_list:
        return _plain_list_digest(request, facts, cause)
    before = (redact(request.prior_digest) if request.facts is None else "", *partial_digests)
    text = local_digest_text(
        facts,
        max_tokens=request.max_tokens,
        count_tokens=request.count_tokens,
        header=f"{request.header or request.scope.header}\n{REFERENCE}",
        prior_digest="\n".join(filter(None, before)),
        kept_indexes=request.kept_indexes,
        cut=request.cut,
    )
    text, _ = remove_instructions(text.partition("\n")[2], allowed=facts.user_text, has_turns=True)
    message = request.scope.message(text, header=request.header, role=request.role)
    tokens = request.count_tokens(message.text)
    if 0 < request.covered_tokens <= tokens:
        return FoldRefused(no_gain(tokens, request.covered_tokens))
    loss = audit(text, facts, kept_indexes=request.kept_indexes)
    # every line is a quotation, so no claim lacks a source
    return Digest(message=message, cause=cause, loss=replace(loss, unsourced=()))


def _plain_list_digest(request: DigestRequest, facts: Facts, cause: str) -> Digest:
    """The local digest for a plain list of messages, which has no record.

    The digest begins with the prior digest, which takes at most half of the budget.
    """
    header, count_tokens = request.header or request.scope.header, request.count_tokens
    lines: list[str] = []
    for line in redact(request.prior_digest).split("\n"):
        if lines and count_tokens("\n".join([*lines, line])) > request.max_tokens // 2:
            break
        lines.append(line)
    prior = "\n".join(lines).strip()
    text = local_digest_text(
        facts,
        max_tokens=max(1, request.max_tokens - count_tokens(prior)),
        count_tokens=count_tokens,
        header=header,
        kept_indexes=request.kept_indexes,
    )
    text = without_handles(text.removeprefix(header).strip())
    text, _ = remove_instructions(text, allowed=facts.user_text, has_turns=True)
    if not (facts.facts or facts.identifiers or facts.turns):
        text = text.partition("\n")[0]
    text = "\n".join(filter(None, (prior, text)))
    return Digest(message=request.scope.message(text, header=request.header), cause=cause)


def local_digest_text(  # noqa: PLR0913 (keyword arguments)
    facts: Facts,
    *,
    max_tokens: int,
    count_tokens: CountTokens,
    header: str,
    prior_digest: str = "",
    kept_indexes: Collection[int] = (),
    cut: int | None = None,
) -> str:
    """The digest of the messages before `cut`, in at most `max_tokens` tokens.

    By default, the digest covers all messages that `facts` covers. Messages in `kept_indexes` stay in the view
    verbatim, so their facts are left out. `prior_digest` is the digest of the messages before index `facts.first`.
    """
    kept = frozenset(kept_indexes)
    first_index, end = facts.first, facts.end if cut is None else cut
    inside = sum(first_index <= index < end for index in kept)
    counted = ""
    if end > first_index:
        count = end - first_index - inside + facts.marks.get("condensed", 0)
        counted = condensed_messages(count, handle(first_index, end - 1), partly=inside > 0)
    head = "\n".join(filter(None, (header, counted)))
    first = header.partition("\n")[0]
    text = ""
    if max_tokens >= _MIN_TOKENS and count_tokens(head) <= max_tokens:
        text = _LocalDigest(facts, max_tokens, count_tokens, kept).write(head, prior_digest)
    shorter = (head, "\n".join(filter(None, (first, counted))))
    return next((each for each in (text, *shorter) if each and count_tokens(each) <= max_tokens), first)


def with_certain_facts(  # noqa: PLR0913 (keyword arguments)
    text: str,
    facts: Facts,
    *,
    min_coverage: float,
    max_tokens: int,
    count_tokens: CountTokens,
    kept_indexes: Collection[int] = (),
    plain_list: bool = False,
) -> tuple[str, Loss]:
    """Add certain facts to a model's digest. Returns the new text, of at most `max_tokens` tokens, and its loss report.

    The user's words, the state of the work and the changed files come from the record, so they are certain. If the new
    text still shows less than the share `min_coverage` of all facts, identifiers are added. If `plain_list` is true
    (see `DigestRequest`), nothing except open work is added.
    """
    digest = _LocalDigest(facts, max_tokens, count_tokens, frozenset(kept_indexes))
    before = audit(text, facts, kept_indexes=kept_indexes)
    longer = digest.add_to(text, min_coverage=min_coverage, plain_list=plain_list)
    after = audit(longer, facts, kept_indexes=kept_indexes)
    return longer, replace(after, carried=after.kept - before.kept, unsourced=before.unsourced)


class _LocalDigest:
    def __init__(self, facts: Facts, max_tokens: int, count_tokens: CountTokens, kept: Collection[int]) -> None:
        self.facts, self.max_tokens, self.count_tokens, self.kept = facts, max_tokens, count_tokens, kept
        self.status = Status(facts, kept)
        self.sections: dict[str, list[str]] = {}

    def write(self, head: str, prior_digest: str) -> str:
        """The whole text of the digest. Room is given to the most important sections first."""
        words = [text for turn in self.facts.turns[-3:] for text in (turn.prompt, *(it.text for it in turn.words))]
        sample = "\n".join([head, *words, *(call.text for call in self.facts.calls.values())])
        per_token = len(sample) / max(1, self.count_tokens(sample))
        turns = TurnWriter(self.facts.turns, self.kept)
        self._fill(int((self.max_tokens - self.count_tokens(head)) * per_token), turns, prior_digest)
        text = self._text(head)
        per_token = len(text) / max(1, self.count_tokens(text))
        if (left := self._left(text, per_token)) < 0:
            self.sections["Turns"] = turns.write(_cost(self.sections["Turns"]) + int(left * _SAFE))
            text = self._text(head)
        if (left := self._left(text, per_token) - _HEADING_CHARS) > _MIN_CHARS:
            self.sections["Carryover"] = carryover_lines(self.facts, self.kept, text, left, self._label)
        if (left := self._left(self._text(head), per_token)) > _MIN_CHARS:  # make the turns longer
            before = self.sections["Turns"]
            self.sections["Turns"] = turns.write(_cost(before) + int(left / _SAFE))
            if self.count_tokens(self._text(head)) > self.max_tokens:
                self.sections["Turns"] = before
        return self._truncated(head)

    def _left(self, text: str, per_token: float) -> int:
        return int((self.max_tokens - self.count_tokens(text)) * per_token)

    def _fill(self, room: int, turns: TurnWriter, prior_digest: str) -> None:
        """Write all sections except the carryover, in at most `room` characters."""
        status, sections, grown = self.status, self.sections, min(1.0, room / _LARGE_CHARS)
        shares = {name: grown * large + (1 - grown) * small for name, (large, small) in SHARES.items()}
        earlier = self.facts.earlier_digest
        texts = [prior_digest, earlier.text if earlier and earlier.message_index not in self.kept else ""]
        prompts = turns.important_chars if grown == 1 else 0
        most = max(_MIN_EARLIER_SHARE * room, min(shares["Earlier digest"] * room, _PROMPTS_SHARE * room - prompts))
        sections["Earlier digest"] = carry_digest("\n".join(filter(None, texts)), int(most))
        waiting = _fitting([line for line, _ in status.open_lines()], int(room * shares[_OPEN_WORK]))
        used = sum(len(line) + 1 for line in waiting)
        sections["Status"] = waiting + _fitting(status.outcome_lines(), int(room * shares["Status"]) - used)
        for name, lines in (("Plan", status.plan_lines()), ("Files changed", status.file_lines())):
            sections[name] = _fitting(lines, int(room * shares[name]))
        left = room - sum(map(_cost, sections.values())) - _HEADING_CHARS
        told = min(int(left * _MAX_TURNS_SHARE), prompts)
        least = min(int(left * _LEAST_TURNS_SHARE), turns.least_chars)
        sections["Turns"] = turns.write(max(int(left * shares["Turns"]), told, least))
        left = room - sum(map(_cost, sections.values()))
        sections["Calls"] = _fitting(status.call_lines(), min(int(left * shares["Calls"]), _MAX_CALLS_CHARS))

    def add_to(self, text: str, *, min_coverage: float, plain_list: bool) -> str:
        """A model's text, followed by sections that are written from the record."""
        status, used = self.status, self.count_tokens(text)
        room = int((self.max_tokens - used) * len(text) / max(1, used)) - 3 * _HEADING_CHARS
        waiting = [line for line, name in status.open_lines() if name not in text]
        if plain_list:
            self.sections["Status"] = waiting
            return self._truncated(text)
        for name, lines in (("Status", [*waiting, *status.outcome_lines()]), ("Files changed", status.file_lines())):
            self.sections[name] = _fitting(lines, int(room * _ADDED_SHARES[name]))
        left = room - sum(map(_cost, self.sections.values()))
        words = TurnWriter(self.facts.turns, self.kept, only_user=True).write(int(left * _ADDED_SHARES[USER_WORDS]))
        self.sections[USER_WORDS] = words
        left -= _cost(words)
        longer = self._text(text)
        if left > _MIN_CHARS and audit(longer, self.facts, kept_indexes=self.kept).coverage < min_coverage:
            self.sections[_NAMES] = carryover_lines(self.facts, self.kept, longer, left, self._label)
        return self._truncated(text)

    def _label(self, source: str) -> str:
        """The start of a line: the name of a file or a command. A long path loses its start, a long command its end."""
        shown = self.status.short_path(source)
        if len(shown) > _LABEL_CHARS:
            start, end = shown[:_LABEL_CHARS].rpartition(" ")[0], shown[-_LABEL_CHARS:].partition("/")[2]
            shown = f"{start} …" if " " in shown else f"…/{end}"
        return f"{quote(shown)}: " if shown else ""

    def _text(self, head: str) -> str:
        """The digest's text. A heading without lines is left out."""
        lines = [head] if head else []
        for name in ORDER:
            if found := self.sections.get(name):
                lines += [f"# {name}", *found]
        return "\n".join(lines)

    def _truncated(self, head: str) -> str:
        """The text without secrets and escape sequences.

        If the text does not fit the budget, lines are dropped from its sections, the last section first.
        """
        text, sections = self._text(head), self.sections
        while (used := self.count_tokens(text)) > self.max_tokens and any(sections.values()):
            excess = len(text) * (used - self.max_tokens) // used
            while excess >= 0 and any(sections.values()):
                name = next(name for name in reversed(ORDER) if sections.get(name))
                oldest = min(1, len(sections[name]) - 1)  # the first prompt is removed last
                excess -= len(sections[name].pop(oldest if name in _CHRONOLOGICAL else -1))
            text = self._text(head)
        return clean_text(text)


def _fitting(lines: Iterable[str], room: int) -> list[str]:
    """The lines that fit into `room` characters."""
    taken = []
    for line in lines:
        if len(line) < room:
            taken.append(line)
            room -= len(line) + 1
    return taken


def _cost(lines: Collection[str]) -> int:
    return sum(map(len, lines)) + len(lines) + (_HEADING_CHARS if lines else 0)


# Carrying an earlier digest of a model or of the client into the new digest

_ANALYSIS, _SUMMARY = "Analysis:\n", "\nSummary:\n"
_PART_HEADING = re.compile(r"(?:#{1,4} |\d{1,2}\. |\*\*)")
_IMPORTANT = re.compile(r"\b(?:request|intent|goal|objective|user|pending|current|next|todo)", re.IGNORECASE)
_WEIGHT = 4
"""A part whose heading matches `_IMPORTANT` gets this many times the room of another part."""


def carry_digest(text: str, room: int) -> list[str]:
    """The lines of an earlier digest, escaped, in at most `room` characters.

    If a client wrote an analysis before its summary, the analysis is left out, because the summary repeats it. If the
    digest does not fit, code in fences is left out. If it still does not fit, lines are removed at the end of each part
    under a heading.
    """
    text = body_of(text)
    if 0 <= text.find(_ANALYSIS) < (at := text.find(_SUMMARY)):
        text = text[at + len(_SUMMARY) :]
    lines = _escaped(text)
    if _cost(lines) > room:
        lines = _escaped(without_code(text))
    if _cost(lines) <= room:
        return lines
    parts: list[list[str]] = [[]]
    for line in lines:
        if _PART_HEADING.match(line.strip()) and not line.startswith(INDENT * 2):
            parts.append([])
        parts[-1].append(line)
    weights = [_WEIGHT if part and _IMPORTANT.search(part[0]) else 1 for part in parts]
    kept, weight = dict[int, list[str]](), sum(weights)
    for place in sorted(range(len(parts)), key=lambda place: _cost(parts[place]) / weights[place]):
        taken = _first_lines(parts[place], room * weights[place] // weight)
        kept[place] = taken if len(taken) > 1 or len(parts[place]) == 1 else []
        room -= _cost(kept[place])
        weight -= weights[place]
    return [line for place in sorted(kept) for line in kept[place]]


def _escaped(text: str) -> list[str]:
    """The lines of a text, escaped so that none of them looks like a heading or an entry of a digest."""
    lines = []
    for line in text.split("\n"):
        indent = INDENT * (1 + min(2, (len(line) - len(line.lstrip())) // 2))
        if words := quote(line):
            lines.append(indent + words)
    return lines


def _first_lines(lines: list[str], room: int) -> list[str]:
    """The first lines that fit into `room` characters. If much of the next line fits, its beginning is added."""
    taken = list[str]()
    for line in lines:
        shown = line if len(line) < room or room < _MIN_CHARS else f"{line[: room - 4].rpartition(' ')[0]} …"
        room -= len(shown) + 1
        if room < 0:
            break
        taken.append(shown)
    return taken
