"""Writes the local digest: a digest from facts, without a model. The local digest is deterministic and takes
milliseconds to write.

The sections come first; each has a share of the budget. The carryover fills the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from foldline.digest.audit import audit
from foldline.digest.carried import carry_digest
from foldline.digest.carryover import carryover_lines
from foldline.digest.checks import no_gain
from foldline.digest.digest_request import DigestRequest, FoldRefused
from foldline.digest.extract.facts import Facts, extract_facts
from foldline.digest.markup import REFERENCE, quote, remove_instructions
from foldline.digest.narrative import important_chars, tell_turns
from foldline.digest.status import Status
from foldline.fold import Digest, Loss
from foldline.placeholders import condensed_messages, without_handles
from foldline.plan.timeline import handle
from foldline.redact.redact import clean_text, redact

USER_WORDS, _NAMES = "User's words", "Names"
"""Sections that are added to a model's digest: what the user said, and the carryover."""
ORDER = (
    "Earlier digest",
    "Turns",
    USER_WORDS,
    "Status",
    "Plan",
    "Rationale",
    "Files changed",
    "Carryover",
    "Calls",
    _NAMES,
)
"""The sections of a local digest, in their order."""
SHARES = {
    "Earlier digest": 0.3,
    "Status": 0.1,
    "Plan": 0.06,
    "Files changed": 0.08,
    "Turns": 0.5,
    "Rationale": 0.05,
    "Calls": 0.15,
}
"""The largest share of the budget for each section; the rest is for the carryover."""
_SMALL_SHARES, _LARGE_CHARS = {"Turns": 0.2, "Calls": 0.27, "Files changed": 0.04, "Rationale": 0.0}, 7_000
"""Shares in a digest with very little room. They approach those of `SHARES` as the room grows to
this many characters.
"""
ADDED_SECTIONS = re.compile(rf"^# (?:{USER_WORDS}|Status|Files changed)$", re.MULTILINE)
"""The headings of the sections that are added to a model's digest."""
_CERTAIN_SHARES = {"Status": 0.25, "Files changed": 0.25, USER_WORDS: 0.8}
"""The shares of the room after a model's digest.

The user's words get their share of the room that the other two
sections do not use.
"""
_MAX_TURNS_SHARE, _TOLD_CHARS = 0.97, 300
"""If the first and the newest prompts are long, the turns may use up to this share of the room.

They then get the length of these prompts, plus this number of characters for the agent's words.
"""
_MIN_EARLIER_SHARE, _PROMPTS_SHARE = 0.1, 0.8
"""The least share of the room for an earlier digest, and the largest share for the earlier digest, the first prompt
and the newest prompts together. If these prompts are long, the earlier digest is shortened to the least share.
"""
_LABEL_CHARS, _HEADING_CHARS, _MIN_CHARS = 60, 14, 60
"""Numbers of characters: the maximum for the file or command at the start of a line, the length of a heading, and the
least room for a carryover.
"""
_MIN_TOKENS = 160
"""If the budget has fewer tokens than this, the digest has no sections, only its first lines."""
_FIT_ATTEMPTS, _SAFE = 3, 1.2
"""If the digest is too long, the carryover is written again with less room: the maximum number of attempts, and the
factor by which the excess is multiplied.
"""
_MAX_SHARE = 0.75
"""Maximum size of a digest, as a share of the tokens that leave the view."""
_DROPPED = (
    _NAMES,
    "Carryover",
    "Calls",
    "Rationale",
    "Files changed",
    "Plan",
    "Status",
    "Turns",
    USER_WORDS,
    "Earlier digest",
)
"""The order in which sections lose lines if the text is too long."""
_MAX_SKIPPED = 8
"""A section counts as full when more than this number of lines did not fit."""

CountTokens = Callable[[str], int]


def local_limit(max_tokens: int, covered_tokens: int) -> int:
    """Maximum size of a local digest in tokens: `max_tokens`, or less if few tokens leave the view.

    So a fold of few messages also makes the view smaller.
    """
    smaller = int(_MAX_SHARE * covered_tokens)
    return min(max_tokens, smaller) if smaller >= _MIN_TOKENS else max_tokens


def write_local_digest(
    request: DigestRequest, *, cause: str = "", partial_digests: Sequence[str] = ()
) -> Digest | FoldRefused:
    """The local digest for a request, or `FoldRefused` with the cause.

    `cause` says why no model wrote it; `partial_digests` are the digests that the model had written before it failed.
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
    return Digest(message=message, cause=cause, loss=replace(loss, unsourced=()))  # every line is a quotation


def _plain_list_digest(request: DigestRequest, facts: Facts, cause: str) -> Digest:
    """The local digest for a list without a record.

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

    By default, it covers all messages that the facts cover. Messages in `kept_indexes` stay in the view verbatim, so
    their facts are left out. `prior_digest` covers the messages that precede the facts.
    """
    kept = frozenset(kept_indexes)
    first_index, end = facts.first, facts.end if cut is None else cut
    inside = sum(first_index <= index < end for index in kept)
    counted = ""
    if end > first_index:
        counted = condensed_messages(end - first_index - inside, handle(first_index, end - 1), partly=inside > 0)
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

    The user's words, the state of the work and the changed files come from the record, so they are certain. If the text
    then shows less than the share `min_coverage` of all facts, identifiers are added. If `plain_list` is true (see
    `DigestRequest`), only open work is added.
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

    def write(self, head: str, prior_digest: str) -> str:
        """The whole text. The most important sections get their room first; the carryover gets the rest."""
        room = int((self.max_tokens - self.count_tokens(head)) * self._chars_per_token(head))
        sections = self._sections(room, prior_digest)
        text = _render(head, sections)
        used = self.count_tokens(text)
        per_token = len(text) / max(1, used)
        left = int((self.max_tokens - used) * per_token) - _HEADING_CHARS
        for _ in range(_FIT_ATTEMPTS if left > _MIN_CHARS else 0):
            sections["Carryover"] = carryover_lines(self.facts, self.kept, text, left, self._label)
            excess = self.count_tokens(_render(head, sections)) - self.max_tokens
            if excess <= 0:
                break
            left -= int(excess * per_token * _SAFE)
        self._tell_more(head, sections, per_token)
        return self._truncated(head, sections)

    def _tell_more(self, head: str, sections: dict[str, list[str]], per_token: float) -> None:
        """Tell the turns again, at greater length, if the other sections leave room."""
        left = int((self.max_tokens - self.count_tokens(_render(head, sections))) * per_token)
        if left > _MIN_CHARS:
            longer = tell_turns(self.facts.turns, _cost(sections["Turns"]) + int(left / _SAFE), self.kept)
            if self.count_tokens(_render(head, {**sections, "Turns": longer})) <= self.max_tokens:
                sections["Turns"] = longer

    def add_to(self, text: str, *, min_coverage: float, plain_list: bool) -> str:
        """A model's text, followed by sections that are written from the record."""
        status, used = self.status, self.count_tokens(text)
        room = int((self.max_tokens - used) * len(text) / max(1, used)) - 3 * _HEADING_CHARS
        waiting = [line for line, name in status.open_lines() if name not in text]
        if plain_list:
            return self._truncated(text, {"Status": waiting})
        sections = {"Status": _fitting([*waiting, *status.outcome_lines()], int(room * _CERTAIN_SHARES["Status"]))}
        sections["Files changed"] = _fitting(status.file_lines(), int(room * _CERTAIN_SHARES["Files changed"]))
        left = room - sum(map(_cost, sections.values()))
        sections[USER_WORDS] = tell_turns(
            self.facts.turns, int(left * _CERTAIN_SHARES[USER_WORDS]), self.kept, only_user=True
        )
        longer = _render(text, sections)
        left -= _cost(sections[USER_WORDS])
        if left > _MIN_CHARS and audit(longer, self.facts, kept_indexes=self.kept).coverage < min_coverage:
            sections[_NAMES] = carryover_lines(self.facts, self.kept, longer, left, self._label)
        return self._truncated(text, sections)

    def _chars_per_token(self, head: str) -> float:
        """The number of characters per token in the text of this conversation."""
        turns = self.facts.turns[-3:]
        words = [text for turn in turns for text in (turn.prompt, *(words.text for words in turn.replies[-2:]))]
        sample = "\n".join([head, *words, *(call.text for call in self.facts.calls.values())])
        return len(sample) / max(1, self.count_tokens(sample))

    def _sections(self, room: int, prior_digest: str) -> dict[str, list[str]]:
        """The lines of each section except the carryover, in at most `room` characters."""
        status, grown = self.status, min(1.0, room / _LARGE_CHARS)
        shares = {name: grown * share + (1 - grown) * _SMALL_SHARES.get(name, share) for name, share in SHARES.items()}
        sections: dict[str, list[str]] = {}
        earlier = self.facts.earlier_digest
        texts = [prior_digest, earlier.text if earlier and earlier.message_index not in self.kept else ""]
        prompts = important_chars(self.facts.turns) if grown == 1 else 0
        most = max(_MIN_EARLIER_SHARE * room, min(shares["Earlier digest"] * room, _PROMPTS_SHARE * room - prompts))
        sections["Earlier digest"] = carry_digest("\n".join(filter(None, texts)), int(most))
        sections["Status"] = _fitting(
            [*(line for line, _ in status.open_lines()), *status.outcome_lines()], int(room * shares["Status"])
        )
        sections["Plan"] = _fitting(status.plan_lines(), int(room * shares["Plan"]))
        sections["Files changed"] = _fitting(status.file_lines(), int(room * shares["Files changed"]))
        left = room - sum(map(_cost, sections.values())) - _HEADING_CHARS
        told = max(
            int(left * shares["Turns"]), min(int(left * _MAX_TURNS_SHARE), prompts + _TOLD_CHARS if prompts else 0)
        )
        sections["Turns"] = tell_turns(self.facts.turns, told, self.kept)
        shown = _render("", sections)
        for name, lines in (("Rationale", status.reason_lines(shown)), ("Calls", status.call_lines())):
            sections[name] = _fitting(lines, min(int(room * shares[name]), room - sum(map(_cost, sections.values()))))
        return sections

    def _label(self, source: str) -> str:
        """The start of a line: its file or command. A long path is cut at its start, a long command at its end."""
        shown = self.status.short_path(source)
        if len(shown) > _LABEL_CHARS:
            start, end = shown[:_LABEL_CHARS].rpartition(" ")[0], shown[-_LABEL_CHARS:].partition("/")[2]
            shown = f"{start} …" if " " in shown else f"…/{end}"
        return f"{quote(shown)}: " if shown else ""

    def _truncated(self, head: str, sections: dict[str, list[str]]) -> str:
        """The text without secrets and escape sequences.

        If the text does not fit the budget, lines are dropped from its sections, in the order of `_DROPPED`.
        """
        text = _render(head, sections)
        while (used := self.count_tokens(text)) > self.max_tokens and any(sections.values()):
            excess = len(text) * (used - self.max_tokens) // used
            while excess >= 0 and any(sections.values()):
                excess -= len(next(sections[name] for name in _DROPPED if sections.get(name)).pop())
            text = _render(head, sections)
        return clean_text(text)


def _fitting(lines: Iterable[str], room: int) -> list[str]:
    """The lines that fit into `room` characters, in order. Stops when more than `_MAX_SKIPPED` lines did not fit."""
    taken, skipped = [], 0
    for line in lines:
        if len(line) < room:
            taken.append(line)
            room -= len(line) + 1
        elif (skipped := skipped + 1) > _MAX_SKIPPED:
            break
    return taken


def _cost(lines: Collection[str]) -> int:
    return sum(map(len, lines)) + len(lines) + (_HEADING_CHARS if lines else 0)


def _render(head: str, sections: dict[str, list[str]]) -> str:
    """The digest's text. A heading without lines is left out."""
    lines = [head] if head else []
    for name in ORDER:
        if found := sections.get(name):
            lines += [f"# {name}", *found]
    return "\n".join(lines)
