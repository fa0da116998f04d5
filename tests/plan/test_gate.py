"""The gate: a rule can fire before the request is too large, also if the size is only an estimate."""

from __future__ import annotations

from math import ceil

import pytest

from foldline import Need, Policy, Session
from foldline.plan.gate import Load, gate


def load(request: int, *, is_estimated: bool) -> Load:
    upper, margin = (ceil(1.15 * request), 0.15) if is_estimated else (request, 0.15)
    return Load(
        request=request, history=request, count=9, usable=1_000, upper=upper, margin=margin, is_estimated=is_estimated
    )


@pytest.mark.parametrize(
    ("size", "is_estimated", "need"),
    [
        (782, True, Need.NONE),
        (790, True, Need.SOFT),
        (870, True, Need.HARD),
        (900, False, Need.NONE),
        (901, False, Need.SOFT),
        (1_001, False, Need.HARD),
    ],
)
def test_soft_comes_before_hard(size: int, is_estimated: bool, need: Need) -> None:
    assert gate(load(size, is_estimated=is_estimated), Policy.preset("balanced")).need is need


@pytest.mark.parametrize("share", [60, 75, 80, 86])
def test_a_rule_that_can_fire_before_the_hard_limit_keeps_its_own_limit(share: int) -> None:
    policy = Policy().but(rules=(f"fold when request > {share}%",))
    assert gate(load(10 * share, is_estimated=True), policy).need is Need.NONE
    assert gate(load(10 * share + 1, is_estimated=True), policy).need is Need.SOFT


def test_a_session_without_usage_is_soft_before_it_is_hard() -> None:
    policy = Policy.preset("balanced").but(window_tokens=16_000, reply_tokens=1_000, min_gain_tokens=10**6)
    session, needs = Session(model="claude-sonnet-5", policy=policy), list[Need]()
    session.add({"role": "user", "content": "task"})
    while Need.HARD not in needs:
        session.add({"role": "assistant", "content": "some words " * 60}, {"role": "user", "content": "go on"})
        needs.append(gate(session.load(), policy).need)
    assert Need.SOFT in needs
