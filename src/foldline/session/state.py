"""The state of one branch in memory: sizes, legal cuts, usage, costs, media, the fold in force.

A state is derived only from a snapshot of the record and from its messages. So two processes that read the same rows
have the same state. The time to add a message does not depend on the number of messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from itertools import chain
from math import inf
from typing import Any

from foldline.fold import Digest, Fold, Target
from foldline.human_input import is_human_prompt
from foldline.measure.calibration import Calibration
from foldline.measure.estimator import MARGIN
from foldline.measure.message_size import message_tokens, part_tokens
from foldline.measure.usage_anchor import SAME_REQUEST, Evidence, Gauge
from foldline.message import Message, Thinking
from foldline.placeholders import edited_texts, without_advice
from foldline.plan import cut
from foldline.plan.fold_cost import FoldAccount, FoldProposal, prices_of, propose_fold
from foldline.plan.gate import HIDDEN, NOTHING_DUE, Load, Need, Verdict, gate, limit, scale_blocks
from foldline.plan.media_budget import MediaBudget, without_oversized_media
from foldline.plan.plan import NOTHING_TO_DO, Plan, fold_at, fold_refused, manual_fold, plan
from foldline.plan.prune import stub_on_arrival
from foldline.plan.remedy import can_fold
from foldline.plan.timeline import GONE, Timeline, handle, traits_of
from foldline.policy import Rule
from foldline.session.record import Snapshot, Version
from foldline.session.setup import Setup
from foldline.view.bound_thinking import has_thinking, is_unbound, without_thinking
from foldline.view.compose import ComposedView, View, head
from foldline.view.identity import ViewIdentity, binding_after, binding_key, view_key
from foldline.view.image_scaling import downscaled
from foldline.view.native_blocks import without_foreign_blocks
from foldline.wire.formats import element_format

PAGE = 64
"""Number of messages that are read at once in the search for the newest prompt."""

Reader = Callable[[int, int], Iterable[Message]]
"""A function that reads the messages of the record from a start to a stop position."""


class State:
    """One conversation under one setup."""

    def __init__(self, setup: Setup, snapshot: Snapshot, read: Reader) -> None:
        self.setup, self.snapshot = setup, snapshot
        self._counter, self._framing, self._is_measured = setup.counter, setup.framing, setup.measured
        self._arrival_limit = setup.arrival_limit
        self.policy, self.model, self.usable = setup.policy, setup.model, setup.usable
        self.tools = setup.tools + setup.extra
        """Tokens of each request that are in no message: tools and `extra_tokens`."""
        self.timeline = Timeline()
        self.timeline.pins = {position: name for name, position in snapshot.pins.items()}
        self.timeline.loose = snapshot.notes.difference(self.timeline.pins, snapshot.removed)
        self._removed_tokens: dict[int, int] = {}
        """The sizes of the notes that left the view together with their pin, by their index."""
        self.timeline.target = Target(element_format(setup.format), setup.model.name, setup.model.vendor)
        self.timeline.has_recall = setup.has_recall
        self._initial_calibration = Calibration(hidden=self.tools, drops_thinking=setup.model.drops_thinking)
        self.gauge = self._new_gauge(self._initial_calibration)
        self.latched: tuple[Rule, ...] = ()
        """The latched rules that have fired since the last fold."""
        self.pruned = 0
        """Number of messages that were shortened on arrival."""
        self.media = MediaBudget(self.timeline, setup.media)
        self._composed = ComposedView(self.timeline, setup.format, setup.model)
        self._prices = prices_of(setup.model)
        self._account = FoldAccount() if any(rule.basis == "cost" for rule in setup.policy.rules) else None
        """The costs and savings of the conversation; None if no rule of the policy depends on costs."""
        self.needs_times = self._account is not None
        """Whether a rule depends on the times of the messages."""
        self._latches = any(rule.latched for rule in setup.policy.rules)
        self.view_key = self._key_with(None)
        """The key of the current view (see `ViewIdentity.key`)."""
        self.binds_thinking = setup.model.binds_thinking and setup.format == "anthropic"
        """Whether the provider accepts thinking only if everything before it is unchanged since the thinking was
        written.
        """
        self._binding = self._binding_with(None)
        """The binding of the current view (see `ViewIdentity.binding`); "" if the provider does not bind thinking."""
        self._is_plain = self._account is None and not self.binds_thinking
        """Whether an ordinary message only has to be appended: no costs are computed, and thinking is not bound."""
        self.unbound = 0
        """Number of messages in the view whose thinking is bound to another view.

        This thinking is left out, or the provider drops it.
        """
        self.compacted_at = -1
        """Index of the newest message with a compaction block of a provider; -1 if none was read."""
        self._read_all(read)

    def _new_gauge(self, calibration: Calibration) -> Gauge:
        rules = [rule for rule in self.policy.rules if rule.basis == "request" and rule.action in {"fold", "clip"}]
        fold_at = min([self.usable, *(limit(rule, self.usable) for rule in rules)])
        most = inf if self.setup.trusts_first_usage else fold_at
        return Gauge(calibration=calibration, limit=most, is_exact=self._counter.exact)

    @property
    def version(self) -> Version:
        """The version of the record that this state shows."""
        return Version(len(self.timeline.messages), self.snapshot.version.entry)

    def follow(self, version: Version, **changes: Any) -> None:
        """Replace fields of the snapshot (`changes`) and its version after a log entry."""
        self.snapshot = replace(self.snapshot, version=version, **changes)

    def size(self, message: Message) -> int:
        """The size of a message in tokens, counted with the session's counter."""
        return message_tokens(message, self.setup.counter, self.setup.framing)

    # Adding messages

    def add(self, message: Message) -> None:
        """Add a message at the end."""
        tokens = self._index(message)
        if self._is_measured:
            evidence = SAME_REQUEST if message.meta.usage is None else self._evidence(message.meta.view)
            thinking = self._thinking(self.timeline.shown[-1])
            self.gauge = self.gauge.add(message, tokens, thinking=thinking, evidence=evidence)
        if self._latches:
            self._latch()

    def _evidence(self, view: str) -> Evidence | None:
        """What the newest message's usage figures prove about the size of the current view; None if they prove nothing.

        `view` is the identity, as text, of the view that the newest message answers. The usage proves something only if
        the current view is the answered view plus newer messages. If the answered view had the same fold but another
        model or format, the usage proves only how many hidden tokens there are: tokens that belong to no message.
        """
        index, prefix = len(self.timeline) - 1, self.timeline.prefix
        if not view:
            return SAME_REQUEST if index >= self.snapshot.changed_at else None
        measured = ViewIdentity.read(view)
        if measured is None:
            return None
        length = index if measured.length < 0 else measured.length
        if not self.timeline.cut <= length <= index:
            return None
        change, missing = self.tools - measured.tools, index - length
        if measured.key != self.view_key:
            is_same_fold = measured.shares_fold(self.view_key)
            return Evidence(missing, prefix[index] - prefix[length], change, False) if is_same_fold else None
        if measured.length >= 0:
            change += self._tokens(length) - measured.tokens
        elif self._removed_tokens:
            change -= self._removed_since(index)
        return Evidence(missing, prefix[index] - prefix[length], change)

    def _removed_since(self, index: int) -> int:
        """The tokens of the notes that were in the request of the reply at `index`, and left the view later."""
        removed = self.snapshot.removed
        sizes = self._removed_tokens.items()
        return sum(tokens for at, tokens in sizes if at in removed and at < index < removed[at].length)

    def _tokens(self, length: int) -> int:
        """The estimated tokens that the view would have if the session had only its first `length` messages."""
        timeline, fold = self.timeline, self.timeline.fold
        tokens = timeline.prefix[timeline.lead] + timeline.prefix[length] - timeline.prefix[timeline.cut]
        return tokens + (fold.pinned_tokens + fold.digest_tokens + fold.carried_tokens if fold else 0)

    def _key_with(self, fold: Fold | None) -> str:
        setup = self.setup
        return view_key(fold, setup.model.name, setup.format, setup.counter.name, setup.framing.name)

    def _binding_with(self, fold: Fold | None) -> str:
        """The `ViewIdentity.binding` of a view that has this fold and no shortened messages."""
        if not self.binds_thinking:
            return ""
        setup = self.setup
        return binding_key(
            fold, setup.model.name, setup.format, setup.tools_key, setup.extra, setup.policy.bound_thinking
        )

    def identity(self) -> ViewIdentity:
        """The identity of the current view."""
        timeline, fold = self.timeline, self.timeline.fold
        length, prefix = len(timeline.messages), timeline.prefix
        tokens = prefix[length]
        if fold is not None:  # `_tokens`, without a further call
            tokens += prefix[timeline.lead] - prefix[fold.cut]
            tokens += fold.pinned_tokens + fold.digest_tokens + fold.carried_tokens
        return tuple.__new__(ViewIdentity, (self.view_key, self.tools, length, tokens, self._binding))

    def _index(self, message: Message, stub: tuple[Message, int] | None = None) -> int:
        """Add a message to the timeline, and return its size in the view.

        If there is a stub, the view shows the stub.
        """
        traits, shown, timeline = traits_of(message), None, self.timeline
        if stub is not None:
            shown, tokens = stub
        else:
            tokens = message_tokens(message, self._counter, self._framing)
            if traits.has_media or tokens >= self._arrival_limit:
                shown = self._shortened(message, tokens)
                if shown is not None:
                    shown = shown if self.setup.has_recall else edited_texts(shown, without_advice)
                    tokens = self.size(shown)
                    self.pruned += 1
                    if self.binds_thinking:
                        self._binding = binding_after(self._binding, len(timeline), tokens)
            elif self._is_plain and not traits.has_compaction:
                timeline.append(message, tokens, None, traits)
                return tokens
        if self.binds_thinking and is_unbound(message, len(timeline), self._binding):
            self.unbound += 1
            if self.policy.bound_thinking == "strip":
                shown = without_thinking(shown or message)
                tokens = self.size(shown)
        if traits.has_compaction:
            self.compacted_at = len(timeline)
            shown = without_foreign_blocks(shown or message, timeline.target)
            tokens = self.size(shown)
        if self._account is not None and message.role == "assistant":
            sent = timeline.messages
            if sent and sent[-1].role != "assistant":
                proposal = self._proposal(_time_of_request(sent[-1], message))
                self._account = self._account.after_request(proposal, self._prices)
        timeline.append(message, tokens, shown, traits)
        if traits.has_media:
            self.media.add(shown or message)
        return tokens

    def _without_bound_thinking(self, fold: Fold) -> dict[int, tuple[Message, int]]:
        """The stubs of a new fold, by index, with their sizes. A stub is shown in place of a kept message.

        If a kept message has thinking that is bound to the previous view, its stub is a copy without this thinking.
        """
        timeline, stubs, self.unbound = self.timeline, dict(fold.stubs), 0
        if not self.binds_thinking:
            return stubs
        for index in self._kept_indexes(fold):
            shown = stubs[index][0] if index in stubs else timeline.shown[index]
            if not is_unbound(timeline.messages[index], index, self._binding):
                continue
            self.unbound += 1
            if self.policy.bound_thinking == "strip" and has_thinking(shown):
                bare = without_thinking(shown)
                stubs[index] = bare, self.size(bare)
        return stubs

    def _shortened(self, message: Message, tokens: int) -> Message | None:
        """The shortened form of a message that is too large or has oversized media; None if it is shown unchanged."""
        index, limit = len(self.timeline), self.setup.arrival_limit
        sendable = without_oversized_media(message, index, self.setup.media, downscaled)
        shown = sendable if sendable is not message else None
        if tokens >= limit and index not in self.timeline.pins:
            return stub_on_arrival(sendable, index, self.policy, limit=limit, size=self.size) or shown
        return shown

    def _thinking(self, message: Message) -> int:
        """The size of the thinking in a message of the view."""
        if message.role != "assistant":
            return 0
        thoughts = (part for part in message.parts if isinstance(part, Thinking))
        return sum(part_tokens(part, self.setup.counter, self.setup.framing) for part in thoughts)

    def _latch(self) -> None:
        """Set `latched` to the latched rules that have fired. A latched rule that has fired stays in force until the
        next fold.
        """
        fired = gate(self.load(), self.policy, self.latched).fired
        self.latched = tuple([rule for rule in fired if rule.latched])

    # Reading the record

    def _read_all(self, read: Reader) -> None:
        """Read the messages that the view shows.

        Of the messages before the fold's cut, only those that the fold keeps in the view are read.
        """
        timeline, fold, length = self.timeline, self.snapshot.fold, self.snapshot.version.length
        if fold is not None:
            shared = min(length, fold.made_at, length if (found := self.snapshot.shortest) is None else found)
            fold = self._without_removed(self._shared(fold, shared, read), shared, read)
            self.view_key, self._binding = self._key_with(fold), self._binding_with(fold)
            self._read_head(fold, read)
            gone = dict.fromkeys((*fold.removed, *self.snapshot.removed), (GONE, 0))
            stubs = {**fold.stubs, **gone}
            for index, message in enumerate(read(fold.cut, shared), start=fold.cut):
                self._index(message, stubs.get(index))
                if index in gone:
                    timeline.removed.add(index)
                    self._removed_tokens[index] = self.size(message)
            if self.setup.measured:
                self.gauge = self._new_gauge(self._stored_calibration(fold))
            self._apply(replace(fold, stubs={}))  # the stubs were already applied when the messages were read
            own = {index: stub for index, stub in fold.stubs.items() if index < shared}
            timeline.fold = timeline.fold and replace(timeline.fold, stubs=own)
        for message in read(len(timeline), length):
            if len(timeline) in self.snapshot.removed:
                self._add_removed(message)
            else:
                self.add(message)

    def _add_removed(self, note: Message) -> None:
        """Add a note that left the view together with its pin. It has no tokens in the view."""
        index = len(self.timeline)
        self._index(note, (GONE, 0))
        self.timeline.removed.add(index)
        self._removed_tokens[index] = self.size(note)
        self.gauge = self.gauge.add(GONE, 0)
        if self.binds_thinking:
            self._binding = binding_after(self._binding, index, 0)

    def _shared(self, fold: Fold, shared: int, read: Reader) -> Fold:
        """The fold, adapted to this branch. The fold may have been made on another branch.

        The branches have `shared` messages in common. At the time of the fold, the other branch may have had messages
        that this branch does not have. In that case, the adapted fold also keeps the newest prompt of the common
        messages.
        """
        stop = shared if shared < fold.made_at else 0
        while stop > 0:
            start = max(0, stop - PAGE)
            found = [index for index, message in enumerate(read(start, stop), start=start) if is_human_prompt(message)]
            stop = 0 if found else start
            if found and found[-1] < fold.cut and found[-1] not in (*fold.pinned, *fold.carried):
                tokens = fold.carried_tokens + sum(map(self.size, read(found[-1], found[-1] + 1)))
                return replace(fold, carried=tuple(sorted((*fold.carried, found[-1]))), carried_tokens=tokens)
        return fold

    def _without_removed(self, fold: Fold, shared: int, read: Reader) -> Fold:
        """The fold without notes that were removed after the fold was made, and without indexes of another branch."""
        fold = replace(fold, removed=tuple([index for index in fold.removed if index < shared]))
        gone = [index for index in fold.carried if index in self.snapshot.removed]
        if not gone:
            return fold
        tokens = sum(self.size(note) for index in gone for note in read(index, index + 1))
        carried = tuple([index for index in fold.carried if index not in gone])
        return replace(fold, carried=carried, carried_tokens=fold.carried_tokens - tokens)

    def _read_head(self, fold: Fold, read: Reader) -> None:
        """Read the leading system messages, and the messages before the cut that the fold keeps in the view."""
        timeline = self.timeline
        for message in read(0, fold.cut):
            if message.role != "system":
                break
            self._index(message)
        for index in sorted({*fold.pinned, *fold.carried}):
            timeline.skip(index - len(timeline))
            for message in read(index, index + 1):
                self._index(message, fold.stubs.get(index))
        timeline.skip(fold.cut - len(timeline))

    def _stored_calibration(self, fold: Fold) -> Calibration:
        """The calibration that is stored with the fold.

        If it was stored for another model, only its field `hidden` is used. The other fields depend on the tokenizer.
        """
        values = {key: value for key, value in fold.learned.items() if key not in {"model", "account", "tools"}}
        if not values:
            return self._initial_calibration
        stored = Calibration.from_stored(values)
        hidden = max(stored.hidden + self.tools - fold.learned.get("tools", self.tools), 0)
        same_model = fold.learned.get("model", "") == self.model.name
        return replace(stored if same_model else self._initial_calibration, hidden=hidden)

    # Folding

    def apply(self, fold: Fold, version: Version) -> None:
        """Apply a new fold. The record has stored the fold as `version`."""
        changes = {"fold": fold, "shortest": None, "folds": self.snapshot.folds + 1, "changed_at": version.length}
        self.follow(version, **changes, refusal=None)
        self.view_key = self._key_with(fold)
        self._apply(fold)

    def _kept_indexes(self, fold: Fold) -> list[int]:
        """The messages that the view shows after a fold, except for the system messages."""
        return sorted({*fold.pinned, *fold.carried, *range(fold.cut, len(self.timeline))})

    def _apply(self, fold: Fold) -> None:
        timeline = self.timeline
        self._binding = self._binding_with(fold)
        if fold.digest is not None and fold.digest.native is not None:
            fold = replace(fold, digest_tokens=self.size(fold.digest.message_for(timeline.target)))
        timeline.apply(fold, self._without_bound_thinking(fold))
        if self.binds_thinking:
            for index in self._kept_indexes(fold):
                if timeline.shown[index] is not timeline.messages[index]:
                    self._binding = binding_after(self._binding, index, timeline.tokens(index))
        if self.setup.measured:
            kept = ((timeline.shown[index], timeline.tokens(index)) for index in range(timeline.cut, len(timeline)))
            front = ((message, self.size(message)) for message in head(timeline))
            shown = ((message, tokens, self._thinking(message)) for message, tokens in chain(front, kept))
            self.gauge = self.gauge.after_fold(shown)
        if self._account is not None:
            stored = fold.learned.get("account", {}) if fold.learned.get("model") == self.model.name else {}
            self._account = FoldAccount(**stored)
        if self.media.totals.number:
            self.media.recount()
        self.latched = ()
        if self._latches:
            self._latch()

    def shows(self, index: int) -> bool:
        """Whether the view shows a message in full."""
        fold = self.timeline.fold
        if index in self.timeline.removed:
            return False
        return fold is None or index < self.timeline.lead or fold.shows(index)

    def complete(self, fold: Fold, digest: Digest | None) -> Fold:
        """A planned fold with its digest and its final sizes.

        The calibration is stored with the fold, for processes that open the session later.
        """
        timeline, setup = self.timeline, self.setup
        stubs = timeline.fold.stubs.items() if timeline.fold else ()
        kept = {index: stub for index, stub in stubs if index >= fold.cut or index in fold.carried}
        whole = self._with_known_tools(replace(fold, digest=digest, stubs={**kept, **fold.stubs}))
        beside = timeline.prefix[timeline.lead] + fold.pinned_tokens + fold.carried_tokens
        tokens = sum(self.size(message) for message in head(timeline, whole)) - beside
        after = fold.after + self.scaled(tokens - fold.digest_tokens)
        learned: dict[str, Any] = asdict(self.gauge.trusted_calibration) if setup.measured else {}
        if self._account is not None:
            proposal = self._proposal(self.newest_time)._replace(folded=after)
            account = self._account.after_fold(proposal, self._prices)
            learned["account"] = account._asdict()
        if learned:
            learned |= {"model": self.model.name, "tools": self.tools}
        return replace(whole, digest_tokens=tokens, after=after, learned=learned)

    def _with_known_tools(self, fold: Fold) -> Fold:
        """The fold, without the advice to use recall if the model does not have the recall tool.

        The text is stored with the fold, so the view stays the same until the next fold, whatever the tools are then.
        """
        if self.setup.has_recall:
            return fold
        digest, stubs = fold.digest, dict(fold.stubs)
        if digest is not None:
            digest = replace(digest, message=edited_texts(digest.message, without_advice))
        for index, (message, _) in fold.stubs.items():
            bare = edited_texts(message, without_advice)
            if bare is not message:
                stubs[index] = bare, self.size(bare)
        return replace(fold, digest=digest, stubs=stubs)

    def plan(self, load: Load | None = None) -> Plan:
        """The plan for the current state."""
        load = load or self.load()
        verdict = gate(load, self.policy, self.latched)
        if verdict is NOTHING_DUE:
            return NOTHING_TO_DO
        return plan(self.timeline, load, self.policy, self.size, verdict=verdict)

    @property
    def fits(self) -> bool:
        """Whether the current view fits the usable window."""
        return gate(self.load(), self.policy).need is not Need.HARD

    def plan_by_hand(self, *, force: bool, refused: bool = False) -> Plan:
        """The plan of a manual fold, or of a fold after the provider refused the view as too large."""
        if refused:
            return fold_refused(self.timeline, self.load(), self.policy, self.size)
        return manual_fold(self.timeline, self.load(), self.policy, self.size, force=force)

    def plan_before(self, index: int) -> Plan:
        """The plan of a manual fold that removes everything before a message. A step is not split."""
        timeline = self.timeline
        found = timeline.last_cut(self.policy.atom, min(index, timeline.tail))
        if found <= timeline.cut:
            return Plan(NOTHING_DUE, skip_reason=f"nothing before {handle(index)} can be folded")
        return Plan(NOTHING_DUE, self.plan_at(found, f"folded by hand up to {handle(found)}"))

    def plan_at(self, cut: int, reason: str) -> Fold:
        """The fold with a given cut, without its digest."""
        return replace(fold_at(self.timeline, self.load(), self.policy, self.size, cut=cut), reason=reason)

    def plan_media(self) -> Fold | None:
        """A fold that leaves out the oldest media and nothing else; None if one request can hold all media."""
        if not self.media.totals.number or not self.media.is_exceeded:
            return None
        timeline, before = self.timeline, self.load().request
        folds = can_fold(self.policy)
        stubs = self.media.stub_oldest(self.size, may_fold=folds, downscale=downscaled)
        return replace(
            timeline.fold or Fold(cut=timeline.cut),
            stubs=stubs,
            reason="too many media for one request",
            made_at=len(timeline),
            before=before,
            after=before - self.scaled(sum(timeline.tokens(index) - tokens for index, (_, tokens) in stubs.items())),
        )

    def scaled(self, tokens: int) -> int:
        """The number of tokens that the provider would count, if the session's counter counts `tokens`.

        The ratio of the two counts is learned from reported usage.
        """
        return round(self.gauge.trusted_calibration.ratio * tokens) if self.setup.measured else tokens

    # Costs

    def _proposal(self, at: float | None = None) -> FoldProposal:
        """The effect of a fold on the current request.

        The fold removes every message that no floor (such as `keep_tokens` of the policy) protects.
        """
        floor = cut.floor(self.timeline, self.policy, self.usable)
        return propose_fold(self.timeline, floor, digest=self.policy.digest_tokens, fixed=self.tools, at=at)

    def _earned_share(self, account: FoldAccount) -> float:
        """Whether a fold would save costs, as a number (see `FoldAccount.earned_share`); 0 directly after a fold."""
        fold = self.timeline.fold
        is_new = fold is not None and fold.made_at == len(self.timeline)
        return 0.0 if is_new else account.earned_share(self._proposal(self.newest_time), self._prices)

    @property
    def newest_time(self) -> float | None:
        """The time of the newest message, which is taken as the time of the next request; None if unknown.

        The time comes from the record and not from a clock, so that every process makes the same decision.
        """
        return self.timeline.messages[-1].meta.at if self.timeline.messages else None

    # The request as it stands

    def load(self) -> Load:
        """The size of the request that would be sent now, its blocks, and the largest request allowed."""
        timeline, setup = self.timeline, self.setup
        cut, prefix = timeline.cut, timeline.prefix
        history, count = prefix[-1] - prefix[cut], len(timeline.messages) - cut
        blocks = timeline.blocks(setup.tools, tail=history)
        request = sum(blocks.values())
        earned = self._earned_share(self._account) if self._account is not None else 0.0
        if not self._is_measured:
            if setup.extra:
                request, blocks = request + setup.extra, {**blocks, HIDDEN: setup.extra}
            figures = (request, history, count, self.usable, self.tools, 1.0, 0, 0.0, earned, blocks, False)
            return tuple.__new__(Load, figures)  # half the time of `Load(…)`
        gauge = self.gauge.trusted()
        local, learned = request, gauge.calibration
        request, upper = gauge.sizes()
        if request != local:
            blocks = scale_blocks(blocks, request, hidden=learned.hidden - setup.tools)
        upper, margin = (0, 0.0) if self._counter.exact else (upper, MARGIN)
        sizes = request, history, count, self.usable, learned.hidden, learned.ratio
        return tuple.__new__(Load, (*sizes, upper, margin, earned, blocks, gauge.anchor is None))

    @property
    def is_exact(self) -> bool:
        """Whether a tokenizer has counted the whole request.

        False if the size is based on usage, or corrected by what was learned from usage, such as hidden tokens.
        """
        gauge = self.gauge
        if not self.setup.counter.exact or gauge.is_anchored:
            return False
        return gauge.trusted_calibration == self._initial_calibration

    def messages(self) -> tuple[Message, ...]:
        """The messages of the current view."""
        return self._composed.messages()

    def view(self, load: Load | None = None, verdict: Verdict | None = None) -> View:
        """The current view. The load and the verdict are computed unless they are given."""
        load = load or self.load()
        setup, composed, policy, is_exact = self.setup, self._composed, self.policy, self.is_exact
        is_counted = is_exact or not self._is_measured
        fields = (
            composed.messages(),
            load.blocks,
            load.request,
            is_exact,
            self._counter.name if is_counted else self.gauge.source,
            setup.window,
            self.usable,
            gate(load, policy, self.latched) if verdict is None else verdict,
            self.timeline.cut,
            setup.assumption,
            policy.breakpoints,
            setup.format,
            composed.repairs,
            self.identity(),
            self.unbound,
            policy.bound_thinking == "drop_block",
            composed.native,
            setup.model,
            setup.definitions,
        )
        return tuple.__new__(View, fields)  # half the time of `View(…)`


def _time_of_request(newest: Message, reply: Message) -> float | None:
    """The time at which the request for a reply was sent.

    This is the time of the newest message before the reply. If that time is unknown, the time of the reply is used.
    """
    return reply.meta.at if newest.meta.at is None else newest.meta.at
