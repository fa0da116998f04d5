"""Computes the cut: the index of the first kept message.

The newest messages are not folded. A floor is a minimum size for the part that is kept. If there are several floors,
the floor that keeps the most applies. A fold removes no more than is needed to reach the target size. The newest unit
always stays: the unanswered prompts or, if there are none, the newest step. Even a single long turn can be folded: its
first steps are folded, and its prompt stays verbatim.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from foldline.plan.timeline import Timeline
from foldline.policy import Policy


def floor(timeline: Timeline, policy: Policy, usable: int) -> int:
    """The last legal cut that keeps all messages that the floors (the policy's minimums) protect.

    The result is `timeline.cut` if nothing may be folded. An atom is a message, step or turn, as the policy says. A
    floor in tokens may begin inside an atom. With `snap="forward"`, this atom is folded; with "backward", it stays. The
    newest atom always stays.
    """
    keep = max(policy.keep_tokens, int(policy.keep_ratio * usable))
    found = timeline.last_cut(policy.atom, timeline.tail)  # `newest_unit`
    if keep:
        found = min(found, _token_floor(timeline, policy, keep))
    if policy.keep_messages:
        found = min(found, timeline.last_cut(policy.atom, len(timeline) - policy.keep_messages))
    if policy.keep_turns:
        turns = timeline.cuts["turn"]
        found = min(found, turns[-policy.keep_turns] if len(turns) >= policy.keep_turns else timeline.lead)
    return max(timeline.cut, found)


def newest_unit(timeline: Timeline, policy: Policy) -> int:
    """The last possible cut: at the start of the newest unit."""
    return timeline.last_cut(policy.atom, timeline.tail)


def _token_floor(timeline: Timeline, policy: Policy, keep: int) -> int:
    prefix, total = timeline.prefix, timeline.prefix[-1]
    if total - prefix[timeline.lead] <= keep:
        return timeline.lead
    if policy.snap == "backward":
        return timeline.last_cut(policy.atom, bisect_right(prefix, total - keep) - 1)
    found = timeline.first_cut(policy.atom, bisect_left(prefix, total - keep))
    return found if found < len(timeline) else newest_unit(timeline, policy)


def cut_within(timeline: Timeline, policy: Policy, *, floor_at: int, max_tokens: int, start: int = 0) -> int:
    """The first legal cut at or after `start` that keeps at most `max_tokens` tokens.

    If `floor_at` comes before this cut, `floor_at` is returned.
    """
    wanted = max(start, bisect_left(timeline.prefix, timeline.prefix[-1] - max_tokens, lo=timeline.cut))
    return min(timeline.first_cut(policy.atom, wanted), floor_at)
