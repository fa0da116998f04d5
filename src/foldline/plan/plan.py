"""The decision as a whole: gate, then cut, then prune, until the view fits or the reason why it cannot is known.

Pure: the same timeline, sizes and policy give the same plan. What the digest will say is not known here; its cap is
reserved, and the fold's true size is measured when it is made.
"""

from __future__ import annotations

from bisect import bisect_left
from math import ceil
from typing import NamedTuple

from foldline.errors import ViewTooLarge
from foldline.fold import Fold
from foldline.message import Message
from foldline.plan import cut as cutting
from foldline.plan.gate import NOTHING_DUE, Load, Need, Verdict, gate, limit
from foldline.plan.prune import Size, at_fold, largest_first, squeeze
from foldline.plan.timeline import Timeline
from foldline.policy import Policy, Rule

MARKER_TOKENS = 60
"""Reserved for the one line that stands for what left without a digest."""
DIGEST_SHARE = 0.175
"""The most of a window that is kept free for a digest: in a small one its cap gives way, not the conversation."""


class Plan(NamedTuple):
    """What to do. `fold` has everything but its digest; None when nothing is to be done."""

    verdict: Verdict
    fold: Fold | None = None
    skipped: str = ""
    """Why a wish was not granted."""

    def __str__(self) -> str:
        if self.fold is None:
            return f"{self.verdict.need.name}: {self.skipped or self.verdict.reason or 'nothing to do'}"
        fold = self.fold
        return f"{self.verdict.need.name}: fold {fold.cut} messages, ~{fold.before:,} → ~{fold.after:,} ({fold.reason})"


NOTHING_TO_DO = Plan(NOTHING_DUE)
"""The plan of nearly every turn."""


def plan(timeline: Timeline, load: Load, policy: Policy, size: Size, *, verdict: Verdict | None = None) -> Plan:
    """What to do about a load; the gate's verdict on it is computed unless it is given."""
    verdict = gate(load, policy) if verdict is None else verdict
    if verdict is NOTHING_DUE:
        return NOTHING_TO_DO
    if verdict.need is Need.NONE or (verdict.need is Need.SOFT and verdict.action == "pause"):
        return Plan(verdict=verdict)
    if not any(rule.action in {"fold", "clip"} for rule in policy.rules):
        blocks = timeline.blocks(load.fixed)
        raise _too_large(blocks, load, max(load.request, load.upper), hint="this policy never folds")
    return fold_now(timeline, verdict, load, policy, size)


def fold_now(timeline: Timeline, verdict: Verdict, load: Load, policy: Policy, size: Size) -> Plan:
    """The fold for a verdict: floors and target first, then what must give way so that the view fits."""
    draft = _Draft(timeline, load, policy, size)
    rule = next((rule for rule in verdict.fired if rule.action == verdict.action), None)
    goal = _goal(rule, policy, load)
    floor_at = cutting.floor(timeline, policy, load.usable)
    start = max((0, *(_start(rule, timeline, load) for rule in verdict.fired)))
    draft.land(floor_at=floor_at, goal=goal, basis=rule.basis if rule else "request", start=start)
    ceiling = min((load.ceiling, *(_trigger(rule, load) for rule in verdict.fired)))
    if draft.after > ceiling and not policy.keep_hard:
        draft.yield_floors(ceiling)
    if draft.after > load.ceiling:
        draft.squeeze_to(load.ceiling)
    if draft.after > load.ceiling:
        if verdict.need is Need.HARD:
            raise _too_large(draft.blocks(), load, ceil(draft.after * (1 + load.margin)))
        return Plan(verdict=verdict, skipped="what must stay does not fit below the trigger")
    fold = draft.fold(before=load.request, reason=verdict.reason)
    gain, covered = load.request - fold.after, timeline.prefix[fold.cut] - timeline.prefix[timeline.cut]
    if verdict.need is Need.SOFT and (
        fold.after >= load.request or gain < policy.min_gain_tokens or gain < policy.min_gain_ratio * covered
    ):
        return Plan(verdict=verdict, skipped=f"a fold would free only {max(gain, 0):,} tokens")
    return Plan(verdict=verdict, fold=fold)


def by_hand(timeline: Timeline, load: Load, policy: Policy, size: Size, *, force: bool = False) -> Fold | None:
    """The fold that somebody asked for: down to the floors, or with `force` all before the last thing the user said.

    None when nothing would leave.
    """
    draft = _Draft(timeline, load, policy, size)
    if force:
        turns = timeline.cuts["turn"]
        draft.cut = max(timeline.cut, turns[-1] if turns else 0)
    else:
        floor_at = cutting.floor(timeline, policy, load.usable)
        draft.land(floor_at=floor_at, goal=int(policy.target_ratio * load.usable), basis="request", start=0)
    if draft.cut <= max(timeline.cut, timeline.lead):
        return None
    return draft.fold(before=load.request, reason="asked for")


def _too_large(items: dict[str, int], load: Load, tokens: int, *, hint: str = "") -> ViewTooLarge:
    """The refusal of a view of up to `tokens`: what its blocks are estimated at, and the margin of the estimate."""
    return ViewTooLarge(tokens, load.usable, {**items, "margin": tokens - sum(items.values())}, hint=hint)


def _goal(rule: Rule | None, policy: Policy, load: Load) -> int:
    """Where the fold should land. A clip lands at its own limit; a fold at the policy's target."""
    if rule is None or rule.action != "clip" or rule.basis == "cost":
        return int(policy.target_ratio * load.usable)
    return load.usable if rule.basis == "count" else _bound(rule, load)


def _bound(rule: Rule, load: Load) -> int:
    """The largest figure at which a rule does not hold."""
    bound = limit(rule, load.usable)
    return int(bound) if rule.strict else ceil(bound) - 1


def _trigger(rule: Rule, load: Load) -> int:
    """Above this size a rule on the request asks for another fold at once."""
    folds = rule.action in {"fold", "clip"} and rule.basis == "request"
    return _bound(rule, load) if folds else load.usable


def _start(rule: Rule, timeline: Timeline, load: Load) -> int:
    """The first message behind which a rule on history or count asks for nothing more."""
    if rule.action in {"fold", "clip"} and rule.basis == "history":
        return bisect_left(timeline.prefix, timeline.prefix[-1] - _bound(rule, load))
    return len(timeline) - _bound(rule, load) if rule.action in {"fold", "clip"} and rule.basis == "count" else 0


def digest_room(policy: Policy, usable: int) -> int:
    """What is kept free for whatever stands for the folded part."""
    room = min(policy.digest_tokens, max(MARKER_TOKENS, int(DIGEST_SHARE * usable)))
    return {"digest": room, "marker": MARKER_TOKENS, "nothing": 0}[policy.leave]


class _Draft:
    """A fold in the making: its cut, its stubs, and what the view would then hold."""

    def __init__(self, timeline: Timeline, load: Load, policy: Policy, size: Size) -> None:
        self.timeline, self.load, self.policy, self.size = timeline, load, policy, size
        self.cut = timeline.cut
        self.stubs: dict[int, tuple[Message, int]] = {}
        self.digest = digest_room(policy, load.usable)

    def land(self, *, floor_at: int, goal: int, basis: str, start: int) -> None:
        """Cut as little as reaches the goal, but not before `start`, then prune what need not stay whole."""
        timeline = self.timeline
        room = max(0, goal - (0 if basis == "history" else self._beside(floor_at)))
        self.cut = max(timeline.cut, cutting.choose(timeline, self.policy, floor_at=floor_at, room=room, start=start))
        self.stubs = at_fold(timeline, self.cut, max(self.cut, floor_at), self.policy, self.size)

    def yield_floors(self, ceiling: int) -> None:
        """Floors are wishes when the view does not fit: keep cutting, down to the newest unit."""
        last = cutting.newest(self.timeline, self.policy)
        room = max(0, ceiling - self._beside(last))
        self.cut = max(self.cut, cutting.choose(self.timeline, self.policy, floor_at=last, room=room))
        while self.cut < last and self.after > ceiling:  # what stays beside the tail is not the same for every cut
            self.cut = min(self.timeline.legal_after(self.policy.atom, self.cut + 1), last)
        self.stubs = {index: stub for index, stub in self.stubs.items() if index >= self.cut}

    def squeeze_to(self, ceiling: int) -> None:
        """Prune the largest kept results, then anything that can be made smaller, until the view fits."""
        order = dict.fromkeys(largest_first(self.timeline, self.cut, self.policy))
        order |= dict.fromkeys(range(self.cut, len(self.timeline)))
        excess = self.after - ceiling
        for index in order:
            if excess <= 0:
                return
            smaller = squeeze(self.timeline, index, self.policy, self.size)
            now = self.stubs[index][1] if index in self.stubs else self.timeline.tokens(index)
            if smaller is not None and smaller[1] < now:
                self.stubs[index] = smaller
                excess -= now - smaller[1]

    @property
    def tail(self) -> int:
        """Tokens of what stays word for word, stubs counted as stubs."""
        timeline = self.timeline
        saved = sum(timeline.tokens(index) - tokens for index, (_, tokens) in self.stubs.items() if index >= self.cut)
        return timeline.prefix[-1] - timeline.prefix[self.cut] - saved

    @property
    def after(self) -> int:
        """What the view would hold."""
        return self._beside(self.cut) + self.tail

    def _beside(self, cut: int) -> int:
        """Tokens of everything but the tail, for a cut."""
        pinned, carried = self.kept_before(cut)
        kept = self._tokens((*pinned, *carried), (*pinned, *carried))
        return (
            self.load.fixed
            + self.timeline.prefix[self.timeline.lead]
            + self._instead(cut, (*pinned, *carried, cut))
            + kept
        )

    def _instead(self, cut: int, kept: tuple[int, ...]) -> int:
        """Tokens of what stands for the folded part, and of a line in front where nothing else is the user's."""
        timeline, policy = self.timeline, self.policy
        if cut <= timeline.lead:
            return 0
        silent = policy.leave == "nothing" or (policy.leave == "digest" and policy.digest_role == "system")
        starts = kept[0] >= len(timeline) or timeline.messages[kept[0]].role == "user"
        return self.digest + (MARKER_TOKENS if silent and not starts else 0)

    def _tokens(self, indices: tuple[int, ...], kept: tuple[int, ...]) -> int:
        """The size of messages before the cut as the view shows them among all that are `kept`."""
        timeline, total = self.timeline, 0
        for index in indices:
            message = timeline.kept(index, kept)
            total += timeline.tokens(index) if message is timeline.shown[index] else self.size(message)
        return total

    def kept_before(self, cut: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Messages before a cut that stay: pins in front of the digest, the rest behind it."""
        timeline = self.timeline
        pins = {index for index in timeline.pins if index < cut}
        if self.policy.keep_first_prompt and timeline.prompts and timeline.prompts[0] < cut:
            pins.add(timeline.prompts[0])
        carried: set[int] = set()
        for index in tuple(pins):
            if not timeline.messages[index].is_prompt or timeline.messages[index].results:
                pins.discard(index)
                carried.update(timeline.step(index))
        for index in timeline.waiting.values():
            carried.update(timeline.step(index) if index < cut else ())
        carried = {index for index in carried if index < cut}
        if timeline.prompts and timeline.prompts[-1] < cut and timeline.prompts[-1] not in pins:
            carried.add(timeline.prompts[-1])
        return tuple(sorted(pins)), tuple(sorted(carried))

    def blocks(self) -> dict[str, int]:
        """Tokens by block of the view that the draft would leave."""
        return self.timeline.blocks(self.load.fixed, self.fold(before=0, reason=""), self.tail)

    def fold(self, *, before: int, reason: str) -> Fold:
        """The draft as a record, without its digest."""
        pinned, carried = self.kept_before(self.cut)
        return Fold(
            cut=self.cut,
            digest_tokens=self._instead(self.cut, (*pinned, *carried, self.cut)),
            pinned=pinned,
            pinned_tokens=self._tokens(pinned, pinned + carried),
            carried=carried,
            carried_tokens=self._tokens(carried, pinned + carried),
            stubs=self.stubs,
            reason=reason,
            made_at=len(self.timeline),
            before=before,
            after=self.after,
        )
