"""Writes the local digest: a digest from facts, without a model. The local digest is deterministic and takes
milliseconds to write.

The sections come first; each has a share of the budget. The carryover fills the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

from foldline.digest.audit import audit
from foldline.digest.carryover import Carryover, format_excerpts, format_paths
from foldline.digest.checks import no_gain
from foldline.digest.digest_request import DigestRequest, FoldRefused
from foldline.digest.extract.facts import Facts, extract_facts
from foldline.digest.markup import HEADINGS, REFERENCE, quote, read_entries, remove_instructions
from foldline.digest.sections import QUOTED, SHARES, DigestSections, open_work_entries
from foldline.fold import Digest
from foldline.placeholders import condensed_messages, without_handles
from foldline.plan.timeline import handle
from foldline.redact.redact import clean_text, redact

NONE = "none"
"""The line under a heading that has no entries."""
_MIN_TOKENS = 160
"""If the budget in tokens is smaller, the digest has no sections, only its first lines."""
_GROUP_SIZE = 3
"""If a file or command has at least this number of identifiers, they are shown together after its name."""
_FIT_ATTEMPTS = 4
"""Maximum number of times that the carryover is chosen to fill the budget."""
_FULL, _SAFE = 0.96, 0.985
_MAX_SKIPPED = 8
"""A section counts as full when more than this number of lines did not fit."""

CountTokens = Callable[[str], int]


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
    text, _ = remove_instructions(text.partition("\n")[2], allowed=facts.user_text)
    message = request.scope.message(text, header=request.header, role=request.role)
    tokens = request.count_tokens(message.text)
    if 0 < request.covered_tokens <= tokens:
        return FoldRefused(no_gain(tokens, request.covered_tokens))
    return Digest(message=message, cause=cause, loss=audit(text, facts, kept_indexes=request.kept_indexes))


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
    text, _ = remove_instructions(text, allowed=facts.user_text)
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
        self.sections = DigestSections(facts, kept)

    def write(self, head: str, prior_digest: str) -> str:
        """The whole text: the sections first, then as much carryover as fits."""
        room = self.max_tokens - self.count_tokens(_render(head, {}, []))
        chosen = {name: self._fitting(self.sections.lines(name), int(share * room)) for name, share in SHARES.items()}
        if not chosen["Objective"]:  # in a small digest, one request may need more than the share of its section
            chosen["Objective"] = self._fitting(self.sections.lines("Objective"), room // 2)[:1]
        chosen["Plan"] = self._fitting(open_work_entries(self.facts, self.kept), room // 4) + chosen["Plan"]
        prior = self._fitting((f"- {quote(text)}" for _, text, _ in read_entries(prior_digest, 0)), room // 4)
        text = _render(head, chosen, prior)
        spare = self.max_tokens - self.count_tokens(text)
        chars = spare * len(text) // max(1, self.count_tokens(text))
        carryover = Carryover(self.facts, self.kept, "\n".join([line for name in QUOTED for line in chosen[name]]))
        for _ in range(_FIT_ATTEMPTS):
            carried = [*prior, *self._carryover_lines(carryover, chars, text)]
            used = self.count_tokens(_render(head, chosen, carried)) - (self.max_tokens - spare)
            if spare * _FULL <= used <= spare or chars < _MIN_TOKENS:
                break
            chars = int(chars * spare / max(1, used) * _SAFE)
        return self._truncated(head, chosen, carried)

    def _carryover_lines(self, carryover: Carryover, chars: int, shown: str) -> list[str]:
        """The lines of the last section: the common folder, files, excerpts, then other identifiers."""
        excerpts, words = carryover.choose(chars, shown)
        sections = self.sections
        paths = {path.rpartition("/")[2]: path for path in map(sections.short_path, sections.files)}
        files = [paths[word] for word in words if word in paths]
        lines = [f"Paths are under {quote(sections.root)}"] if sections.root else []
        if files:
            lines.append(f"- Files: {quote(format_paths(files))}")
        best = {word: self.facts.identifiers[word].lines[0] for word in words if word not in paths}
        counts = Counter(line.source for line in best.values())
        grouped = {word: line for word, line in best.items() if line.source and counts[line.source] >= _GROUP_SIZE}
        lines += format_excerpts(excerpts, grouped, sections.label)
        others = [word for word in best if word not in grouped]
        return [*lines, f"- Also named: {quote(' '.join(others))}"] if others else lines

    def _fitting(self, lines: Iterable[str], room: int) -> list[str]:
        """The lines that fit, in order. The search stops when more than `_MAX_SKIPPED` lines did not fit."""
        taken, skipped = [], 0
        for line in lines:
            cost = self.count_tokens(line) + 1
            if cost <= room:
                taken.append(line)
                room -= cost
            elif (skipped := skipped + 1) > _MAX_SKIPPED:
                break
        return taken

    def _truncated(self, head: str, chosen: dict[str, list[str]], carried: list[str]) -> str:
        """The text without secrets and escape sequences.

        If the text does not fit the budget, lines at its end are dropped.
        """
        text = _render(head, chosen, carried)
        while self.count_tokens(text) > self.max_tokens and (carried or any(chosen.values())):
            last = carried or next(lines for lines in reversed(chosen.values()) if lines)
            last.pop()
            text = _render(head, chosen, carried)
        return clean_text(text)


def _render(head: str, chosen: dict[str, list[str]], carried: list[str]) -> str:
    """The digest's text: every heading, followed by its lines in the order of the record."""

    def body(name: str) -> list[str]:
        return sorted(chosen.get(name, ()), key=_first_index) or [NONE]

    objective, guardrails, status, rationale, plan, carryover = HEADINGS
    lines = [head, objective, *body("Objective"), guardrails, *body("Guardrails"), status]
    for label in ("Shipped", "Active", "Stuck"):
        lines += [f"{label}:", *body(label)]
    lines += [rationale, *body("Rationale"), plan, *body("Plan"), carryover, *(carried or [NONE])]
    return "\n".join(lines)


def _first_index(line: str) -> int:
    return int(line[line.rindex("[#") + 2 : -1].partition(",")[0].partition("-")[0])
