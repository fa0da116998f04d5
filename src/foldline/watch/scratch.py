"""Collects from the stream what must survive a compaction: the user's words, decisions, dead ends and changed files.

`ScratchModel` holds the entries that are not yet written. `render_index` renders the index. The index has one line per
entry and at most 200 lines; the newest entries are shown. The full text of every entry is in the detail file of its
section. Entries are untrusted, so control characters and line breaks are removed in the index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from foldline.human_input import PLAN_HEADING, PLAN_TOOL, QUESTION_TOOLS, is_client_digest
from foldline.watch.agent_events import (
    AgentEvent,
    RawEvent,
    codex_prompt,
    dict_at,
    extract_text,
    human_text,
    is_compaction,
    is_synthetic,
    refusal_text,
    text_at,
)

FOLDER, INDEX = ".context", "scratch.md"
PAGE_LINES = 200
LINE_CHARS = 120
"""Maximum number of characters of an entry in the index."""
_HEAD_LINES = 2
_SECTION_HEAD_LINES = 2
_MAX_PATHS = 5_000
"""Maximum number of changed files that are remembered. The detail file lists all changed files."""
_MAX_QUESTIONS = 200
"""Maximum number of unanswered questions that are remembered."""


class Section(NamedTuple):
    """One section of the index: its heading, its detail file, and the field of `ScratchModel` that holds its
    entries.
    """

    title: str
    file: str
    field: str
    unique: bool = False
    """Whether an entry is listed only once, even if several sessions add it."""
    always: bool = True
    """Whether the index shows the section even if it is empty."""


SECTIONS = (
    Section("Human Input", "human-input.md", "human_inputs"),
    Section("State Changes", "state-changes.md", "state_changes"),
    Section("Dead Ends", "dead-ends.md", "dead_ends"),
    Section("Artifacts", "artifacts.md", "artifacts", unique=True),
    Section("Decisions", "decisions.md", "decisions", always=False),
)


class SectionSummary(NamedTuple):
    """A section as the index shows it: the number of entries, and the newest entries as lines."""

    total: int
    newest: Sequence[str]


@dataclass(slots=True)
class ScratchModel:
    """Collects the content for the notes of a job from the agent's events. `extract` takes one event."""

    job: str = ""
    phase: str = ""
    human_inputs: list[str] = field(default_factory=list)
    state_changes: list[dict[str, str]] = field(default_factory=list)
    dead_ends: list[str] = field(default_factory=list)
    artifacts: list[str] = field(default_factory=list)
    decisions: list[str] = field(default_factory=list)
    generation: int = field(default=0, init=False, repr=False)
    """Number of calls to `forget`."""
    weight: int = field(default=0, init=False, repr=False)
    """Number of characters that were collected since the last call to `forget`."""
    session: str = field(default="", init=False, repr=False)
    """The current session. Entries that are collected before any session is known belong to the first session."""
    _earlier_sessions: list[tuple[str, dict[str, int]]] = field(default_factory=list, init=False, repr=False)
    """The earlier sessions in order, each with the number of entries that every list had when the session ended."""
    _expects_digest: bool = field(default=False, init=False, repr=False)
    _questions: dict[str, tuple[bool, list[str]]] = field(default_factory=dict, init=False, repr=False)
    """Unanswered questions, by call id: whether the call asks the user to approve a plan, and the texts of the
    questions.
    """
    _changed_paths: set[str] = field(default_factory=set, init=False, repr=False)

    def extract(self, event: RawEvent) -> None:
        """Take one event. Collects human input, changed files and answers to the agent's questions."""
        if isinstance(event, dict):
            self.observe(AgentEvent(event))

    def observe(self, event: AgentEvent) -> None:
        """Take one parsed event."""
        kind = event.kind
        if event.session != self.session and event.session:
            self._switch_session(event.session)
        if kind == "user":
            self._read_user(event)
        elif kind in ("assistant", "tool_use", "response_item"):
            self._expects_digest = False
            if event.calls or kind == "response_item":
                self._read_calls(event)
        elif kind in ("system", "compacted") and is_compaction(event):
            self._expects_digest = True
        elif text := codex_prompt(event):
            self._add_human_input(text)
        elif kind == "session_meta":
            self._switch_session(text_at(dict_at(event.raw, "payload"), "id") or self.session)

    def _read_user(self, event: AgentEvent) -> None:
        """Read what the user wrote, and the results in the same message that are errors or answers."""
        for result in event.results if not event.is_subagent else ():
            if self._questions or result.get("is_error") is True:
                self._read_result(result)
        text = human_text(event)
        if self._expects_digest and (is_client_digest(text) or is_synthetic(event)):
            self._expects_digest = False
        elif text:
            self._add_human_input(text)

    def record_state_change(
        self, previous: str = "", new: str = "", *, previous_state: str = "", new_state: str = ""
    ) -> None:
        """Add a change of the job's state. The caller reports such a change, because the stream does not contain it.

        `previous_state` and `new_state` are other names for `previous` and `new`.
        """
        self.state_changes.append({"from": str(previous or previous_state), "to": str(new or new_state)})
        self.weight += 1

    def add_dead_end(self, description: str) -> None:
        """Add an approach that failed."""
        self.dead_ends.append(str(description))
        self.weight += 1 + len(self.dead_ends[-1])

    def add_decision(self, description: str) -> None:
        """Add a decision."""
        self.decisions.append(str(description))
        self.weight += 1 + len(self.decisions[-1])

    def entries(self, section: Section) -> list[str]:
        """The texts of the entries of a section."""
        if section.field == "state_changes":
            return [f"{change['from']} → {change['to']}" for change in self.state_changes]
        texts: list[str] = getattr(self, section.field)
        return texts

    def entries_with_session(self, section: Section) -> list[tuple[str, str]]:
        """The session and the text of each entry of a section. The session is "" if it is unknown."""
        texts, pairs = self.entries(section), list[tuple[str, str]]()
        for session, ends in self._earlier_sessions:
            pairs += [(session, text) for text in texts[len(pairs) : ends[section.field]]]
        return pairs + [(self.session, text) for text in texts[len(pairs) :]]

    def forget(self) -> None:
        """Drop all entries.

        This method is called after the entries were written, so that memory stays limited in an endless stream.
        """
        for section in SECTIONS:
            getattr(self, section.field).clear()
        if len(self._changed_paths) > _MAX_PATHS:
            self._changed_paths.clear()
        self._earlier_sessions.clear()
        self.generation += 1
        self.weight = 0

    def render(self) -> str:
        """The index of the entries that this object holds."""
        texts = {section.file: self.entries(section) for section in SECTIONS}
        summaries = {
            name: SectionSummary(len(found), [one_line(text) for text in found[-PAGE_LINES:]])
            for name, found in texts.items()
        }
        return render_index(self.job, self.phase, summaries)

    def _switch_session(self, session: str) -> None:
        """Assign the entries collected so far to the current session, and start another session."""
        if self.session and session != self.session:
            ends = {section.field: len(getattr(self, section.field)) for section in SECTIONS}
            if ends != (self._earlier_sessions[-1][1] if self._earlier_sessions else dict.fromkeys(ends, 0)):
                self._earlier_sessions.append((self.session, ends))
        self.session = session

    def _add_human_input(self, text: str) -> None:
        self.human_inputs.append(text)
        self.weight += len(text)

    def _read_calls(self, event: AgentEvent) -> None:
        for call in event.calls:
            if call.get("name") in QUESTION_TOOLS:
                self._add_question(call)
        for paths in event.edited:
            for path in paths:
                if path not in self._changed_paths:
                    self._changed_paths.add(path)
                    self.artifacts.append(path)
                    self.weight += len(path)

    def _add_question(self, call: dict[str, Any]) -> None:
        """Remember what the agent asks the user to choose or to approve."""
        arguments = dict_at(call, "input")
        is_plan, questions = call.get("name") == PLAN_TOOL, arguments.get("questions")
        if is_plan:
            texts = [text_at(arguments, "plan")]
        else:
            texts = [text_at(one, "question") for one in questions] if isinstance(questions, list) else []
        self._questions[text_at(call, "id")] = is_plan, [text for text in texts if text]
        if len(self._questions) > _MAX_QUESTIONS:
            self._questions.pop(next(iter(self._questions)))

    def _read_result(self, result: dict[str, Any]) -> None:
        """Collect the user's words in a tool result: an answer to a question, or a comment on a refusal."""
        question = self._questions.pop(text_at(result, "tool_use_id"), None)
        if question is not None and result.get("is_error") is not True:
            self.add_decision(_format_decision(*question, extract_text(result.get("content"))))
        comment = refusal_text(result)
        if comment:
            self._add_human_input(comment)


def _format_decision(is_plan: bool, questions: list[str], answer: str) -> str:
    """The questions and the answer as one text. If the answer already contains the questions, they are not repeated."""
    if is_plan and questions:
        before, _, after = answer.partition(questions[0].strip())
        return f"plan: {questions[0].strip()}\n{before.rstrip().removesuffix(PLAN_HEADING).rstrip()}{after}".strip()
    if all(question in answer for question in questions):
        return answer.strip()
    return f"{' / '.join(questions)}\n{answer}".strip()


def render_index(job: str, phase: str, summaries: dict[str, SectionSummary]) -> str:
    """The text of the index.

    Every section has the same maximum number of lines. A section shows its newest entries and names its detail file.
    """
    sections = [section for section in SECTIONS if section.always or summaries[section.file].total]
    share = (PAGE_LINES - _HEAD_LINES) // len(sections) - _SECTION_HEAD_LINES
    title = f"# Job: {one_line(job)}" if job else "# Working notes"
    lines = [title, f"Phase: {one_line(phase)}" if phase else "One line per entry; the named file has the whole text."]
    for section in sections:
        count, newest = summaries[section.file]
        listed = newest[-share:]
        entries = "1 entry" if count == 1 else f"{count:,} entries"
        entries += f", the newest {len(listed)} here" if len(listed) < count else ""
        lines += [f"## {section.title}", f"{entries} → {FOLDER}/{section.file}" if count else "none so far"]
        lines += [f"- #{number}: {text}" for number, text in enumerate(listed, start=count - len(listed) + 1)]
    return "\n".join(lines) + "\n"


def one_line(text: str) -> str:
    r"""A text as one line of the index, without control characters and line breaks.

    >>> one_line("fix the\n\n# parser")
    'fix the # parser'
    """
    flat = " ".join(text.strip()[: LINE_CHARS * 4].split())
    if not flat.isprintable():
        flat = " ".join("".join(char if char.isprintable() else " " for char in flat).split())
    return flat if len(flat) <= LINE_CHARS else flat[: LINE_CHARS - 1] + "…"
