"""Writes the local digest: a digest from facts, without a model. The local digest is deterministic and takes
milliseconds to write.

The sections come first; each has a share of the budget. The carryover fills the rest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from foldline.digest.audit import audit
from foldline.digest.carried import carry_digest
from foldline.digest.carryover import Carryover, format_excerpts, format_paths
from foldline.digest.checks import no_gain
from foldline.digest.digest_request import DigestRequest, FoldRefused
from foldline.digest.extract.facts import Facts, extract_facts
from foldline.digest.markup import REFERENCE, handles_of, quote, remove_instructions
from foldline.digest.narrative import important_chars, tell_turns
from foldline.digest.status import Status
from foldline.fold import Digest
from foldline.placeholders import condensed_messages, without_handles
from foldline.plan.timeline import handle
from foldline.redact.redact import clean_text, redact

ORDER = ("Earlier digest", "Turns", "Status", "Plan", "Rationale", "Files changed", "Carryover", "Calls")
"""The sections of a local digest, in their order."""
SHARES = {
    "Earlier digest": 0.3,
    "Status": 0.1,
    "Plan": 0.06,
    "Files changed": 0.05,
    "Turns": 0.57,
    "Rationale": 0.04,
    "Calls": 0.13,
}
"""The largest share of the budget for each section; the rest is for the carryover."""
_MAX_TURNS_SHARE = 0.85
"""If the first and the newest prompts are long, the turns may have this share."""
_SMALL_TURNS_SHARE, _SMALL_CALLS_SHARE, _LARGE_CHARS = 0.27, 0.18, 7_000
"""In a small digest, the turns have a smaller share and the calls a larger one: these in the smallest digest, those of
`SHARES` from this length on.
"""
_LABEL_CHARS = 60
"""Maximum length of the file or command that begins a line of the carryover."""
_HEADING_CHARS, _MIN_CHARS = 14, 60
_MIN_TOKENS = 160
"""If the budget in tokens is smaller, the digest has no sections, only its first lines."""
_FEW_NAMES = 8
"""If there are at most this many other names, files among them are shown with their folder."""
_GROUP_SIZE = 3
"""If a file or command has at least this number of identifiers, they are shown together after its name."""
_FIT_ATTEMPTS = 4
"""Maximum number of times that the carryover is chosen to fill the budget."""
_SAFE = 0.985
_MAX_SHARE = 0.75
"""The largest size of a digest, as a share of the tokens that leave the view."""
_MAX_SKIPPED = 8
"""A section counts as full when more than this number of lines did not fit."""

CountTokens = Callable[[str], int]


def local_limit(max_tokens: int, covered_tokens: int) -> int:
    """The largest size of a local digest in tokens, so that a fold of few messages makes the view smaller too."""
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
    if not facts.facts and not facts.identifiers:
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
    """The digest of the messages before `cut` (by default all that the facts cover), within `max_tokens`.

    Messages in `kept_indexes` stay in the view verbatim, so their facts are left out. `prior_digest` covers the
    messages that precede the facts.
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


class _LocalDigest:
    def __init__(self, facts: Facts, max_tokens: int, count_tokens: CountTokens, kept: Collection[int]) -> None:
        self.facts, self.max_tokens, self.count_tokens, self.kept = facts, max_tokens, count_tokens, kept
        self.status = Status(facts, kept)

    def write(self, head: str, prior_digest: str) -> str:
        """The whole text: what must not be lost first, then as many lines and names as fit."""
        chars_per_token = self._chars_per_token(head)
        room = int((self.max_tokens - self.count_tokens(head)) * chars_per_token)
        for _ in range(_FIT_ATTEMPTS):
            sections = self._sections(room, prior_digest)
            text = _render(head, sections)
            used = self.count_tokens(text)
            if used <= self.max_tokens:
                break
            room = int(room * self.max_tokens / used * _SAFE)
        return self._truncated(head, sections)

    def _chars_per_token(self, head: str) -> float:
        """The number of characters per token in the text of this conversation."""
        turns = self.facts.turns
        sample = "\n".join([head, *(turn.prompt for turn in turns[-3:])])
        sample += "\n".join([words.text for turn in turns[-3:] for words in turn.replies[-2:]])
        sample += "\n".join([call.text for call in self.facts.calls.values()])
        return len(sample) / max(1, self.count_tokens(sample))

    def _sections(self, room: int, prior_digest: str) -> dict[str, list[str]]:
        """The lines of each section, within this number of characters."""
        status, shares = self.status, SHARES
        sections: dict[str, list[str]] = {}
        earlier = self.facts.earlier_digest
        texts = [prior_digest, earlier.text if earlier and earlier.message_index not in self.kept else ""]
        sections["Earlier digest"] = carry_digest("\n".join(filter(None, texts)), int(room * shares["Earlier digest"]))
        sections["Status"] = _fitting(status.status_lines(), int(room * shares["Status"]))
        sections["Plan"] = _fitting(status.plan_lines(), int(room * shares["Plan"]))
        sections["Files changed"] = _fitting(status.file_lines(), int(room * shares["Files changed"]))
        told = room - sum(map(_cost, sections.values()))
        grown = min(1.0, room / _LARGE_CHARS)
        most = max(shares["Turns"], min(_MAX_TURNS_SHARE, 1.2 * important_chars(self.facts.turns) / max(1, told)))
        told_room = int(told * (_SMALL_TURNS_SHARE + (most - _SMALL_TURNS_SHARE) * grown))
        sections["Turns"] = tell_turns(self.facts.turns, told_room, self.kept)
        shown = _render("", sections)
        sections["Rationale"] = _fitting(status.reason_lines(shown), int(room * shares["Rationale"]))
        calls_share = _SMALL_CALLS_SHARE + (shares["Calls"] - _SMALL_CALLS_SHARE) * grown
        sections["Calls"] = self._calls(int(room * calls_share))
        left = room - sum(map(_cost, sections.values())) - _HEADING_CHARS
        sections["Carryover"] = self._carryover(left, _render("", sections)) if left > _MIN_CHARS else []
        return sections

    def _calls(self, room: int) -> list[str]:
        """The calls most likely to be made again at the same place, in the order of the record."""
        calls, end = self.facts.calls, self.facts.end
        ranked = sorted(calls, key=lambda place: (-calls[place].weight(end), place))
        taken = []
        for place in ranked:
            call = calls[place]
            line = f"- {quote(call.text)} [{handles_of((call.message_index,))}]"
            if call.message_index not in self.kept and len(line) < room:
                taken.append((call.message_index, line))
                room -= len(line) + 1
        return [line for _, line in sorted(taken)]

    def _carryover(self, room: int, shown: str) -> list[str]:
        """The lines of the last section: the working folder, files, excerpts, then other identifiers."""
        status = self.status
        carryover = Carryover(self.facts, self.kept, shown)
        excerpts, words = carryover.choose(room, shown)
        paths = {path.rpartition("/")[2]: path for path in map(status.short_path, status.files)}
        files = [paths[word] for word in words if word in paths]
        lines = [f"- Files: {quote(format_paths(files))}"] if files else []
        best = {word: self.facts.identifiers[word].lines[0] for word in words if word not in paths}
        counts = Counter(line.source for line in best.values())
        grouped = {word: line for word, line in best.items() if line.source and counts[line.source] >= _GROUP_SIZE}
        lines += format_excerpts(excerpts, grouped, self._label)
        others = [word for word in best if word not in grouped]
        if len(others) <= _FEW_NAMES:
            others = [_with_folder(word, best[word].text) for word in others]
        return [*lines, f"- Also named: {quote(' '.join(others))}"] if others else lines

    def _label(self, source: str) -> str:
        """The file or command with which a line begins. A long path is cut at its start, a long command at its end."""
        shown = self.status.short_path(source)
        if len(shown) > _LABEL_CHARS:
            start, end = shown[:_LABEL_CHARS].rpartition(" ")[0], shown[-_LABEL_CHARS:].partition("/")[2]
            shown = f"{start} …" if " " in shown else f"…/{end}"
        return f"{quote(shown)}: " if shown else ""

    def _truncated(self, head: str, sections: dict[str, list[str]]) -> str:
        """The text without secrets and escape sequences.

        If the text does not fit the budget, lines at its end are dropped.
        """
        text = _render(head, sections)
        while self.count_tokens(text) > self.max_tokens and any(sections.values()):
            next(sections[name] for name in reversed(ORDER) if sections[name]).pop()
            text = _render(head, sections)
        return clean_text(text)


def _with_folder(name: str, line: str) -> str:
    """The path in a line that ends with this file name; the name alone if the line has no such path."""
    found = re.search(rf"[\w.@~/-]{{0,200}}/{re.escape(name)}(?![\w/-])", line)
    return found[0] if found else name


def _fitting(lines: Iterable[str], room: int) -> list[str]:
    """The lines that fit, in order. The search stops when more than `_MAX_SKIPPED` lines did not fit."""
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
