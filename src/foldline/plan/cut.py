"""Where: the first message that stays.

Floors say how much of the newest part must stay; the largest wins. A target says how much must leave; no more leaves
than that. The newest unit (unanswered prompts, or the newest step with its calls) always stays, and the newest prompt
stays word for word even when the steps after it are folded, so that one long turn can be folded too.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from foldline.plan.timeline import Timeline
from foldline.policy import Policy


def floor(timeline: Timeline, policy: Policy, usable: int) -> int:
    """The last legal cut that leaves all floors standing; `timeline.cut` when nothing may leave.

    With `snap="forward"` the token floor is an upper bound instead: the tail is *at most* that large. Where that would
    keep nothing at all, the newest unit is kept and everything before it may leave.
    """
    keep = max(policy.keep_tokens, int(policy.keep_ratio * usable))
    bounds = [newest(timeline, policy)]
    if keep:
        bounds.append(_token_floor(timeline, policy, keep))
    if policy.keep_messages:
        bounds.append(timeline.legal(policy.atom, len(timeline) - policy.keep_messages))
    if policy.keep_turns:
        turns = timeline.cuts["turn"]
        bounds.append(turns[-policy.keep_turns] if len(turns) >= policy.keep_turns else timeline.lead)
    return max(timeline.cut, min(bounds))


def newest(timeline: Timeline, policy: Policy) -> int:
    """The last cut there is: in front of the newest unit."""
    return timeline.legal(policy.atom, timeline.tail)


def _token_floor(timeline: Timeline, policy: Policy, keep: int) -> int:
    prefix, total = timeline.prefix, timeline.prefix[-1]
    if total - prefix[timeline.lead] <= keep:
        return timeline.lead
    if policy.snap == "backward":
        return timeline.legal(policy.atom, bisect_right(prefix, total - keep) - 1)
    found = timeline.legal_after(policy.atom, bisect_left(prefix, total - keep))
    return found if found < len(timeline) else newest(timeline, policy)


def choose(timeline: Timeline, policy: Policy, *, floor_at: int, room: int, start: int = 0) -> int:
    """The first legal cut from `start` on behind which at most `room` tokens stand, but none beyond `floor_at`."""
    wanted = max(start, bisect_left(timeline.prefix, timeline.prefix[-1] - room, lo=timeline.cut))
    return min(timeline.legal_after(policy.atom, wanted), floor_at)
