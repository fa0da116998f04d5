"""A session: you add messages and get views. When the policy demands it, the oldest messages are folded.

    session = Session(model="claude-sonnet-5")
    session.add({"role": "user", "content": "Why does the build fail?"})
    body = session.view().render().body

A session is a record (in memory or on a ledger) and one state derived from it. Changes that other processes make to the
same record are read at the next call. Threads may share a session: one call runs at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from foldline.digest.digester import Digester, DigesterCall
from foldline.digesters import digester_of
from foldline.errors import ConfigError, Conflict, FoldlineError, InputError, check_type
from foldline.events import Event, Listener, emit
from foldline.fold import Fold
from foldline.ledger.jobs import Claim
from foldline.measure.estimator import Counter, format_tokens
from foldline.message import Message, joined_reply
from foldline.models.table import Model
from foldline.plan.gate import Load, Need
from foldline.plan.plan import Plan
from foldline.plan.timeline import Timeline
from foldline.policy import Policy
from foldline.recall.handles import fetch, parse_handle
from foldline.recall.result import RecallResult
from foldline.recall.search import TOKENS, RecallQuery, search
from foldline.session import folding, pins
from foldline.session.added_values import check_input, clear_format, hand_made_messages, with_times
from foldline.session.cancellation import Cancellation, StopSignal
from foldline.session.digest_writer import DigestWriter, WriteOptions, choose_digester
from foldline.session.native_compaction import fold_at_native_summary
from foldline.session.preview import Preview
from foldline.session.record import ATTEMPTS, MemoryRecord, Record, Refusal, too_many_conflicts
from foldline.session.reply_tee import ReplyTee
from foldline.session.reply_ties import ReplyTies
from foldline.session.setup import setup
from foldline.session.state import State
from foldline.session.view_events import ViewEvents
from foldline.view.compose import View, identity_of
from foldline.view.continuation import Continuation, continuation
from foldline.view.identity import ViewIdentity
from foldline.wire.formats import plain_message
from foldline.wire.reader import parse
from foldline.wire.streaming.assembler import StreamedReply
from foldline.wire.streaming.stream_events import is_stream

if TYPE_CHECKING:
    from foldline.session.lease import LeaseKeeper
    from foldline.session.worker import Worker

Clock: TypeAlias = Callable[[], float | None]
Call = TypeVar("Call", bound=Callable[..., Any])


def _locked(call: Call) -> Call:
    """A decorator that holds the session's lock while the method runs.

    If the previous call was interrupted, the state is first loaded again.
    """

    @wraps(call)
    def locked(self: Session, *args: Any, **options: Any) -> Any:
        with self.lock:
            if self._was_interrupted:
                self.writer = DigestWriter(self.record)
                self.reload()
                self._was_interrupted = False
            try:
                return call(self, *args, **options)
            except FoldlineError:
                raise
            except BaseException:  # for example Ctrl-C: the state may be only partly changed
                self._was_interrupted = True
                raise

    return cast("Call", locked)


class Session:
    """One conversation under one policy."""

    def __init__(  # noqa: PLR0913 (all are keyword-only)
        self,
        *,
        model: str | None = None,
        policy: Policy | str | None = None,
        tools: Sequence[Any] | None = None,
        format: str | None = None,
        extra_tokens: int | None = None,
        counter: Counter | None = None,
        digester: Digester | Callable[[DigesterCall], Any] | None = None,
        record: Record | None = None,
        name: str = "",
        listener: Listener | None = None,
        worker: Worker | None = None,
        clock: Clock = time.time,
    ) -> None:
        """Open a session on a record, with the given settings. Settings that are not given are read from the record.

        `tools` are the tool definitions of each request, as dicts of any wire format; they are counted, and
        `View.request` sends them. `digester` writes the digests: one of `foldline.digesters`, or a function.
        `extra_tokens` is the number of tokens of each request that are neither in messages nor in tools. `counter`
        replaces the model's token counter. `clock` returns seconds since 1970, or None if the time is unknown. If a
        rule of the policy is about cost, each added message gets its time from the clock. So the record shows when the
        prompt cache has expired.
        """
        for call, what in ((listener, "listener"), (clock, "clock")):
            if call is not None and not callable(call):
                raise ConfigError(f"{what} must be a function, not {type(call).__name__}", hint="pass a function")
        self.name, self.listener, self.worker = name, listener, worker
        self.record, self.clock = record or MemoryRecord(), clock
        self.lock = RLock()
        self.writer = DigestWriter(self.record)
        self._digester, self._counter = digester_of(digester), counter
        self._definitions: tuple[Any, ...] | None = None
        """The tool definitions that were given to this object; None if none were given."""
        self._was_interrupted = False
        self.running: StopSignal | None = None
        """The stop signal of the fold that is being made by a call of this session."""
        self._ties, self._events = ReplyTies(), ViewEvents()
        self.skip_reason = ""
        """The reason why the last call of `fold` or `preview` returned None; "" if it returned a fold or a preview."""
        self.reload(model=model, policy=policy, tools=tools, format=format, extra_tokens=extra_tokens)

    # The state

    def reload(self, **given: Any) -> None:
        """Derive the state from the record. Settings that are not given are read from the record."""
        snapshot = self.record.snapshot()
        settings = setup(snapshot.settings, counter=self._counter, definitions=self._definitions, **given)
        if given.get("tools") is not None:
            self._definitions = settings.definitions
        row = settings.row()
        if row != snapshot.settings:
            try:
                version = self.record.configure(row, snapshot.version.entry)
            except Conflict:
                self.reload(**given)
                return
            snapshot = replace(snapshot, version=version, settings=row, changed_at=version.length)
        self.state = State(settings, snapshot, self.record.read)
        self.digester = choose_digester(self._digester, settings.policy)
        self._events.follow(self.state)

    def refresh(self) -> None:
        """Read the changes that other processes have made to the record."""
        version, state = self.record.version(), self.state
        length = len(state.timeline.messages)
        if version == (length, state.snapshot.version.entry):
            return
        if version.entry != state.snapshot.version.entry or version.length < length:
            self.reload()
        else:
            for message in self.record.read(length, version.length):
                state.add(message)

    @_locked
    def use(
        self,
        *,
        model: str | None = None,
        policy: Policy | str | None = None,
        tools: Sequence[Any] | None = None,
        format: str | None = None,
        extra_tokens: int | None = None,
    ) -> None:
        """Change the model, policy, tools, wire format or `extra_tokens` of the session."""
        self.reload(model=model, policy=policy, tools=tools, format=format, extra_tokens=extra_tokens)

    # Messages and views

    def add(self, *things: Any, format: str | None = None, view: View | ViewIdentity | str | None = None) -> None:
        """Add messages at the end: `Message` values, wire dicts, lists of them, an SDK's reply, or a streamed reply.

        The values are read in `format`. By default, the format of the values is detected; if it is not clear, the
        session's format is used. `view` is the view that a reply answers, or the identity of that view. The default is
        the last view that the method `view` returned. The usage of the reply is used only for that view, and for later
        views that only add messages to it. A stream is read to its end; use `stream` if you need its events.
        """
        rest = self._add(things, format, view, hand_made_messages(things))
        while rest:
            for _ in self.stream(rest[0], format=format, view=view):
                pass
            rest = self._add(rest[1:], format, view)

    def stream(
        self, stream: Any, *, format: str | None = None, view: View | ViewIdentity | str | None = None
    ) -> ReplyTee:
        """The events of a streamed reply, unchanged. At the end of the loop, the reply is added to the session.

        `stream` is what the SDK of OpenAI, Anthropic or Google returned for a streamed request, or a list of its
        events. Use `for` or `async for`. If the stream is interrupted, the part that was received is added as a valid
        message.
        """
        with self.lock:
            answered = self._ties.view if view is None else identity_of(view)
        return ReplyTee(self, stream, format=format, view=answered)

    def report_reply(self, reply: StreamedReply) -> None:
        """Emit an event if a streamed reply is not complete."""
        if not reply.complete:
            lost = "; ".join(f"{item.what}: {item.why}" for item in reply.lost)
            self.emit("interrupted", stop=reply.stop, lost=lost)

    @_locked
    def _add(
        self,
        things: Sequence[Any],
        format: str | None,
        view: View | ViewIdentity | str | None,
        hand_made: list[Message] | None = None,
    ) -> Sequence[Any]:
        """Add the values in `things` to the record and to the state, but stop at a value that is a streamed reply.

        Returns the values that were not added: the streamed reply and everything after it. `hand_made` are the values
        as messages, if none of them must be parsed.
        """
        answered, changed_at = None if view is None else identity_of(view), self.state.snapshot.changed_at
        messages, rest = self._read(things, format) if hand_made is None else (hand_made, ())
        if not messages:
            return rest
        state = self.state
        self._ties.tie(messages, answered, state, changed_at)
        if state.needs_times:
            messages = with_times(messages, self.clock())
        version = self.record.append(messages)
        if version == (len(state.timeline.messages) + len(messages), state.snapshot.version.entry):
            for message in messages:
                state.add(message)
        else:
            self.refresh()
        if self.state.compacted_at >= version.length - len(messages):
            fold_at_native_summary(self)
        return rest

    def _read(self, things: Sequence[Any], format: str | None) -> tuple[list[Message], Sequence[Any]]:
        """The messages of the values before the first streamed reply in `things`, and the rest of `things`."""
        known = self.state.setup.format_known or format is not None
        messages: list[Message] = []
        rest: Sequence[Any] = ()
        for index, thing in enumerate(things):
            is_message = isinstance(thing, Message)
            if is_message and (known or thing.wire is None):
                messages.append(thing)
                continue
            if not is_message and (plain := plain_message(thing, format or self.state.setup.format)) is not None:
                messages.append(plain)
                continue
            if not is_message and type(thing) is not dict and is_stream(thing):
                rest = things[index:]
                break
            if not is_message:
                check_input(thing)
            if not known and (sign := clear_format(thing)) is not None:
                self.reload(format=sign)
                known = True
            messages += (thing,) if is_message else parse(thing, format, default=self.format).messages
        return messages, rest

    @_locked
    def view(self) -> View:
        """The view to send now.

        Folds first if the policy demands it. Raises `ViewTooLarge` if the view cannot be made to fit.
        """
        for _ in range(ATTEMPTS):
            self.refresh()
            state, load = self.state, self.state.load()
            plan, snapshot, length = state.plan(load), state.snapshot, len(state.timeline.messages)
            self._events.report(self, load, plan)
            if self.state.snapshot is not snapshot or len(state.timeline.messages) != length:  # changed by a listener
                continue
            if plan.fold is not None and not folding.fold_due(self, plan.fold, must=plan.verdict.need is Need.HARD):
                continue
            thinned = self.state.plan_media()
            if thinned is not None and not folding.fold_due(self, thinned, must=True):
                continue
            unchanged = self.state is state and state.snapshot is snapshot and len(state.timeline.messages) == length
            view = state.view(load, plan.verdict) if unchanged else self.state.view()
            self._ties.follow(view.identity)
            return view
        raise too_many_conflicts()

    @_locked
    def fold_if_due(self) -> None:
        """Fold if the policy demands it, as `view` does.

        The record is not read first, and no view is made if no fold is due. So this takes less time than `view`.
        """
        state, load = self.state, self.state.load()
        plan = state.plan(load)
        if plan.fold is not None or state.plan_media() is not None:
            self.view()
            return
        self._events.report(self, load, plan)
        self._ties.follow(self.state.identity())

    @_locked
    def plan(self) -> Plan:
        """The plan that `view` would follow now. Nothing is changed."""
        self.refresh()
        return self.state.plan()

    @_locked
    def continuation(self) -> Continuation | None:
        """How to continue a reply that stopped at its length limit.

        Returns None if the last message is complete, or after `continue_max` attempts in a row. Otherwise, replace the
        last message of the view by the `reply` of the result, or remove that message if `reply` is None. Append the
        `prompt` of the result, and send this request. Then add the prompt to the session.
        """
        self.refresh()
        return continuation(self.timeline.messages, most=self.policy.continue_max)

    # Folds

    @_locked
    def fold(
        self, *, instructions: str = "", force: bool = False, digest: str | None = None, refused: bool = False
    ) -> Fold | None:
        """Fold now. With `force`, fold everything before the last user turn.

        Without `force`, messages that a floor of the policy (such as `keep_tokens`) protects stay in the view. Set
        `refused` after the provider refused the view as too large (`foldline.is_overflow`). The fold then makes the
        view much smaller, even if messages that a floor protects must be folded. `instructions` are passed to the
        digester and never become part of the view. `digest` is a text of your own that is used as the digest. Returns
        None if nothing was folded; `skip_reason` then says why.
        """
        for value, what in ((instructions, "instructions"), ("" if digest is None else digest, "digest")):
            check_type(value, str, what, hint="pass a text")
        for _ in range(ATTEMPTS):
            self.refresh()
            folds, plan = self.folds, self.state.plan_by_hand(force=force, refused=refused)
            self.skip_reason = plan.skip_reason
            if plan.fold is None:
                self.emit("skipped", reason=plan.skip_reason)
                return None
            can_wait = not refused and self.state.fits
            options = WriteOptions(must=force or refused, can_wait=can_wait, instructions=instructions, text=digest)
            if folding.make_fold(self, plan.fold, options):
                if self.folds > folds:
                    return self.timeline.fold
                self.skip_reason = self.refusal.cause if self.refusal else ""
                return None
        raise too_many_conflicts()

    @_locked
    def preview(self, *, instructions: str = "", force: bool = False, before: str = "") -> Preview | None:
        """A preview of what `fold` would do now, with its cost. Pass it to `approve` to make that fold.

        If `before` is the handle of a message, everything before this message is folded, even if a floor of the policy
        (such as `keep_tokens`) protects it. If the message is inside a step, the whole step is kept. Returns None if
        nothing would be folded; `skip_reason` then says why.
        """
        self.refresh()
        options = WriteOptions(must=force, can_wait=self.state.fits, instructions=instructions)
        return folding.preview_fold(self, options, before)

    @_locked
    def revise(self, preview: Preview, digest: str) -> Preview:
        """A preview of the same fold with the text `digest` as its digest, and with new sizes, costs and loss report.

        Nothing is changed. Raises `Conflict` if the session was changed after the preview.
        """
        check_type(preview, Preview, "a preview", hint="revise(session.preview(), text), if the preview is not None")
        check_type(digest, str, "digest", hint="pass a text")
        self.refresh()
        return folding.revise_preview(self, preview, digest)

    @_locked
    def approve(self, preview: Preview, *, digest: str | None = None) -> Fold:
        """Make the fold of a preview. The text `digest`, if given, replaces the digest of the preview.

        Raises `Conflict` if the session was changed after the preview. Adding messages does not count as a change.
        """
        check_type(preview, Preview, "a preview", hint="approve(session.preview()), if the preview is not None")
        self.refresh()
        return folding.approve_fold(self, preview, digest)

    @_locked
    def unfold(self) -> None:
        """Take back the newest fold. The folded messages are in the view again."""
        self.refresh()
        self.record.unfold(self.state.snapshot.version.entry)
        self.reload()

    @_locked
    def refold(self) -> None:
        """Restore the fold that was taken back last, with the same digest.

        Raises `InputError` if no fold was taken back, or if a new fold was made since then. The same error is raised if
        a message that the fold would remove was pinned since then.
        """
        self.refresh()
        folding.check_refold(self.state)
        self.record.refold(self.state.snapshot.version.entry)
        self.reload()

    @_locked
    def work(self, claim: Claim, cancel: LeaseKeeper, *, local: str = "") -> bool:
        """Make the fold that is due, for a worker that claimed the job.

        Returns False if no fold is due. Raises `Conflict` if the session has changed. If `local` is not empty, the
        digest is written without a model, and `local` is recorded as the reason.
        """
        self.refresh()
        folds, plan = self.folds, self.state.plan()
        if plan.fold is None or folding.is_cooling(self.state):
            return False
        options = WriteOptions(must=plan.verdict.need is Need.HARD, local=local, cancel=cancel)
        if not folding.make_fold(self, plan.fold, options, claim):
            raise Conflict(
                "the session has changed since the fold was planned", hint="the fold was discarded; plan it again"
            )
        return self.folds > folds

    def cancel(self) -> bool:
        """Cancel the fold that is being made in the background, in another thread or in another process.

        The digester is told to stop, and the fold is not committed. Returns False if no fold is being made.
        """
        running = self.running
        stopped = isinstance(running, Cancellation) and running.cancel()
        stopped = self.record.cancel_direct() or stopped
        return folding.cancel_background_fold(self) or stopped

    # Pins, branches, recall

    @_locked
    def pin(self, text: str = "", *, handle: str = "", name: str = "") -> tuple[str, ...]:
        """Keep messages (by their handle) or a new text in every view. Returns the names of the pins."""
        return pins.pin(self, text, handle=handle, name=name)

    @_locked
    def unpin(self, name: str, *, at_once: bool = False) -> None:
        """Remove a pin. Raises `InputError` for an unknown name.

        If `pin` added the message as a note, the note leaves the view, too. If no reply followed the note, the note
        leaves at once, which costs nothing. If a reply followed the note, the note leaves with the next fold. With
        `at_once`, the note leaves at once even if a reply followed it; the provider's cache is then rewritten from the
        note on.
        """
        pins.unpin(self, name, at_once=at_once)

    @_locked
    def branch(self, name: str, *, at: int | None = None) -> Session:
        """A new session that starts with the first `at` messages, by default with all messages."""
        check_type(name, str, "the name of a branch", hint='branch("second try")')
        check_type(len(self) if at is None else at, int, "at", hint="pass a number of messages")
        self.refresh()
        record = self.record.fork(name, len(self.timeline) if at is None else at)
        fork = Session(
            tools=self._definitions,
            digester=self._digester,
            record=record,
            name=self.name,
            listener=self.listener,
            worker=self.worker,
            counter=self._counter,
            clock=self.clock,
        )
        fork.writer.begin_with(self.writer, fork.state, moves=self.state.snapshot.moves)
        return fork

    def recall(
        self, query: str = "", *, handle: str = "", tokens: int = TOKENS, everywhere: bool = False
    ) -> RecallResult:
        """The passages that match a query (the best first), or the messages of a handle.

        The result has at most `tokens` tokens. It can be printed and iterated; `to_dict()` returns it as JSON values.
        """
        if bool(query) == bool(handle):
            what = "recall takes a query or a handle, not both" if query else "recall needs a query or a handle"
            raise InputError(what, hint='write recall("which port?") or recall(handle="#12")')
        (store, branch), counter = self.record.search_target(), self.state.setup.counter
        if handle:
            found = fetch(store, branch, parse_handle(handle), tokens=tokens, counter=counter)
        else:
            found = search(store, branch, RecallQuery(query=query, tokens=tokens, everywhere=everywhere), counter)
        self.emit("recalled", handle=handle, tokens=found.tokens)
        return found

    @_locked
    def clear(self) -> None:
        """Start again with an empty view. A ledger keeps the messages: `recall(everywhere=True)` finds them."""
        self.rewind(0)

    @_locked
    def rewind(self, length: int) -> None:
        """Go back to the first `length` messages. A ledger keeps the later messages."""
        check_type(length, int, "length", hint="pass a number of messages")
        if not 0 <= length <= len(self):
            raise InputError(
                f"the session has {len(self)} messages, not {length}", hint=f"pass a length from 0 to {len(self)}"
            )
        self._change(lambda entry: self.record.move(length, entry))

    def _change(self, change: Callable[[int], object]) -> None:
        """Make a change, and try again if another process has changed the record in the meantime."""
        for _ in range(ATTEMPTS):
            self.refresh()
            try:
                change(self.state.snapshot.version.entry)
            except Conflict:
                continue
            self.reload()
            return
        raise too_many_conflicts()

    # Events

    def emit(self, kind: str, **facts: Any) -> None:
        """Emit an event of this session."""
        emit(Event(kind, self.name, facts), self.listener)

    # What the state shows

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages, folded or not, in their order. They are read from the record at every access."""
        with self.lock:
            self.refresh()
            return tuple(self.record.read(0, len(self.timeline)))

    @property
    def reply(self) -> Message | None:
        """The model's newest reply, with its text and all its calls; None before the first reply."""
        with self.lock:
            self.refresh()
            found = list[Message]()
            for at in range(len(self.timeline))[::-1]:
                (message,) = self.record.read(at, at + 1)
                if message.role == "assistant":
                    found.append(message)
                elif found:
                    break
            return joined_reply(found[::-1])

    @property
    def pins(self) -> dict[str, Message]:
        """The pinned messages by the name of their pin."""
        with self.lock:
            self.refresh()
            read = self.record.read
            return {name: next(iter(read(at, at + 1))) for name, at in self.state.snapshot.pins.items()}

    def __len__(self) -> int:
        """The number of messages, folded or not."""
        return len(self.timeline)

    def __bool__(self) -> bool:
        """True, even for a session without messages."""
        return True

    def __repr__(self) -> str:
        load, model = self.load(), self.model.name or "no model"
        name = f"{self.name!r}, " if self.name else ""
        size = f"{format_tokens(load.request, self.state.is_exact)} of {format_tokens(load.usable, True)}"
        size += " assumed" if self.state.setup.assumption else ""
        return f"<Session {name}{model}: {len(self)} messages, {size} tokens, {self.folds} folds>"

    @property
    def folds(self) -> int:
        """The number of folds, without those that were undone."""
        return self.state.snapshot.folds

    @property
    def refusal(self) -> Refusal | None:
        """The last fold that was refused, with the cause; None if a fold was made since then."""
        return self.state.snapshot.refusal

    @property
    def timeline(self) -> Timeline:
        """The messages with their sizes, steps, turns and legal cuts."""
        return self.state.timeline

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self.state.policy

    @property
    def model(self) -> Model:
        """The data of the model in the model table."""
        return self.state.model

    @property
    def format(self) -> str:
        """The wire format of the conversation."""
        return self.state.setup.format

    @property
    def window(self) -> int:
        """The context window in tokens."""
        return self.state.setup.window

    @property
    def usable(self) -> int:
        """The largest request allowed, in tokens."""
        return self.state.usable

    def size(self, message: Message) -> int:
        """The size of a message in tokens, counted with the session's counter."""
        return self.state.size(message)

    def load(self) -> Load:
        """The size of the request that would be sent now, its blocks, and the largest request allowed."""
        return self.state.load()
