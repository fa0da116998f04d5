"""Writes the local digest: a digest from facts, without a model. The local digest is deterministic and takes
milliseconds to write.

Each section gets a share of the room that the sections before it leave, and the carryover gets the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from foldline.digest.audit import audit
from foldline.digest.carryover import Carryover
from foldline.digest.checks import check_size
from foldline.digest.digester import DigestRequest, FoldRefused
from foldline.digest.extract.extraction import extract_facts
from foldline.digest.extract.facts import Facts
from foldline.digest.markup import INDENT, REFERENCE, body_of, quote, remove_instructions
from foldline.digest.shortening import without_code
from foldline.digest.status import Status
from foldline.digest.turn_writer import TurnWriter, longest_prompt
from foldline.fold import Digest, Loss
from foldline.placeholders import condensed_messages, without_handles
from foldline.plan.timeline import handle
from foldline.redact.redact import clean_text, redact

USER_WORDS, _NAMES = "User's words", "Names"
"""Sections that are added to a model's digest: what the user said, and the carryover."""
ORDER = ("Earlier digest", "Status", "Plan", "Files changed", "Carryover", "Calls", _NAMES, USER_WORDS, "Turns")
"""The sections of a digest, in their order. The turns come last, because the messages in the view continue them."""
_SHARES = {
    "Earlier digest": (0.3, 0.3),
    "Status": (0.1, 0.1),
    "Plan": (0.06, 0.06),
    "Files changed": (0.06, 0.04),
    "Turns": (0.54, 0.05),
    "Calls": (0.55, 0.9),
    "Carryover": (1.0, 1.0),
}
"""The sections of a local digest, in the order in which they are written. The numbers are the largest share of the free
room that a section may take: in a digest with at least `_LARGE_CHARS` characters, and in a tiny digest. Between the
two, the share is interpolated.
"""
_ADDED_SHARES = {"Status": (0.25, 0.25), "Files changed": (0.3, 0.3), USER_WORDS: (0.8, 0.8)}
"""The same for the sections that are added to every digest of a model."""
ADDED_SECTIONS = re.compile(rf"^# (?:{'|'.join(_ADDED_SHARES)})$", re.MULTILINE)
"""The headings of the sections that are added to a model's digest."""
_LARGE_CHARS, _TURNS_CHARS, _CALLS_CHARS, _HEADING_CHARS, _MIN_CHARS = 7_000, 10_000, 2_000, 14, 60
"""Numbers of characters: of a large digest, the most for turns if their prompts do not need more, the most for calls,
of a heading, and the least room that is used. What the other sections leave is given to the turns.
"""
_PROMPTS_SHARE = 0.95
"""The section "Turns" takes more than its share, up to this share of the free room, if the prompts need it. In a large
digest, the first and the newest prompts are quoted, up to `longest_prompt` characters each; in a smaller one, their
beginnings are shown.
"""
MIN_TOKENS = 160
"""A digest of fewer tokens has no sections."""
_FULL, _ATTEMPTS = 0.98, 4
"""A text that takes less than the share `_FULL` of its budget is written again with more room, `_ATTEMPTS` times."""

CountTokens = Callable[[str], int]


def write_local_digest(
    request: DigestRequest, *, cause: str = "", partial_digests: Sequence[str] = ()
) -> Digest | FoldRefused:
    """The local digest for a request, or `FoldRefused` with the cause.

    `cause` says why no model wrote the digest. `partial_digests` are the digests that a model wrote before it failed.
    """
    if cause and request.on_failure == "keep":
        return FoldRefused(cause)
    facts = request.facts or extract_facts(request.messages, request.first_index)
    first, plain = request.header or request.scope.header, request.plain_list
    prior = redact(request.prior_digest) if plain or request.facts is None else ""
    if plain:  # there is no record, so the prior digest itself is kept
        lengths = accumulate(request.count_tokens(line) + 1 for line in prior.split("\n"))
        count = sum(length <= request.max_tokens // 2 for length in lengths)
        first, prior = "\n".join(filter(None, (first, *prior.split("\n")[: max(1, count)]))), ""
    text = local_digest_text(
        facts,
        max_tokens=request.max_tokens,
        count_tokens=request.count_tokens,
        header=first if plain else f"{first}\n{REFERENCE}",
        prior_digest="\n".join(filter(None, (prior, *partial_digests))),
        kept_indexes=request.kept_indexes,
        cut=request.cut,
    )
    text, _ = remove_instructions(text.partition("\n")[2], allowed=facts.user_text, has_turns=True)
    text = without_handles(text) if plain else text
    message = request.scope.message(text, header=request.header, role=request.role)
    tokens = request.count_tokens(message.text)
    if not plain and 0 < request.covered_tokens <= tokens:
        return FoldRefused(check_size(tokens, covered=request.covered_tokens))
    loss = None if plain else replace(audit(text, facts, kept_indexes=request.kept_indexes), unsourced=())
    return Digest(message=message, cause=cause, loss=loss)  # every line is a quotation, so no claim lacks a source


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
    kept, first, end = frozenset(kept_indexes), facts.first, facts.end if cut is None else cut
    inside, counted = sum(first <= index < end for index in kept), ""
    if end > first:
        count = end - first - inside + facts.marks.get("condensed", 0)
        counted = condensed_messages(count, handle(first, end - 1), partly=inside > 0)
    first_line = header.partition("\n")[0]
    heads = ["\n".join(filter(None, (line, counted))) for line in (header, first_line)]
    head = next((each for each in heads if count_tokens(each) <= max_tokens), first_line)
    if max_tokens < MIN_TOKENS or head != heads[0]:
        return head
    before = facts.earlier_digest
    earlier = [prior_digest, before.text if before and before.message_index not in kept else ""]
    sections = _Sections(facts, kept, earlier="\n".join(filter(None, earlier)))
    return _fitted(head, max_tokens, count_tokens, lambda room: sections.write(head, room, _SHARES))


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
    """Add the user's words, the state of the work and the changed files to a model's digest.

    Returns the new text, of at most `max_tokens` tokens, and its loss report. The added facts come from the record, so
    they are certainly true. If the new text shows less than the share `min_coverage` of all facts, identifiers are
    added. If `plain_list` is true (see `DigestRequest`), nothing except open work is added.
    """
    kept = frozenset(kept_indexes)
    sections = _Sections(facts, kept, only_user=True, only_open=plain_list)

    def write(room: int) -> str:
        longer = sections.write(text, room, _ADDED_SHARES)
        if not plain_list and audit(longer, facts, kept_indexes=kept).coverage < min_coverage:
            longer = sections.write(text, room, {**_ADDED_SHARES, _NAMES: (1.0, 1.0)})
        return longer

    longer = _fitted(text, max_tokens, count_tokens, write)
    before, after = (audit(each, facts, kept_indexes=kept) for each in (text, longer))
    return longer, replace(after, carried=after.kept - before.kept, unsourced=before.unsourced)


class _Sections:
    """The sections that can be written from facts.

    `only_user` leaves the agent's words out of the turns. `only_open` leaves out everything except open work.
    """

    def __init__(
        self,
        facts: Facts,
        kept: Collection[int],
        *,
        earlier: str = "",
        only_user: bool = False,
        only_open: bool = False,
    ) -> None:
        status, self.turns = Status(facts, kept), TurnWriter(facts.turns, kept, only_user=only_user)
        self._longest = 0  # the length to which a prompt is cut
        carryover = Carryover(facts, kept, status.label)
        self._writers: dict[str, Callable[[int, str], list[str]]] = {
            "Earlier digest": lambda room, _: _carried(earlier, room),
            "Turns": lambda room, _: self.turns.write(room, self._longest),
            USER_WORDS: lambda room, _: self.turns.write(room, self._longest),
            "Status": lambda room, shown: _fitting(status.lines(shown), room),
            "Plan": lambda room, _: _fitting(status.plan_lines(), room),
            "Files changed": lambda room, _: _fitting(status.file_lines(), room),
            "Calls": lambda room, _: _fitting(status.call_lines(), min(room, _CALLS_CHARS)),
            "Carryover": carryover.write,
            _NAMES: carryover.write,
        }
        if only_open:
            self._writers = {"Status": lambda room, shown: _fitting(status.open_lines(shown), room)}

    def write(self, head: str, room: int, shares: Mapping[str, tuple[float, float]]) -> str:
        """The text `head`, followed by sections in at most `room` characters."""
        found, left, grown = dict[str, list[str]](), room, min(1.0, room / _LARGE_CHARS)
        self._longest = longest_prompt(room)
        prompts_chars = self.turns.needed_chars(self._longest if grown == 1 else 0)
        for name, (large, tiny) in shares.items():
            most = int(left * (grown * large + (1 - grown) * tiny)) - _HEADING_CHARS
            prompts = min(prompts_chars, int(left * _PROMPTS_SHARE))
            if name == "Earlier digest":
                most = max(most // 3, min(most, left - prompts))
            elif name == "Turns":
                most = max(min(most, _TURNS_CHARS), prompts)
            if most > _MIN_CHARS and name in self._writers:
                found[name] = self._writers[name](most, _text(head, found))
                left -= _cost(found[name])
        if "Turns" in found and left > _MIN_CHARS:  # make the turns longer
            found["Turns"] = self.turns.write(_cost(found["Turns"]) + left - _HEADING_CHARS, self._longest)
        return _text(head, found)


def _text(head: str, sections: Mapping[str, list[str]]) -> str:
    """The text of a digest. A heading without lines is left out."""
    parts = [[f"# {name}", *sections[name]] for name in ORDER if sections.get(name)]
    return "\n".join(filter(None, [head, *(line for part in parts for line in part)]))


def _fitted(head: str, max_tokens: int, count_tokens: CountTokens, write: Callable[[int], str]) -> str:
    """The longest text from `write` that has at most `max_tokens` tokens. If no text fits, the result is `head`.

    The argument of `write` is the number of characters that it may add to `head`. A few numbers are tried. Secrets and
    escape sequences are removed from the text.
    """
    used_by_head, best = count_tokens(head), head
    budget = max_tokens - used_by_head
    room = budget * len(head) // max(1, used_by_head)
    for attempt in range(room):
        text = clean_text(write(room))
        used = count_tokens(text)
        if used <= max_tokens:
            best = max(best, text, key=len)
            if attempt >= _ATTEMPTS or used >= _FULL * max_tokens or len(text) < _FULL * (len(head) + room):
                break
        wanted = int(room * budget / max(1, used - used_by_head))
        room = wanted if used <= max_tokens else min(wanted, int(room * _FULL))
    return best


def _fitting(lines: Iterable[str], room: int) -> list[str]:
    """The lines that fit into `room` characters."""
    taken = []
    for line in lines:
        if len(line) < room:
            taken.append(line)
            room -= len(line) + 1
    return taken


def _carried(text: str, room: int) -> list[str]:
    """The lines of an earlier digest, escaped and indented, in at most `room` characters.

    If a client wrote an analysis before its summary, the analysis is left out, because the summary repeats it. If the
    digest does not fit, code in fences is left out, and then lines in the middle, because such a digest begins with the
    request and ends with the current work.
    """
    text = body_of(text)
    if 0 <= text.find("Analysis:\n") < (at := text.find("\nSummary:\n")):
        text = text[at:].lstrip().removeprefix("Summary:\n")
    for each in (text, without_code(text)):
        indents = [INDENT * (1 + min(2, (len(line) - len(line.lstrip())) // 2)) for line in each.split("\n")]
        quoted = zip(indents, map(quote, each.split("\n")), strict=True)
        lines = [indent + line for indent, line in quoted if line]
        if sum(map(len, lines)) + len(lines) <= room:
            return lines
    ends = [place for at in range(len(lines)) for place in (at, len(lines) - 1 - at)][: len(lines)]
    taken = set(_fitting([lines[at] for at in ends], room))
    return list(dict.fromkeys([line for line in lines if line in taken]))


def _cost(lines: Collection[str]) -> int:
    return sum(map(len, lines)) + len(lines) + (_HEADING_CHARS if lines else 0)
