"""Plans a fold: first the gate, then the cut, then pruning. Raises `ViewTooLarge` if the view cannot fit.

The same timeline, sizes and policy always give the same plan. The digest is not written yet, so the plan reserves
tokens for the largest digest that is allowed. The true size of the digest is measured later. A floor is a minimum that
a fold must keep, such as `keep_tokens` of the policy.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import partial
from math import ceil
from typing import NamedTuple

from foldline.fold import Fold
from foldline.message import NOTE, Message
from foldline.plan import cut as cutting
from foldline.plan.gate import HIDDEN, NOTHING_DUE, Load, Need, Verdict, bound, gate, scale_blocks
from foldline.plan.prune import Size, largest_first, smallest_form, stubs_at_fold
from foldline.plan.remedy import can_fold, too_large
from foldline.plan.timeline import Timeline
from foldline.policy import Policy, Rule

MARKER_TOKENS = 60
"""Tokens reserved for the one-line marker that replaces folded messages if there is no digest."""
OPEN_SHARE = 0.05
"""Largest share of the usable window that steps with unanswered calls may take together after a fold.

A fold keeps such a step in the view until a later prompt has a reply.
"""
MIN_DIGEST = 500
"""If the view does not fit, fewer tokens are reserved for the digest, but at least this number."""
DIGEST_SHARE = 0.25
"""At most this share of the usable window is reserved for a digest, so that a small window has room for history."""

REFUSED_SHARE = 0.7
"""Largest size of the next view, as a share of the view that the provider refused as too large."""
_FLOORS = ("keep_tokens", "keep_ratio", "keep_messages", "keep_turns")


class Plan(NamedTuple):
    """What to do next: the fold to make, or None if no fold is needed. The fold has no digest yet."""

    verdict: Verdict
    fold: Fold | None = None
    skip_reason: str = ""
    """Why no fold is planned although a rule asked for one."""

    def __str__(self) -> str:
        if self.fold is None:
            return f"{self.verdict.need.name}: {self.skip_reason or self.verdict.reason or 'nothing to do'}"
        fold = self.fold
        return f"{self.verdict.need.name}: fold {fold.cut} messages, ~{fold.before:,} → ~{fold.after:,} ({fold.reason})"


NOTHING_TO_DO = Plan(NOTHING_DUE)
"""The plan if no fold is needed."""


def plan(timeline: Timeline, load: Load, policy: Policy, size: Size, *, verdict: Verdict | None = None) -> Plan:
    """The plan for a load. If the gate's verdict on the load is not given, it is computed."""
    verdict = gate(load, policy) if verdict is None else verdict
    if verdict is NOTHING_DUE:
        return NOTHING_TO_DO
    if verdict.need is Need.NONE or (verdict.need is Need.SOFT and verdict.action == "pause"):
        return Plan(verdict=verdict)
    if not can_fold(policy):
        fits = partial(_fits, timeline, size)
        tokens = max(load.request, load.upper)
        draft = _FoldDraft(timeline, load, policy, size)
        blocks = scale_blocks(draft.blocks(), load.request, hidden=0)  # without thinking that the provider drops
        raise too_large(load, policy, blocks=blocks, tokens=tokens, fits=fits, pins=draft.pins())
    return fold_now(timeline, verdict, load, policy, size)


def fold_now(timeline: Timeline, verdict: Verdict, load: Load, policy: Policy, size: Size) -> Plan:
    """The plan for a verdict that asks for a fold.

    Messages that the floors protect are folded only if the view would not fit otherwise.
    """
    draft = _FoldDraft(timeline, load, policy, size)
    rule = next((rule for rule in verdict.fired if rule.action == verdict.action), None)
    goal = _goal(rule, policy, load)
    floor_at = cutting.floor(timeline, policy, load.usable)
    folding = [rule for rule in verdict.fired if rule.action in {"fold", "clip"}]
    start = max((0, *(_start(rule, timeline, load) for rule in folding)))
    basis = rule.basis if rule else "request"
    draft.cut_to(floor_at=floor_at, goal=goal, basis=basis, start=start)
    if basis == "request" and draft.after > goal and _is_share(policy, load):
        # in a small window, whole atoms at the floor would leave almost no room until the next fold
        floor_at = cutting.floor(timeline, policy.but(snap="forward"), load.usable)
        draft.cut_to(floor_at=floor_at, goal=goal, basis=basis, start=start)
    ceiling = min((load.ceiling, *(_bound(rule, load) for rule in folding if rule.basis == "request")))
    draft.reduce_to(ceiling)
    if draft.after > load.ceiling:
        if verdict.need is Need.HARD:
            fits = partial(_fits, timeline, size)
            tokens = ceil(draft.after * (1 + load.margin))
            raise too_large(load, policy, blocks=draft.blocks(), tokens=tokens, fits=fits, pins=draft.pins())
        return Plan(verdict=verdict, skip_reason="the messages that must stay do not fit the window")
    fold = draft.fold(before=load.request, reason=verdict.reason)
    gain, covered = load.request - fold.after, timeline.prefix[fold.cut] - timeline.prefix[timeline.cut]
    if verdict.need is Need.SOFT and (
        fold.after >= load.request or gain < policy.min_gain_tokens or gain < policy.min_gain_ratio * covered
    ):
        return Plan(verdict=verdict, skip_reason=f"a fold would free only {max(gain, 0):,} tokens")
    return Plan(verdict=verdict, fold=fold)


def manual_fold(timeline: Timeline, load: Load, policy: Policy, size: Size, *, force: bool = False) -> Plan:
    """The plan for a fold that a user asks for.

    The floors apply. With `force`, the floors do not apply, and everything before the newest turn is folded.
    """
    draft = _FoldDraft(timeline, load, policy, size)
    if force:
        turns = timeline.cuts["turn"]
        draft.cut = max(timeline.cut, turns[-1] if turns else 0)
        reason = "no message before the newest user turn is left to fold"
    else:
        floor_at = cutting.floor(timeline, policy, load.usable)
        draft.cut_to(floor_at=floor_at, goal=int(policy.target_ratio * load.usable), basis="request", start=0)
        floors = ", ".join(f"{name} {getattr(policy, name):,}" for name in _FLOORS if getattr(policy, name))
        reason = f"every message belongs to the newest messages, which stay ({floors or 'the newest step'})"
    if draft.cut <= max(timeline.cut, timeline.lead):
        return Plan(NOTHING_DUE, skip_reason=reason)
    return Plan(NOTHING_DUE, draft.fold(before=load.request, reason="asked for"))


def fold_refused(timeline: Timeline, load: Load, policy: Policy, size: Size) -> Plan:
    """The plan for a fold after the provider refused the current view as too large.

    The provider's window is smaller than the policy assumes, or its tokens are more than the estimate. So the view is
    planned for a smaller usable window: `REFUSED_SHARE` of the refused view.
    """
    if not can_fold(policy):
        return Plan(NOTHING_DUE, skip_reason="no rule of the policy folds")
    smaller = load._replace(usable=int(REFUSED_SHARE * load.request))
    draft = _FoldDraft(timeline, smaller, policy, size)
    floor_at, goal = cutting.floor(timeline, policy, smaller.usable), int(policy.target_ratio * smaller.usable)
    draft.cut_to(floor_at=floor_at, goal=goal, basis="request", start=0)
    draft.reduce_to(smaller.ceiling)
    if draft.after >= load.request:
        return Plan(NOTHING_DUE, skip_reason="the newest step alone has the size of the refused view")
    return Plan(NOTHING_DUE, draft.fold(before=load.request, reason="refused by the provider as too large"))


def fold_at(timeline: Timeline, load: Load, policy: Policy, size: Size, *, cut: int) -> Fold:
    """The fold with a given cut, without its digest."""
    draft = _FoldDraft(timeline, load, policy, size)
    draft.cut = cut
    return draft.fold(before=load.request, reason="")


def _fits(timeline: Timeline, size: Size, policy: Policy, load: Load) -> bool:
    """Whether the view would fit under `policy`, in the usable window of `load`."""
    draft = _FoldDraft(timeline, load, policy, size)
    draft.cut_to(floor_at=cutting.floor(timeline, policy, load.usable), goal=0, basis="request", start=0)
    draft.reduce_to(load.ceiling)
    return draft.after <= load.ceiling


def _is_share(policy: Policy, load: Load) -> bool:
    """Whether the floor in tokens comes from `keep_ratio`. If so, a fold may remove an atom that crosses the floor."""
    return policy.target_ratio > 0 and not policy.keep_hard and policy.keep_ratio * load.usable > policy.keep_tokens


def _goal(rule: Rule | None, policy: Policy, load: Load) -> int:
    """The size to reach, in tokens.

    A rule with the action "clip" reduces the view to its own limit. Other rules reduce it to the policy's target.
    """
    if rule is None or rule.action != "clip" or rule.basis == "cost":
        return int(policy.target_ratio * load.usable)
    return load.usable if rule.basis == "count" else _bound(rule, load)


def _bound(rule: Rule, load: Load) -> int:
    """The largest value of `Load.value_for` at which a rule does not fire."""
    most = bound(rule, load)
    return int(most) if rule.strict else ceil(most) - 1


def _start(rule: Rule, timeline: Timeline, load: Load) -> int:
    """The first cut after which a rule on `history` or `count` no longer fires; 0 for any other rule."""
    if rule.basis == "history":
        return bisect_left(timeline.prefix, timeline.prefix[-1] - _bound(rule, load))
    return len(timeline) - _bound(rule, load) if rule.basis == "count" else 0


def digest_reserve(policy: Policy, usable: int) -> int:
    """The tokens reserved for the digest or the marker that replaces the folded part."""
    reserve = min(policy.digest_tokens, max(MARKER_TOKENS, int(DIGEST_SHARE * usable)))
    return {"digest": reserve, "marker": MARKER_TOKENS, "nothing": 0}[policy.leave]


class _FoldDraft:
    """A fold being planned: its cut, its stubs, and the size of the resulting view."""

    def __init__(self, timeline: Timeline, load: Load, policy: Policy, size: Size) -> None:
        self.timeline, self.load, self.policy, self.size = timeline, load, policy, size
        self.cut = timeline.cut
        self.stubs: dict[int, tuple[Message, int]] = {}
        self.digest = digest_reserve(policy, load.usable)

    def cut_to(self, *, floor_at: int, goal: int, basis: str, start: int) -> None:
        """Cut at the first legal position, at or after `start`, that reduces the view to the size `goal`.

        If `floor_at` comes before this position, cut at `floor_at`. Then prune.
        """
        timeline = self.timeline
        tail = max(0, goal if basis == "history" else self.load.room_in(goal) - self._tokens_before(floor_at))
        cut = cutting.cut_within(timeline, self.policy, floor_at=floor_at, max_tokens=tail, start=start)
        self.cut = max(timeline.cut, cut)
        self.stubs = stubs_at_fold(timeline, self.cut, max(self.cut, floor_at), self.policy, self.size)

    def reduce_to(self, ceiling: int) -> None:
        """Fold protected messages until the view is below `ceiling`, then prune until it fits the window."""
        if self.after > ceiling and not self.policy.keep_hard:
            self.relax_floors(ceiling)
        if self.after > self.load.ceiling:
            self.shrink_to(self.load.ceiling)
        excess = self.after - self.load.ceiling
        if excess > 0 and self.digest > MIN_DIGEST:
            self.digest = max(MIN_DIGEST, self.digest - ceil(excess / self.load.scale))

    def relax_floors(self, ceiling: int) -> None:
        """Fold messages that the floors protect, until the view fits. The newest unit always stays."""
        last = cutting.newest_unit(self.timeline, self.policy)
        tail = max(0, self.load.room_in(ceiling) - self._tokens_before(last))
        self.cut = max(self.cut, cutting.cut_within(self.timeline, self.policy, floor_at=last, max_tokens=tail))
        while self.cut < last and self.after > ceiling:  # pins and carried messages differ from cut to cut
            self.cut = min(self.timeline.first_cut(self.policy.atom, self.cut + 1), last)
        self.stubs = {index: stub for index, stub in self.stubs.items() if index >= self.cut}

    def shrink_to(self, ceiling: int) -> None:
        """Prune kept results, the largest first, and then shorten other messages, until the view fits."""
        order = dict.fromkeys(largest_first(self.timeline, self.cut, self.policy))
        order |= dict.fromkeys(range(self.cut, len(self.timeline)))
        excess = self._tokens_before(self.cut) + self.tail - self.load.room_in(ceiling)
        for index in order:
            if excess <= 0:
                return
            smaller = smallest_form(self.timeline, index, self.policy, self.size)
            now = self.stubs[index][1] if index in self.stubs else self.timeline.tokens(index)
            if smaller is not None and smaller[1] < now:
                self.stubs[index] = smaller
                excess -= now - smaller[1]

    @property
    def tail(self) -> int:
        """Tokens of the messages after the cut, with stubs in place of pruned messages."""
        timeline = self.timeline
        saved = sum(timeline.tokens(index) - tokens for index, (_, tokens) in self.stubs.items() if index >= self.cut)
        saved += sum(map(timeline.tokens, self.removed))
        return timeline.prefix[-1] - timeline.prefix[self.cut] - saved

    @property
    def removed(self) -> tuple[int, ...]:
        """Indexes of the notes after the cut that leave with this fold, because their pins were removed."""
        return tuple(sorted([index for index in self.timeline.loose if index >= self.cut]))

    @property
    def after(self) -> int:
        """Size of the resulting view."""
        return self.load.size_of(self._tokens_before(self.cut) + self.tail)

    def _tokens_before(self, cut: int) -> int:
        """Tokens of the view before a cut: system messages, digest, and the earlier messages that stay."""
        pinned, carried = self.kept_before(cut)
        kept = pinned + carried
        head = self.timeline.prefix[self.timeline.lead]
        return head + self._digest_tokens(cut, (*kept, cut)) + self._tokens(kept, kept)

    def _digest_tokens(self, cut: int, kept: tuple[int, ...]) -> int:
        """Tokens of the digest or marker.

        If the view would not start with a user message, a marker is added at its start. The tokens of this marker are
        included.
        """
        timeline, policy = self.timeline, self.policy
        if cut <= timeline.lead:
            return 0
        unseen = policy.leave == "nothing" or (policy.leave == "digest" and policy.digest_role == "system")
        first = kept[0]
        while first in timeline.loose or first in timeline.removed:
            first += 1
        starts = first >= len(timeline) or timeline.messages[first].role == "user"
        return self.digest + (MARKER_TOKENS if unseen and not starts else 0)

    def _tokens(self, indices: tuple[int, ...], kept: tuple[int, ...]) -> int:
        """Tokens of the messages `indices`, in the form in which the view shows them. All of them are before the cut.

        `kept` has the indexes of all messages before the cut that stay in the view.
        """
        timeline, total = self.timeline, 0
        for index in indices:
            message = timeline.kept_message(index, kept)
            total += timeline.tokens(index) if message is timeline.shown[index] else self.size(message)
        return total

    def kept_before(self, cut: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Indexes of the messages before a cut that stay in the view: pins, then other messages.

        The view shows the pins before the digest, and the other messages after the digest.
        """
        timeline = self.timeline
        pins = {index for index in timeline.pins if index < cut}
        if self.policy.keep_first_prompt and timeline.prompts and timeline.prompts[0] < cut:
            pins.add(timeline.prompts[0])
        carried: set[int] = set()
        for index in tuple(pins):
            if not timeline.messages[index].is_prompt or timeline.messages[index].results:
                pins.discard(index)
                is_note = timeline.messages[index].kind == NOTE  # it may be between a call and its result
                carried.update((index,) if is_note else timeline.step(index))
        for index in timeline.waiting.values():
            carried.update(timeline.step(index) if index < cut else ())
        for call, result in timeline.late_results:
            carried.update(timeline.step(call) if call < cut <= result and self._is_in_view(call) else ())
        carried.update(self._unanswered_before(cut))
        carried = {index for index in carried if index < cut}.difference(timeline.loose)
        if timeline.prompts and timeline.prompts[-1] < cut and timeline.prompts[-1] not in pins:
            carried.add(timeline.prompts[-1])
        return tuple(sorted(pins)), tuple(sorted(carried))

    def _unanswered_before(self, cut: int) -> set[int]:
        """Indexes of the messages before the cut that belong to steps with an unanswered call.

        A step is left out if a later prompt has a reply, because the conversation then went on without the result. In
        this case, the digest says that the call has no result. The newest steps are taken first, up to `OPEN_SHARE` of
        the window.
        """
        timeline, room = self.timeline, int(OPEN_SHARE * self.load.usable)
        kept: set[int] = set()
        for index in sorted(set(timeline.unanswered.values()), reverse=True):
            if index >= cut or index < timeline.newest_answered_prompt or not self._is_in_view(index):
                continue
            step = set(timeline.step(index)) - kept
            room -= sum(map(timeline.tokens, step))
            if room < 0:
                break
            kept |= step
        return kept

    def _is_in_view(self, index: int) -> bool:
        """Whether the current view shows a message. Messages outside the view may not be in memory."""
        fold = self.timeline.fold
        return fold is None or index >= fold.cut or index in fold.carried

    def blocks(self) -> dict[str, int]:
        """Tokens of each block of the resulting view. All pinned messages belong to the block `pins`."""
        fold = self.fold(before=0, reason="")
        blocks = self.timeline.blocks(0, fold, self.tail)
        other = sum(self.pins().values()) - sum(map(self.timeline.tokens, self.timeline.pins.keys() & fold.pinned))
        blocks |= {"pins": blocks["pins"] + other, "history": max(blocks["history"] - other, 0)}
        scaled = {name: round(self.load.scale * tokens) for name, tokens in blocks.items()}
        tools = min(self.load.fixed, self.load.blocks.get("tools", self.load.fixed))
        hidden = {HIDDEN: self.load.fixed - tools} if self.load.fixed > tools else {}
        return {**scaled, "tools": tools, **hidden}

    def pins(self) -> dict[str, int]:
        """Tokens of each pinned message, by the name of its pin."""
        timeline = self.timeline
        return {name: timeline.tokens(index) for index, name in timeline.pins.items() if index < len(timeline)}

    def fold(self, *, before: int, reason: str) -> Fold:
        """The fold record, without its digest."""
        pinned, carried = self.kept_before(self.cut)
        kept = pinned + carried
        return Fold(
            cut=self.cut,
            lead=self.timeline.lead,
            digest_tokens=self._digest_tokens(self.cut, (*kept, self.cut)),
            pinned=pinned,
            pinned_tokens=self._tokens(pinned, kept),
            carried=carried,
            carried_tokens=self._tokens(carried, kept),
            stubs=self.stubs,
            removed=self.removed,
            reason=reason,
            made_at=len(self.timeline),
            before=before,
            after=self.after,
        )
