"""What must survive a compaction, gathered from the stream: what people said, decided, tried in vain and changed.

The model holds what was gathered and not yet written. Its page is an index of one line for each entry, 200 lines at the
very most and the newest first to stay; the whole text of every entry is in the section's detail file. Entries come from
strangers, so each is squeezed into one harmless line before it stands on the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from foldline.watch.agent_events import (
    AgentEvent,
    RawEvent,
    changed_file,
    dict_at,
    extract_text,
    human_text,
    is_compaction,
    is_synthetic,
    patched_files,
    refusal_text,
    text_at,
)

FOLDER, INDEX = ".context", "scratch.md"
PAGE_LINES = 200
LINE_CHARS = 120
"""How much of an entry stands on the page."""
_HEAD_LINES = 2
_SECTION_HEAD_LINES = 2
_KNOWN_FILES = 5_000
"""How many changed files are known by heart; the detail file knows the rest."""
_DIGEST = "This session is being continued"
"""How an agent's own digest begins; older versions put it in the user's role without a mark."""
_QUESTIONS = (_PLAN := "ExitPlanMode", "AskUserQuestion")
"""The tools by which the agent asks a person to approve or to choose."""
_WAITING = 200
"""How many questions wait for their answer at a time: an unanswered one is not remembered for ever."""
_PLAN_HEADING = "## Approved Plan:"
"""What stands above the plan where an approval repeats it."""


class Section(NamedTuple):
    """One part of the page: its heading, its detail file, and the model's list that feeds it."""

    title: str
    file: str
    field: str
    unique: bool = False
    """Whether an entry stands once, however often it comes."""
    always: bool = True
    """Whether it stands on the page when it is empty."""


SECTIONS = (
    Section("Human Input", "human-input.md", "human_inputs"),
    Section("State Changes", "state-changes.md", "state_changes"),
    Section("Dead Ends", "dead-ends.md", "dead_ends"),
    Section("Artifacts", "artifacts.md", "artifacts", unique=True),
    Section("Decisions", "decisions.md", "decisions", always=False),
)


class SectionSummary(NamedTuple):
    """A section as the page shows it: how many entries there are, and the newest of them as lines."""

    total: int
    newest: Sequence[str]


@dataclass(slots=True)
class ScratchModel:
    """Extracted content of a job, fed with the agent's events one by one."""

    job: str = ""
    phase: str = ""
    human_inputs: list[str] = field(default_factory=list)
    state_changes: list[dict[str, str]] = field(default_factory=list)
    dead_ends: list[str] = field(default_factory=list)
    artifacts: list[str] = field(default_factory=list)
    decisions: list[str] = field(default_factory=list)
    forgotten: int = field(default=0, init=False, repr=False)
    """How often the model let go of what was written."""
    weight: int = field(default=0, init=False, repr=False)
    """Characters gathered since then."""
    session: str = field(default="", init=False, repr=False)
    """The session whose events come in; what was gathered before the first one is named belongs to it."""
    _earlier: list[tuple[str, dict[str, int]]] = field(default_factory=list, init=False, repr=False)
    """The sessions before it, and how far in each list their entries reach."""
    _digest_due: bool = field(default=False, init=False, repr=False)
    _asked: dict[str, tuple[bool, list[str]]] = field(default_factory=dict, init=False, repr=False)
    _changed: set[str] = field(default_factory=set, init=False, repr=False)

    def extract(self, event: RawEvent) -> None:
        """Take what an event holds: human words, changed files, answers to the agent's questions."""
        if isinstance(event, dict):
            self.see(AgentEvent(event))

    def see(self, seen: AgentEvent) -> None:
        """The same for an event that was read already."""
        kind = seen.kind
        if seen.session != self.session and seen.session:
            self._enter(seen.session)
        if kind == "user":
            for result in seen.results if not seen.aside else ():
                self._answer(result)
            said = human_text(seen)
            if self._digest_due and (said.startswith(_DIGEST) or is_synthetic(seen)):
                self._digest_due = False
            elif said:
                self._say(said)
        elif kind in ("assistant", "tool_use", "response_item"):
            self._digest_due = False
            for call in seen.calls:
                self._call(call)
            if kind == "response_item":
                for path in patched_files(seen):
                    self._change(path)
        elif kind in ("system", "compacted") and is_compaction(seen):
            self._digest_due = True
        elif kind == "session_meta":
            self._enter(text_at(dict_at(seen.event, "payload"), "id") or self.session)

    def record_state_change(self, previous: str, new: str) -> None:
        """Note a change of the job's state, which the stream does not show."""
        self.state_changes.append({"from": str(previous), "to": str(new)})
        self.weight += 1

    def add_dead_end(self, description: str) -> None:
        """Note an approach that failed."""
        self.dead_ends.append(str(description))
        self.weight += 1 + len(self.dead_ends[-1])

    def add_decision(self, description: str) -> None:
        """Note what was decided."""
        self.decisions.append(str(description))
        self.weight += 1 + len(self.decisions[-1])

    def entries(self, section: Section) -> list[str]:
        """The texts of a section."""
        if section.field == "state_changes":
            return [f"{change['from']} → {change['to']}" for change in self.state_changes]
        found: list[str] = getattr(self, section.field)
        return found

    def by_session(self, section: Section) -> list[tuple[str, str]]:
        """The texts of a section, each with the session it belongs to; "" where none was named."""
        texts, found = self.entries(section), list[tuple[str, str]]()
        for session, ends in self._earlier:
            found += [(session, text) for text in texts[len(found) : ends[section.field]]]
        return found + [(self.session, text) for text in texts[len(found) :]]

    def forget(self) -> None:
        """Let go of what is written, so that a stream without end needs no memory without end."""
        for section in SECTIONS:
            getattr(self, section.field).clear()
        if len(self._changed) > _KNOWN_FILES:
            self._changed.clear()
        self._earlier.clear()
        self.forgotten += 1
        self.weight = 0

    def render(self) -> str:
        """The page of what this model holds."""
        held = {section.file: self.entries(section) for section in SECTIONS}
        shown = {
            name: SectionSummary(len(texts), [one_line(text) for text in texts[-PAGE_LINES:]])
            for name, texts in held.items()
        }
        return page(self.job, self.phase, shown)

    def _enter(self, session: str) -> None:
        """Another session: what was gathered so far belongs to the one before."""
        if self.session and session != self.session:
            ends = {section.field: len(getattr(self, section.field)) for section in SECTIONS}
            if ends != (self._earlier[-1][1] if self._earlier else dict.fromkeys(ends, 0)):
                self._earlier.append((self.session, ends))
        self.session = session

    def _say(self, words: str) -> None:
        self.human_inputs.append(words)
        self.weight += len(words)

    def _ask(self, call: dict[str, Any]) -> None:
        """Remember what the agent asks the person to choose or to approve."""
        given = dict_at(call, "input")
        is_plan, questions = call.get("name") == _PLAN, given.get("questions")
        if is_plan:
            asked = [text_at(given, "plan")]
        else:
            asked = [text_at(one, "question") for one in questions] if isinstance(questions, list) else []
        self._asked[text_at(call, "id")] = is_plan, [text for text in asked if text]
        if len(self._asked) > _WAITING:
            self._asked.pop(next(iter(self._asked)))

    def _call(self, call: dict[str, Any]) -> None:
        path = changed_file(call)
        if path:
            self._change(path)
        elif call.get("name") in _QUESTIONS:
            self._ask(call)

    def _change(self, path: str) -> None:
        if path not in self._changed:
            self._changed.add(path)
            self.artifacts.append(path)
            self.weight += len(path)

    def _answer(self, result: dict[str, Any]) -> None:
        """What comes back as a call's result and is a person's: an answer, or the words of a refusal."""
        asked = self._asked.pop(text_at(result, "tool_use_id"), None) if self._asked else None
        if asked is not None and result.get("is_error") is not True:
            self.add_decision(_decided(*asked, extract_text(result.get("content"))))
        said = refusal_text(result)
        if said:
            self._say(said)


def _decided(is_plan: bool, asked: list[str], answer: str) -> str:
    """What was asked and what was answered; an answer often repeats the question, which then stands once."""
    if is_plan and asked:
        before, _, after = answer.partition(asked[0].strip())
        return f"plan: {asked[0].strip()}\n{before.rstrip().removesuffix(_PLAN_HEADING).rstrip()}{after}".strip()
    if all(question in answer for question in asked):
        return answer.strip()
    return f"{' / '.join(asked)}\n{answer}".strip()


def page(job: str, phase: str, shown: dict[str, SectionSummary]) -> str:
    """The index: every section with an equal share of the lines, its newest entries and the name of its detail file."""
    sections = [section for section in SECTIONS if section.always or shown[section.file].total]
    share = (PAGE_LINES - _HEAD_LINES) // len(sections) - _SECTION_HEAD_LINES
    title = f"# Job: {one_line(job)}" if job else "# Working notes"
    lines = [title, f"Phase: {one_line(phase)}" if phase else "One line an entry; the whole text is in the file named."]
    for section in sections:
        count, newest = shown[section.file]
        kept = newest[-share:]
        lines.append(f"## {section.title}")
        lines.append(_pointer(section, count, len(kept)))
        lines += [f"- #{number}: {text}" for number, text in enumerate(kept, start=count - len(kept) + 1)]
    return "\n".join(lines) + "\n"


def _pointer(section: Section, count: int, kept: int) -> str:
    if not count:
        return "none so far"
    which = "1 entry" if count == 1 else f"{count:,} entries"
    which += f", the newest {kept} here" if kept < count else ""
    return f"{which} → {FOLDER}/{section.file}"


def one_line(text: str) -> str:
    r"""A text as one line of the page, without anything that a terminal or a markdown reader would obey.

    >>> one_line("fix the\n\n# parser")
    'fix the # parser'
    """
    flat = " ".join(text.strip()[: LINE_CHARS * 4].split())
    if not flat.isprintable():
        flat = " ".join("".join(char if char.isprintable() else " " for char in flat).split())
    return flat if len(flat) <= LINE_CHARS else flat[: LINE_CHARS - 1] + "…"
