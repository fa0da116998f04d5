"""Where: the first message that stays.

Floors say how much of the newest part must stay; the largest wins. A target says how much must leave; no more leaves
than that. The newest unit (unanswered prompts, or the newest step with its calls) always stays, and the newest prompt
stays word for word even when the steps after it are folded, so that one long turn can be folded too.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from foldline.plan.timeline import Path
from foldline.policy import Policy


def floor(path: Path, policy: Policy, usable: int) -> int:
    """The last legal cut that leaves all floors standing; `path.cut` when nothing may leave.

    With `snap="forward"` the token floor is an upper bound instead: the tail is *at most* that large. Where that would
    keep nothing at all, the newest unit is kept and everything before it may leave.
    """
    keep = max(policy.keep_tokens, int(policy.keep_ratio * usable))
    bounds = [newest(path, policy)]
    if keep:
        bounds.append(_token_floor(path, policy, keep))
    if policy.keep_messages:
        bounds.append(path.legal(policy.atom, len(path) - policy.keep_messages))
    if policy.keep_turns:
        turns = path.cuts["turn"]
        bounds.append(turns[-policy.keep_turns] if len(turns) >= policy.keep_turns else path.lead)
    return max(path.cut, min(bounds))


def newest(path: Path, policy: Policy) -> int:
    """The last cut there is: in front of the newest unit."""
    return path.legal(policy.atom, path.tail)


def _token_floor(path: Path, policy: Policy, keep: int) -> int:
    prefix, total = path.prefix, path.prefix[-1]
    if total - prefix[path.lead] <= keep:
        return path.lead
    if policy.snap == "backward":
        return path.legal(policy.atom, bisect_right(prefix, total - keep) - 1)
    found = path.legal_after(policy.atom, bisect_left(prefix, total - keep))
    return found if found < len(path) else newest(path, policy)


def choose(path: Path, policy: Policy, *, floor_at: int, room: int, start: int = 0) -> int:
    """The first legal cut from `start` on behind which at most `room` tokens stand, but none beyond `floor_at`."""
    wanted = max(start, bisect_left(path.prefix, path.prefix[-1] - room, lo=path.cut))
    return min(path.legal_after(policy.atom, wanted), floor_at)
